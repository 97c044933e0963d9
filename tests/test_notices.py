"""Warnings point at the line of the user that led to them, whatever lies between."""

from __future__ import annotations

import pickle
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning as SklearnsConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dboost
from dboost.notices import warn_user


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    return X, X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=120) > 0


# What ends above its tolerance, called in one line of this file.
OPEN = {"alpha": 1e-4, "max_rounds": 1, "tol": 1e-12}
CALLS = {
    "fit": lambda X, y: dboost.BoostedClassifier(**OPEN).fit(X, y),
    "regressor": lambda X, y: dboost.BoostedRegressor(**OPEN).fit(X, y + X[:, 2]),
    "pipeline": lambda X, y: make_pipeline(StandardScaler(), dboost.BoostedClassifier(**OPEN)).fit(X, y),
    "cross_val_score": lambda X, y: cross_val_score(dboost.BoostedClassifier(**OPEN), X, y, cv=2),
    "path": lambda X, y: dboost.regularization_path(X, y, max_rounds=1, tol=1e-12, n_alphas=3),
    "cv": lambda X, y: dboost.BoostedClassifierCV(
        max_rounds=1, tol=1e-12, cv=2, alphas=[0.3, 0.01, 0.005], scoring="error"
    ).fit(X, y),
}


def test_a_fit_that_ends_open_warns_at_the_users_line(rows):
    for name, call in CALLS.items():
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call(*rows)
        found = [warning for warning in seen if issubclass(warning.category, dboost.ConvergenceWarning)]
        assert found, name
        for warning in found:
            assert Path(warning.filename) == Path(__file__), name
            assert warning.lineno in range(call.__code__.co_firstlineno, call.__code__.co_firstlineno + 3)


def test_where_no_line_is_the_users_the_outermost_is_named():
    seen = []
    thread = threading.Thread(target=warn_user, args=("from a thread",))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, category, filename, *rest: seen.append((str(message), filename))
        thread.start()
        thread.join()
    assert seen == [("from a thread", threading.__file__)]


def test_a_convergence_warning_is_scikit_learns_too(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SklearnsConvergenceWarning)
        dboost.BoostedClassifier(**OPEN).fit(*rows)
    assert issubclass(dboost.ConvergenceWarning, dboost.DboostWarning)
    assert dboost.errors.ConvergenceWarning is dboost.ConvergenceWarning
    again = pickle.loads(pickle.dumps(dboost.ConvergenceWarning("open")))
    assert type(again) is dboost.ConvergenceWarning
    assert str(again) == "open"
