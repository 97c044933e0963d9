"""Leveraging: a learner names a hypothesis in every round, and its weight alone is moved.

Raetsch, Mika & Warmuth, "On the Convergence of Leveraging" (2001), Algorithms 1 and 2; docs/math.md 7 (I) and (K).

    Algorithm 1:  d = -dL/df;  h = the learner's choice for d;  f += h argmin_al L(f + al h)
    Algorithm 2:  the same for L + C sum |w|: a hypothesis held whose edge is further below C than the best edge is
                  above C is moved back first, to zero at most

With a family of hypotheses the learner looks at all of them: it is delta-optimal with delta = 1. A learner of its own
(``hypotheses.learned``) is delta-optimal as far as it is; what it returns competes with the hypotheses held. With the
exponential loss Algorithm 1 is AdaBoost: for h in {-1, +1} an exact step is (1/2) log((1 - err) / err). It is steepest
descent in the l1 norm; with a fixed step it is epsilon-boosting.

Stratos, "Boosting as Coordinate Descent": of all directions v of length ||v|| <= 1 the objective falls fastest along

    v = -grad / ||grad||_2    for the l2 norm (Lemma 1.1): every hypothesis moves, and the rate is -||grad||_2;
    v = +-e_l                 for the l1 norm (Lemma 1.2): that of the largest |grad_l| moves alone.

With an exact step the objective falls by at least what an upper bound of it along v falls by (``promised``).

The weight of every hypothesis may stay between two bounds (Theorem 1 of Raetsch, Mika & Warmuth): coordinate descent
for F(al) = G(H al) + <gamma, al> over low_j <= al_j <= high_j, gamma being the strengths of the l1 penalty in the signs
of al; their Algorithm 2 is the box al >= 0 of hypotheses and their negatives. A round moves one weight as far as its
bound allows, and a weight at its bound is offered in the other direction only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.systems import RULES, RankedL1, RankedNone, Rounds, System, rank, refuse_searched
from dboost.bounds.exponential import CAP
from dboost.certificate.duality_gap import dual_bound, relative_gap
from dboost.compiled.examples import loss_of_rows
from dboost.errors import UsageError
from dboost.hypotheses.base import Key
from dboost.losses import LOSSES, Loss, get_loss
from dboost.partition import Partition, Sums
from dboost.passes import Point
from dboost.passes.draws import sampled
from dboost.penalties import Penalty
from dboost.problem.iterate import Iterate, Score
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState
from dboost.solvers.one_output.exact_line import Direction, margins, minimise

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Coordinates:
    """What may be moved in a round: the hypotheses held, the best other one, and the constant last."""

    iterate: Iterate  # The model with the candidate's row at zero.
    G: Array  # (c,): <d, h> of each, d = -dL/df; the constant is there where it may be moved.
    w: Array  # (c,): Weights, sum s h**2, max |h|, and the strength of the l1 penalty (0 for the constant).
    square: Array
    peak: Array
    lam: Array


def offered(problem: Problem, iterate: Iterate, lam: float) -> Coordinates:
    """The coordinates of a model with its sums."""
    active, stats = iterate.active, problem.statistics
    gradient, w = iterate.G[:, 0], iterate.W[:, 0]
    square, peak, strength = stats.square[active], stats.peak[active], problem.objective.bound(active, lam).strength
    if problem.fit_intercept:
        gradient, w = np.append(gradient, iterate.bias), np.append(w, iterate.intercept)
        square, peak, strength = np.append(square, stats.weight), np.append(peak, 1.0), np.append(strength, 0.0)
    return Coordinates(iterate, gradient, w, square, peak, strength)


@dataclass(frozen=True)
class Move:
    """Which coordinate goes which way."""

    place: int  # Among the coordinates.
    sign: float  # +1 or -1: the direction of its weight.
    slope: float  # Derivative of the objective along it, not above zero.
    linear: float  # The penalty's part of it.
    limit: float  # Where it must stop; inf if nowhere.


def best_of(problem: Problem, offer: Coordinates, rule: str) -> Move | None:
    """The coordinate of the largest `rank` that may grow, in the sign of its edge; None where there is none."""
    if not offer.G.shape[0]:
        return None
    place = int(np.argmax(rank(rule, offer.G, problem.objective.curvature_constant * offer.square, offer.lam)))
    G, lam = float(offer.G[place]), float(offer.lam[place])
    return Move(place, 1.0 if G >= 0.0 else -1.0, lam - abs(G), lam, math.inf)


def worst_held(offer: Coordinates) -> Move | None:
    """The hypothesis held, of weight al > 0 in its sign, with the least <d, h> - C_h: moved back, to zero at most."""
    held = np.flatnonzero((offer.w != 0.0) & (offer.lam > 0.0))
    if not held.shape[0]:
        return None
    sign = np.sign(offer.w[held])
    gamma = offer.G[held] * sign
    one = int(np.argmin(gamma - offer.lam[held]))
    place = int(held[one])
    lam = float(offer.lam[place])
    return Move(place, -float(sign[one]), float(gamma[one]) - lam, -lam, abs(float(offer.w[place])))


def exact_step(problem: Problem, offer: Coordinates, move: Move) -> float:
    """argmin over t of the objective along a move; capped at 30 / max |h| where there is none."""
    slope = move.slope
    if not slope < 0.0:
        return 0.0
    square, peak = float(offer.square[move.place]), float(offer.peak[move.place])
    if problem.loss.parabolic:
        return min(-slope / (problem.loss.kappa * square), move.limit)
    limit = min(move.limit, CAP / peak)
    if math.isfinite(problem.loss.kappa):
        guess = -slope / (problem.loss.kappa * square)
    else:
        # the minimiser of the bound by the chord of the exponential function over |h| <= peak
        edge = min(abs(float(offer.G[move.place])) / (peak * offer.iterate.loss), 1.0 - 1e-15)
        guess = math.atanh(edge) / peak
    D, d = direction(offer, move)
    return minimise(problem, offer.iterate, Direction(D, d, slope, move.linear, limit), min(max(guess, 0.0), limit))


def direction(offer: Coordinates, move: Move) -> tuple[Array, Array]:
    """Change of W and of the intercept per unit of a move."""
    D, d = np.zeros_like(offer.iterate.W), np.zeros(1)
    if move.place < D.shape[0]:
        D[move.place, 0] = move.sign
    else:
        d[0] = move.sign
    return D, d


def moved(offer: Coordinates, move: Move, step: float) -> tuple[Rows, Array, Array]:
    """Nonzero rows, their weights and the intercept after a step; a weight that reaches its limit is exactly zero."""
    D, d = direction(offer, move)
    W = offer.iterate.W + step * D
    if step >= move.limit and move.place < W.shape[0]:
        W[move.place] = 0.0
    keep = W[:, 0] != 0.0
    return offer.iterate.active[keep], W[keep], offer.iterate.intercept + step * d


Bound = float | tuple[float, ...]

_EXPECTED = "expected (low, high) with low <= 0 <= high and low < high, each a number or one for each feature"


def given_bounds(bounds: Any) -> tuple[Bound, Bound]:
    """Bounds as plain values, a number or a tuple for each side; they hold zero, where a fit begins (UsageError)."""
    if isinstance(bounds, str) or not hasattr(bounds, "__len__") or len(bounds) != 2:
        raise UsageError(f"bounds={bounds!r}", hint=_EXPECTED)
    low, high = (_side(bounds, side) for side in bounds)
    least, most = np.asarray(low), np.asarray(high)
    if least.ndim == most.ndim == 1 and least.shape != most.shape:
        raise UsageError(f"bounds has {least.shape[0]} low and {most.shape[0]} high ones", hint=_EXPECTED)
    if np.isnan(least).any() or np.isnan(most).any() or (least > 0.0).any() or (most < 0.0).any():
        raise UsageError(f"bounds={bounds!r} leaves out the weight 0, where a fit begins", hint=_EXPECTED)
    if not (least < most).any():
        raise UsageError(f"bounds={bounds!r} leaves every weight at 0", hint=_EXPECTED)
    return low, high


def _side(bounds: Any, side: Any) -> Bound:
    if isinstance(side, int | float | np.number) and not isinstance(side, bool):
        return float(side)
    try:
        found = np.asarray(side, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.zeros(())
    if found.ndim != 1 or isinstance(side, str):
        raise UsageError(f"bounds={bounds!r}", hint=_EXPECTED)
    return tuple(found.tolist())


def bounds_of(bounds: tuple[Bound, Bound], problem: Problem, rows: Rows) -> tuple[Array, Array]:
    """Bounds of some rows of W, (a,) each; a UsageError where there are as many as columns are not."""
    found = []
    for side in bounds:
        if isinstance(side, float):
            found.append(np.full(rows.shape[0], side))
        elif problem.pool is not None:
            raise UsageError(
                "bounds for each feature are those of raw columns, and hypotheses= makes other ones",
                hint="give (low, high) as two numbers",
            )
        elif len(side) != problem.n:
            raise UsageError(f"bounds has {len(side)} numbers for {problem.n} features", hint=_EXPECTED)
        else:
            found.append(np.array(side)[rows])
    return found[0], found[1]


def best_within(problem: Problem, offer: Coordinates, low: Array, high: Array, rule: str) -> Move | None:
    """The coordinate and sign of the best move that the bounds allow; None where nothing falls.

    A move ends at the bound, or where a weight that is penalised passes zero, at which its penalty has a kink. The
    constant comes last in `offer` and has no bounds. `rule` says whether the steepest move is best ("edge"), or that of
    the largest fall of the squared loss ("joint").
    """
    more = offer.G.shape[0] - low.shape[0]
    low, high = np.append(low, np.full(more, -np.inf)), np.append(high, np.full(more, np.inf))
    w, G, lam = offer.w, offer.G, offer.lam
    signs, slopes, linear, limits = [], [], [], []
    for sign, room in ((1.0, high - w), (-1.0, w - low)):
        back = (w * sign < 0.0) & (lam > 0.0)
        part = np.where(back, -lam, lam)
        slope = part - sign * G
        signs.append(np.full(w.shape[0], sign))
        slopes.append(np.where(room > 0.0, slope, np.inf))
        linear.append(part)
        limits.append(np.where(back, np.minimum(np.abs(w), room), room))
    slope, limit = np.concatenate(slopes), np.concatenate(limits)
    falls = slope < 0.0
    if not falls.any():
        return None
    worth = np.where(falls, -slope, 0.0)
    if rule == "joint":
        bend = problem.objective.curvature_constant * np.tile(offer.square, 2)
        step = np.minimum(np.divide(worth, bend, out=np.zeros_like(worth), where=bend > 0.0), limit)
        worth = worth * step - 0.5 * bend * step * step
    best = int(np.argmax(worth))
    way, own = float(np.concatenate(signs)[best]), float(np.concatenate(linear)[best])
    return Move(best % w.shape[0], way, float(slope[best]), own, float(limit[best]))


def after(move: Move, w: float, step: float, low: float, high: float) -> float:
    """The weight of a coordinate after a step, exactly at zero or its bound where the move ended there."""
    if step < move.limit:
        return min(max(w + move.sign * step, low), high)
    if w * move.sign < 0.0 and math.isclose(move.limit, abs(w), rel_tol=1e-15):
        return 0.0
    return high if move.sign > 0.0 else low


def residual_rows(partition: Partition, memo: Any, point: Point, share: float, seed: int) -> Sums:
    """Raw rows (CSR), weighted residuals and weights of a share of the examples, drawn by seed and partition alone."""
    from scipy.sparse import csc_array

    f = margins(partition, memo, point.held, point.W, point.intercept)
    d, h = np.empty_like(f), np.empty_like(f)
    loss_of_rows.single_state(get_loss(point.loss).target(partition.y), f, partition.weight, d, h)
    shape = (partition.n_rows, partition.n_features)
    X = csc_array((partition.values, partition.rows, partition.indptr), shape=shape).tocsr()
    chosen = sampled(partition, share, seed)
    part = (X[chosen], d[chosen], partition.weight[chosen])
    return Sums(parts={"rows": [part]})


def unscored(problem: Problem, iterate: Iterate) -> Score:
    """The model with its sums, and no candidate."""
    iterate = problem.evaluate(iterate.active, iterate.W, iterate.intercept)
    none = np.zeros(0, np.int64)
    return Score(iterate, iterate.active, np.abs(iterate.G[:, 0]), none, np.zeros((0, 1)))


def learned(problem: Problem, iterate: Iterate) -> Score:
    """The model with its sums, and one candidate: what the learner makes of the residuals."""
    from scipy.sparse import vstack

    pool, number = problem.pool, len(problem.pool.fitted)
    found = problem.own_pass(residual_rows, iterate, pool.share, pool.seed + number, name="residuals").parts["rows"]
    X = vstack([part[0] for part in found], format="csr")
    if not X.shape[0]:
        raise UsageError("no example was drawn for the learner", hint="raise max_samples of Learned")
    d, weight = (np.concatenate([part[place] for part in found]) for place in (1, 2))
    row = problem.register([(number,)], pool.learn(X, d, weight))
    active = np.concatenate([iterate.active, row])
    W = np.concatenate([iterate.W, np.zeros((1, 1))])
    both = problem.evaluate(active, W, iterate.intercept)
    held = replace(both, active=iterate.active, W=iterate.W, G=both.G[:-1])
    if not problem.statistics.square[row[0]] > 0.0:
        # a hypothesis that is zero everywhere has no direction
        row = row[:0]
    return Score(held, iterate.active, np.abs(held.G[:, 0]), row, both.G[-1:][: row.shape[0]])


NORMS = ("l1", "l2")

MOST_HYPOTHESES = 100_000
"""Hypotheses of a family that a model of all of them may have: each is a column of every partition in every pass."""


@dataclass(frozen=True)
class Steepest:
    """A direction of unit length from a model that holds every hypothesis."""

    iterate: Iterate  # The model with its sums, rows of weight zero among them.
    D: Array  # (a, 1) and (1,): Minus the gradient over its length.
    d: Array
    slope: float  # Minus the length of the gradient: the derivative along the direction (Lemma 1.1).
    reach: float  # At least max_i |sum_l v_l h_l(x_i)|.
    square: float  # At least sum_i s_i (sum_l v_l h_l(x_i))^2.


def every_row(problem: Problem) -> Rows:
    """Rows of W of all hypotheses that vary; those of a family, at most `MOST_HYPOTHESES`, are registered."""
    if problem.pool is not None:
        if not problem.n_candidates <= MOST_HYPOTHESES:
            raise UsageError(
                f"norm='l2' gives each of {problem.n_candidates:,.0f} hypotheses a weight",
                hint=f"it takes at most {MOST_HYPOTHESES:,}: use norm='l1', or a smaller family",
            )
        if len(problem.keys) < problem.n_candidates:
            parts = problem.summed(problem.null(), _keys_of_shard, problem.pool)
            problem.register([key for keys in parts for key in keys])
    square = problem.statistics.square
    return np.flatnonzero((square > 0.0) & np.isfinite(problem.objective.columns.weight)).astype(np.int64)


def _keys_of_shard(total: Sums, shard: Any, pool: Any) -> list[Key]:
    return list(pool.keys(shard, np.arange(total.add["G"].shape[0])))


def steepest(problem: Problem, rows: Rows, active: Rows, W: Array, intercept: Array) -> Steepest:
    """The direction of steepest descent in the l2 norm at a model; one pass."""
    every = np.zeros((rows.shape[0], 1))
    every[np.searchsorted(rows, active)] = W
    iterate = problem.evaluate(rows, every, intercept)
    bias = iterate.bias if problem.fit_intercept else np.zeros_like(iterate.bias)
    length = math.sqrt(float((iterate.G * iterate.G).sum() + (bias * bias).sum()))
    unit = length if length > 0.0 else 1.0
    D, d = iterate.G / unit, bias / unit
    size, stats = np.abs(D[:, 0]), problem.statistics
    constant = float(np.abs(d[0]))
    # norms of a sum are at most the sums of the norms
    reach = float((size * stats.peak[rows]).sum()) + constant
    root = float((size * np.sqrt(stats.square[rows])).sum()) + constant * math.sqrt(stats.weight)
    return Steepest(iterate, D, d, -length, reach, root * root)


def step_along(problem: Problem, found: Steepest) -> float:
    """argmin over t of the objective along a direction; capped where the scores would change by 30."""
    if not found.slope < 0.0:
        return 0.0
    if problem.loss.parabolic:
        # the bound of the curvature is far above it: the exact one is a product with the Hessian
        rows, bias = problem.curvature_at(found.iterate)(found.D, found.d)
        bend = float((rows * found.D).sum() + (bias * found.d).sum())
        return -found.slope / bend if bend > 0.0 else 0.0
    limit = CAP / found.reach
    along = Direction(found.D, found.d, found.slope, 0.0, limit)
    return minimise(problem, found.iterate, along, min(_guess(problem, found), limit))


def _guess(problem: Problem, found: Steepest) -> float:
    if math.isfinite(problem.loss.kappa):
        return -found.slope / (problem.loss.kappa * found.square)
    return math.atanh(min(-found.slope / (found.reach * found.iterate.loss), 1.0 - 1e-15)) / found.reach


def promised(problem: Problem, loss: float, slope: float, reach: float, square: float) -> float:
    """What an exact step along a direction takes off the objective at least, in the sum form.

    With a largest curvature kappa the objective is below f + slope t + (kappa / 2) square t^2 along the direction, and
    so falls by slope^2 / (2 kappa square). The exponential loss J is below J (cosh(reach t) - e sinh(reach t)) with
    the edge e = -slope / (reach J), the chord of the exponential function over [-reach, reach]; its least value is
    J sqrt(1 - e^2), which for one hypothesis in {-1, +1} is AdaBoost's 2 J sqrt(err (1 - err)). `loss` is the objective
    now, `slope` not above zero, `reach` and `square` as in ``Steepest``.
    """
    if not slope < 0.0:
        return 0.0
    limit = CAP / reach
    if math.isfinite(problem.loss.kappa):
        bend = problem.loss.kappa * square
        t = -slope / bend if problem.loss.parabolic else min(-slope / bend, limit)
        return -slope * t - 0.5 * bend * t * t
    edge = min(-slope / (reach * loss), 1.0)
    # 1 - sqrt(1 - e^2) without cancellation
    return loss * edge * edge / (1.0 + math.sqrt((1.0 - edge) * (1.0 + edge)))


@dataclass(frozen=True)
class Taken:
    """The model after a step, and what the record says of the step."""

    active: Rows
    W: Array
    intercept: Array
    length: float = 0.0
    promised: float = math.nan  # What the step was sure to take off the objective.
    kind: str = "certificate"


class LeveragingRounds(Rounds):
    """Rounds of one fit; they end by "gradient" or "tol", "precision", "max_rounds" or "callback"."""

    def __init__(self, problem: Problem, settings: FitSettings, null: Score, system: Leveraging, n_rows: int) -> None:
        super().__init__(problem, settings, null, system, n_rows)
        self.null = null
        self.learns = learns(settings)
        # Algorithm 2 minimises a convex function whose dual points are those of every l1 problem; they say nothing
        # of hypotheses that no pass has looked at
        self.certified = self.lam > 0.0 and not self.learns
        self.largest = _largest(null)
        self.exact = isinstance(system.step, str)

    def ended(self, state: FitState, reason: str) -> tuple[FitState, str]:
        """The state with the objective (and certificate) of the model it holds."""
        if not state.history or state.history[-1]["step"] != "certificate":
            state, _ = self._scored(state, learn=False)
            if self.certified and state.gap <= self.settings.tol:
                reason = "tol"
        return state, reason

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason to stop if there is one."""
        clock, before = self.clock(), state
        state, bias, largest, step = self.looked(state)
        reason, taken = self._stopped(state, bias, largest), Taken(state.active, state.W, state.intercept)
        if not reason:
            taken = step()
            stands = np.array_equal(taken.active, state.active) and np.array_equal(taken.W, state.W)
            if stands and np.array_equal(taken.intercept, state.intercept) and self.system.rule != "nearest":
                reason = "precision"
            state = replace(state, active=taken.active, W=taken.W, intercept=taken.intercept)
        weight = self.problem.statistics.weight
        more = {"gradient": largest / weight, "promised": taken.promised / weight}
        kind = "certificate" if reason else taken.kind
        return self.recorded(before, state, clock, kind, taken.length, more), reason

    def looked(self, state: FitState) -> tuple[FitState, Array, float, Callable[[], Taken]]:
        """The state with its objective, the sums of the intercept, the size of the gradient, and the round's step."""
        state, score = self._scored(state)
        offer = offered(self.problem, score.iterate.widened(score.best, score.best_G), self.lam)
        move = self._move(offer)
        largest = max(_largest(score), float(np.max(np.abs(offer.G), initial=0.0)))
        if self.learns:
            largest = 0.0 if move is None else max(-move.slope, 0.0)
            state = replace(state, carried={"largest": state.carried.get("largest", np.array([largest]))})

        def step() -> Taken:
            if move is None:
                return Taken(state.active, state.W, state.intercept)
            sure = math.nan
            if self.lam == 0.0 and self.exact:
                peak, square = float(offer.peak[move.place]), float(offer.square[move.place])
                sure = promised(self.problem, state.objective, move.slope, peak, square)
            length = exact_step(self.problem, offer, move) if self.exact else float(self.system.step)
            return Taken(*moved(offer, move, length), length, sure, "back" if move.limit < math.inf else "step")

        return state, score.iterate.bias, largest, step

    def _scored(self, state: FitState, learn: bool = True) -> tuple[FitState, Score]:
        """Every hypothesis at the model, the objective there, and for Algorithm 2 the better of all lower bounds."""
        problem = self.problem
        iterate = Iterate.unsummed(state.active, state.W, state.intercept)
        if self.learns:
            score = learned(problem, iterate) if learn else unscored(problem, iterate)
        elif self.certified:
            score = problem.ranked(iterate, self.lam, 1)
        else:
            score = problem.score(iterate, None, self.lam, 1)
        iterate = score.iterate
        value = problem.objective(iterate, self.lam)
        state = self.valued(state, value)
        if not self.certified or not np.isfinite(iterate.bias).all():
            return state, score
        bound = dual_bound(problem, score, self.null.norms, self.lam, self.settings.tol)
        lower = float(np.maximum(state.lower_bound, bound))
        gap = relative_gap(problem, value, lower)
        # neither number is trusted where the two contradict each other
        return replace(state, lower_bound=-np.inf if np.isnan(gap) else lower, gap=gap), score

    def _stopped(self, state: FitState, bias: Array, largest: float) -> str:
        """Why no step follows: of a model with these sums of the intercept and this size of the gradient."""
        if not np.isfinite(bias).all():
            return "precision"
        if self.certified:
            return "tol" if state.gap <= self.settings.tol else ""
        first = float(state.carried["largest"][0]) if self.learns else self.largest
        return "gradient" if largest <= self.settings.tol * first else ""

    def _move(self, offer: Coordinates) -> Move | None:
        """Which hypothesis moves: the learner's, or in Algorithm 2 one that has too much weight (step d)."""
        best = best_of(self.problem, offer, self.system.rule)
        back = worst_held(offer) if self.lam > 0.0 else None
        if back is not None and best is not None and -best.slope <= -back.slope:
            return back
        return best


def learns(settings: FitSettings) -> bool:
    """Whether the hypotheses are learned, round by round."""
    return bool(getattr(settings.hypotheses, "learns", False))


def _largest(score: Score) -> float:
    """max |<d, h>| over everything a pass looked at; of induced hypotheses those held are among them."""
    if score.size is not None:
        return float(score.size)
    return float(np.max(score.norms, initial=0.0))


class SteepestRounds(LeveragingRounds):
    """Rounds of steepest descent in the l2 norm: all hypotheses move, in proportion to their edges (Lemma 1.1)."""

    def __init__(self, problem: Problem, settings: FitSettings, null: Score, system: Leveraging, n_rows: int) -> None:
        super().__init__(problem, settings, null, system, n_rows)
        self.rows = every_row(problem)

    def looked(self, state: FitState) -> tuple[FitState, Array, float, Callable[[], Taken]]:
        """As of ``LeveragingRounds``; the step is one of all hypotheses."""
        problem = self.problem
        found = steepest(problem, self.rows, state.active, state.W, state.intercept)
        iterate, value = found.iterate, problem.objective(found.iterate, 0.0)
        sizes = np.append(np.abs(iterate.G[:, 0]), np.abs(iterate.bias) if problem.fit_intercept else 0.0)

        def step() -> Taken:
            length = step_along(problem, found) if self.exact else float(self.system.step)
            sure = promised(problem, value, found.slope, found.reach, found.square) if self.exact else math.nan
            W, intercept = iterate.W + length * found.D, iterate.intercept + length * found.d
            kept = W[:, 0] != 0.0
            return Taken(self.rows[kept], W[kept], intercept, length, sure, "step")

        return self.valued(state, value), iterate.bias, float(sizes.max()), step


class BoxRounds(LeveragingRounds):
    """Rounds of coordinate descent within a box (Theorem 1). There is no certificate; they end by "gradient"."""

    def __init__(self, problem: Problem, settings: FitSettings, null: Score, system: Leveraging, n_rows: int) -> None:
        super().__init__(problem, settings, null, system, n_rows)
        assert system.bounds is not None
        self.certified = False
        self.rows = every_row(problem)
        self.low, self.high = bounds_of(system.bounds, problem, self.rows)

    def ended(self, state: FitState, reason: str) -> tuple[FitState, str]:
        """The state with the objective of the model it holds; there is no bound to look for."""
        return Rounds.ended(self, state, reason)

    def looked(self, state: FitState) -> tuple[FitState, Array, float, Callable[[], Taken]]:
        """As of ``LeveragingRounds``; the step is the best one that the bounds allow."""
        problem, rows = self.problem, self.rows
        every = np.zeros((rows.shape[0], 1))
        every[np.searchsorted(rows, state.active)] = state.W
        offer = offered(problem, problem.evaluate(rows, every, state.intercept), self.lam)
        move = best_within(problem, offer, self.low, self.high, self.system.rule)

        def step() -> Taken:
            assert move is not None, "without a move there is no gradient"
            length = exact_step(problem, offer, move)
            W, intercept, place = offer.iterate.W.copy(), state.intercept, move.place
            if place < W.shape[0]:
                W[place] = after(move, float(W[place, 0]), length, float(self.low[place]), float(self.high[place]))
            else:
                intercept = intercept + length * move.sign
            kept = W[:, 0] != 0.0
            return Taken(rows[kept], W[kept], intercept, length, kind="step")

        value = problem.objective(offer.iterate, self.lam)
        return self.valued(state, value), offer.iterate.bias, 0.0 if move is None else -move.slope, step


def _leverages(loss: Loss) -> bool:
    """Whether it has one score, and a bound that the search along a step begins with (``exact_step``)."""
    return loss.task in ("binary", "regression") and (math.isfinite(loss.kappa) or loss.exponential)


@dataclass(frozen=True)
class Leveraging(System):
    """Settings of the system. With a strength (``FitSettings.alpha``) it is Algorithm 2, otherwise Algorithm 1."""

    rule: str = "edge"  # The learner (``systems.rank``).
    step: str | float = "exact"  # A number is epsilon-boosting: every step has this length.
    # In which a step is one of steepest descent: one hypothesis moves, or all in proportion to their edges.
    norm: str = "l1"
    # Between which every weight stays, each a number or one for each feature.
    bounds: tuple[Bound, Bound] | None = None

    name = "leveraging"
    learns = True
    takes_factors = True  # The paper's vector gamma.

    def penalty(self, alpha: Any) -> Penalty:
        """What scoring passes are given for a strength: the l1 penalty, or none for a strength of zero."""
        return RankedNone(self.rule) if alpha == 0.0 else RankedL1(self.rule)

    def check(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse losses, learners and steps that the algorithms do not have, and pairs without meaning."""
        loss = get_loss(settings.loss)
        if not _leverages(loss):
            raise UsageError(
                f"leveraging with loss {loss.name!r}: its step needs one score and a largest curvature, or e^(-y f)",
                hint=f"known losses: {', '.join(name for name, one in LOSSES.items() if _leverages(one))}",
            )
        if getattr(penalty, "rule", "") != self.rule:
            raise UsageError(f"leveraging with penalty {penalty.name!r}", hint="use dboost.LeveragingClassifier")
        if self.rule not in RULES:
            raise UsageError(f"learner={self.rule!r}", hint=f"known learners: {', '.join(RULES)}")
        if self.rule != "edge" and not loss.parabolic:
            raise UsageError(f"learner={self.rule!r} fits residuals", hint="use it with the squared loss")
        fixed = not isinstance(self.step, str)
        number = isinstance(self.step, float | int) and not isinstance(self.step, bool)
        if not (number and 0.0 < float(self.step) < math.inf) and self.step != "exact":
            raise UsageError(f"step={self.step!r}", hint="expected 'exact' or a finite number > 0")
        self._check_norm(settings, penalty)
        self._check_bounds(settings, penalty)
        if not penalty.weightless and (fixed or self.rule == "nearest"):
            raise UsageError(
                f"alpha={settings.alpha!r} with step={self.step!r} and learner={self.rule!r}",
                hint="the l1 penalty needs step='exact' and a learner other than 'nearest'; or set alpha=0",
            )

    def _check_norm(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse a norm that is none, and one with which no single hypothesis is chosen where one must be."""
        if self.norm not in NORMS:
            known = ", ".join(map(repr, NORMS))
            raise UsageError(f"norm={self.norm!r}", hint=f"expected one of {known}")
        if self.norm == "l1":
            return
        if not penalty.weightless:
            raise UsageError(
                f"norm={self.norm!r} with alpha={settings.alpha!r}: Algorithm 2 moves one hypothesis at a time",
                hint="use norm='l1', or alpha=0",
            )
        if learns(settings):
            raise UsageError(
                f"norm={self.norm!r} moves all hypotheses at once, and hypotheses=Learned(...) gives one at a time",
                hint="use norm='l1', or a family of hypotheses",
            )

    def _check_bounds(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse bounds beside what moves no single weight to its best value within them."""
        if self.bounds is None:
            return
        if given_bounds(self.bounds) != self.bounds:
            raise UsageError(f"bounds={self.bounds!r}", hint="expected plain numbers, as given_bounds makes them")
        if self.norm != "l1" or not isinstance(self.step, str) or self.rule == "nearest" or learns(settings):
            raise UsageError(
                f"bounds={self.bounds!r} with norm={self.norm!r}, step={self.step!r} and learner={self.rule!r}",
                hint="bounds need norm='l1', step='exact', a learner other than 'nearest' and hypotheses not learned",
            )
        if settings.standardize:
            raise UsageError("bounds are those of the weights as they are reported", hint="set standardize=False")

    def rounds(self, problem: Problem, settings: FitSettings, null: Score, n_rows: int) -> LeveragingRounds:
        """The rounds of a fit."""
        refuse_searched(problem)
        kind = BoxRounds if self.bounds is not None else LeveragingRounds if self.norm == "l1" else SteepestRounds
        return kind(problem, settings, null, self, n_rows)
