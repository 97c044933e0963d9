"""Options of columns together, with every loss and penalty: each cell is certified, or refused with its reason.

A cell is a loss, a penalty and one, two or all of the options below. Its fit ends certified, at the objective that
dense numpy finds for its model, whose weights have what the options ask of them; or it is refused with a reason of the
two lists below.

Covers: offsets, factors of 0 and inf, signs, groups, standardised and far columns, targets that are several or missing.
Does not cover: each option by itself in depth (test_column_options.py).
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections import Counter
from functools import cache

import numpy as np
import pytest

import dboost
from dboost.errors import UsageError
from dboost.losses import LOSSES
from dboost.penalties import PENALTIES, get_penalty
from tests.boosting import plain

N = 8
FREE, OUT, UP, DOWN = 0, 1, 2, 3
GROUPS = [0, 0, 1, 1, 2, 2, 3, 4]
FAR = 1e9
OPTIONS = ("offset", "free", "out", "signs", "groups", "standardize", "far")
TOGETHER = [(), *((one,) for one in OPTIONS), *itertools.combinations(OPTIONS, 2), OPTIONS]
EVERY_LOSS = (*LOSSES, "squared,log")
CELLS = list(itertools.product(EVERY_LOSS, PENALTIES, TOGETHER))
TOL = 1e-4

# What mathematics forbids, by what a refusal says of it,
FORBIDDEN = (
    r"penalty_factors multiply the strength of the penalty, and penalty 'none' has none",
    r"column_groups: penalty '\S+' is a sum over single weights, which groups change nothing of",
    r"column_groups: penalty 'l2' ties all features into one group already",
    r"column_groups: penalty '\S+' leaves no feature out",
    r"need a certificate, as the gradient is not zero where a weight is held at zero, and penalty 'smooth",
)
# and what only has no solver here: this list is to become shorter.
UNSOLVED = (
    r"standardize=True multiplies the strength .* penalty '(smooth_l1|smooth_l1/linf|elastic_net|l1/l2\+ridge)'",
    r"column_groups needs a norm of several rows, which penalty 'l1/l2\+(l1|ridge)'",
    r"loss '(exp|poisson)' needs a solve of a row under the exponential bound, which penalty 'smooth_l1/linf'",
)
ESTIMATORS = {
    "binary": dboost.BoostedClassifier,
    "multiclass": dboost.BoostedClassifier,
    "multitask": dboost.MultiTaskBoostedClassifier,
    "regression": dboost.BoostedRegressor,
    "multitarget": dboost.MultiTaskBoostedRegressor,
}


@cache
def problem(loss):
    """Examples of a loss; labels in the code of ``plain``, and as an estimator takes them."""
    if loss in LOSSES:
        data = plain.make(loss, m=60, n=N, k=3, seed=5, density=0.8)
        return data, data.y
    data = plain.make("multitarget", m=60, n=N, k=2, seed=5, density=0.8)
    y = np.column_stack([data.y[:, 0], np.where(np.isnan(data.y[:, 1]), np.nan, np.sign(data.y[:, 1]))])
    return data, y


def loss_of(loss, data, y, F):
    """L at the margins F, sum form."""
    if loss in LOSSES:
        return data.value(F)
    seen = ~np.isnan(y[:, 1])
    return np.nansum((y[:, 0] - F[:, 0]) ** 2) / 2 + np.logaddexp(0.0, -y[seen, 1] * F[seen, 1]).sum()


def outcome(loss, penalty, options):
    """("certified" | "refused" | "wrong", what there is to say of it)."""
    data, y = problem(loss)
    X = data.X.copy()
    asked = {"penalty": penalty, "tol": TOL, "standardize": "standardize" in options, "max_seconds": 100}
    factors = np.ones(N)
    if "far" in options:
        X[:, 4] += FAR * X[:, 4].std()
    if "free" in options:
        factors[FREE] = 0.0
    if "out" in options:
        factors[OUT] = np.inf
    if "signs" in options:
        asked["lower"], asked["upper"] = np.full(N, -np.inf), np.full(N, np.inf)
        asked["lower"][UP] = asked["upper"][DOWN] = 0.0
    groups = GROUPS
    offset = np.zeros((len(X), data.k))
    if "offset" in options:
        offset = np.random.default_rng(9).normal(size=offset.shape)
        X = np.hstack([X, offset])
        asked["offset"] = list(range(N, N + data.k))
        for name, none in (("lower", -np.inf), ("upper", np.inf)):
            if name in asked:
                asked[name] = np.append(asked[name], np.full(data.k, none))
    if "free" in options or "out" in options:
        asked["penalty_factors"] = np.append(factors, np.ones(X.shape[1] - N))
    if "groups" in options:
        asked["column_groups"] = [*groups, *range(5, 5 + X.shape[1] - N)]
    task = LOSSES[loss].task if loss in LOSSES else "multitarget"
    labels = np.where(y == 0, np.nan, np.maximum(y, 0)) if task == "multitask" else y
    if loss not in LOSSES:
        labels = np.column_stack([y[:, 0], np.where(np.isnan(y[:, 1]), np.nan, y[:, 1] > 0.0)])
    alpha = "quick" if penalty == "none" else 0.01
    estimator = ESTIMATORS[task](loss=loss, alpha=alpha, random_state=0, **asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator.fit(X, labels)
        except UsageError as fault:
            return "refused", str(fault)
    W = np.atleast_2d(estimator.coef_)
    if task in ("binary", "regression"):
        W = W.reshape(1, -1)
    W = W.T
    b = np.ravel(estimator.intercept_)
    gap, reason = estimator.duality_gap_, estimator.stop_reason_
    if not (gap <= TOL or (reason == "gradient" and not get_penalty(penalty).certified)):
        return "wrong", f"ends {reason!r} at the gap {gap:.2g}"
    rows = W[:N]
    if "offset" in options and not np.array_equal(W[N:], np.eye(data.k)):
        return "wrong", "offsets have other weights than one"
    if "out" in options and rows[OUT].any():
        return "wrong", "a column that is left out has weights"
    if "signs" in options and task != "multiclass" and not (rows[UP].min() >= 0 and rows[DOWN].max() <= 0):
        return "wrong", "a weight has the wrong sign"
    value = loss_of(loss, data, y, X @ W + b) / len(X)
    scale = np.std(X[:, :N], axis=0) ** get_penalty(penalty).degree if asked["standardize"] else np.ones(N)
    strength = estimator.alpha_ * np.where(np.isinf(factors), 0.0, factors) * scale
    if "groups" in options:
        size, counted = get_penalty(penalty), np.isfinite(factors)
        whole = [np.array(GROUPS) == group for group in set(GROUPS)]
        many = [max(np.count_nonzero(mine & counted & (factors > 0.0)), 1) for mine in whole]
        sizes = [size.value((strength[mine, None] * rows[mine]).reshape(1, -1))[0] for mine in whole]
        value += float(np.sum(size.of_size(np.array(many, float)) * sizes))
    else:
        value += get_penalty(penalty).total(rows, strength)
    if not abs(value - estimator.objective_) <= 1e-6 * abs(value):
        return "wrong", f"says the objective {estimator.objective_:.10g}, which is {value:.10g}"
    return "certified", ""


def counted(cells):
    """How many cells end how; every one of them ends well."""
    found = Counter()
    for cell in cells:
        ends, said = outcome(*cell)
        if ends == "refused":
            lists = {"forbidden": FORBIDDEN, "unsolved": UNSOLVED}
            ends = next((name for name, some in lists.items() if any(re.search(one, said) for one in some)), "refused")
        assert ends in ("certified", "forbidden", "unsolved"), (cell, said)
        found[ends] += 1
    return found


def test_each_loss_with_each_penalty_and_some_options():
    """Another set of options for each; together they are all sets."""
    pairs = itertools.product(enumerate(EVERY_LOSS), enumerate(PENALTIES))
    found = counted((loss, penalty, TOGETHER[(7 * i + 11 * j) % len(TOGETHER)]) for (i, loss), (j, penalty) in pairs)
    assert found["certified"] >= 80, found


@pytest.mark.full
@pytest.mark.timeout(900)
def test_every_cell():
    found = counted(CELLS)
    assert found["certified"] >= 2534 and found["unsolved"] <= 506, found
