"""The curvature among the free entries of each output: its numbers, its inverse, and the products it saves."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.penalties import get_penalty
from dboost.problem import slices
from dboost.problem.tuning import Blocks, Tuning
from dboost.solvers.conjugate.entry_blocks import EntryBlocks
from dboost.solvers.conjugate.preconditioner import in_turn
from tests.boosting import plain
from tests.boosting.curved import A, K, M


@pytest.fixture
def free(intercept):
    """Entries that may move: none of one row, one of another, all of the intercept's."""
    free = np.random.default_rng(5).random((A + intercept, K)) < 0.6
    free[2], free[4] = False, [False, True, False]
    if intercept:
        free[A] = True
    return free


@pytest.fixture(params=[True, False], ids=["intercept", "no intercept"])
def intercept(request):
    return request.param


def formed(curved, free, intercept, each=in_turn, **sizes):
    cut, h, rank_one, *_, diagonal = curved
    given = (cut, h, rank_one, diagonal[: len(free)], free, intercept)
    return EntryBlocks.of(*given, each, Blocks(**sizes))


def dense(blocks, rows):
    """The blocks as one matrix among the entries (row, output), in row-major order."""
    full = np.zeros((rows, K, rows, K))
    for members, outputs, gram in blocks.blocks:
        for own, r, upper in zip(members, outputs, gram, strict=True):
            n = np.count_nonzero(own >= 0)
            assert np.all(own[:n] >= 0) and np.all(np.diff(own[:n]) > 0)
            whole = np.triu(upper[:n, :n]) + np.triu(upper[:n, :n], 1).T
            full[own[:n, None], r, own[:n], r] = whole
    return full.reshape(rows * K, rows * K)


def wanted(curved, free):
    Z, d = curved[3], curved[4]
    Z = Z[:, : len(free)]
    full = np.zeros((len(free), K, len(free), K))
    for r in range(K):
        full[:, r, :, r] = (Z.T * d[:, r]) @ Z
    return np.where(np.outer(free.ravel(), free.ravel()), full.reshape(free.size, free.size), 0.0)


def test_blocks_are_the_curvature_within_each_output(curved, free, intercept):
    got = dense(formed(curved, free, intercept), len(free))
    np.testing.assert_allclose(got, wanted(curved, free), rtol=1e-6, atol=1e-6)


def test_parts_are_added_in_their_order_on_any_threads(curved, free, intercept, monkeypatch):
    monkeypatch.setattr(slices, "PART", 100)

    def backwards(function, items):
        assert len(items) > 1
        return [function(item) for item in reversed(items)][::-1]

    got, again = formed(curved, free, intercept), formed(curved, free, intercept, backwards)
    assert dense(got, len(free)).tobytes() == dense(again, len(free)).tobytes()
    np.testing.assert_allclose(dense(got, len(free)), wanted(curved, free), rtol=1e-6, atol=1e-6)


def test_the_most_curved_entries_of_an_output_are_taken_where_all_are_too_many(curved, free, intercept):
    taken = np.zeros(free.shape, np.bool_)
    for members, outputs, _ in formed(curved, free, intercept, cubes=3.0 * 4**3).blocks:
        for own, r in zip(members, outputs, strict=True):
            taken[own[own >= 0], r] = True
    diagonal = curved[-1]
    assert np.all(taken <= free) and np.count_nonzero(taken) < np.count_nonzero(free)
    assert np.all(taken.sum(axis=0) == np.minimum(free.sum(axis=0), 4))
    for r in range(K):
        left = np.flatnonzero(free[:, r] & ~taken[:, r])
        assert np.all(diagonal[left, r] <= diagonal[np.flatnonzero(taken[:, r]), r].min())


def test_some_of_the_examples_stand_for_all_where_there_are_many(curved, free, intercept):
    cut, h, rank_one, *_, diagonal = curved
    every = np.arange(0, M, 3)
    Z, d = curved[3][every], 3.0 * curved[4][every]
    some = (cut, h, rank_one, Z, d, diagonal)
    got = dense(formed(curved, free, intercept, work=1.0, examples=20, for_a_row=1), len(free))
    np.testing.assert_allclose(got, wanted(some, free), rtol=1e-6, atol=1e-6)


def solver(curved, free, intercept, rank_one):
    cut, h, _, _, _, diagonal = curved
    W = np.where(free[:A], 1.0, 0.0)
    face = get_penalty("l1").face(W, np.ones(A))
    blocks = EntryBlocks.of(cut, h, rank_one, diagonal[: len(free)], free, intercept)
    scale = np.concatenate([face.restrict(diagonal[:A]), diagonal[A, : K * intercept]])
    return blocks.solver(face, scale, np.zeros(face.dim))


def test_outputs_that_do_not_pull_on_one_another_are_solved_for_exactly(curved, free, intercept):
    Z, h = curved[3][:, : len(free)], curved[1][:, :K].astype(float)
    step = np.where(free, np.random.default_rng(1).normal(size=free.shape), 0.0)
    product = Z.T @ (h * (Z @ step))
    apply = solver(curved, free, intercept, np.zeros(M))
    np.testing.assert_allclose(apply(product[free]), step[free], rtol=1e-3, atol=1e-3)


def test_the_preconditioner_is_symmetric_and_positive(curved, free, intercept):
    apply = solver(curved, free, intercept, curved[2])
    P = np.column_stack([apply(e) for e in np.eye(np.count_nonzero(free))])
    np.testing.assert_allclose(P, P.T, rtol=1e-7, atol=1e-9)
    assert np.linalg.eigvalsh(P).min() > 0.0


def test_a_column_that_the_examples_lack_and_a_copy_move_no_further_than_the_diagonal_says(curved, free, intercept):
    (pointer, slots, values), h, rank_one, *_, diagonal = curved
    # nobody holds column 1, though it is free, and column 3 is where column 5 is
    slots = slots.copy()
    slots[slots == 1] = 0
    free[[1, 3, 5], 0] = True
    face = get_penalty("l1").face(np.where(free[:A], 1.0, 0.0), np.ones(A))
    blocks = EntryBlocks.of((pointer, slots, values), h, rank_one, diagonal[: len(free)], free, intercept)
    scale = np.full(face.dim + K * intercept, 3.0)
    step = blocks.solver(face, scale, np.zeros(face.dim))(np.ones(scale.shape[0]))
    assert np.all(np.isfinite(step))
    assert step[face.places()[1, 0]] == pytest.approx(1.0 / 1.5)


def test_no_free_entries_leave_the_diagonal(curved):
    free = np.zeros((A, K), np.bool_)
    blocks = formed(curved, free, False)
    face = get_penalty("l1").face(np.ones((A, K)), np.ones(A))
    r, scale = np.arange(1.0, A * K + 1), np.linspace(0.5, 2.0, A * K)
    np.testing.assert_array_equal(blocks.solver(face, scale, np.zeros(A * K))(r), r / scale)


@pytest.mark.parametrize("loss", ["multinomial", "multitask"])
def test_columns_that_all_pull_on_one_another_take_few_products(loss):
    """Beside blocks of the heaviest rows, with which such columns need more."""
    X, code = plain.near_copies()
    y = code.astype(np.int32) if loss == "multinomial" else np.where(np.eye(4)[code] > 0, 1, -1).astype(np.int8)
    data = plain.Data(loss, X, y, np.ones(X.shape[0]), 4)
    settings = {"penalty": "l1", "tol": 1e-8, "max_rounds": 200}
    settings["tuning"] = Tuning(blocks=Blocks(heavy=8, wide=0))
    # with more columns the curvature would not be formed
    mine = plain.fitting(data, **settings, accelerators=plain.without("formed_curvature")).fit(1e-3)
    heavy = plain.without("formed_curvature", "entry_blocks")
    theirs = plain.fitting(data, **settings, accelerators=heavy).fit(1e-3)
    assert mine.gap <= 1e-8 and theirs.objective == pytest.approx(mine.objective, rel=1e-7)
    assert 0 < mine.taken["conjugate_gradients"] < 0.7 * theirs.taken["conjugate_gradients"]
