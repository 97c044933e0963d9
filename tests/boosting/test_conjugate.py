"""Conjugate gradients: preconditioners, columns that are almost copies, entries far outside, sampled curvature."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from dboost import passes
from dboost.compiled.sparse import columns
from dboost.estimators.checkpoint import Identity, read_checkpoint, write_checkpoint
from dboost.penalties import get_penalty
from dboost.penalties.faces import EntryFace
from dboost.problem.sample import Sample
from dboost.problem.tuning import Blocks, Tuning
from dboost.solvers.conjugate import class_blocks, settled_support
from dboost.solvers.conjugate.entry_blocks import EntryBlocks
from dboost.solvers.conjugate.preconditioner import HeavyRows
from dboost.solvers.newton import step as newton
from dboost.solvers.newton.accuracy import Aim
from tests.boosting import plain
from tests.boosting.test_resume import bits

M, A, K = 60, 9, 3


@pytest.fixture
def curved():
    """Examples by row with their Hessians, the dense matrix, and the diagonal of the curvature, the intercept last."""
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(M, A)) * (rng.random((M, A)) < 0.5)).astype(np.float32)
    csc = sp.csc_array(X)
    csc.sort_indices()
    csc = (csc.indptr.astype(np.int64), csc.indices.astype(np.int32), csc.data)
    cut = columns.cut_rows(*csc, np.arange(A), M)
    q = rng.dirichlet(np.ones(K), M)
    weight = rng.uniform(0.5, 2.0, M)
    h = np.zeros((M, 4), np.float32)
    h[:, :K] = q * weight[:, None]
    d = h[:, :K].astype(float) - h[:, :K].astype(float) ** 2 / weight[:, None]
    Z = np.hstack([X.astype(float), np.ones((M, 1))])
    return cut, h, 1.0 / weight, Z, d, np.einsum("ij,ir->jr", Z**2, d)


def copies(seed, m=400):
    """Three classes told by 14 sparse columns, of which two pairs are copies but for one example."""
    rng = np.random.default_rng(seed)
    X = (rng.random((m, 14)) < 0.25) * rng.uniform(0.5, 1.5, (m, 14))
    X[:, 0] = rng.random(m) < 0.9
    for copy, of in ((12, 3), (13, 5)):
        X[:, copy] = X[:, of]
        X[np.flatnonzero(X[:, of])[0], copy] = 0.0
    return X, (X[:, [3, 5, 7]] + 0.3 * rng.normal(size=(m, 3))).argmax(axis=1)


@pytest.mark.parametrize("penalty, most", [("l1/l2", 200), ("l1", 600)])
def test_one_of_two_copies_drives_the_other_out(penalty, most):
    X, code = copies(0)
    data = plain.Data("multinomial", X, code.astype(np.int32), np.ones(400), K)
    fitting = plain.fitting(data, penalty=penalty, tol=1e-9, max_rounds=100)
    result = fitting.fit(1e-4)
    assert result.gap <= 1e-9
    # exchanging the weights of two columns step by step takes thousands of passes
    assert result.passes <= most


def alike(kind="multinomial"):
    """Columns that pull on one another, as neighbouring pixels do."""
    X, code = plain.near_copies()
    if kind == "log":
        return plain.Data("log", X, np.where(code == 0, 1.0, -1.0)[:, None], np.ones(len(X)), 1)
    return plain.Data(kind, X, code.astype(np.int32), np.ones(len(X)), 4)


@pytest.mark.full
@pytest.mark.parametrize("penalty", ["l1/l2", "l1/l2+l1"])
def test_columns_that_all_pull_on_one_another_are_solved_for_together(penalty, tmp_path):
    """A solve that gets nowhere goes on with many rows, and later ones start with them, also from a file of the fit."""
    data, states = alike(), []

    def fitting(threads=1, **more):
        tuning = Tuning(blocks=Blocks(heavy=8, **more))
        return plain.fitting(data, threads=threads, penalty=penalty, tol=1e-8, max_rounds=200, tuning=tuning)

    wide = fitting().fit(1e-3, callback=lambda record, state: states.append(state))
    assert wide.gap <= 1e-8 and wide.state.memory.wide
    # never more than the few: without a way to widen
    narrow = fitting(wide=0).fit(1e-3)
    assert narrow.objective == pytest.approx(wide.objective, rel=1e-7)
    assert 0 < wide.taken["conjugate_gradients"] < 0.85 * narrow.taken["conjugate_gradients"]
    fit = Identity("data", {"hypotheses": None})
    write_checkpoint(tmp_path / "state", fit, next(state for state in states if state.memory.wide))
    again = read_checkpoint(tmp_path / "state", fit, data.X.shape[1], 4)
    resumed = fitting(threads=3).fit(1e-3, resume=again)
    assert resumed.W.tobytes() == wide.W.tobytes() and resumed.passes == wide.passes


@pytest.mark.full
@pytest.mark.parametrize("penalty", ["none", "l2", "l2_squared"])
@pytest.mark.parametrize("kind", ["multinomial", "log"])
def test_blocks_take_fewer_passes_where_no_feature_is_left_out(kind, penalty):
    """The curvature among the heaviest rows preconditions where it costs less than a solve without it took."""

    def fit(*less, threads=1):
        # a ridge of one output and as few columns has all of its curvature formed
        usual = {"penalty": penalty, "tol": 1e-7, "max_rounds": 100, "accelerators": plain.without("one_output", *less)}
        return plain.fitting(alike(kind), threads=threads, **usual).fit(0.0 if penalty == "none" else 1e-5)

    blocks, plain_ones = fit(), fit("heavy_blocks")
    assert blocks.taken["heavy_blocks"] and blocks.state.memory.wide
    assert blocks.stop_reason in ("tol", "gradient")
    assert plain_ones.objective * (1 - 1e-6) <= blocks.objective <= plain_ones.objective * (1 + 1e-9)
    assert blocks.state.passes < 0.75 * plain_ones.state.passes
    # with more threads, the same bits
    assert bits(fit(threads=2)) == bits(blocks)


def tagged():
    """Twelve tags, which columns that pull on one another tell."""
    X, _ = plain.near_copies()
    rng = np.random.default_rng(5)
    scores = (X - X.mean(axis=0)) @ rng.normal(size=(X.shape[1], 12)) - rng.uniform(0.0, 3.0, 12)
    return plain.Data(
        "multitask", X, np.where(scores + rng.logistic(size=scores.shape) > 0.0, 1.0, -1.0), np.ones(len(X)), 12
    )


def test_outputs_that_share_nothing_have_steps_of_their_own(monkeypatch):
    """The solve of all of them as one has to tell apart what is soft in each."""
    plan = {"penalty": "l2_squared", "tol": 1e-8, "accelerators": plain.without("heavy_blocks")}
    apart = plain.fitting(tagged(), **plan).fit(1e-4)
    monkeypatch.setattr(EntryFace, "apart", False)
    as_one = plain.fitting(tagged(), **plan).fit(1e-4)
    assert max(apart.gap, as_one.gap) <= 1e-8
    assert apart.objective == pytest.approx(as_one.objective, rel=1e-7)
    assert apart.passes < 0.7 * as_one.passes


def test_a_ridge_is_solved_no_further_than_its_goal(monkeypatch):
    """A round may end just above its goal: a solve that squares what is left there takes as long as all others."""

    def path(tol):
        fitting = plain.fitting(tagged(), penalty="l2_squared", tol=tol, accelerators=plain.without("heavy_blocks"))
        results = [fitting.fit(1e-2)]
        for place in range(1, 6):
            results.append(fitting.fit(1e-2 * 0.25**place, results[-1]))
        return results

    near, exact = path(1e-2), path(1e-8)
    of = Aim.of
    monkeypatch.setattr(Aim, "of", lambda *given: replace(of(*given), gap=0.0))
    further = path(1e-2)
    for one, best in zip(near, exact, strict=True):
        assert one.gap <= 1e-2 and best.objective <= one.objective <= (1.0 + 1e-2) * best.objective
    assert sum(one.passes for one in near) < 0.8 * sum(one.passes for one in further)


@pytest.mark.parametrize("loss", ["multinomial", "margin_softmax", "log"])
@pytest.mark.parametrize("width", [64, 16])
@pytest.mark.parametrize("intercept", [True, False])
def test_blocks_of_classes_are_symmetric_and_positive(monkeypatch, loss, width, intercept):
    """Else directions stop descending, and the step ends far from the optimum."""
    monkeypatch.setattr(class_blocks, "BLOCK", width)
    problem = plain.fitting(plain.make(loss, m=400, n=40, seed=7), penalty="l2_squared").problem
    W, active = 0.1 * np.random.default_rng(0).normal(size=(40, problem.k)), np.arange(40)
    iterate = problem.evaluate(active, W, np.zeros(problem.k))
    inverse = class_blocks.ClassBlocks(problem, iterate, active, intercept, np.full(W.shape, 0.3), 400)

    def times(v):
        rows, bias = inverse(v[: W.size].reshape(W.shape), v[W.size :])
        return np.concatenate([rows.ravel(), bias])

    P = np.stack([times(unit) for unit in np.eye(W.size + problem.k)])
    np.testing.assert_allclose(P, P.T, atol=1e-10 * np.abs(P).max())
    assert np.linalg.eigvalsh(P).min() >= -1e-12 * np.abs(P).max()


@pytest.mark.parametrize("shifts", [False, True])
@pytest.mark.parametrize("name", ["l1", "l1/l2", "l1/linf", "l1/l2+l1"])
def test_the_preconditioner_is_symmetric_and_positive(curved, name, shifts):
    cut, h, rank_one, _, _, diagonal = curved
    rng = np.random.default_rng(0)
    W, lam = rng.normal(size=(A, K)), np.full(A, 0.3)
    W[2] = 0.0
    W[4] = [1.0, -1.0, 0.5]
    face = get_penalty(name).face(W, lam)
    penalty = face.diagonal(lam)
    scale = np.concatenate([np.abs(face.restrict(diagonal[:A])) + penalty, diagonal[A]]) + 1e-3
    apply = HeavyRows.of(cut, h, rank_one, diagonal, True).solver(face, scale, penalty, shifts)
    P = np.column_stack([apply(e) for e in np.eye(scale.shape[0])])
    if shifts:
        # the intercept's residual has no shift, and needs no step along one
        centre = np.eye(scale.shape[0])
        centre[face.dim :, face.dim :] -= 1.0 / K
        P = centre @ P @ centre + (np.eye(scale.shape[0]) - centre)
    np.testing.assert_allclose(P, P.T, rtol=1e-7, atol=1e-9)
    assert np.linalg.eigvalsh(P).min() > 0.0


@pytest.mark.parametrize("most", [A, 2])
def test_blocks_of_entries_are_the_inverse_where_outputs_share_nothing(curved, most):
    """Of as many entries as may stand in a block, the most curved of each output; the others have their diagonal."""
    cut, h, rank_one, Z, d, diagonal = curved
    W, lam = np.random.default_rng(0).normal(size=(A, K)), np.full(A, 0.3)
    W[2], W[0, 1], W[4, 2] = 0.0, 0.0, 0.0
    face = get_penalty("l1").face(W, lam)
    H = np.zeros((face.dim + K, face.dim + K))
    places = np.vstack([face.places(), face.dim + np.arange(K)])
    for r in range(K):
        free = np.flatnonzero(places[:, r] >= 0)
        heavy = free[free < A][np.argsort(-diagonal[free[free < A], r])][:most]
        inside = np.isin(free, [*heavy, A])
        gram = (Z[:, free] * d[:, r, None]).T @ Z[:, free]
        H[np.ix_(places[free, r], places[free, r])] = np.where(np.outer(inside, inside), gram, np.diag(gram.diagonal()))
    sizes = Blocks(heavy=most, products=math.inf if most == A else 0.0)
    blocks = EntryBlocks(cut, h, rank_one, diagonal, True, 1.0, sizes)
    apply = blocks.solver(face, H.diagonal().copy(), np.zeros(face.dim))
    P = np.column_stack([apply(unit) for unit in np.eye(face.dim + K)])
    np.testing.assert_allclose(P @ H, np.eye(face.dim + K), atol=1e-5)


@pytest.mark.parametrize("name", ["l1/l2", "l1/linf"])
def test_a_column_that_the_examples_of_the_blocks_lack_moves_no_further_than_the_diagonal_says(curved, name):
    (pointer, slots, values), h, rank_one, *_, diagonal = curved
    slots = slots.copy()
    slots[slots == 1] = 0
    W, lam = np.linspace(0.5, 1.5, A * K).reshape(A, K), np.zeros(A)
    face = get_penalty(name).face(W, lam)
    heavy = HeavyRows.of((pointer, slots, values), h, rank_one, diagonal, True)
    step = heavy.solver(face, np.full(face.dim + K, 3.0), np.zeros(face.dim))(np.ones(face.dim + K))
    mine = face.places()[1]
    # the usual diagonal gives 1/3, and half of it is what the block has at least
    assert np.all(np.abs(step[mine[mine >= 0]]) <= 1.0)


def test_vectors_that_float32_cannot_hold_are_brought_into_its_range_by_powers_of_two():
    for longest in (1e-300, 1e-30, 1e-3, 1.0, 7e5, 1e30, 1e300):
        v = np.array([0.3 * longest, -longest, 0.0])
        unit = settled_support.unit_of(v)
        assert np.log2(unit) == np.round(np.log2(unit))
        assert unit == 1.0 or 0.5 <= np.abs(v / unit).max() < 1.0
        assert (v / unit * unit).tobytes() == v.tobytes()
    assert settled_support.unit_of(np.zeros(2)) == 1.0 and settled_support.unit_of(np.array([np.inf])) == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_products_with_columns_whose_squares_are_no_float32_are_formed(seed):
    """The step moves a margin by about one, its weight by 1e-21: each of these is a number, the square of 1e21 is not.

    A product that overflows ends a solve after its first step, which promises a millionth.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(18, 3)) * [1e21, 1e5, 0.1]
    data = plain.Data("multinomial", X, rng.integers(5, size=18).astype(np.int32), np.ones(18), 5)
    problem, lam = plain.fitting(data, penalty="l2", fit_intercept=False).problem, 1e20
    W = rng.normal(size=(3, 5)) * [[1e-21], [1e-36], [1e-39]]
    iterate = problem.evaluate(np.arange(3), W, np.zeros(5))
    diagonal = problem.own_pass(passes.curvature_diagonal, iterate, False, name="diagonal").add["diagonal"]
    value = problem.objective(iterate, lam)
    step = settled_support.conjugate_step(problem, iterate, lam, diagonal, problem.curvature_at(iterate), 100, value)
    assert np.all(np.isfinite(step[0])) and step[2] > 0.01


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 3, 5])
def test_entries_that_a_solve_sends_far_outside_do_not_spoil_its_step(seed, monkeypatch):
    """Their columns are rare, so that a solve sends them many times as far as the largest entry of their row.

    Cut back to it after the whole solve they left a step of which a hundredth could be taken.
    """
    rng = np.random.default_rng(seed)
    m, n, k = 1500, 120, 30
    often = 1.0 / np.arange(1, n + 1) ** 0.8
    X = (rng.random((m, n)) < often) * rng.uniform(0.5, 1.5, (m, n))
    B = 2.0 * rng.normal(size=(n, k)) * (rng.random((n, k)) < 0.3)
    code = (X @ B + rng.gumbel(size=(m, k))).argmax(axis=1)
    code = np.unique(code, return_inverse=True)[1]
    data = plain.Data("multinomial", X, code.astype(np.int32), np.ones(m), int(code.max()) + 1)
    steps = []
    step = newton.NewtonSteps.step

    def noted(self, *args):
        found = step(self, *args)
        steps.append(found[1])
        return found

    monkeypatch.setattr(newton.NewtonSteps, "step", noted)
    result = plain.fitting(data, penalty="l1/linf", tol=1e-6, max_rounds=50, fit_intercept=False).fit(1e-3)
    lengths = [found.length for found in steps if found.kind == "conjugate"]
    assert result.gap <= 1e-6
    assert len(lengths) > 5 and sum(length < 0.5 for length in lengths) <= 2


ROWS, COLUMNS, CLASSES = 300, 12, 4


@pytest.fixture
def sampled():
    return plain.fitting(plain.make("multinomial", m=ROWS, n=COLUMNS, k=CLASSES), penalty="l1/l2").problem


def test_column_that_the_sample_lacks_is_as_curved_as_the_others(sampled):
    rare = np.zeros(COLUMNS)
    # beyond what a quotient by the smallest number holds
    rare[[2, 5]] = 10.0, 30.0
    some = Sample.drawn(sampled, np.arange(COLUMNS), 0.5, 0)
    indptr, row, values = some.by_column
    # take the values of the two columns out of the sample
    values[indptr[2] : indptr[3]] = values[indptr[5] : indptr[6]] = 0.0
    square = np.where(rare > 0.0, rare, sampled.statistics.square)
    diagonal = np.where(rare[:, None] > 0.0, 0.0, 1.0) * np.arange(1.0, CLASSES + 1.0)
    full = some.of_all(diagonal, square)
    assert np.all(full > 0.0)
    np.testing.assert_allclose(full[5], 3.0 * full[2])
    np.testing.assert_allclose(full[2] / full[2].sum(), np.arange(1.0, CLASSES + 1.0) / 10.0)
