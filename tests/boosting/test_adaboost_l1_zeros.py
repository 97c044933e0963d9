"""AdaBoost+L1 with and without the zeros of al in U, against a transcription of the paper's Figure 1 in plain numpy.

The transcription solves step 4 by an active-set Newton method of its own, to far below the accuracy of the comparison.
"""

from __future__ import annotations

import numpy as np
import pytest

from dboost import AdaBoostL1Classifier, Columns, UsageError
from dboost.boosting.adaboost_l1 import AdaBoostL1
from dboost.boosting.systems import NormalisedEdges
from tests.boosting import plain

ROUNDS = 200


def fitting(data, keep_zeros, **settings):
    settings = {"penalty": NormalisedEdges(), "fit_intercept": False, "tol": 0.0, "max_rounds": ROUNDS, **settings}
    return plain.fitting(data, system=AdaBoostL1(1.0, True, keep_zeros), **settings)


def crowded(m=100, d=6, q=10, seed=1):
    """Neighbouring thresholds of a few variables: what stands for a threshold early gives way to its neighbours."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(m, d))
    y = np.where(V[:, 0] + np.sin(2 * V[:, 1]) + V[:, 2] ** 2 > 1, 1, -1).astype(np.int8)
    ends = np.quantile(V, np.linspace(0.05, 0.95, q), axis=0)
    X = np.hstack([np.where(V[:, [j]] < ends[:, j], 1.0, -1.0) for j in range(d)])
    # sizes that differ, so that no two hypotheses or edges are equal
    return plain.Data("exp", X * rng.uniform(0.8, 1.0, size=X.shape), y[:, None], rng.uniform(0.5, 2.0, m), 1)


def within(M, s, r, z):
    """argmin of log sum_i s_i e^(-(M z)_i) over z >= 0, sum z <= r, from a feasible z: active sets and Newton steps."""

    def of(z):
        q = np.log(s) - M @ z
        d = np.exp(q - q.max())
        return q.max() + np.log(d.sum()), d / d.sum()

    z, tight = z.copy(), False
    free = z > 0
    for _ in range(10_000):
        value, d = of(z)
        e = M.T @ d
        ids = np.flatnonzero(free)
        price = e[ids].mean() if tight and len(ids) else 0.0
        left = np.abs(e[ids] - price).max(initial=0.0)
        if left < 1e-11:
            if tight and price < -1e-12:
                tight = False
                continue
            rest = np.where(free, -np.inf, e - max(price, 0.0))
            if rest.max() < 1e-10:
                return z
            free[rest.argmax()] = True
            continue
        A = M[:, ids] - (M[:, ids] * d[:, None]).sum(axis=0)
        H = A.T @ (A * d[:, None]) + 1e-13 * np.eye(len(ids))
        if tight:
            bordered = np.block([[H, np.ones((len(ids), 1))], [np.ones((1, len(ids))), np.zeros((1, 1))]])
            p = np.linalg.solve(bordered, np.append(e[ids], 0.0))[:-1]
            p -= p.mean()
        else:
            p = np.linalg.solve(H, e[ids])
        length, blocked, full = 1.0, None, False
        if not tight and p.sum() > r - z.sum():
            length, full = max(r - z.sum(), 0.0) / p.sum(), True
        for place in np.flatnonzero(p < 0):
            reach = z[ids[place]] / -p[place]
            if reach <= length:
                length, blocked, full = reach, ids[place], False
        step, slope = np.zeros_like(z), e[ids] @ p
        step[ids] = p
        shorter = length
        while of(z + shorter * step)[0] > value - 1e-4 * shorter * slope + 1e-15 and shorter > 1e-12 * length:
            shorter /= 2
        z = np.maximum(z + shorter * step, 0.0)
        if shorter == length:
            tight = tight or full
            if blocked is not None:
                z[blocked], free[blocked] = 0.0, False
    raise AssertionError("no optimum")


def transcribed(data, rounds, nu, keep_zeros):
    """Figure 1, the columns divided by their peaks, the constant, and the negatives of all: edges, budgets, al."""
    H = np.hstack([data.X / np.abs(data.X).max(axis=0), np.ones((len(data.s), 1))])
    M = data.y * np.hstack([H, -H])
    s = data.s / data.s.sum()
    al, U, r, d, found = np.zeros(M.shape[1]), [], 0.0, s, []
    for _ in range(rounds):
        e = M.T @ d
        k = int(np.argmax(e))
        U = sorted({*U, k})
        r += nu / 2 * np.log((1 + e[k]) / (1 - e[k]))
        z = within(M[:, U], s, r, al[U])
        al = np.zeros(M.shape[1])
        al[U] = z
        if not keep_zeros:
            U = [j for j in U if al[j] > 0]
        q = s * np.exp(-M @ al)
        d = q / q.sum()
        found.append((k, e[k], r, np.log(q.sum()), len(U)))
    half = len(al) // 2
    return np.array(found), al[:half] - al[half:]


@pytest.fixture(scope="module")
def both():
    """For each setting: the fit and the transcription."""
    data = crowded()
    return {keep: (fitting(data, keep).fit(0.0), *transcribed(data, ROUNDS, 1.0, keep)) for keep in (False, True)}


@pytest.mark.parametrize("keep_zeros", [False, True], ids=["dropped", "kept"])
def test_two_hundred_rounds_are_those_of_the_transcription(both, keep_zeros):
    data = crowded()
    result, expected, al = both[keep_zeros]
    records = result.history
    assert len(records) == ROUNDS
    np.testing.assert_allclose([r["edge"] for r in records], expected[:, 1], atol=1e-6)
    np.testing.assert_allclose([r["budget"] for r in records], expected[:, 2], rtol=1e-6)
    assert [r["ensemble"] for r in records] == expected[:, 4].tolist()
    values = np.log([r["objective"] for r in records[1:]] + [result.objective])
    np.testing.assert_allclose(values, expected[:, 3], atol=1e-8)
    mine = plain.dense(result, data.X.shape[1])[:, 0] * np.abs(data.X).max(axis=0)
    np.testing.assert_allclose(np.append(mine, result.intercept), al, atol=1e-3)


def test_what_is_no_switch_is_refused():
    data = crowded()
    with pytest.raises(UsageError, match="keep_zeros='yes'.*expected True or False"):
        AdaBoostL1Classifier(hypotheses=Columns(), keep_zeros="yes").fit(data.X, data.y[:, 0])
