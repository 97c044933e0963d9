"""``BoostedRegressor(loss="poisson")``: optima against scikit-learn and a general solver, labels, scores, what is kept.

Does not cover: the row functions, bounds and duals of the loss (tests/losses, tests/bounds, tests/boosting).
"""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy.special import xlogy
from sklearn.linear_model import PoissonRegressor

from dboost import (
    BoostedRegressor,
    DataError,
    ParquetData,
    UsageError,
)

CLOSE = dict(loss="poisson", tol=1e-9)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 10)) * (rng.random((400, 10)) < 0.8)
    y = rng.poisson(np.exp(0.5 * X[:, 0] - 0.4 * X[:, 3] + 0.2 * X[:, 5] + 0.7)).astype(float)
    return X, y, rng.integers(0, 4, 400).astype(float)


def constant(y, weight):
    """What the objective is above that of scikit-learn: the mean of y log y - y."""
    return np.average(xlogy(y, y) - y, weights=weight)


def objective(v, X, y, weight, alpha, ridge, fit_intercept):
    """Half the mean deviance and the penalty of w = v[:n] - v[n:2n], with its slope; b = v[2n]."""
    n, s = X.shape[1], weight / weight.sum()
    f = X @ (v[:n] - v[n : 2 * n]) + v[2 * n] * fit_intercept
    pull = s * (np.exp(f) - y)
    value = s @ (np.exp(f) - y * f + xlogy(y, y) - y) + alpha * v[: 2 * n].sum()
    w = v[:n] - v[n : 2 * n]
    down = X.T @ pull + 2 * ridge * w
    return value + ridge * w @ w, np.concatenate([down + alpha, alpha - down, [pull.sum() * fit_intercept]])


# ---- optima --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_l2_squared_is_the_poisson_regressor(data, alpha, weighted, fit_intercept):
    """Its objective is half the mean deviance without the constant, and alpha/2 |w|^2, as ours is."""
    X, y, weight = data
    weight = weight if weighted else np.ones(400)
    # predictions are as close as the root of the gap, which a Newton step may end just below
    shape = {"penalty": "l2_squared", "alpha": alpha, "fit_intercept": fit_intercept}
    ours = BoostedRegressor(standardize=False, **shape, **CLOSE | {"tol": 1e-11})
    ours.fit(X, y, weight)
    theirs = PoissonRegressor(alpha=alpha, fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000).fit(X, y, weight)
    f = X @ theirs.coef_ + theirs.intercept_
    value = np.average(np.exp(f) - y * f, weights=weight) + 0.5 * alpha * theirs.coef_ @ theirs.coef_
    found = ours.model_.certificate
    assert 0.0 <= ours.duality_gap_ <= 1e-11
    assert found.objective == pytest.approx(value + constant(y, weight), rel=1e-6)
    assert found.lower_bound <= value + constant(y, weight) + 1e-12
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5)
    assert ours.score(X, y, weight) == pytest.approx(theirs.score(X, y, weight), abs=1e-6)


# ---- extreme counts, weights -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_counts_of_a_million_and_means_of_a_millionth(scale, fit_intercept):
    """Few counts that are not zero, and large ones next to their prediction, are certified as others are."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 6))
    mean = scale * np.exp(0.3 * X[:, 0] - 0.2 * X[:, 1])
    y = rng.poisson(mean).astype(float)
    if scale < 1.0:
        y[[7, 1500]] = 1.0
    alpha = (
        BoostedRegressor(standardize=False, alpha="quick", loss="poisson", penalty="l1", fit_intercept=fit_intercept)
        .fit(X, y)
        .alpha_max_
        * 0.02
    )
    model = BoostedRegressor(
        standardize=False, loss="poisson", penalty="l1", alpha=alpha, tol=1e-6, fit_intercept=fit_intercept
    )
    model.fit(X, y)
    assert 0.0 <= model.duality_gap_ <= 1e-6
    f = X @ model.coef_[0] + model.intercept_[0]
    # from f - log y, so that what is left of large counts is not lost in a difference
    d = f - np.log(np.maximum(y, 1.0))
    value = np.mean(np.where(y > 0, y * (np.expm1(d) - d), np.exp(f))) + alpha * np.abs(model.coef_).sum()
    assert model.model_.certificate.objective == pytest.approx(value, rel=1e-9)
    if fit_intercept:
        assert np.mean(model.predict(X)) == pytest.approx(y.mean(), rel=1e-3)


# ---- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-1.0, -1e-9, 2.0**54])
def test_labels_that_are_no_counts_are_refused_with_their_row(data, bad):
    X, y, _ = data
    y = y.copy()
    y[37] = bad
    with pytest.raises(DataError, match=r"label .* in row 37: loss 'poisson' takes counts, numbers from 0 to 2\*\*53"):
        BoostedRegressor(alpha="quick", loss="poisson").fit(X, y)
    BoostedRegressor(alpha="quick", loss="squared").fit(X, y)


def test_of_files_and_collections_the_partition_is_named(data, tmp_path):
    X, y, _ = data
    y = y.copy()
    y[250] = -2.0
    blocks = da.from_array(X, chunks=(100, 10)), da.from_array(y, chunks=(100,))
    with pytest.raises(DataError, match="label -2 in row 50 of partition block-00002: loss 'poisson' takes counts"):
        BoostedRegressor(alpha="quick", loss="poisson").fit(*blocks)
    pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]).assign(y=y).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="label -2 in row 250 of partition t.parquet.*loss 'poisson' takes counts"):
        BoostedRegressor(alpha="quick", loss="poisson").fit(ParquetData(tmp_path / "t.parquet", label="y"))


def test_nothing_but_zeros_has_no_best_intercept(data):
    X, _, _ = data
    with pytest.raises(DataError, match="every label is 0.*minus infinity.*fit_intercept=False"):
        BoostedRegressor(alpha="quick", loss="poisson").fit(X, np.zeros(400))
    model = BoostedRegressor(loss="poisson", penalty="l1", alpha=0.01, fit_intercept=False).fit(X, np.zeros(400))
    assert model.duality_gap_ <= 1e-4


# ---- what it is not for ----------------------------------------------------------------------------------------------


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
def test_pairs_without_a_bound_are_refused(data, settings, message):
    X, y, _ = data
    with pytest.raises(UsageError, match=message):
        BoostedRegressor(loss="poisson", **settings).fit(X, y)


# ---- what is made of the scores, and what is kept --------------------------------------------------------------------


def test_the_score_is_the_share_of_the_deviance(data):
    X, y, _ = data
    model = BoostedRegressor(loss="poisson", penalty="l1", alpha=10.0).fit(X, y)
    assert model.score(X, y) == pytest.approx(0.0, abs=1e-12)
    assert model.score(X, np.full(400, 3.0)) == 0.0
    with pytest.raises(DataError, match="label -1 in row 3: loss 'poisson' takes counts"):
        model.score(X, np.where(np.arange(400) == 3, -1.0, y))
