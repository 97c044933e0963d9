"""``BoostedRegressor``: optima of each loss against scikit-learn, counts, labels, scores, refusals.

Does not cover: the row functions, bounds and duals of losses (tests/losses, tests/bounds, tests/boosting).
"""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy.special import xlogy
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, PoissonRegressor, QuantileRegressor
from sklearn.metrics import d2_pinball_score

from dboost import BoostedRegressor, DataError, ParquetData, UsageError, penalties
from dboost.losses import EpsilonInsensitive, Quantile


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8)) * (rng.random((120, 8)) < 0.7)
    y = 3.0 * X[:, 0] - 2.0 * X[:, 3] + 0.5 * X[:, 5] + 4.0 + rng.normal(size=120)
    return X, y, rng.integers(0, 4, 120).astype(float)


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 10)) * (rng.random((400, 10)) < 0.8)
    y = rng.poisson(np.exp(0.5 * X[:, 0] - 0.4 * X[:, 3] + 0.2 * X[:, 5] + 0.7)).astype(float)
    return X, y, rng.integers(0, 4, 400).astype(float)


def poisson(**given):
    return BoostedRegressor(loss="poisson", **{"alpha": "quick"} | given)


# ---- optima ----------------------------------------------------------------------------------------------------------

SQUARED = {
    "lasso": ({"penalty": "l1", "alpha": 0.1}, Lasso(alpha=0.1, tol=1e-14)),
    "elastic net": ({"penalty": penalties.ElasticNet(0.3), "alpha": 0.2}, ElasticNet(alpha=0.2, l1_ratio=0.3)),
    "least squares": ({"penalty": "none"}, LinearRegression()),
}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", SQUARED)
def test_squared_loss_has_the_optima_of_scikit_learn(data, name, fit_intercept):
    X, y, weight = data
    params, peer = SQUARED[name]
    theirs = peer.set_params(fit_intercept=fit_intercept)
    theirs.set_params(**{"tol": 1e-14} if "max_iter" in theirs.get_params() else {}).fit(X, y, weight)
    model = BoostedRegressor(standardize=False, tol=1e-12, fit_intercept=fit_intercept, **params).fit(X, y, weight)
    np.testing.assert_allclose(model.coef_[0], theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, atol=1e-6)
    assert model.score(X, y, weight) == pytest.approx(theirs.score(X, y, weight), rel=1e-6)
    if name == "lasso":
        residual = X @ model.coef_[0] + model.intercept_[0] - y
        value = 0.5 * np.average(residual**2, weights=weight) + model.alpha_ * np.abs(model.coef_).sum()
        assert model.objective_ == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_the_pinball_loss_of_a_linear_program_is_within_the_gap_and_an_eighth_of_the_width(tau):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    y = X[:, 0] - 0.5 * X[:, 1] + rng.exponential(size=200) * np.where(rng.random(200) < 0.1, 10.0, 1.0)
    alpha, width = 0.02, 0.02
    # scikit-learn minimises the mean pinball loss plus alpha times the l1 norm, by a linear program
    theirs = QuantileRegressor(quantile=tau, alpha=alpha, solver="highs").fit(X, y)
    ours = BoostedRegressor(standardize=False, loss=Quantile(tau, width), alpha=alpha, tol=1e-7).fit(X, y)
    assert ours.duality_gap_ <= 1e-7

    def pinball(w, b):
        return Quantile(tau).deviance(y, X @ w + b).mean() + alpha * np.abs(w).sum()

    best = pinball(theirs.coef_, theirs.intercept_)
    found = pinball(ours.coef_[0], ours.intercept_[0])
    assert -1e-9 <= found - best <= ours.duality_gap_ * ours.objective_ + width / 8
    assert best - 1e-9 <= ours.objective_ <= best + width / 8
    assert abs(np.mean(y <= ours.predict(X)) - tau) < 0.05
    assert ours.score(X, y) == pytest.approx(d2_pinball_score(y, ours.predict(X), alpha=tau), abs=1e-2)


@pytest.mark.parametrize(("alpha", "fit_intercept"), [(1e-3, True), (0.1, False)])
def test_l2_squared_is_the_poisson_regressor(counts, alpha, fit_intercept):
    """Its objective is half the mean deviance without the constant, and alpha/2 |w|^2, as ours is."""
    X, y, weight = counts
    ours = poisson(standardize=False, penalty="l2_squared", alpha=alpha, fit_intercept=fit_intercept, tol=1e-10)
    ours.fit(X, y, weight)
    theirs = PoissonRegressor(alpha=alpha, fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000).fit(X, y, weight)
    f = X @ theirs.coef_ + theirs.intercept_
    value = np.average(np.exp(f) - y * f, weights=weight) + 0.5 * alpha * theirs.coef_ @ theirs.coef_
    value += np.average(xlogy(y, y) - y, weights=weight)
    found = ours.model_.certificate
    assert 0.0 <= ours.duality_gap_ <= 1e-10
    assert found.objective == pytest.approx(value, rel=1e-6) and found.lower_bound <= value + 1e-12
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5)
    assert ours.score(X, y, weight) == pytest.approx(theirs.score(X, y, weight), abs=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_counts_of_a_million_and_means_of_a_millionth(scale, fit_intercept):
    """Few counts that are not zero, and large ones next to their prediction, are certified as others are."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 6))
    y = rng.poisson(scale * np.exp(0.3 * X[:, 0] - 0.2 * X[:, 1])).astype(float)
    if scale < 1.0:
        y[[7, 1500]] = 1.0
    model = poisson(standardize=False, penalty="l1", fit_intercept=fit_intercept, tol=1e-6).fit(X, y)
    alpha = 0.02 * model.alpha_max_
    model.set_params(alpha=alpha).fit(X, y)
    assert 0.0 <= model.duality_gap_ <= 1e-6
    f = X @ model.coef_[0] + model.intercept_[0]
    # from f - log y, so that what is left of large counts is not lost in a difference
    d = f - np.log(np.maximum(y, 1.0))
    value = np.mean(np.where(y > 0, y * (np.expm1(d) - d), np.exp(f))) + alpha * np.abs(model.coef_).sum()
    assert model.model_.certificate.objective == pytest.approx(value, rel=1e-9)
    if fit_intercept:
        assert np.mean(model.predict(X)) == pytest.approx(y.mean(), rel=1e-3)


# ---- what is said of a fit -------------------------------------------------------------------------------------------


def test_induction_stop_follows_from_the_history(data):
    X, y, _ = data
    slow = BoostedRegressor(alpha=0.02, tol=1e-10, update="gradboost", features_per_round=1)
    model = slow.fit(X, y)
    entered = [record["round"] for record in model.history_ if record["features_in"]]
    assert model.induction_stop_ == entered[-1] < model.n_iter_
    assert slow.set_params(callbacks=[lambda r: r["round"] == 2]).fit(X, y).induction_stop_ is None
    assert BoostedRegressor(alpha=1e3).fit(X, y).induction_stop_ == 0


def test_loss_none_is_squared_and_rows_without_weight_are_nothing_to_score(data):
    X, y, _ = data
    model = BoostedRegressor(loss=None, alpha=0.1).fit(X, y)
    assert model.model_.loss == "squared"
    assert model.coef_.tobytes() == BoostedRegressor(alpha=0.1).fit(X, y).coef_.tobytes()
    with pytest.raises(DataError, match="nothing to score"):
        model.score(X, y, np.zeros(120))


def test_the_score_of_counts_is_the_share_of_the_deviance(counts):
    X, y, _ = counts
    model = poisson(penalty="l1", alpha=10.0).fit(X, y)
    assert model.score(X, y) == pytest.approx(0.0, abs=1e-12)
    assert model.score(X, np.full(400, 3.0)) == 0.0
    with pytest.raises(DataError, match="label -1 in row 3: loss 'poisson' takes counts"):
        model.score(X, np.where(np.arange(400) == 3, -1.0, y))


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_several_targets_are_refused(data):
    X, y, _ = data
    both = np.stack([y, y], axis=1)
    for given in (both, pd.DataFrame(both), both.tolist()):
        with pytest.raises(DataError, match="one BoostedRegressor for each column"):
            BoostedRegressor(alpha="quick").fit(X, given)


@pytest.mark.parametrize("loss", ["log", "tukey", 3, EpsilonInsensitive, ["squared", "log"], "multitarget"])
def test_other_losses_are_refused(data, loss):
    X, y, _ = data
    with pytest.raises(UsageError, match="BoostedRegressor takes None or 'squared', 'epsilon_insensitive'"):
        BoostedRegressor(alpha="quick", loss=loss).fit(X, y)


def test_labels_that_are_no_counts_are_refused_with_their_row_and_partition(counts, tmp_path):
    X, y, _ = counts
    for bad in (-1.0, -1e-9, 2.0**54):
        spoiled = np.where(np.arange(400) == 37, bad, y)
        said = r"label .* in row 37: loss 'poisson' takes counts, numbers from 0 to 2\*\*53"
        with pytest.raises(DataError, match=said):
            poisson().fit(X, spoiled)
        BoostedRegressor(alpha="quick").fit(X, spoiled)
    spoiled = np.where(np.arange(400) == 250, -2.0, y)
    blocks = da.from_array(X, chunks=(100, 10)), da.from_array(spoiled, chunks=(100,))
    with pytest.raises(DataError, match="label -2 in row 50 of partition block-00002: loss 'poisson' takes counts"):
        poisson().fit(*blocks)
    pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]).assign(y=spoiled).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="label -2 in row 250 of partition t.parquet.*loss 'poisson' takes counts"):
        poisson().fit(ParquetData(tmp_path / "t.parquet", label="y"))


def test_nothing_but_zeros_has_no_best_intercept(counts):
    X, _, _ = counts
    with pytest.raises(DataError, match="every label is 0.*minus infinity.*fit_intercept=False"):
        poisson().fit(X, np.zeros(400))
    model = poisson(penalty="l1", alpha=0.01, fit_intercept=False).fit(X, np.zeros(400))
    assert model.duality_gap_ <= 1e-4


@pytest.mark.parametrize(
    "settings,message",
    [
        ({"update": "gradboost"}, "update='gradboost' needs a bounded curvature, which loss 'poisson' does not have"),
        (
            {"penalty": "smooth_l1/linf", "alpha": 0.1},
            "loss 'poisson' needs a solve .* under the exponential bound.*'smooth_l1/linf'",
        ),
    ],
)
def test_pairs_without_a_bound_are_refused(counts, settings, message):
    X, y, _ = counts
    with pytest.raises(UsageError, match=message):
        poisson(**settings).fit(X, y)
