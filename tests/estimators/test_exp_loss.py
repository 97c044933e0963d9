"""The exponential loss for two classes: AdaBoost's objective through ``BoostedClassifier``."""

from __future__ import annotations

import numpy as np
import pytest

from dboost import BoostedClassifier, BoostedRegressor, DataError, MultiTaskBoostedClassifier, UsageError


def test_probabilities_have_the_link_of_the_loss(binary):
    X, y = binary
    model = BoostedClassifier(loss="exp", penalty="l1", alpha=0.03).fit(X, y)
    f = model.decision_function(X)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P[:, 1], 1.0 / (1.0 + np.exp(-2.0 * f)), rtol=1e-13)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-14)
    # The score that minimises the mean loss of one group is half its log-odds.
    constant = BoostedClassifier(loss="exp", alpha=10.0).fit(X, y)
    assert constant.predict_proba(X[:1])[0, 1] == pytest.approx(y.mean(), rel=1e-9)


def test_it_takes_two_classes_only(multiclass):
    with pytest.raises(DataError, match="3 classes for a binary loss"):
        BoostedClassifier(alpha="quick", loss="exp").fit(*multiclass)
    for kind in (BoostedRegressor, MultiTaskBoostedClassifier):
        with pytest.raises(UsageError, match="loss='exp'"):
            kind(loss="exp").fit(*multiclass)
