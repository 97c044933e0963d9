"""Fits of extreme numbers: what scale changes nothing, what is refused, and what no certificate may say."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import dboost
from dboost.boosting import totally_corrective as loop
from dboost.boosting.fit import FitSettings, Fitting
from dboost.certificate import duality_gap
from dboost.data.plan import build_plan
from dboost.engine.local import LocalEngine
from dboost.errors import ConvergenceWarning, DataError

# Few rounds end above their tolerance, and say so; what numpy warns of is an error.
pytestmark = pytest.mark.filterwarnings("ignore::dboost.errors.DboostWarning")

RNG = np.random.default_rng(1)
X = RNG.standard_normal((60, 5))
F = X @ np.array([1.0, -2.0, 0.0, 0.0, 0.5])
Y = np.where(F + RNG.standard_normal(60) > 0, 1, 0)
T = F + RNG.standard_normal(60)


@pytest.mark.full
@pytest.mark.parametrize("scale", [2.0**126, 2.0**-664, 2.0**1000])
@pytest.mark.parametrize("update", ["newton", "gradboost"])
@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l2", "l2_squared"])
def test_a_common_factor_of_all_weights_changes_no_bit(scale: float, update: str, penalty: str) -> None:
    given = RNG.uniform(0.5, 2.0, 60)
    select = "template" if update == "gradboost" else "greedy"
    fits = [
        dboost.BoostedClassifier(penalty=penalty, alpha=0.02, update=update, select=select).fit(X, Y, weight)
        for weight in (given, given * scale)
    ]
    assert fits[1].stop_reason_ == "tol"
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].duality_gap_ == fits[1].duality_gap_ and fits[0].objective_ == fits[1].objective_


@pytest.mark.parametrize("scale", [2.0**-60, 1.0, 2.0**60])
def test_the_strength_auto_without_a_largest_is_of_the_weights_that_were_given(scale: float) -> None:
    fit = dboost.BoostedClassifier(alpha="quick", penalty="l2_squared").fit(X, Y, np.full(60, scale))
    assert fit.alpha_ == pytest.approx(1.0 / (60 * scale), rel=1e-15)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
@pytest.mark.parametrize("standardize", [False, True])
def test_a_column_beyond_squares_is_refused_by_name(scale: float, standardize: bool) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "mass", "d", "e"])
    frame["mass"] *= scale
    with pytest.raises(DataError, match=r"column 'mass'; divide it by 1e[+-]?\d+, or leave it out"):
        dboost.BoostedClassifier(alpha="quick", standardize=standardize).fit(frame, Y)
    frame["b"] *= scale
    with pytest.raises(DataError, match="and 1 other columns are like it; column 'b'"):
        dboost.BoostedClassifier(alpha="quick", standardize=standardize).fit(frame, Y)


def test_one_large_column_does_not_empty_the_model_of_the_others() -> None:
    large = X.copy()
    large[:, 3] *= 1e29
    fit = dboost.BoostedClassifier(penalty="l1", alpha=0.02, standardize=True).fit(large, Y)
    plain = dboost.BoostedClassifier(penalty="l1", alpha=0.02, standardize=True).fit(X, Y)
    assert fit.stop_reason_ == "tol" and np.count_nonzero(fit.coef_) > 1
    assert fit.objective_ == pytest.approx(plain.objective_, rel=2e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("penalty", ["l1", "l2_squared", "smooth_l1"])
def test_columns_whose_squares_are_no_float32_are_fitted_without_a_warning(dtype: type, penalty: str) -> None:
    large = (X * [1.0, 1e22, 1e25, 1.0, 1e-20]).astype(dtype)
    fit = dboost.BoostedClassifier(alpha="quick", penalty=penalty).fit(large, Y)
    assert np.all(np.isfinite(fit.coef_))


def test_a_column_of_noise_is_certified_at_the_strength_auto() -> None:
    # constant beside a free intercept: its sums are rounding, and a share of that is no strength
    fit = dboost.BoostedClassifier(alpha="quick", penalty="l1").fit(np.full((60, 1), 3969.2427, np.float32), Y)
    assert fit.stop_reason_ == "tol" and not fit.coef_.any()


@pytest.mark.parametrize("shift", [0.0, 1e3])
@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
def test_an_optimal_model_is_seen_to_be_one_by_updates_that_leave_the_intercept(loss: str, shift: float) -> None:
    # the bound on what the intercept's residual costs grows with the columns' mean, the cost itself does not
    fit = dboost.BoostedRegressor(loss=loss, penalty="l1", alpha=0.1, update="newton").fit(X + shift, T)
    assert fit.stop_reason_ == "tol" and fit.duality_gap_ <= 1e-4


# ---- what is no certificate ------------------------------------------------------------------------------------------


def _fitting(**settings: object) -> Fitting:
    engine = LocalEngine(1)
    plan = build_plan(X, Y, task="binary", engine=engine)
    return Fitting(plan, engine, FitSettings("log", "l1", alpha=0.02, **settings))


def _lying(monkeypatch: pytest.MonkeyPatch, change: object) -> None:
    true = duality_gap.dual_bound
    monkeypatch.setattr(loop, "dual_bound", lambda *a, **more: change(true(*a, **more)))


@pytest.mark.parametrize("above", [1e-9, 1e-3, 10.0, math.inf, math.nan])
def test_a_lower_bound_above_the_objective_is_no_certificate(monkeypatch: pytest.MonkeyPatch, above: float) -> None:
    _lying(monkeypatch, lambda value: 1e3 * (1.0 + above))
    with pytest.warns(ConvergenceWarning, match=r"stopped \(uncertified\) without a certificate"):
        fit = dboost.BoostedClassifier(penalty="l1", alpha=0.02, max_rounds=5).fit(X, Y)
    assert math.isnan(fit.duality_gap_) and fit.stop_reason_ == "uncertified"


def test_a_bound_at_the_objective_but_for_rounding_is_a_gap_above_zero() -> None:
    fit = dboost.BoostedClassifier(penalty="l1", alpha=10.0).fit(X, Y)
    assert not fit.coef_.any() and 0.0 < fit.duality_gap_ < 1e-12


def test_an_objective_that_is_no_number_ends_the_fit_without_a_certificate() -> None:
    fitting = _fitting()
    sane = fitting.problem.objective

    class Endless(type(sane)):
        def __call__(self, at: object, lam: float) -> float:
            return math.inf

    fitting.problem.objective = Endless(**vars(sane))
    found = fitting.fit(0.02)
    assert found.stop_reason == "uncertified" and math.isnan(found.gap) and found.n_iter == 1


def test_the_gap_of_numbers_that_are_none_is_none() -> None:
    problem = _fitting().problem
    for value, lower in ((math.inf, 0.0), (math.nan, 0.0), (1.0, math.nan), (1.0, 1.0 + 1e-12), (1.0, math.inf)):
        assert math.isnan(duality_gap.relative_gap(problem, value, lower))
    assert duality_gap.relative_gap(problem, 1.0, -math.inf) == math.inf
    assert duality_gap.relative_gap(problem, 2.0, 1.5) == 0.25
    assert duality_gap.relative_gap(problem, 0.0, 0.0) == 0.0


def test_updates_of_no_rows_and_no_intercept_stand_still() -> None:
    fit = dboost.BoostedRegressor(penalty="l1", alpha=1e6, update="gradboost", fit_intercept=False).fit(X, T)
    none = dboost.BoostedRegressor(
        penalty="l1", alpha=0.1, update="gradboost", fit_intercept=False, max_features=0
    ).fit(X, T)
    assert fit.stop_reason_ == "tol" and not fit.coef_.any() and not none.coef_.any()


@pytest.mark.full
@pytest.mark.parametrize("update,select", [("newton", "greedy"), ("gradboost", "template"), ("adaboost", "template")])
@pytest.mark.parametrize("alpha", [1e-300, 1e-170, 1e300])
def test_the_norm_of_all_rows_takes_any_strength(update: str, select: str, alpha: float) -> None:
    fit = dboost.BoostedClassifier(
        penalty="l2", alpha=alpha, update=update, select=select, max_rounds=3, max_passes=200
    ).fit(X, Y)
    assert np.all(np.isfinite(fit.coef_)) and fit.coef_.any() == (alpha < 1.0)


@pytest.mark.parametrize("share", [1e-12, 1e-24])
def test_a_class_of_almost_no_weight_has_a_null_model(share: float) -> None:
    codes = np.arange(60) % 3
    weight = np.where(codes == 0, share, 1.0)
    fit = dboost.BoostedClassifier(loss="margin_softmax", penalty="l1", alpha=10.0).fit(X, codes, weight)
    assert fit.stop_reason_ == "tol" and np.all(np.isfinite(fit.intercept_))


@pytest.mark.parametrize("penalty", ["none", "l1"])
def test_a_constant_column_stays_out_of_a_standardised_fit_without_a_warning_of_numpy(penalty: str) -> None:
    constant = X.copy()
    constant[:, 1] = 1.0
    fit = dboost.BoostedClassifier(alpha="quick", penalty=penalty, standardize=True, max_rounds=20).fit(constant, Y)
    assert fit.coef_[0, 1] == 0.0 and np.count_nonzero(fit.coef_) > 1
