"""A loss for each target: every output is its own loss by itself, in all it says; what cannot be one is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.errors import DataError, UsageError
from dboost.losses import Huber, PerTarget, Quantile, get_loss, loss_of_model, refuse_invalid, refuse_other_targets
from dboost.losses.real import FAR
from tests.losses.references import Rows

M = 60
PARTS = ["squared", "log", Huber(0.7), Quantile(0.8, 0.3), "epsilon_insensitive", "poisson"]


def labels(rng, k):
    """Labels of the parts, some of them missing."""
    y = rng.normal(size=(M, k))
    y[:, 1] = rng.random(M) < 0.4
    if k > 5:
        y[:, 5] = rng.poisson(2.0, M)
    y[rng.random(y.shape) < 0.15] = np.nan
    return y


@pytest.fixture(params=[5, 6])
def case(request):
    """(loss, labels, margins, weights)."""
    rng = np.random.default_rng(request.param)
    k = request.param
    return get_loss(PARTS[:k]), labels(rng, k), 1.5 * rng.normal(size=(M, k)), rng.uniform(0.1, 3.0, M)


def alone(loss, r, y):
    """One part as the loss of a single target: its row functions, the rows where it is observed, its labels there."""
    seen = ~np.isnan(y[:, r])
    if loss.losses[r].name == "log":
        return Rows("log"), seen, np.where(y[seen, r] > 0, 1, -1).astype(np.int8)[:, None]
    return Rows(loss.losses[r]), seen, y[seen, r].copy()


def test_row_functions_are_those_of_the_parts(case):
    loss, y, F, s = case
    rows = Rows(loss)
    U, H, value = rows.residual(y, F, s), rows.hessian(y, F, s), np.zeros(M)
    plus, minus, whole = rows.branches(y, F, s)
    assert not U[np.isnan(y)].any() and not plus[np.isnan(y)].any() and not minus[np.isnan(y)].any()
    for r, one in enumerate(loss.losses):
        single, seen, codes = alone(loss, r, y)
        f, w = F[seen, r : r + 1], s[seen]
        np.testing.assert_allclose(U[seen, r], single.residual(codes, f, w)[:, 0], rtol=1e-14, err_msg=one.name)
        curvature = single.hessian(codes, f, w)[:, 0, 0]
        if one.name == "epsilon_insensitive":
            z = codes - f[:, 0]
            least = FAR * np.abs(single.residual(codes, f, w)[:, 0]) / np.maximum(np.abs(z), 1.0)
            curvature = np.maximum(curvature, least)
        np.testing.assert_allclose(H[seen, r, r], curvature, rtol=1e-13, err_msg=one.name)
        value[seen] += single.value(codes, f, w)
        assert not H[~seen, r, r].any()
    np.testing.assert_allclose(rows.value(y, F, s), value, rtol=1e-13)
    np.testing.assert_allclose(rows.residual_loss(y, F, s), value, rtol=1e-13)
    assert whole == pytest.approx(value.sum(), rel=1e-13)
    np.testing.assert_allclose((plus - minus)[:, : len(loss.losses)], U, atol=1e-14)


@pytest.mark.parametrize("step", [1e-3, 0.3, 2.0, -0.3, -4.0])
def test_the_exponential_bound_is_never_below_the_change(case, step):
    loss, y, F, s = case
    rows = Rows(loss)
    plus, minus, _ = rows.branches(y, F, s)
    for r in range(F.shape[1]):
        moved = F.copy()
        moved[:, r] += step
        change = rows.value(y, moved, s) - rows.value(y, F, s)
        bound = plus[:, r] * np.expm1(-step) + minus[:, r] * np.expm1(step)
        assert (change <= bound + 1e-12).all(), loss.losses[r].name


def test_dual_values_and_repairs_are_those_of_the_parts(case):
    loss, y, F, s = case
    rows, k = Rows(loss), F.shape[1]
    mass, total = loss.label_mass(y, s, k)
    U = rows.residual(y, F, s)
    repair = loss.repair(mass, total, U.sum(axis=0))
    theta = rows.theta(y, U, s, repair)
    np.testing.assert_allclose(theta.sum(axis=0), 0.0, atol=1e-11)
    for scale in (1.0, 0.4, 0.0):
        value = np.zeros(M)
        for r in range(k):
            single, seen, codes = alone(loss, r, y)
            own = single.loss.repair(*single.loss.label_mass(codes, s[seen], 1), U[seen, r : r + 1].sum(axis=0))
            for name in ("keep", "mix", "shift", "prior", "drift", "spill"):
                np.testing.assert_allclose(getattr(repair, name)[r], getattr(own, name)[0], rtol=1e-12, atol=1e-15)
            f, w = F[seen, r : r + 1], s[seen]
            value[seen] += single.dual(codes, f, w, scale * own.keep, own.mix, own.shift, own.prior)
            mine = single.theta(codes, U[seen, r : r + 1], w, own)[:, 0]
            np.testing.assert_allclose(theta[seen, r], mine, atol=1e-14)
        got = rows.dual(y, F, s, scale * repair.keep, repair.mix, repair.shift, repair.prior)
        np.testing.assert_allclose(got, value, rtol=1e-11, atol=1e-12)


def test_what_bounds_are_made_of(case):
    loss, y, F, s = case
    rows, k = Rows(loss), F.shape[1]
    mass, total = loss.label_mass(y, s, k)
    np.testing.assert_allclose(mass, np.nansum(s[:, None] * y, axis=0))
    assert loss.template_constant == 1.0 and loss.separable and not loss.parabolic
    assert loss.kappa == max(one.kappa for one in loss.losses)
    H = rows.hessian(y, F, np.ones(M))
    assert (np.diagonal(H, axis1=1, axis2=2) <= loss.kappa).all()
    assert rows.dual(y, F, s, *np.zeros((4, k))).sum() >= loss.floor
    for size in (1e-3, 1.0, 6.0):
        U, value = rows.residual(y, size * F, s), rows.value(y, size * F, s).sum()
        assert np.abs(U).sum() <= loss.pulls(value, mass, total, U.sum(axis=0)) * (1 + 1e-12)
        assert loss.terms(value, value, mass, total, U.sum(axis=0)) > 0.0
    best = loss.null_intercept(mass, total)
    predicted = loss.predicted(best[None])[0]
    closed = [r for r, one in enumerate(loss.losses) if one.closed_null]
    np.testing.assert_allclose(predicted[closed], (mass / total)[closed], rtol=1e-12)


def test_residuals_have_a_longest_where_every_part_has_one():
    bounded = get_loss(["log", Huber(0.7), Quantile(0.8)])
    assert bounded.longest_residual(3).tolist() == [1.0, 0.7, 0.8]
    assert get_loss("log,squared").longest_residual(2) is None


def test_names_make_the_loss_again():
    loss = get_loss("squared, log,poisson")
    assert loss == get_loss(["squared", "log", "poisson"]) == get_loss(loss) == loss_of_model(loss.name)
    assert loss.name == "squared,log,poisson" and loss.targets == 3
    assert [link.exponential for link in loss.links(3)] == [False, False, True]
    assert [link.logistic for link in loss.links(3)] == [False, True, False]
    assert loss_of_model("squared,of another program") is None
    assert get_loss(["log"]).name == "log," and get_loss("log,") == get_loss(["log"]) == loss_of_model("log,")
    refuse_other_targets(loss, 3)
    with pytest.raises(UsageError, match="is of 3 targets, and there are 2; give one loss for each"):
        refuse_other_targets(loss, 2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["squared", "multinomial"], "loss 'multinomial' cannot be that of one target among several"),
        (["squared", "exp"], "loss 'exp' cannot be"),
        ([["squared", "log"], "log"], "loss 'squared,log' cannot be"),
        (["squared", "hinge"], "unknown loss 'hinge'"),
        ([], "no loss for any target"),
    ],
)
def test_what_is_no_loss_of_one_target_is_refused(given, said):
    with pytest.raises(UsageError, match=said):
        get_loss(given)


def test_the_first_label_that_is_none_is_told():
    loss = get_loss("squared,log,poisson")
    y = np.array([[1.0, 1.0, 3.0], [np.nan, np.nan, np.nan], [-5.0, 0.0, -1.0], [0.0, 2.0, 0.0]])
    assert loss.invalid(y[:2]) == -1
    with pytest.raises(DataError, match="label -1 of target 2 in row 2 of partition b: loss 'poisson' takes counts"):
        refuse_invalid(loss, y, " of partition b")
    with pytest.raises(DataError, match="label 2 of target 1 in row 1: loss 'log' takes 0 and 1"):
        refuse_invalid(loss, y[[0, 3, 2]])


def test_targets_without_a_best_intercept_are_told():
    loss = get_loss("squared,log,poisson")
    ones = np.ones(3)
    assert loss.unbounded(0.5 * ones, ones) == ""
    assert loss.unbounded(np.array([0.0, 0.0, 1.0]), ones).startswith("target 1: every label is 0")
    assert loss.unbounded(np.array([0.0, 1.0, 1.0]), ones).startswith("target 1: every label is 1")
    assert loss.unbounded(np.array([0.0, 0.5, 0.0]), ones).startswith("target 2: every label is 0")


def test_it_is_frozen_and_knows_its_parts():
    loss = PerTarget((get_loss("squared"), get_loss("log")))
    assert loss.of_output(0).name == "squared" and loss.of_output(1).task == "multitarget"
    with pytest.raises(AttributeError):
        loss.losses = ()
