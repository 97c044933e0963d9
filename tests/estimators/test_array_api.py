"""Arrays of other libraries, whether scikit-learn is told to turn them into NumPy's or not."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn

import dboost

strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")


def test_arrays_of_another_library_are_read_as_those_of_numpy(monkeypatch):
    # scikit-learn asks for this before it dispatches
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(np.int64)
    made = strict.asarray(X), strict.asarray(y)
    for estimator in (
        dboost.BoostedClassifier(alpha=0.05),
        dboost.BoostedRegressor(alpha=0.05),
        dboost.OneVsRestBoostedClassifier(dboost.BoostedClassifier(alpha=0.05)),
    ):
        expected = estimator.fit(X, y).predict(X)
        for dispatch in (False, True):
            with sklearn.config_context(array_api_dispatch=dispatch):
                for given in (made, (made[0], y), (X, y)):
                    fitted = estimator.fit(*given)
                    assert np.array_equal(fitted.predict(given[0]), expected)
                    assert fitted.score(*given) > 0.6
