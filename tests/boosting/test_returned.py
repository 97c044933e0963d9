"""What a fit says at its end is true of the arrays it returns: judged in exact arithmetic and in long double."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest

import dboost
from dboost.errors import ConvergenceWarning

L = np.longdouble


def fitted(estimator, *given, **more):
    """A fit and the convergence warnings of it."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        estimator.fit(*given, **more)
    return estimator, [w for w in said if issubclass(w.category, ConvergenceWarning)]


def exact_lasso(w, b, X, y, alpha):
    """The mean squared loss with an l1 penalty in fractions."""
    w, b = [Fraction(v) for v in w], Fraction(b)
    rest = [Fraction(t) - b - sum(a * Fraction(v) for a, v in zip(w, row, strict=True)) for t, row in zip(y, X)]
    return sum(e * e for e in rest) / (2 * len(rest)) + Fraction(alpha) * sum(abs(a) for a in w)


@pytest.mark.parametrize("what", ["columns", "targets", "offset"])
def test_data_far_from_zero_are_certified_as_they_are(what):
    """The optimum does not depend on where the data are: what is claimed is never less than what is missed."""
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=(80, 2)) * 8) / 8
    y = np.round((x[:, 0] + 0.5 * rng.normal(size=80)) * 1024) / 1024
    alpha, reasons = 0.05, []
    near = dboost.BoostedRegressor(standardize=False, alpha=alpha, tol=1e-13).fit(x, y)
    best = exact_lasso(near.coef_[0], near.intercept_[0], x.tolist(), y.tolist(), alpha)
    for mean in (1e9, 2.0**37, 1e12, 2.0**44, 1e15):
        X, t, given = x, y, {}
        if what == "columns":
            X = x + mean
        elif what == "targets":
            # what float64 holds of them is the data
            t = y + mean
            near = dboost.BoostedRegressor(standardize=False, alpha=alpha, tol=1e-13).fit(x, t - mean)
            best = exact_lasso(near.coef_[0], near.intercept_[0], x.tolist(), (t - mean).tolist(), alpha)
        else:
            X, t, given = np.column_stack([x, np.full(80, mean)]), y, {"offset": 2}
        m, said = fitted(dboost.BoostedRegressor(standardize=False, alpha=alpha, tol=1e-6, **given), X, t)
        w = m.coef_[0]
        value = exact_lasso(w, m.intercept_[0], X.tolist(), t.tolist(), alpha)
        if what == "offset":
            assert w[2] == 1.0
            value -= Fraction(alpha)
        assert m.objective_ == pytest.approx(float(value), rel=1e-12)
        assert float((value - best) / value) <= m.duality_gap_ + 1e-12
        residual = t - m.predict(X)
        seen = 0.5 * np.mean(residual**2) + alpha * np.abs(w[:2]).sum()
        assert abs(seen - m.objective_) <= 2.0 * m.duality_gap_ * m.objective_ + 1e-12
        assert (m.stop_reason_, len(said)) in (("tol", 0), ("precision", 1))
        assert m.stop_reason_ == "precision" or m.duality_gap_ <= 1e-6
        reasons.append(m.stop_reason_)
    assert reasons[0] == "tol" and reasons[-1] == "precision"


def test_targets_that_differ_by_a_few_of_their_last_digits_are_certified_as_they_are():
    rng = np.random.default_rng(0)
    x, alpha = rng.normal(size=(300, 2)), 0.05
    for mean in (1e15, 8e15):
        t = x[:, 0] + 0.1 * rng.normal(size=300) + mean
        near = dboost.BoostedRegressor(standardize=False, alpha=alpha, tol=1e-12).fit(x, t - mean)
        m, said = fitted(dboost.BoostedRegressor(standardize=False, alpha=alpha), x, t)
        value = float(exact_lasso(m.coef_[0], m.intercept_[0], x.tolist(), t.tolist(), alpha))
        assert m.objective_ == pytest.approx(value, rel=1e-12)
        assert (value - near.objective_) / value <= m.duality_gap_
        assert m.stop_reason_ == "precision" and len(said) == 1
    m, said = fitted(dboost.BoostedRegressor(standardize=False, alpha=alpha), x, np.full(300, 1e15))
    assert (m.stop_reason_, m.duality_gap_, len(said)) == ("tol", 0.0, 0)


def test_targets_thousands_of_deviations_from_zero_keep_the_digits_of_a_close_fit():
    """A residual is a small part of a target: sums beside the mean of the targets would lose it, digit by digit."""
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=(12, 2)) * 8) / 8
    t = x @ [1.0, -0.5] + 1e-5 * rng.normal(size=12) + 7000.0
    m, said = fitted(dboost.BoostedRegressor(standardize=False, alpha=1e-8, tol=1e-6), x, t)
    value = exact_lasso(m.coef_[0], m.intercept_[0], x.tolist(), t.tolist(), 1e-8)
    assert (m.stop_reason_, said) == ("tol", [])
    assert m.objective_ == pytest.approx(float(value), rel=1e-13)


def test_classes_of_columns_far_from_zero_keep_their_intercepts():
    """Only differences of scores count: what is common to all classes costs none of their digits."""
    rng = np.random.default_rng(1)
    x = np.round(rng.normal(size=(90, 3)) * 8) / 8
    y = (x @ rng.normal(size=(3, 3)) + rng.gumbel(size=(90, 3))).argmax(axis=1)
    near = dboost.BoostedClassifier(standardize=False, penalty="l1/l2", alpha=0.02, tol=1e-9).fit(x, y)
    for mean in (1e9, 1e13):
        m, said = fitted(
            dboost.BoostedClassifier(standardize=False, penalty="l1/l2", alpha=0.02, tol=1e-5), x + mean, y
        )
        F = (x + mean).astype(L) @ m.coef_.T.astype(L) + m.intercept_.astype(L)
        F = F - F.max(axis=1, keepdims=True)
        loss = (np.log(np.exp(F).sum(axis=1)) - F[np.arange(90), y]).mean()
        value = float(loss + L(0.02) * np.sqrt((m.coef_.astype(L) ** 2).sum(axis=0)).sum())
        assert m.objective_ == pytest.approx(value, rel=1e-6 if mean > 1e12 else 1e-9)
        assert (value - near.objective_) / value <= m.duality_gap_ + 1e-8
        assert (m.stop_reason_ == "tol") == (not said) == (mean < 1e12)


def test_the_loss_of_a_class_that_has_nearly_all_weight_keeps_its_digits():
    X, y = np.array([[0.1], [0.3], [-0.2], [0.5]]), np.array([0, 1, 2, 2])
    for share in (1e-6, 1e-15, 1e-19):
        p = L(share) / (2 + 2 * L(share))
        least = float(-2 * p * np.log(p) - (1 - 2 * p) * np.log1p(-2 * p))
        m, said = fitted(
            dboost.BoostedClassifier(penalty="l1/l2", alpha=1.0), X, y, sample_weight=np.array([share, share, 1.0, 1.0])
        )
        assert m.objective_ == pytest.approx(least, rel=1e-9)
        assert (m.stop_reason_ == "tol") == (not said) and m.stop_reason_ in ("tol", "precision")


def test_poisson_with_offsets_far_apart():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    y = rng.poisson(np.exp(0.5 * x[:, 0])).astype(float)
    for low, high in ((-30.0, 30.0), (-100.0, 100.0), (-2000.0, -1900.0), (600.0, 900.0)):
        offset = np.linspace(low, high, 40)
        m = dboost.BoostedRegressor(standardize=False, alpha="quick", loss="poisson", offset=0).fit(
            np.column_stack([offset, x]), y
        )
        o = offset.astype(L)
        b = np.log(L(y.sum())) - o.max() - np.log(np.exp(o - o.max()).sum())
        f = b + o
        null = np.mean(np.exp(f) - y * f + np.where(y > 0, y * np.log(np.maximum(y, 1)) - y, 0))
        assert m.alpha_max_ == pytest.approx(float(np.abs(x.T @ (y - np.exp(f))).max() / 40), rel=1e-8)
        assert m.stop_reason_ == "tol" and m.objective_ <= null and len(m.active_features_) > 1


def test_an_unpenalised_fit_does_not_depend_on_the_units_of_a_column():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(150, 3))
    y = (rng.random(150) < 1 / (1 + np.exp(-(z @ [1.0, -1.0, 0.5] + 0.3)))).astype(int)
    wanted = dboost.BoostedClassifier(penalty="none", alpha=0.0, tol=1e-8).fit(z, y)
    for mean, deviation in ((0, 2.0**40), (5e11, 2.0**38), (1.7e18, 2.0**50), (0, 2.0**-42)):
        X = z.copy()
        X[:, 0] = mean + deviation * z[:, 0]
        m = dboost.BoostedClassifier(penalty="none", alpha=0.0).fit(X, y)
        assert m.stop_reason_ == "gradient"
        assert m.objective_ == pytest.approx(wanted.objective_, rel=1e-5)
        assert m.coef_[0, 0] * deviation == pytest.approx(wanted.coef_[0, 0], rel=1e-2)


@pytest.mark.full
def test_groups_of_many_classes_have_the_same_bits_on_any_number_of_threads_of_a_blas():
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (X @ rng.normal(size=(4, 70)) + rng.gumbel(size=(600, 70))).argmax(axis=1)
    bits = set()
    for threads in (1, 2):
        with threadpool_limits(threads):
            m = dboost.BoostedClassifier(penalty="l1/l2", alpha=1e-3, tol=0.5, max_rounds=3, column_groups=[0, 0, 1, 1])
            bits.add(fitted(m, X, y)[0].coef_.tobytes())
    assert len(bits) == 1


@pytest.mark.parametrize("value", [1.0, 0.1])
def test_a_constant_column_beside_an_intercept_tells_nothing_whatever_sums_are_rounded_by(value):
    rng = np.random.default_rng(0)
    X, y = np.full((28, 2), value), rng.integers(0, 3, 28)
    plain = dboost.BoostedClassifier(penalty="l1/l2", standardize=False)
    path = dboost.regularization_path(X, y, estimator=plain, n_alphas=3, eps=1e-3)
    assert path.alphas.tolist() == [0.0] and not path.coefs.any() and path.gaps.max() < 1e-12
    with pytest.raises(dboost.DataError, match="no feature says anything of the labels"):
        dboost.StabilitySelection(plain, n_pairs=2, n_alphas=3, eps=1e-3).fit(X, y)
    # and beside columns that tell something
    Z = np.column_stack([X, y + rng.normal(size=28)])
    model = plain.set_params(alpha=0.01, tol=1e-6).fit(Z, y)
    assert np.flatnonzero(model.coef_.any(axis=0)).tolist() == [2] and model.stop_reason_ == "tol"


@pytest.mark.filterwarnings("ignore:standardize=True leaves out 1 constant")
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("given", [{}, {"column_groups": np.array([0, 1, 1, 0])}], ids=["rows", "groups"])
def test_a_start_may_hold_a_column_that_is_constant_in_new_data(given, standardize):
    """A constant column has no weight in a model: one that a start brings along made the objective infinite."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = np.digitize(X[:, 0] + X[:, 3] + 0.3 * rng.normal(size=120), [-1, 1])
    new = X[60:].copy()
    new[:, 3] = 1.0
    params = {"penalty": "l1/l2", "alpha": 0.02, "tol": 1e-6, "standardize": standardize, **given}
    cold = dboost.BoostedClassifier(**params).fit(new, y[60:])
    warm = dboost.BoostedClassifier(**params, warm_start=True).fit(X, y)
    assert warm.coef_[:, 3].any()
    warm.fit(new, y[60:])
    assert warm.stop_reason_ == "tol" and warm.objective_ == pytest.approx(cold.objective_, rel=2e-6)
    assert not warm.coef_[:, 3].any()
