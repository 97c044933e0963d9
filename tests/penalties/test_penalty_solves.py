"""Row solves under both bounds, their degenerate cases, and scores."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.bounds import exponential, quadratic
from dboost.penalties import L1, NoPenalty, get_penalty
from tests.penalties.conftest import EXACT, PULLING, SEPARABLE, distance

KS = [1, 2, 5, 20]


def pull(theta, W, mu_plus, mu_minus, a):
    """Minus the derivative of the exponential bound at theta, and the size of its two terms, in long double."""
    d = ((theta - W) / a[:, None]).astype(np.longdouble)
    with np.errstate(over="ignore", invalid="ignore"):
        down = np.where(mu_plus > 0, mu_plus * np.exp(-d), 0.0)
        up = np.where(mu_minus > 0, mu_minus * np.exp(d), 0.0)
    return (down - up).astype(float), (down + up).astype(float)


@pytest.mark.full
def test_quadratic_residual(cases, rng):
    for penalty in SEPARABLE:
        for k in KS:
            W, G = cases.rows(400, k), cases.rows(400, k)
            D, lam = 10.0 ** rng.uniform(-4, 4, size=400), 10.0 ** rng.uniform(-3, 2, size=400)
            lam[::7] = 0.0
            new = penalty.solve_quadratic(W, G, D, lam)
            worst = [
                distance(penalty, new[j], G[j] - D[j] * (new[j] - W[j]), lam[j])
                / (lam[j] + np.abs(G[j]).sum() + D[j] * np.abs(W[j]).sum() + 1e-300)
                for j in range(400)
            ]
            assert len(worst) == 400 and max(worst) < 1e-13


@pytest.mark.full
def test_exponential_residual(cases):
    """|w / a| up to twenty thousand: everything stays finite, and stationarity holds to the rounding of w / a."""
    for penalty in EXACT:
        for k in KS:
            for tilt in [3.0, 300.0, 5000.0]:
                W, mu_plus, mu_minus, a, lam = cases.exponential(150, k, tilt)
                lam[::9] = 0.0
                new, unbounded = penalty.solve_exponential(W, mu_plus, mu_minus, a, lam)
                assert np.isfinite(new).all()
                checked = 0
                for j in range(150):
                    g, terms = pull(new[[j]], W[[j]], mu_plus[[j]], mu_minus[[j]], a[[j]])
                    if unbounded[j]:
                        # Entries are on their own in such a row; those with a minimiser must be at it.
                        assert penalty.name == "none" or lam[j] == 0
                        off = np.abs(g[(mu_plus[[j]] > 0) & (mu_minus[[j]] > 0)]).max(initial=0.0)
                    else:
                        off = distance(penalty, new[j], g[0], lam[j])
                    # theta itself is rounded: an error of eps in theta / a and w / a moves the exponentials so much.
                    tolerance = 1e-12 + 4e-16 * (np.abs(new[j]).max() + np.abs(W[j]).max()) / a[j] * k
                    assert off <= tolerance * (lam[j] + terms[0].max()), (j, off)
                    checked += 1
                assert checked == 150


def test_zero_row_on_both_sides_of_its_threshold(cases):
    for penalty in PULLING:
        _, mu_plus, mu_minus, a, _ = cases.exponential(500, 6)
        G = mu_plus - mu_minus
        dual = penalty.dual_norm(G)
        some = dual > 0
        mu_plus, mu_minus, a, G, dual = mu_plus[some], mu_minus[some], a[some], G[some], dual[some]
        zero = np.zeros_like(G)
        assert some.sum() > 450
        for factor, alive in ((1 + 1e-9, False), (1 - 1e-9, True)):
            lam = dual * factor
            assert np.all(penalty.prox(G, lam).any(axis=1) == alive) and np.all(penalty.leaves_zero(G, lam) == alive)
            assert np.all(penalty.solve_exponential(zero, mu_plus, mu_minus, a, lam)[0].any(axis=1) == alive)
            assert np.all(penalty.solve_quadratic(zero, G, a, lam).any(axis=1) == alive)
            assert np.all((penalty.score_exponential(mu_plus, mu_minus, a, lam) > 0) == alive)
            assert np.all((penalty.score_quadratic(G, a, lam) > 0) == alive)


def test_scores_against_the_decrease(cases, rng, monkeypatch):
    """Equal to what the step gains; for the l2 part under the exponential bound positive and at most that."""
    # a step without an end gains all that there is
    monkeypatch.setattr(exponential, "CAP", 700.0)
    for penalty in SEPARABLE:
        for k in KS:
            _, mu_plus, mu_minus, a, lam = cases.exponential(800, k)
            lam[::11] = 0.0
            zero = np.zeros_like(mu_plus)
            G, D = mu_plus - mu_minus, 10.0 ** rng.uniform(-2, 2, size=800)
            new = penalty.solve_quadratic(zero, G, D, lam)
            gained = -(quadratic.change(new, G, D) + lam * penalty.value(new))
            score = penalty.score_quadratic(G, D, lam)
            assert np.allclose(score, gained, rtol=1e-9, atol=1e-14 * (G**2).sum(1).max())
            assert np.array_equal(score > 0, penalty.leaves_zero(G, lam) if penalty.name != "none" else G.any(axis=1))

            new, _ = penalty.solve_exponential(zero, mu_plus, mu_minus, a, lam)
            gained = -(exponential.change(new, mu_plus, mu_minus, a) + lam * penalty.value(new))
            score = penalty.score_exponential(mu_plus, mu_minus, a, lam)
            total = a * (mu_plus + mu_minus).sum(1)
            assert np.all(score <= gained + 1e-13 * total)
            assert np.array_equal(score > 0, penalty.leaves_zero(G, lam) if penalty.name != "none" else G.any(axis=1))
            group = getattr(penalty, "mix", (0.0,))[0] > 0
            if penalty.name == "smooth_l1":
                # its bound covers the penalty as well: the score is that bound's decrease, the step gains no less
                assert np.median(score[score > 0] / gained[score > 0]) > 0.2
            elif not group or k == 1:
                assert np.allclose(score, gained, rtol=1e-9, atol=1e-13 * total.max())
            else:
                alive = score > 0
                ratio = np.median(score[alive] / gained[alive])
                assert alive.sum() > 200 and 0.3 < ratio <= 1.0


@pytest.mark.parametrize("name", ["l1", "l1/linf", "l1/l2", "l1/l2+l1"])
def test_one_output_is_the_scalar_l1(name, cases, rng):
    penalty, scalar = get_penalty(name), L1()
    W, mu_plus, mu_minus, a, lam = cases.exponential(1000, 1)
    lam[::9] = 0.0
    G, D = mu_plus - mu_minus, 10.0 ** rng.uniform(-2, 2, size=1000)
    new, unbounded = penalty.solve_exponential(W, mu_plus, mu_minus, a, lam)
    expected, flags = scalar.solve_exponential(W, mu_plus, mu_minus, a, lam)
    assert np.allclose(new, expected, rtol=1e-11, atol=1e-14) and np.array_equal(unbounded, flags)
    assert np.array_equal(new == 0, expected == 0)
    assert np.allclose(penalty.solve_quadratic(W, G, D, lam), scalar.solve_quadratic(W, G, D, lam), rtol=1e-12)
    for mine, other in (
        (penalty.score_quadratic(G, D, lam), scalar.score_quadratic(G, D, lam)),
        (penalty.score_exponential(mu_plus, mu_minus, a, lam), scalar.score_exponential(mu_plus, mu_minus, a, lam)),
    ):
        assert np.allclose(mine, other, rtol=1e-8, atol=1e-13)


def test_without_weight_every_penalty_is_none(cases, rng):
    for penalty in SEPARABLE:
        W, mu_plus, mu_minus, a, _ = cases.exponential(500, 4)
        G, D = mu_plus - mu_minus, 10.0 ** rng.uniform(-2, 2, size=500)
        free = NoPenalty()
        assert np.array_equal(penalty.solve_quadratic(W, G, D, 0.0), free.solve_quadratic(W, G, D, 0.0))
        new, unbounded = penalty.solve_exponential(W, mu_plus, mu_minus, a, 0.0)
        expected, flags = free.solve_exponential(W, mu_plus, mu_minus, a, 0.0)
        assert np.allclose(new, expected, rtol=1e-13, atol=0) and np.array_equal(unbounded, flags)
        assert 100 < flags.sum() < 500
        both = (mu_plus > 0) & (mu_minus > 0)
        scale = np.broadcast_to(a[:, None], W.shape)[both]
        shift = (expected - W)[both] - 0.5 * scale * np.log(mu_plus[both] / mu_minus[both])
        assert np.abs(shift / scale).max() < 1e-12
        assert np.allclose(penalty.score_quadratic(G, D, 0.0), free.score_quadratic(G, D, 0.0), rtol=1e-13)


def test_entries_without_a_minimiser_are_capped():
    for penalty in SEPARABLE:
        W = np.array([[0.5, -0.5, 0.25, 0.25]])
        mu_plus, mu_minus = np.array([[2.0, 0.0, 0.0, 3.0]]), np.array([[0.0, 2.0, 0.0, 3.0]])
        new, unbounded = penalty.solve_exponential(W, mu_plus, mu_minus, 0.1, 0.0)
        assert unbounded.tolist() == [True]
        assert np.allclose(new, [[0.5 + 0.1 * 30.0, -0.5 - 0.1 * 30.0, 0.25, 0.25]], rtol=1e-15)
        lowered = exponential.change(new - W, mu_plus, mu_minus, np.array([0.1]))
        assert lowered[0] < 0
        penalised, flags = penalty.solve_exponential(W, mu_plus, mu_minus, 0.1, 1e-3)
        assert np.isfinite(penalised).all() and flags.any() == (penalty.name == "none")


def test_zero_columns():
    """D = 0 or a = inf: the row becomes zero when it is penalised and stays when it is not."""
    for penalty in SEPARABLE:
        W, nothing = np.array([[1.0, -2.0], [3.0, 4.0]]), np.zeros((2, 2))
        lam = np.array([0.5, 0.0])
        expected = W.copy()
        if penalty.name != "none":
            expected[0] = 0.0
        assert np.array_equal(penalty.solve_quadratic(W, nothing, 0.0, lam), expected)
        for a in (np.inf, 1.0):
            new, unbounded = penalty.solve_exponential(W, nothing, nothing, a, lam)
            assert np.array_equal(new, expected) and not unbounded.any()
            assert not penalty.score_exponential(nothing, nothing, a, lam).any()
        assert not penalty.score_quadratic(nothing, 0.0, lam).any()


def test_extreme_magnitudes(rng):
    """Sums from 1e-200 to 1e200, penalties from 1e-250 to 1e250, rows a thousand normalisations away from zero."""
    for penalty in SEPARABLE:
        rows = 600
        mu_plus, mu_minus = 10.0 ** rng.uniform(-200, 200, size=(2, rows, 4))
        mu_plus[rng.random((rows, 4)) < 0.2] = 0.0
        mu_minus[rng.random((rows, 4)) < 0.2] = 0.0
        lam = 10.0 ** rng.uniform(-250, 250, size=rows)
        a = 10.0 ** rng.uniform(-4, 0, size=rows)
        W = rng.normal(size=(rows, 4)) * 1000 * a[:, None]
        new, unbounded = penalty.solve_exponential(W, mu_plus, mu_minus, a, lam)
        score = penalty.score_exponential(mu_plus, mu_minus, a, lam)
        assert np.isfinite(new).all() and np.isfinite(score).all() and np.all(score >= 0)
        assert unbounded.any() == (penalty.name == "none")
        assert np.abs(new - W).max() / a.max() < 1e5


def test_inputs_are_not_changed(cases):
    for penalty in SEPARABLE:
        arrays = cases.exponential(40, 3)
        copies = [x.copy() for x in arrays]
        W, mu_plus, mu_minus, a, lam = arrays
        penalty.solve_exponential(W, mu_plus, mu_minus, a, lam)[0][:] = 9.0
        penalty.solve_quadratic(W, mu_plus, a, lam)[:] = 9.0
        penalty.solve_quadratic(W, mu_plus, 0.0, 0.0)[:] = 9.0
        penalty.score_exponential(mu_plus, mu_minus, a, lam)
        penalty.prox(W, lam)[:] = 9.0
        for x, before in zip(arrays, copies, strict=True):
            assert np.array_equal(x, before)
