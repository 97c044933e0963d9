"""Fits in other units are the same fits: labels, columns, weights and strengths; and data in any unit is solved.

What a loss says of its labels is read from its docstring: parameters "in units of the labels" grow with them.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from itertools import cycle, islice

import numpy as np
import pytest

import dboost
from dboost.boosting.fit import FitSettings, Fitting, fit
from dboost.compiled.examples.fused import loss_of_margins
from dboost.data.plan import build_plan
from dboost.engine.local import LocalEngine
from dboost.losses import LOSSES, EpsilonInsensitive, get_loss
from dboost.losses.base import Loss
from dboost.losses.real import RealLoss
from dboost.penalties import PENALTIES, get_penalty

TOL = 1e-9
UNITS = (1e-4, 1e7)
ALPHA = 0.03
# every loss with one penalty and every penalty with one loss; all of both in the full lane
COUNT = max(len(LOSSES), len(PENALTIES))
SOME = list(zip(islice(cycle(LOSSES), COUNT), islice(cycle(PENALTIES), COUNT), strict=True))
# One penalty has no solve under the exponential bound, which is the only one of a loss without a largest curvature.
ALL = [
    (loss, penalty)
    for loss in LOSSES
    for penalty in PENALTIES
    if penalty != "smooth_l1/linf" or math.isfinite(get_loss(loss).kappa)
]
WITH_L1 = [(loss, "l1") for loss in LOSSES]


def over(some):
    """A test over some pairs, and over all of them."""
    return pytest.mark.parametrize("pairs", [some, pytest.param(ALL, marks=pytest.mark.full)], ids=["some", "all"])


def example(task):
    """50 rows of 5 columns, all of which matter a little, and labels of a task, with noise."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 5))
    scores = 0.4 * X[:, :3] @ rng.normal(size=(3, 3)) + rng.normal(size=(50, 3))
    labels = {
        "binary": scores[:, 0] > 0,
        "multiclass": scores.argmax(axis=1),
        "multitask": (scores > 0).astype(int),
        "regression": scores[:, 0],
        "multitarget": scores,
    }
    return X, labels[task], rng.random(50) + 0.5


def solved(X, y, weight, settings):
    """The fit, which is certified, or ends by its gradient where a penalty has no certificate, and warns of nothing."""
    loss = settings.loss if isinstance(settings.loss, Loss) else LOSSES[settings.loss]
    with LocalEngine(1) as engine, warnings.catch_warnings():
        warnings.simplefilter("error")
        result = fit(build_plan(X, y, weight, task=loss.task, engine=engine), engine, settings)
    certified = get_penalty(settings.penalty).certified
    assert result.gap <= settings.tol if certified else result.stop_reason == "gradient", (
        settings.loss,
        settings.penalty,
    )
    W = np.zeros((X.shape[1], result.W.shape[1]))
    W[result.active] = result.W
    return result, W


def asked(loss, penalty, alpha):
    """The settings of a fit; a penalty without weight has no strength."""
    return FitSettings(loss, penalty, alpha="auto" if get_penalty(penalty).weightless else alpha, tol=TOL)


def same(found, expected, what):
    np.testing.assert_allclose(found, expected, atol=2e-3 * max(np.abs(expected).max(), 1e-12), err_msg=str(what))


@pytest.mark.full
@over(SOME)
def test_columns_weights_and_strengths_in_other_units(pairs):
    for name, penalty in pairs:
        X, y, weight = example(LOSSES[name].task)
        y = np.abs(np.round(3 * y)) if name == "poisson" else y
        degree = get_penalty(penalty).degree
        one, W = solved(X, y, weight, asked(name, penalty, ALPHA))
        for unit in UNITS:
            other, V = solved(X, y, unit * weight, asked(name, penalty, ALPHA))
            same(V, W, (name, penalty, "weights", unit))
            assert other.objective == pytest.approx(one.objective, rel=3 * TOL)
            if degree:
                other, V = solved(unit * X, y, weight, asked(name, penalty, ALPHA * unit**degree))
                same(V * unit, W, (name, penalty, "columns", unit))
                assert other.objective == pytest.approx(one.objective, rel=3 * TOL)


def in_unit(loss, unit):
    """The loss of labels in another unit: parameters in units of the labels grow with them."""
    lines = (type(loss).__doc__ or "").split("Raises")[0].split(" : ")
    named = [a.split()[-1] for a, b in zip(lines, lines[1:], strict=False) if "in units of the labels" in b]
    return replace(loss, **{name: unit * getattr(loss, name) for name in named}) if named else loss


def power(loss, y):
    """The p by which values of a loss grow, as unit**p, where labels and scores are in another unit; None for none."""

    def value(unit):
        labels = unit * (y if y.ndim > 1 else y[:, None])
        return loss_of_margins(0.5 * labels, in_unit(loss, unit).target((unit * y).astype(y.dtype)), np.ones(len(y)))

    found = np.log2(value(2.0) / value(1.0)), np.log2(value(8.0) / value(1.0)) / 3.0
    return round(found[0]) if np.allclose(found, round(found[0]), atol=1e-9) else None


@pytest.mark.full
@over(WITH_L1)
def test_labels_in_other_units(pairs):
    seen = set()
    for name, penalty in pairs:
        degree, loss = get_penalty(penalty).degree, LOSSES[name]
        if not isinstance(loss, RealLoss) or not degree:
            continue
        X, y, weight = example(loss.task)
        grows = power(loss, y) if not loss.links(1)[0].exponential else None
        y = y if grows else np.abs(np.round(3 * y))
        seen.add((name, grows))
        one, W = solved(X, y, weight, asked(name, penalty, ALPHA))
        # a mean e^f times a number is a score and its logarithm
        for unit in UNITS if grows else (16.0, 2.0**20):
            strength = ALPHA * (unit ** (grows - degree) if grows else unit)
            other, V = solved(X, unit * y, weight, asked(in_unit(loss, unit), penalty, strength))
            same(V / unit if grows else V, W, (name, penalty, unit))
            assert other.objective / unit ** (grows or 1) == pytest.approx(one.objective, rel=3 * TOL)
    assert {name for name, _ in seen} == {name for name, loss in LOSSES.items() if isinstance(loss, RealLoss)}
    assert {grows for _, grows in seen} == {1, 2, None}


@pytest.mark.full
def test_labels_in_cents_and_in_billions_are_solved_by_every_loss_as_it_is():
    """Its parameters then are far from what the labels are like: nearly all errors are beyond a bend, or within it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 90))
    y = X[:, :6] @ rng.normal(size=6) * 2.0 + rng.standard_t(2, size=60)
    for name, loss in LOSSES.items():
        if loss.task != "regression" or loss.links(1)[0].exponential:
            continue
        for unit in (1e-6, 1e4):
            settings = FitSettings(name, "l1", alpha=1.0, max_rounds=60)
            with LocalEngine(1) as engine:
                largest = Fitting(
                    build_plan(X, unit * y, task="regression", engine=engine), engine, settings
                ).alpha_max()
            solved(X, unit * y, None, replace(settings, alpha=0.05 * largest))


@pytest.fixture(scope="module")
def problem():
    """500 rows, 20 columns of which 4 matter, and labels around 5 with a deviation of 4."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20))
    w = np.zeros(20)
    w[:4] = 3.0, -2.0, 1.0, 0.5
    return X, 5.0 + X @ w + 0.1 * rng.standard_t(3, size=500)


@pytest.mark.parametrize("width", [0.0, 0.1])
def test_a_tube_in_a_large_unit_is_the_insensitive_loss_without_its_rounding(problem, width):
    """Its ends are rounded off over one unit: in a small unit nothing is left of that."""
    X, y = problem
    loss = EpsilonInsensitive(width * 1e4)
    model = dboost.BoostedRegressor(standardize=False, loss=loss, alpha=0.01, tol=1e-6).fit(X, 1e4 * y)
    assert model.history_[-1]["gap"] <= 1e-6 and len(model.history_) < 100
    errors = np.abs(y - model.predict(X) / 1e4) - width
    plain = np.maximum(errors, 0.0).mean() + 0.01 * np.abs(model.coef_).sum() / 1e4
    assert model.objective_ / 1e4 == pytest.approx(plain, rel=1e-3)


def test_adaboost_l1_does_not_stall_on_labels_in_a_small_unit(problem):
    X, y = problem

    def objective(unit):
        model = dboost.AdaBoostL1Regressor(
            hypotheses=dboost.Columns(), loss=EpsilonInsensitive(0.1 * unit), max_rounds=12
        ).fit(X, unit * y)
        return model.history_.column("objective") / unit

    found = objective(1e6)
    assert np.all(np.diff(found) < 0.0)
    np.testing.assert_allclose(found, objective(1e3), rtol=1e-2)
