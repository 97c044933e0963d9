"""The lower bound and the feasibility of the dual point, along whole fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dboost.certificate.duality_gap import dual_bound
from dboost.losses import LOSSES
from dboost.penalties import ChargesRows, get_penalty
from dboost.problem.problem import Problem
from tests.boosting import plain

SLACK = 1e-12


def iterates(fitting, data, alpha, intercept, rng):
    """Models along a fit, and models far from any."""
    seen = []
    result = fitting.fit(alpha, callback=lambda record, state: seen.append(state))
    models = [(state.active, state.W, state.intercept) for state in seen]
    assert result.stop_reason == "tol"
    for size in (1e-3, 0.3, 3.0, 50.0):
        active = np.flatnonzero(rng.random(data.X.shape[1]) < 0.5)
        b = size * rng.normal(size=data.k) * intercept
        models.append((active, size * rng.normal(size=(len(active), data.k)), b))
    return models


def dual_point(data, iterate, asked):
    """Theta as docs/math.md 6 describes it, rebuilt in dense numpy from the arguments the pass received."""
    scale, mix, shift, prior = asked
    W = np.zeros((data.X.shape[1], data.k))
    W[iterate.active] = iterate.W
    F = data.X @ W + iterate.intercept
    if data.loss == "poisson":
        return scale * (data.residual(F) - shift * data.s[:, None] * np.exp(F))
    if data.loss in ("squared", "epsilon_insensitive", "exp", *plain.KINKED):
        U = data.residual(F)
        pull = np.maximum(data.y * shift, 0) * data.y if data.loss == "exp" else -shift
        return scale * (U + data.s[:, None] * pull)
    if data.loss == "multitarget":
        return ~np.isnan(data.y) * scale * (data.residual(F) - data.s[:, None] * shift)
    if data.multiclass:
        F = data.seen(F)
        e = np.exp(F - F.max(axis=1, keepdims=True))
        q = e / e.sum(axis=1, keepdims=True)
        label = np.eye(data.k)[data.y]
        observed = np.ones_like(F)
    else:
        q = np.exp(-np.logaddexp(0, -F))
        label, observed = (data.y > 0) * 1.0, (data.y != 0) * 1.0
    q = (1 - mix) * (q - shift) + mix * prior
    return data.s[:, None] * observed * scale * (label - q)


@pytest.fixture
def spied(monkeypatch):
    """Remember what the DUAL pass was asked for."""
    seen = []
    original = Problem.dual_value

    def dual_value(self, iterate, repair, scale):
        seen.append((scale * repair.keep, repair.mix, repair.shift, repair.prior))
        return original(self, iterate, repair, scale)

    monkeypatch.setattr(Problem, "dual_value", dual_value)
    return seen


def spared_bound(data, problem, score, null_norms, lam, best):
    """Whether a bound takes no pass for its dual point; it is then held against that point rebuilt.

    The point is s ((1 - t) U + t V) of docs/math.md 6, U the residuals, and V those of one prediction for all examples.
    """
    iterate, before = score.iterate, problem.passes
    bound = dual_bound(problem, score, null_norms, lam, 1e-12, last=False)
    if problem.passes > before:
        return False
    assert bound <= best + SLACK * abs(best)
    W = np.zeros((data.X.shape[1], data.k))
    W[iterate.active] = iterate.W
    theta = data.residual(data.X @ W + iterate.intercept)
    repair = problem.objective.repair(iterate)
    if repair.null_share > 0.0:
        t, whole = repair.null_share, problem.statistics.total
        p = (problem.statistics.mass + (1.0 - t) / t * iterate.bias) / whole
        assert (p > -1e-12).all() and (p < 1.0 + 1e-12).all()
        label = np.eye(data.k)[data.y] if data.multiclass else (data.y > 0) * 1.0
        observed = 1.0 if data.multiclass else (data.y != 0) * 1.0
        theta = (1.0 - t) * theta + t * data.s[:, None] * observed * (label - p)
    if problem.fit_intercept:
        np.testing.assert_allclose(theta.sum(axis=0), 0.0, atol=1e-10 * data.s.sum())
    rule = problem.penalty
    size = rule.dual_size(rule.dual_norm(data.X.T @ theta), np.ones(len(W)))
    s = min(1.0, lam / size) if size > 0.0 else 1.0
    # the norms that it takes bound those of the point, so that it scales at least as far down
    exact = data.dual(s * theta)
    assert bound <= exact + 1e-9 * abs(exact) + 1e-9
    return True


def charge(rule, G, lam):
    """What a dual point with the sums G costs: the conjugate of the penalty, where it is no norm."""
    if rule.name == "l2_squared":
        return (G**2).sum() / (2 * lam)
    return rule.conjugate(G, lam).sum() if isinstance(rule, ChargesRows) else 0.0


def bound_of_every_model(solve, spied, loss, penalty, intercept, weights=True):
    rng = np.random.default_rng(4)
    data, alpha, best = solve(loss, penalty, 0.1, intercept, m=80, n=12, weights=weights, seed=3)
    fitting = plain.fitting(data, penalty=penalty, tol=1e-9, fit_intercept=intercept)
    models = iterates(fitting, data, alpha, intercept, rng)
    problem, weight, rule = fitting.problem, data.s.sum(), get_penalty(penalty)
    lam = alpha * weight
    charged = isinstance(rule, ChargesRows) or penalty == "l2_squared"
    bounds, spared = [], 0
    for active, W, b in models:
        iterate = replace(problem.null(), active=active, W=W, intercept=b)
        score = problem.score(iterate, None, lam, 0)
        value = problem.objective(score.iterate, lam)
        full = np.zeros((12, data.k))
        full[active] = W
        assert value == pytest.approx(plain.objective(data, penalty, lam, full, b), rel=1e-12)
        if data.loss in ("exp", "poisson") and not value < 1e20:
            # beyond all bounds: such a model is not certified
            continue
        if not charged:
            spared += spared_bound(data, problem, score, fitting.null().norms, lam, best.value)
        bound = dual_bound(problem, score, fitting.null().norms, lam)
        bounds.append(bound)
        assert bound <= best.value + SLACK * abs(best.value)
        # the dual point is feasible, and its value is D by definition
        theta = dual_point(data, score.iterate, spied[-1])
        G = data.X.T @ theta
        assert charged or rule.dual_size(rule.dual_norm(G), np.ones(12)) <= lam * (1 + 1e-12)
        if intercept:
            np.testing.assert_allclose(theta.sum(axis=0), 0.0, atol=1e-10 * weight + 1e-14 * np.abs(theta).sum())
        # less what sums of the size of the objective may be off by
        exact = data.dual(theta) - charge(rule, G, lam)
        assert bound <= exact + 1e-9 * abs(exact) + 1e-9 + 1e-12 * value
        # a repair is charged for more than it does where rows are charged
        if not charged or not intercept:
            assert bound == pytest.approx(exact, rel=1e-9, abs=1e-9 + 2e-12 * value)
    assert spared or charged or (intercept and not problem.objective.sparse) or (intercept and not problem.loss.mixes)
    # at the end of the fit the bound has closed
    assert bounds[len(models) - 5] == pytest.approx(best.value, rel=1e-8)


@pytest.mark.parametrize(
    "loss,penalty,intercept,weights", plain.covering(LOSSES, plain.PULLING, [True, False], [True, False])
)
def test_the_bound_holds_everywhere(solve, spied, loss, penalty, intercept, weights):
    bound_of_every_model(solve, spied, loss, penalty, intercept, weights)


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("penalty", ["l2", "l2_squared"])
def test_the_bound_holds_everywhere_where_no_feature_is_left_out(solve, spied, loss, penalty, intercept):
    bound_of_every_model(solve, spied, loss, penalty, intercept)


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
def test_a_task_with_one_label_only(penalty, intercept):
    """With an intercept Theta = 0 is optimal for it: the optimum is that of the other tasks."""
    data = plain.make("multitask", m=80, n=10, seed=1)
    data.y[:, 1] = 1
    result = plain.fitting(data, penalty=penalty, tol=1e-8, fit_intercept=intercept).fit("auto")
    assert result.stop_reason == "tol"
    if intercept:
        # under l1/linf an entry below the largest of its row costs nothing, so it may be anything
        assert penalty == "l1/linf" or np.abs(result.W[:, 1]).max() <= 1e-6
        rest = replace(data, y=np.ascontiguousarray(data.y[:, [0, 2]]), k=2)
        alone = plain.fitting(rest, penalty=penalty, tol=1e-8).fit(result.alpha)
        assert result.objective == pytest.approx(alone.objective, rel=1e-7)


def test_a_task_without_labels(penalty):
    data = plain.make("multitask", m=80, n=10, seed=1)
    data.y[:, 2] = 0
    result = plain.fitting(data, penalty=penalty, tol=1e-8).fit("auto")
    assert result.stop_reason == "tol"
    assert result.intercept[2] == 0.0


@pytest.mark.parametrize("loss,penalty,rare", plain.covering(LOSSES, plain.PULLING, [1, 2]))
def test_a_rare_class(loss, penalty, rare):
    """One or two examples of a label among two hundred."""
    data = plain.make(loss, m=200, n=10, seed=2, weights=True)
    if data.y.dtype == np.float64:
        data.y[:rare] += 50.0
    elif data.multiclass:
        data.y[:] = np.arange(200) % 2
        data.y[:rare] = 2
    else:
        data.y[:, 0] = -1
        data.y[:rare, 0] = 1
    alpha = 0.2 * plain.alpha_max(data, penalty)
    best = plain.optimum(data, penalty, alpha * data.s.sum())
    result = plain.fitting(data, penalty=penalty, tol=1e-8).fit(alpha)
    plain.certified(result, data, penalty, alpha, best, 1e-8, rel=1e-7)
