"""What each candidate of a shortlist would gain, against scipy's minimum over its row or group."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from dboost.boosting.shareboost.choice import Group
from dboost.boosting.shareboost.rounds import ShareBoost
from dboost.boosting.shareboost.trials import gains
from tests.boosting import plain

CANDIDATES = np.array([1, 4, 5, 7])
# (loss, penalty, strength per unit of weight); without a penalty the loss alone must have a minimiser
CASES = [
    *((loss, "l2_squared", 1e-2) for loss in ("margin_softmax", "multinomial", "log", "squared", "multitask")),
    ("margin_softmax", "smooth_l1", 1e-2),
    ("multinomial", "smooth_l1/linf", 1e-2),
    ("log", "none", 0.0),
]


def model(loss, penalty, scale=1.0):
    """A problem, and a model of rows 0 and 3 at which nothing is optimal."""
    data = plain.make(loss, m=70, n=9, weights=True, seed=41)
    data.X[:, 4] *= scale
    data.X[::2, 5] = 0.0
    problem = plain.fitting(data, penalty=penalty, system=ShareBoost("row")).problem
    rng = np.random.default_rng(2)
    W, b = 0.3 * rng.normal(size=(2, data.k)), 0.1 * rng.normal(size=data.k)
    return data, problem, problem.evaluate(np.array([0, 3]), W, b)


def fall(data, problem, here, columns, lam):
    """How far the objective falls over the rows of some columns, the rest held; by scipy from its values alone."""
    F = data.X[:, here.active] @ here.W + here.intercept
    X, zero = data.X[:, columns], np.zeros((len(columns), data.k))

    def value(v):
        u = v.reshape(zero.shape)
        return data.value(F + X @ u) + problem.penalty.total(u, np.full(len(columns), lam))

    found = minimize(value, zero.ravel(), method="BFGS", options={"gtol": 1e-6})
    return value(zero.ravel()) - found.fun


@pytest.mark.parametrize("scale", [1.0, 50.0, 1e-3])
@pytest.mark.parametrize("loss,penalty,alpha", CASES)
def test_rows_alone(loss, penalty, alpha, scale):
    data, problem, here = model(loss, penalty, scale)
    lam = alpha * data.s.sum()
    found = gains(problem, here, [Group(np.array([j]), 0.0) for j in CANDIDATES], "row", lam, 1e-6, len(data.s))
    expected = [fall(data, problem, here, [j], lam) for j in CANDIDATES]
    # the row is solved until its gradient is a hundredth of what it began with: what is left to gain is its square
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert np.all(np.array(found) <= np.array(expected) * (1 + 1e-6))


@pytest.mark.parametrize("loss", ["margin_softmax", "log"])
def test_groups_of_one_gain_what_they_do_among_larger_ones(loss):
    """A shortlist with a larger group is solved by the corrective step; single rows by Newton's method for all."""
    data, problem, here = model(loss, "l2_squared")
    lam = 1e-2 * data.s.sum()
    ones = [Group(np.array([j]), 0.0) for j in CANDIDATES]
    both = [*ones, Group(np.array([2, 8]), 0.0)]
    alone = gains(problem, here, ones, "row", lam, 1e-6, len(data.s))
    beside = gains(problem, here, both, "row", lam, 1e-6, len(data.s))
    np.testing.assert_allclose(alone, beside[:-1], rtol=1e-3)
    assert beside[-1] == pytest.approx(fall(data, problem, here, [2, 8], lam), rel=1e-3)


def test_a_row_that_separates_the_classes_ends():
    """Without a penalty its weight grows without end; the trial ends by its gradient."""
    data = plain.make("log", m=60, n=9, seed=3)
    data.X[:, 4] = np.ravel(data.y)
    problem = plain.fitting(data, penalty="none", system=ShareBoost("row")).problem
    here = problem.evaluate(np.array([0]), np.zeros((1, 1)), np.zeros(1))
    (found,) = gains(problem, here, [Group(np.array([4]), 0.0)], "row", 0.0, 1e-6, 60)
    assert 0.9 * here.loss < found <= here.loss


def test_a_shortlist_of_rows_takes_few_passes():
    """Newton's method for all of them at once, however many there are."""
    data, problem, here = model("margin_softmax", "l2_squared")
    before = problem.passes
    gains(problem, here, [Group(np.array([j]), 0.0) for j in CANDIDATES], "row", 1.0, 1e-6, len(data.s))
    assert problem.passes - before <= 8
