"""Columns that are penalised in groups: the optimum, its certificate, the largest strength, and paths.

Covers: fits by settings against an independent solver (``grouped``), for each loss, penalty, and kind of step. Does not
cover: names, files and engines of several processes (tests/estimators/test_column_options.py).
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from dboost.boosting import path as paths
from dboost.columns.given import PENALTY_FACTORS, ColumnGroups, Signs
from dboost.engine.local import LocalEngine
from dboost.losses import LOSSES
from dboost.problem.tuning import Groups, Tuning
from tests.boosting import plain
from tests.boosting.grouped import Oracle

# groups of one to four columns, not beside each other
LABELS = np.array([7, 3, 3, 0, 5, 5, 0, 5, 9, 0, 5, 9])
N = LABELS.size
FACTORS = np.exp(np.random.default_rng(2).uniform(-0.7, 0.7, N))
FACTORS[4] = np.inf
WITHOUT = ("margin_softmax",)


def grouped(data, **settings):
    asked = {"penalty": "l1/l2", "column_groups": ColumnGroups.given(LABELS), "tol": 1e-8}
    return plain.fitting(data, **asked | settings)


def data_of(loss, **more):
    return plain.make(loss, **{"m": 90, "n": N, "seed": 4, "weights": True} | more)


def whole(found):
    """Whether the model holds groups as a whole."""
    held = np.isin(np.arange(N), found.active)
    return all(held[LABELS == g].all() or not held[LABELS == g].any() for g in LABELS)


WEIGHTS = {"none": np.ones(N), "factors": FACTORS, "freed": np.where(np.isin(np.arange(N), [1, 4]), 0.0, FACTORS)}
CASES = plain.covering(
    [name for name in LOSSES if name not in WITHOUT],
    ["l1/l2", "l1/linf"],
    [True, False],
    WEIGHTS,
    ["any", "signed"],
    ["formed", "gradient"],
)


@pytest.mark.parametrize("loss,penalty,intercept,weights,sign,kind", CASES)
def test_the_optimum_is_that_of_an_independent_solver(loss, penalty, intercept, weights, sign, kind):
    data, signs = data_of(loss), np.resize(np.array([1, -1, 0], np.int8), N) * (sign == "signed")
    oracle = Oracle(data, penalty, LABELS, WEIGHTS[weights], intercept, signs)
    asked = grouped(
        data,
        penalty=penalty,
        fit_intercept=intercept,
        penalty_factors=None if weights == "none" else PENALTY_FACTORS.read(WEIGHTS[weights]),
        signs=Signs.of_signs(signs) if sign == "signed" else None,
        tuning=Tuning() if kind == "formed" else Tuning(groups=Groups(entries=0)),
        # a kink of the dual value leaves a gap that falls like the distance from the optimum
        tol=1e-7,
    )
    alone = sign == "any" and weights != "freed"
    if alone:
        assert asked.alpha_max() == pytest.approx(oracle.alpha_max(), rel=1e-9)
    alpha = 0.2 * asked.alpha_max()
    lam, total = alpha * data.s.sum(), data.s.sum()
    found = asked.fit(alpha)
    W = plain.dense(found, N)
    assert found.stop_reason == "tol" and found.gap <= 1e-7 and np.all(signs[:, None] * W >= 0.0)
    # the exponential loss has no curvature that is formed
    steps = {"newton" if kind == "formed" and loss != "exp" else "proximal", "certificate"}
    assert {r["step"] for r in found.history} == steps or not alone
    # the model is as good as it says by the definition of the objective, and the optimum lies within its bounds
    value, best = oracle.value(W, found.intercept, lam) / total, oracle.solved(lam)
    least = best.value / total
    assert found.objective == pytest.approx(value, rel=1e-12)
    assert found.lower_bound <= least * (1.0 + 1e-12) and found.objective <= least * (1.0 + 1e-7)
    assert least <= found.objective * (1.0 + 1e-11), "the independent solver came near enough to judge"
    if loss not in plain.KINKED:
        mine, theirs = (data.residual(data.X @ V + b) for V, b in ((W, found.intercept), (best.W, best.b)))
        np.testing.assert_allclose(mine, theirs, atol=2e-2)
    if not intercept and alone:
        gap = oracle.gap(W, found.intercept, lam) / total
        assert gap == pytest.approx(found.gap * found.objective, rel=1e-3, abs=1e-12 * found.objective)


@pytest.mark.parametrize("penalty", ["l1/l2", "l1/linf"])
@pytest.mark.parametrize("loss", ["log", "multinomial", "squared"])
def test_a_group_enters_as_one(loss, penalty):
    """Along a path, and just below the largest strength it is one group alone."""
    data = data_of(loss)
    asked = grouped(data, penalty=penalty)
    largest = asked.alpha_max()
    assert not asked.fit(1.0001 * largest).active.size
    first = asked.fit(0.99 * largest)
    assert np.unique(LABELS[first.active]).size == 1 and whole(first)
    with LocalEngine(1) as engine:
        found = paths.path(plain.plan(data), engine, asked.settings, n_alphas=6)
    assert all(one.gap <= 1e-8 and whole(one) for one in found)
    sizes = [one.active.size for one in found]
    assert sizes[0] == 0 < sizes[2] < N and found[-1].active.size == N
    # the end of the path is where a fit of its own ends
    alone = asked.fit(found[3].alpha)
    assert alone.objective == pytest.approx(found[3].objective, rel=2e-8)


@pytest.mark.parametrize("penalty", ["l1/l2", "l1/linf"])
def test_standardised_columns_are_columns_that_were_scaled(penalty):
    data = data_of("squared", weights=False)
    moved = replace(data, X=data.X * np.exp(np.linspace(-1.0, 1.0, N)) + 0.5)
    deviation = moved.X.std(axis=0)
    scaled = replace(data, X=moved.X / deviation)
    alpha = 0.2 * grouped(scaled, penalty=penalty).alpha_max()
    mine = grouped(moved, penalty=penalty, standardize=True, tol=1e-10).fit(alpha)
    theirs = grouped(scaled, penalty=penalty, tol=1e-10).fit(alpha)
    assert mine.objective == pytest.approx(theirs.objective, rel=1e-9)
    np.testing.assert_allclose(plain.dense(mine, N)[:, 0] * deviation, plain.dense(theirs, N)[:, 0], atol=1e-4)


def test_columns_far_from_zero_and_offsets_have_them():
    data = data_of("log")
    asked = grouped(data)
    alpha = 0.2 * asked.alpha_max()
    best = asked.fit(alpha)
    far = grouped(replace(data, X=data.X + 1e3 * (np.arange(N) == 3))).fit(alpha)
    # float64 itself has 1e-13 of such columns
    assert far.gap <= 1e-8 and far.objective == pytest.approx(best.objective, rel=1e-7)
    # an offset of zeros, in a group: it is no feature, and no part of the size of that group
    X = np.hstack([data.X, np.zeros((90, 1))])
    groups = ColumnGroups.given(np.append(LABELS, 3))
    with_offset = grouped(replace(data, X=X), column_groups=groups, offset=(N,)).fit(alpha)
    assert with_offset.gap <= 1e-8 and with_offset.objective == pytest.approx(best.objective, rel=2e-8)


def test_limits_end_it_with_a_certificate():
    data = data_of("multinomial")
    asked = grouped(data, tuning=Tuning(groups=Groups(entries=0)), max_passes=12, tol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = asked.fit(0.01)
    assert found.stop_reason == "max_passes" and 0.0 < found.gap < 1.0 and found.passes <= 16


def test_more_groups_than_a_round_takes():
    """The best enter first, at least one, however large it is; those that wait are in a later round."""
    data = plain.make("squared", m=300, n=420, seed=3)
    labels = np.repeat(np.arange(4), [250, 90, 70, 10])
    asked = grouped(data, column_groups=ColumnGroups.given(labels), tol=1e-6)
    alpha = 0.2 * asked.alpha_max()
    found = asked.fit(alpha)
    assert found.gap <= 1e-6 and [r["features_in"] for r in found.history] == [250, 170, 0]
    best = Oracle(data, "l1/l2", labels, np.ones(420)).solved(alpha * 300).value / 300
    assert found.objective == pytest.approx(best, rel=2e-6)


@pytest.mark.full
def test_more_columns_than_examples_take_a_few_rounds():
    """Columns that stand for each other let no round creep."""
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(8, 30)), np.arange(30) % 6
    data = plain.Data("squared", X, X[:, 0] + rng.normal(size=8), np.ones(8), 1)
    for penalty in ("l1/l2", "l1/linf"):
        asked = grouped(data, column_groups=ColumnGroups.given(labels), penalty=penalty, tol=1e-6, max_rounds=20)
        found = asked.fit(1e-5 * asked.alpha_max())
        assert found.stop_reason == "tol" and found.passes <= 120
