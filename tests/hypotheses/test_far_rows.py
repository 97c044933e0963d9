"""Kernels of rows that are far from zero compared with their distances."""

from __future__ import annotations

import numpy as np
import pytest

from dboost import BoostedClassifier
from dboost.hypotheses.kernels.family import Kernels
from tests.hypotheses.test_kernels import formed, prepare


def grid(seed, m=40, n=5, density=1.0):
    """Rows on multiples of 2**-10, to which 2**30 can be added without rounding, and classes."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(m, n)) * (rng.random((m, n)) < density) * 2**10) / 2**10
    return X, (X[:, :3] + 0.7 * rng.normal(size=(m, 3))).argmax(axis=1).astype(np.int32)


@pytest.mark.parametrize("offset", [2.0**20, -(2.0**30)])
@pytest.mark.parametrize("support", ["perceptron", 12])
def test_rows_far_from_zero_have_the_kernels_of_rows_near_it(offset, support):
    X, y = grid(11)
    near, far = prepare(Kernels(support=support), X, y, [40]), prepare(Kernels(support=support), X + offset, y, [40])
    assert far.gamma == pytest.approx(near.gamma, rel=1e-12)
    assert far.centres.numbers.tolist() == near.centres.numbers.tolist()
    np.testing.assert_allclose(formed(far, X + offset), formed(near, X), rtol=1e-11)


def test_a_fit_is_the_same_however_far_the_rows_are_from_zero():
    X, y = grid(15, m=60)
    fits = [BoostedClassifier(hypotheses=Kernels(), alpha=0.01).fit(X + far, y) for far in (0.0, 2.0**20, 2.0**30)]
    assert [fit.objective_ for fit in fits] == pytest.approx([fits[0].objective_] * 3, rel=1e-9)


def test_a_far_column_leaves_the_distances_of_sparse_ones_beside_it_alone():
    X, y = grid(12, n=6, density=0.4)
    X[:, 0] = 0.0
    far = X.copy()
    far[:, 0] = 2.0**30
    near, moved = (formed(prepare(Kernels(support=40, gamma=0.5), rows, y, [40]), rows) for rows in (X, far))
    np.testing.assert_allclose(moved, near, rtol=1e-11)


def test_far_rows_are_as_far_apart_by_angle_as_their_exact_directions():
    X, y = grid(13)
    far, gamma = X + 2.0**20, 2.0**38
    found = formed(prepare(Kernels(support=40, gamma=gamma, input="cosine"), far, y, [40]), far)
    rows = far.astype(np.longdouble)
    unit = rows / np.sqrt((rows**2).sum(axis=1, keepdims=True))
    square = ((unit[:, None] - unit[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(found, np.exp(-gamma * square.astype(float)), rtol=1e-6)


@pytest.mark.parametrize("input, gamma", [("raw", 0.5), ("cosine", 2.0**46)])
def test_a_far_perceptron_is_the_same_in_any_chunks_and_cuts(input, gamma, monkeypatch):
    X, y = grid(14, m=90)
    X += 2.0**24
    kernels = Kernels(gamma=gamma, input=input)
    found = {prepare(kernels, X, y, sizes).centres.token for sizes in ([90], [30, 41, 19], [1] * 20 + [70])}
    monkeypatch.setattr("dboost.hypotheses.kernels.family.CHUNK", 7)
    assert found == {prepare(kernels, X, y, [90]).centres.token}
