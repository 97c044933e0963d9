"""The elastic net and its row form: against scikit-learn and a plain solver, and how the share of the norm travels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import dboost
from dboost import BoostedClassifier
from dboost.errors import UsageError
from dboost.penalties import ElasticNet
from tests.boosting import plain

RATIOS = [0.25, 0.5, 0.9]


@pytest.mark.filterwarnings("ignore:'penalty' was deprecated:FutureWarning")
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("loss", ["log", "multinomial"])
def test_the_objective_of_scikit_learn(loss, ratio):
    data, penalty = plain.make(loss, m=150, n=12, seed=6), ElasticNet(ratio)
    alpha = 0.1 * plain.alpha_max(data, penalty)
    ours = BoostedClassifier(loss=loss, penalty=penalty, alpha=alpha, tol=1e-8, max_rounds=300)
    found = ours.fit(data.X, data.y.ravel())
    theirs = LogisticRegression(
        penalty="elasticnet", solver="saga", l1_ratio=ratio, C=1 / (alpha * 150), tol=1e-9, max_iter=20_000
    ).fit(data.X, data.y.ravel())
    values = [
        plain.objective(data, penalty, alpha * 150, one.coef_.T.astype(np.float64), one.intercept_)
        for one in (found, theirs)
    ]
    assert found.duality_gap_ <= 1e-8
    assert abs(values[0] - values[1]) <= 1e-6 * values[1]


def test_what_is_not_certified_is_refused_by_name():
    data = plain.make("multinomial", m=60, n=4)
    with pytest.raises(UsageError, match="penalty 'elastic_net'.*hypotheses=Stumps"):
        BoostedClassifier(alpha="quick", penalty="elastic_net", hypotheses=dboost.Stumps()).fit(data.X, data.y)
    with pytest.raises(UsageError, match="'l1/l2\\+ridge' does not follow"):
        BoostedClassifier(alpha="quick", penalty="l1/l2+ridge", standardize=True).fit(data.X, data.y)
