"""Bounds on sums that are not formed again: never below the true ones, of use, and without a trace in the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dboost.certificate.column_bounds import bounded, known, moved, moved_by_intercept, reach, unsure
from dboost.estimators.checkpoint import Identity, read_checkpoint, write_checkpoint
from dboost.losses import LOSSES
from dboost.penalties import get_penalty
from dboost.problem.stored import StoredProblem
from tests.boosting import plain

CURVED = [name for name in LOSSES if np.isfinite(plain.make(name, m=20, n=3).kappa)]
SLACK = 1e-9
LONG = [("log", "l1"), ("multinomial", "l1/linf"), ("multinomial", "l1/l2")]


def scored(problem, active, W, b):
    """A model scored at every column: its norms, and its sums for all rows held."""
    at = replace(problem.null(), active=active, W=W, intercept=b)
    score = problem.score(at, None, 1.0, 0)
    return score.norms, score.iterate


def wide(loss, seed=6):
    """More columns than a model holds."""
    return plain.make(loss, m=120, n=60, weights=True, seed=seed)


@pytest.mark.parametrize("loss,penalty,intercept", plain.covering(CURVED, plain.PULLING, [True, False]))
def test_bounds_hold_between_any_two_models(loss, penalty, intercept):
    data = plain.make(loss, m=80, n=12, weights=True, seed=3)
    problem = plain.fitting(data, penalty=penalty, fit_intercept=intercept).problem
    assert bounded(problem)
    rng = np.random.default_rng(7)
    active = np.arange(0, 12, 2)
    useful = 0
    for size in (1e-6, 1e-3, 0.1, 2.0):
        for near in (1e-6, 1e-2, 1.0):
            W = size * rng.normal(size=(len(active), data.k))
            b = size * rng.normal(size=data.k) * intercept
            norms, before = scored(problem, active, W, b)
            after_W, after_b = (x + near * size * rng.normal(size=x.shape) for x in (W, b))
            true, after = scored(problem, active, after_W, after_b * intercept)
            bound = reach(problem, norms, moved(problem, before, after))
            assert (bound >= true * (1.0 - SLACK)).all()
            # no further than the curvature of all columns together may move them, the sums' rounding aside
            margins = np.linalg.norm(data.X[:, active] @ (after.W - W) + after.intercept - b, axis=1)
            most = problem.loss.kappa * np.sqrt(data.s @ margins**2) * problem.penalty.dual_radius(data.k)
            rounding = np.sqrt(4e-12 * problem.loss.kappa * (before.loss + after.loss))
            rounding *= max(np.sqrt(data.k), problem.penalty.dual_radius(data.k))
            lengths = np.sqrt(problem.statistics.square)
            assert (bound - norms <= (most + rounding) * lengths * (1.0 + SLACK)).all()
            useful += bool((bound <= 1.01 * norms.max()).all())
    assert useful >= 3


@pytest.mark.parametrize("loss,penalty", plain.covering(CURVED, plain.PULLING))
def test_bounds_hold_where_the_intercept_moves(loss, penalty):
    data = plain.make(loss, m=80, n=12, weights=True, seed=3)
    problem = plain.fitting(data, penalty=penalty).problem
    rng = np.random.default_rng(8)
    active, W = np.arange(3), rng.normal(size=(3, data.k))
    for size in (1e-6, 1e-2, 1.0):
        b, step = rng.normal(size=data.k), size * rng.normal(size=data.k)
        norms, _ = scored(problem, active, W, b)
        true, _ = scored(problem, active, W, b + step)
        assert (reach(problem, norms, moved_by_intercept(problem, b, b + step)) >= true * (1.0 - SLACK)).all()
        assert moved_by_intercept(problem, b, b) == 0.0


def test_what_cannot_be_bounded_is_not():
    problem = plain.fitting(plain.make("exp", m=40, n=5)).problem
    norms, at = scored(problem, np.arange(2), np.ones((2, 1)), np.zeros(1))
    assert not bounded(problem) and moved(problem, at, at) == np.inf
    problem = plain.fitting(plain.make("log", m=40, n=5)).problem
    norms, at = scored(problem, np.arange(2), np.ones((2, 1)), np.zeros(1))
    assert moved(problem, at, at) < 1e-4 and moved(problem, replace(at, shift=3.0), at) == np.inf
    assert reach(problem, norms, np.inf) is None and reach(problem, None, 1.0) is None


def test_who_is_looked_at():
    problem = plain.fitting(plain.make("log", m=40, n=10)).problem
    norms, active = np.array([5.0, 0, 0, 0, 9, 0, 0, 0, 0, 1]), np.array([2])
    assert unsure(problem, norms, None, active, 4.0).tolist() == [0, 2, 4]
    assert unsure(problem, norms, np.array([1, 2, 4, 5]), active, 4.0).tolist() == [2, 4]
    # nearly all of the candidates are as well looked at together
    few = np.array([0, 2, 4])
    assert unsure(problem, norms, few, active, 4.0) is few
    assert unsure(problem, None, few, active, 4.0) is few
    assert unsure(problem, norms, None, active[:0], 4.0) is None


@pytest.mark.parametrize("loss,penalty,intercept", plain.covering(CURVED, plain.PULLING, [True, False]))
def test_along_whole_fits(loss, penalty, intercept, monkeypatch):
    """The bounds of every state hold, passes look at fewer columns, and the model is that of a fit that sees all."""
    data = wide(loss)
    looked_at, states = [], []
    original = StoredProblem.score

    def score(self, at, candidates, *arguments):
        looked_at.append(self.n if candidates is None else len(candidates))
        return original(self, at, candidates, *arguments)

    def fitting(**more):
        return plain.fitting(data, penalty=penalty, tol=1e-8, fit_intercept=intercept, **more)

    alpha = 0.2 * plain.alpha_max(data, penalty, intercept)
    with monkeypatch.context() as patch:
        patch.setattr(StoredProblem, "score", score)
        result = fitting().fit(alpha, callback=lambda record, state: states.append(state))
        few, looked_at[:] = sum(looked_at), []
        whole = fitting(accelerators=plain.without("column_bounds")).fit(alpha)
    # where all moves are large nothing is known; the long fits have several rounds near the end
    spared = sum(looked_at) - few
    assert spared > 0 if (loss, penalty) in LONG else spared >= 0
    assert result.stop_reason == whole.stop_reason == "tol"
    assert result.W.tobytes() == whole.W.tobytes() and result.active.tobytes() == whole.active.tobytes()
    assert result.intercept.tobytes() == whole.intercept.tobytes() and result.passes == whole.passes
    assert result.gap == pytest.approx(whole.gap, rel=1e-9) and result.gap <= 1e-8
    problem, rule = fitting().problem, get_penalty(penalty)
    for state in states:
        W = np.zeros((60, data.k))
        W[state.active] = state.W
        true = rule.dual_norm(data.X.T @ data.residual(data.X @ W + state.intercept))
        bound = reach(problem, state.norms, state.drift)
        assert (bound >= true * (1.0 - SLACK) - SLACK * problem.statistics.absolute).all()


def test_a_score_of_some_columns_as_one_of_all_candidates():
    data = wide("log")
    problem = plain.fitting(data).problem
    norms, at = scored(problem, np.arange(3), np.ones((3, 1)), np.zeros(1))
    some, above = np.arange(0, 60, 3), norms + 1.0
    part = replace(problem.score(at, some, 1.0, 0), rounding=0.5)
    score = known(problem, part, None, above, 0.0)
    assert score.candidates.tolist() == list(range(60))
    np.testing.assert_array_equal(score.norms[some], norms[some])
    others = np.setdiff1d(np.arange(60), some)
    np.testing.assert_array_equal(score.norms[others], above[others])
    # of what was summed, the bound has the rounding in it
    np.testing.assert_allclose(score.bounds[some], (norms + 0.5 * problem.statistics.absolute)[some])
    # columns that nobody ever looked at have no bound
    assert np.isinf(known(problem, part, some, None, 0.0).bounds[others]).all()


def test_a_checkpoint_keeps_the_bounds(tmp_path):
    data, states = wide("multinomial"), []
    fitting = plain.fitting(data, penalty="l1/l2", tol=1e-9)
    whole = fitting.fit(1e-2, callback=lambda record, state: states.append(state))
    mine = Identity("data", {"hypotheses": None})
    state = states[len(states) // 2]
    write_checkpoint(tmp_path / "fit", mine, state)
    again = read_checkpoint(tmp_path / "fit", mine, 60, data.k)
    assert again.norms.tobytes() == state.norms.tobytes() and again.drift == state.drift > 0.0
    resumed = plain.fitting(data, penalty="l1/l2", tol=1e-9).fit(1e-2, resume=again)
    assert resumed.W.tobytes() == whole.W.tobytes()
    assert [r["candidates"] for r in resumed.history] == [r["candidates"] for r in whole.history]
