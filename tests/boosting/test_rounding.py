"""Sums of rounded residuals: how far off they are, what a certificate pays for it, and where fits use them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dboost.certificate.duality_gap import dual_bound, value_on_ray
from dboost.certificate.float32_scores import Rounding
from dboost.losses import LOSSES
from dboost.losses.base import Repair
from dboost.passes import scores
from dboost.penalties import ChargesRows, get_penalty
from dboost.problem.shards import score_shard
from dboost.problem.stored import StoredProblem
from tests.boosting import plain

# Sums are rounded for losses of several outputs whose residuals have a bound.
SEVERAL = [name for name, loss in LOSSES.items() if loss.task in ("multiclass", "multitask")]
CERTIFIED = [name for name in plain.PULLING if get_penalty(name).certified]
COARSE = 2.0**-14


def models(data, rng):
    """Models of all sizes, of some rows each."""
    for size in (1e-3, 0.3, 3.0, 50.0):
        active = np.flatnonzero(rng.random(data.X.shape[1]) < 0.5)
        yield active, size * rng.normal(size=(len(active), data.k)), size * rng.normal(size=data.k)


def gradients(problem, at, rounded):
    """G of every column."""
    point = problem.point(at.active, at.W, at.intercept)
    arguments = ((0, problem.n), None, point, False, False, rounded)
    return problem.engine.map_reduce(score_shard, *arguments, name="score")


@pytest.mark.parametrize("loss,penalty", plain.covering(SEVERAL, CERTIFIED))
def test_rounded_sums_are_as_near_as_is_said(loss, penalty):
    data = plain.make(loss, m=300, n=12, weights=True, seed=5)
    problem = plain.fitting(data, penalty=penalty, fit_intercept=True).problem
    told = Rounding.of(problem, 1.0)
    assert 0.0 < told.of_column < 1e-6
    allowed = told.of_column * problem.statistics.absolute
    assert told.largest == pytest.approx(allowed.max())
    off = 0.0
    for active, W, b in models(data, np.random.default_rng(1)):
        at = replace(problem.null(), active=active, W=W, intercept=b)
        exact, near = (gradients(problem, at, rounded) for rounded in (False, True))
        difference = get_penalty(penalty).dual_norm(near.add["G"] - exact.add["G"])
        assert (difference <= allowed + 1e-13 * problem.statistics.absolute).all()
        off = max(off, float(difference.max()))
        # nothing else is rounded
        assert near.add["loss"] == pytest.approx(exact.add["loss"], rel=1e-13)
        np.testing.assert_allclose(near.add["bias"], exact.add["bias"], rtol=0.0, atol=1e-11 * data.s.sum())
        assert near.add["ray"] == pytest.approx(exact.add["ray"], rel=1e-9)
    assert off > 0.0


@pytest.mark.parametrize("sign", [-1.0, 1.0], ids=["shorter", "longer"])
@pytest.mark.parametrize("loss,penalty", plain.covering(SEVERAL, CERTIFIED))
def test_a_certificate_pays_for_the_worst_that_rounding_can_do(loss, penalty, sign, monkeypatch):
    """Residuals shortened or lengthened by as much as rounding may: norms too small, or the dual value too large."""
    data = plain.make(loss, m=80, n=12, weights=True, seed=3)
    fitting = plain.fitting(data, penalty=penalty, tol=1e-9, fit_intercept=False)
    problem, rule, null = fitting.problem, get_penalty(penalty), fitting.null().norms
    alpha = 0.1 * plain.alpha_max(data, penalty, False)
    lam = alpha * data.s.sum()
    best = plain.optimum(data, penalty, lam, False)
    close = fitting.fit(alpha)
    tried = [(active, W) for active, W, _ in models(data, np.random.default_rng(2))]
    tried.append((close.active, close.W))
    told = Rounding.of(problem, lam, COARSE).of_column
    original = scores.columns.column_gradient

    def coarse(indptr, rows, values, U, candidates, out):
        U = U * (1.0 + sign * COARSE) if U.dtype == np.float32 else U
        original(indptr, rows, values, U, candidates, out)

    owed = False
    for active, W in tried:
        at = replace(problem.null(), active=active, W=W)
        G = gradients(problem, at, False).add["G"]
        true = rule.dual_norm(G)
        with monkeypatch.context() as patch:
            patch.setattr(scores.columns, "column_gradient", coarse)
            score = problem.score(at, None, lam, 0, rounding=told)
        found = {}
        for charge in (told, 0.0):
            charged = replace(score, rounding=charge)
            bound = dual_bound(problem, charged, null, lam)
            exact = dual_bound(problem, charged, null, lam, short=None)
            # without a charge the dual point may be infeasible, or its value less than is said
            scale = bound.norms / (score.norms + charge * problem.statistics.absolute)
            if isinstance(rule, ChargesRows):
                t = float(scale.max())
                theirs = problem.dual_value(score.iterate, Repair.nothing(data.k), t) - rule.conjugate(t * G, lam).sum()
                feasible = bound.value <= theirs + 1e-12 * abs(theirs)
            else:
                feasible = (scale * true <= lam * (1.0 + 1e-12)).all()
            whole = problem.dual_value(score.iterate, Repair.nothing(data.k), 1.0)
            said = value_on_ray(problem, charged, 1.0, np.inf, lam)
            found[charge] = feasible and (said is None or said <= whole + 1e-12 * abs(whole))
            if charge:
                assert max(bound.value, exact.value) <= best.value + 1e-12 * abs(best.value)
                assert (scale * true <= bound.norms * (1.0 + 1e-12)).all()
        assert found[told]
        owed |= not found[0.0]
    assert owed, "a charge of nothing would have done"


@pytest.fixture
def asked(monkeypatch):
    """The rounding of every scoring pass of models with rows."""
    seen = []
    original = StoredProblem.score

    def score(self, at, *args, **kwargs):
        found = original(self, at, *args, **kwargs)
        if at.active.shape[0]:
            seen.append(found.rounding)
        else:
            assert found.rounding == 0.0
        return found

    monkeypatch.setattr(StoredProblem, "score", score)
    return seen


@pytest.mark.parametrize("loss,penalty", plain.covering(SEVERAL, CERTIFIED))
@pytest.mark.parametrize("tol", [1e-3, 1e-10])
def test_fits_round_until_the_gap_is_small(loss, penalty, tol, asked):
    data = plain.make(loss, seed=1)
    alpha = 0.1 * plain.alpha_max(data, penalty)
    best = plain.optimum(data, penalty, alpha * data.s.sum())
    result = plain.fitting(data, penalty=penalty, tol=tol).fit(alpha)
    assert result.stop_reason == "tol"
    assert asked[0] > 0.0 and all(after <= before for before, after in zip(asked, asked[1:], strict=False))
    assert (asked[-1] > 0.0) == (tol == 1e-3)
    optimum = best.value / data.s.sum()
    assert result.lower_bound <= optimum * (1.0 + 1e-9)
    assert result.objective - optimum <= result.gap * result.objective * (1.0 + 1e-9)


@pytest.mark.parametrize("loss", [name for name in LOSSES if name not in SEVERAL])
def test_nothing_is_rounded_for_one_output(loss, asked):
    data = plain.make(loss)
    result = plain.fitting(data, penalty="l1", tol=1e-3).fit(0.1 * plain.alpha_max(data, "l1"))
    assert result.stop_reason == "tol" and not any(asked)


@pytest.mark.parametrize("scale", [1e-24, 1e29])
def test_residuals_near_the_ends_of_float32_are_not_rounded(scale, asked):
    data = plain.make("multinomial", weights=True)
    data = replace(data, s=scale * data.s)
    result = plain.fitting(data, penalty="l1/l2", tol=1e-3).fit(0.1 * plain.alpha_max(data, "l1/l2"))
    assert result.stop_reason == "tol" and asked and not any(asked)
