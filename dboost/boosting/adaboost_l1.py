"""AdaBoost+L1: boosting whose weights are solved anew within an l1 budget that grows by the steps of boosting.

Xi, Xiang, Ramadge & Schapire, "Speed and Sparsity of Regularized Boosting"; docs/math.md 7 (H) and eq. 17. Hypotheses
h are divided by their largest absolute value, so that |h| <= 1, and -h is a hypothesis like h, so that all weights al
are at least zero. With U_i = -s_i l'(f_i) the edge of h is e(h) = sum_i U_i h(x_i) / sum_i |U_i|; of two classes it is
sum_i d_i y_i h(x_i) with weights d of the examples. A round

    takes the hypothesis k of the largest edge into U;
    r += nu times the step of boosting along h_k: (1/2) log((1 + e_k) / (1 - e_k)) of two classes, and of labels that
    are numbers argmin_t sum_i s_i l(y_i, f(x_i) + t h_k(x_i)), LS-Boost's for the squared loss;
    solves  min J(al, b)  over al >= 0, sum al <= r, with J = L, or log L for the exponential loss, and b the intercept
    where it is free (``solve_within_budget``);
    drops the zeros of al from U, unless they are to be kept, as the paper prints it (``AdaBoostL1.keep_zeros``).

The re-solve is Newton's method: each step minimises the exact second-order model of J within the budget, one pass for
each point; a free intercept is eliminated from it. All is in units of J's derivative: 1 for log L, and sum_i |U_i| for
L, so that what would be edges are edges.

Two certificates: with al feasible for the budget r, sum_i |U_i| (r max_j e_j - sum_j al_j e_j) bounds L - L* over all
hypotheses, U or not, and for the exponential loss, where sum_i |U_i| = L, the bracket bounds log(L / L*); and the best
margin theta* of any normalised al is at most max_j e_j in every round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.systems import Rounds, System, refuse_searched
from dboost.compiled.examples import loss_of_rows
from dboost.compiled.solves import one_output
from dboost.compiled.solves.positive import solve_positive
from dboost.compiled.solves.quadratic import gram
from dboost.errors import UsageError
from dboost.losses import Loss, get_loss
from dboost.partition import Partition, Sums
from dboost.passes import Point
from dboost.penalties import Penalty
from dboost.problem.iterate import Iterate, Score
from dboost.problem.limits import Limits
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState
from dboost.solvers.one_output.exact_line import Direction, margins, minimise


@dataclass(frozen=True)
class Progress:
    """Numbers of a fit so far."""

    budget: float = 0.0  # R, the limit of sum al.
    margin: float = 0.0  # Least normalised margin of the model.
    bound: float = math.inf  # The smallest of the rounds' largest edges: no ensemble has a larger margin.
    least: float = 0.0  # The least positive weight of an example.
    pulls: float = 0.0  # Sum_i |U_i| at the model; 0 where it is not known, or where it is the loss itself.

    @staticmethod
    def of(state: FitState) -> Progress:
        """What a state carries."""
        kept = state.carried.get("l1")
        return Progress() if kept is None else Progress(*kept.tolist())

    def carried(self) -> dict[str, NDArray[Any]]:
        """For ``FitState.carried``."""
        return {"l1": np.array(astuple(self))}


def at_margin(loss: Loss, z: float) -> tuple[float, float]:
    """l(z) and -l'(z) of an example of weight one whose margin y f is z."""
    u, curvature = np.zeros(1), np.zeros(1)
    target = loss.target(np.ones((1, 1), np.int8))
    with np.errstate(over="ignore"):
        value = float(loss_of_rows.single_state(target, np.array([z]), np.ones(1), u, curvature))
    return value, float(u[0])


def budget_suffices(loss: Loss, r: float, tol: float, margin: float, edge: float, least: float, share: float) -> bool:
    """Whether a model within the budget r must have a margin of theta* - tol (docs/math.md, eq. 17).

    For theta* between the margin reached and the largest edge, weights s_i of which the least is a share `least` of
    their sum S, and a Frank-Wolfe gap of a share `share` of L. An example below r (theta* - tol) would put more than
    s r tol |l'(r (theta* - tol))| into the derivative towards the best margin; all others put at most
    S r (1 - theta*) |l'(r theta*)| against it, and the gap allows L share, with L <= S l(r margin). The first exceeds
    the others for every theta* in question where

        least tol |l'(r (margin - tol))| / |l'(r margin)| > 1 - margin + share l(r margin) / (r |l'(r edge)|).

    Where -l' is log-concave, as of e^-z and log(1 + e^-z), the ratio on the left is least at the smallest theta*, which
    is not below the margin; what the gap allows is largest at the largest. Nothing is said where the slope is zero, by
    the loss or by underflow.
    """
    value, slope = at_margin(loss, r * margin)
    against, last = 1.0 - margin, at_margin(loss, r * edge)[1]
    if share > 0.0:
        against += share * value / (r * last) if last > 0.0 else math.inf
    return slope > 0.0 and (against == 0.0 or least * tol * at_margin(loss, r * (margin - tol))[1] > slope * against)


Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Stands for the hypothesis h = 1 among rows of W, which count from 0.
CONSTANT = -1


@dataclass(frozen=True)
class Ensemble:
    """A convex problem of a round: the signed, scaled hypotheses U, each once, by their rows and the constant last."""

    active: Rows  # (a,): Rows of W that belong to U, ascending.
    place: Rows  # (u,): Place of each member among `active`; a for the constant.
    # (u,): Weight in W (or the intercept) of al_j = 1: the sign of the hypothesis over its largest absolute value.
    scale: Array

    @staticmethod
    def of(rows: Rows, signs: Array, held: Rows, peaks: Array) -> Ensemble:
        """The ensemble of signed rows (u,), `CONSTANT` for the constant, repeated ones once.

        `held` are rows of the model, which the sums are to hold too; `peaks` (n,) largest absolute values.
        """
        # A stable order by row, then with the positive sign first; the constant has no row and comes last.
        last = np.where(rows == CONSTANT, np.iinfo(np.int64).max, rows)
        pairs = np.unique(np.stack([last, np.where(signs > 0.0, 0, 1)], axis=1), axis=0)
        last, negative = pairs[:, 0], pairs[:, 1]
        stored = last != np.iinfo(np.int64).max
        active = np.union1d(held, last[stored]).astype(np.int64)
        place = np.where(stored, np.searchsorted(active, last), active.shape[0])
        size = np.append(peaks[active], 1.0)[place]
        return Ensemble(active, place, np.where(negative == 1, -1.0, 1.0) / size)

    def model(self, z: Array) -> Array:
        """Rows of W and, last, the intercept (a + 1,) of the weights al (u,)."""
        found = np.zeros(self.active.shape[0] + 1)
        np.add.at(found, self.place, self.scale * z)
        return found

    def weights(self, state: FitState) -> Array:
        """al (u,) of the model of a state: a weight belongs to the member that has its sign."""
        model = np.zeros(self.active.shape[0] + 1)
        model[np.searchsorted(self.active, state.active)] = state.W[:, 0]
        model[-1] = float(state.intercept[0])
        return np.maximum(model[self.place] / self.scale, 0.0)

    def netted(self, z: Array) -> Array:
        """Weights (u,) of which a hypothesis and its negative have at most one: the same scores by a smaller sum."""
        net = self.model(z)[self.place]
        twice = np.bincount(self.place, weights=z > 0.0, minlength=1)[self.place] > 1.0
        found: Array = np.where(twice, np.maximum(net / self.scale, 0.0), z)
        return found

    def carried(self) -> dict[str, NDArray[Any]]:
        """For ``FitState.carried``; `kept_of` undoes it."""
        rows = np.append(self.active, CONSTANT)[self.place]
        return {"kept_rows": rows, "kept_signs": np.sign(self.scale)}


def kept_of(carried: Mapping[str, NDArray[Any]]) -> tuple[Rows, Array]:
    """The rows and signs of all that ever entered U."""
    rows, signs = carried.get("kept_rows"), carried.get("kept_signs")
    if rows is None or signs is None:
        return np.zeros(0, np.int64), np.zeros(0)
    return rows.astype(np.int64), signs.astype(np.float64)


def held_by(state: FitState, constant: bool) -> tuple[Rows, Array]:
    """The rows and signs of the hypotheses that have a weight; `constant` says whether the constant may be one."""
    weights = np.append(state.W[:, 0], state.intercept)
    rows = np.append(state.active, CONSTANT)
    nonzero = (weights != 0.0) & ((rows != CONSTANT) | constant)
    return rows[nonzero], np.sign(weights[nonzero])


@dataclass(frozen=True)
class InUnits:
    """Numbers in units of e^shift, -inf where all are zero; the sum of two is in the larger unit (docs/math.md 0.1)."""

    shift: float
    numbers: dict[str, Any]

    def __add__(self, other: InUnits) -> InUnits:
        """The sum, name by name."""
        shift = max(self.shift, other.shift)
        mine, theirs = (math.exp(one.shift - shift) if one.shift < shift else 1.0 for one in (self, other))
        return InUnits(shift, {n: mine * value + theirs * other.numbers[n] for n, value in self.numbers.items()})


def moments(partition: Partition, memo: Any, point: Point) -> Sums:
    """L, G, the bias sum, X'diag(h)X and sum |U_i|, the constant last, h being curvature; the least margin y f.

    For the exponential loss, U_i = y_i q_i and h_i = q_i with q_i = s_i e^(-y_i f_i), all are in units of the largest
    q. The peak "ends" holds max_i -y_i f_i, of a loss of two classes, and max_i -s_i over positive weights.
    """
    f = margins(partition, memo, point.held, point.W, point.intercept)
    block, places = point.held.block(partition, memo)
    columns = block.indptr, block.rows, block.values, places
    loss, weight, counted = get_loss(point.loss), partition.weight, partition.weight > 0.0
    worst = -partition.y[:, 0].astype(np.float64) * f if loss.task == "binary" else np.full_like(f, -np.inf)
    ends = [np.max(array[counted], initial=-np.inf) for array in (worst, -weight)]
    shift = 0.0
    if loss.exponential:
        with np.errstate(divide="ignore"):
            log_q = np.log(weight) + worst
        shift = float(log_q.max(initial=-np.inf))
        curvature = np.exp(log_q - (shift if shift > -np.inf else 0.0))
        u = partition.y[:, 0] * curvature
        value = float(curvature.sum())
    else:
        u, curvature = np.empty_like(f), np.empty_like(f)
        value = float(loss_of_rows.single_state(loss.target(partition.y), f, weight, u, curvature))
    G = np.empty(places.shape[0])
    one_output.column_sums(*columns, u, G)
    numbers = {"loss": value, "pulls": float(np.abs(u).sum()), "G": np.append(G, u.sum())}
    numbers["H"] = gram(*columns, curvature, True)
    return Sums(add={"units": InUnits(shift, numbers)}, peak={"ends": np.array(ends)})


# Added to the diagonal: a direction without curvature ends at a bound instead of nowhere.
_RIDGE = 1e-8
# Gradients are edges, in [-1, 1].
_OPTIMAL = 1e-12
_PIVOT = 1e-14


def minimise_quadratic(g: Array, H: Array, start: Array, r: float) -> Array:
    """argmin over z >= 0, sum z <= r of <g, z - start> + (z - start)' H (z - start) / 2.

    H is positive semidefinite, `start` feasible; entries of the result at the bound are exactly zero.
    """
    n = g.shape[0]
    H = H + np.diag(np.full(n, _RIDGE))
    z = start.copy()
    free = z > 0.0
    tight = bool(z.sum() >= r * (1.0 - 1e-15))
    solved = False
    for _ in range(20 * n + 20):
        gradient = g + (H * (z - start)).sum(axis=1)
        ids = np.flatnonzero(free)
        if solved or not ids.shape[0]:
            multiplier = -float(gradient[ids].mean()) if tight and ids.shape[0] else 0.0
            if tight and multiplier < -_OPTIMAL:
                tight, solved = False, False
                continue
            rest = np.where(free, np.inf, gradient + multiplier)
            if not n or rest.min() >= -_OPTIMAL:
                break
            free[int(np.argmin(rest))] = True
            solved = False
            continue
        inner = H[np.ix_(ids, ids)]
        p = solve_positive(inner.copy(), -gradient[ids], _PIVOT)
        if tight:
            ones = solve_positive(inner, np.ones(ids.shape[0]), _PIVOT)
            p = p - float(p.sum() / ones.sum()) * ones
            # what rounding leaves of the sum would leave the budget
            p[int(np.argmax(z[ids]))] -= p.sum()
        length, blocking, full = 1.0, -1, False
        room, total = max(r - float(z.sum()), 0.0), float(p.sum())
        if not tight and total > room:
            length, full = room / total, True
        shrinking = np.flatnonzero(p < 0.0)
        reach = z[ids[shrinking]] / -p[shrinking]
        if reach.shape[0] and reach.min() <= length:
            length, blocking, full = float(reach.min()), int(ids[shrinking[int(np.argmin(reach))]]), False
        z[ids] = np.maximum(z[ids] + length * p, 0.0)
        if blocking >= 0:
            z[blocking] = 0.0
            free[blocking] = False
        tight = tight or full
        solved = blocking < 0 and not full
    excess = float(z.sum()) - r
    return z if excess <= 0.0 else z * (r / (r + excess))


# The re-solve ends at this Frank-Wolfe gap over U, a share of L, or at what edges are rounded by times the budget.
_SOLVED = 1e-10
_ROUNDING = 1e-14
_MAX_STEPS = 100
_ENOUGH = 1e-4
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class BudgetSolution:
    """The minimum within the budget."""

    weights: Array  # (u,): al, of a hypothesis and its negative at most one positive.
    intercept: float  # B where it is free; 0 where the constant is a hypothesis like others.
    margin: float  # Least normalised margin; NaN where labels are numbers.
    least: float  # Least positive weight s_i.
    pulls: float  # Sum_i |U_i|.


def pulls_at(problem: Problem, active: NDArray[np.int64], W: Array, intercept: Array) -> float:
    """sum_i |U_i| at a model; one pass."""
    iterate = Iterate.unsummed(active, W, intercept)
    return float(problem.own_pass(moments, iterate, name="resolve").add["units"].numbers["pulls"])


def solve_within_budget(
    problem: Problem, chosen: Ensemble, start: Array, intercept: float | None, budget: float, limits: Limits
) -> BudgetSolution:
    """The best weights (u,) within the budget, from some within it; `intercept` is None where there is no free one."""
    free = intercept is not None
    z, b = start, 0.0 if intercept is None else intercept
    now = _reached(problem, chosen, z, b)
    for _ in range(_MAX_STEPS):
        gap = budget * max(float(now.e.max(initial=0.0)), 0.0) - float((now.e * z).sum())
        tied = not free or abs(now.bias) <= _SOLVED
        if (tied and gap * now.share <= max(_SOLVED, _ROUNDING * budget * now.share)) or limits.reason(problem.passes):
            break
        e, H = now.e, now.H
        if free:
            e, H = e - now.across * (now.bias / now.along), H - now.across[:, None] * now.across / now.along
        # a quadratic of which the largest curvature is one, whatever the labels are measured in
        size = 1.0 if problem.loss.exponential else 1.0 / max(float(H.diagonal().max(initial=0.0)), _TINY)
        trial = size * minimise_quadratic(-e, size * H, z / size, budget / size)
        move = trial - z
        lift = (now.bias - float((now.across * move).sum())) / now.along if free else 0.0
        promised = float((now.e * move).sum()) + (now.bias * lift if free else 0.0)
        if not promised > 0.0:
            break
        length, halved = 1.0, 0
        found = _reached(problem, chosen, trial, b + lift)
        while not found.value <= now.value - _ENOUGH * promised * length * now.unit and halved < 40:
            length, halved = 0.5 * length, halved + 1
            found = _reached(problem, chosen, z + length * move, b + length * lift)
        if not found.value < now.value:
            break
        z = trial if halved == 0 else z + length * move
        b, now = b + length * lift, found
    z = chosen.netted(z)
    total = float(z.sum())
    margin = -now.worst / total if total > 0.0 else 0.0
    margin = margin if math.isfinite(margin) else math.nan
    return BudgetSolution(z, b, margin, now.least, now.pulls)


@dataclass(frozen=True)
class _Reached:
    """What a pass says of weights: J, its unit and the share of L that is, edges and Hessian in that unit.

    `bias`, `across` and `along` are the edge of the constant, and its entries of the Hessian.
    """

    value: float
    unit: float
    share: float
    e: Array
    H: Array
    bias: float
    across: Array
    along: float
    worst: float
    least: float
    pulls: float


def _reached(problem: Problem, chosen: Ensemble, z: Array, b: float) -> _Reached:
    model = chosen.model(z)
    iterate = Iterate.unsummed(chosen.active, model[:-1, None], model[-1:] + b)
    found = problem.own_pass(moments, iterate, name="resolve")
    units, ends = found.add["units"], found.peak["ends"]
    sums = units.numbers
    loss, pulls = sums["loss"], float(sums["pulls"])
    logarithm = problem.loss.exponential
    # without any residual all edges are zero, whatever the unit is
    unit = loss if logarithm else pulls or 1.0
    G, H = sums["G"] / unit, sums["H"] / unit
    if logarithm:
        H = H - G[:, None] * G
    scale, place = chosen.scale, chosen.place
    return _Reached(
        value=units.shift + math.log(loss) if logarithm else loss,
        unit=1.0 if logarithm else unit,
        share=1.0 if logarithm else unit / max(loss, _TINY),
        e=scale * G[place],
        H=scale[:, None] * H[np.ix_(place, place)] * scale,
        bias=float(G[-1]),
        across=scale * H[place, -1],
        along=max(float(H[-1, -1]), _TINY),
        worst=float(ends[0]),
        least=-float(ends[1]),
        pulls=pulls,
    )


# A hypothesis without errors would ask for an infinite budget: its step is that of an edge of 1 - 2e-13.
CAP = 15.0
_VANISHED = 1e-280
# Labels that are numbers are explained but for rounding where so small a share of what the intercept leaves is left.
_EXPLAINED = 1e-26
# Edges that differ by less are the same but for the rounding of a re-solve: those of all hypotheses held are where the
# budget binds.
_TIED = 1e-6
# A step is looked for up to this many times the one that the quadratic bound of the loss allows.
_FARTHEST = 2.0**100


@dataclass(frozen=True)
class AdaBoostL1(System):
    """Settings of the system."""

    nu: float = 1.0  # Share of boosting's step by which the budget grows, in (0, 1].
    # Whether h = 1 is one of the hypotheses. Otherwise a problem may have an intercept that counts in no budget.
    constant: bool = True
    keep_zeros: bool = False  # Whether a hypothesis whose weight is zero stays in U.

    name = "adaboost_l1"
    exponential = True  # Its edges are divided by max |h|, which the scoring of the exponential bound knows.

    def check(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse a step outside (0, 1], losses without a step or a margin, and whatever is not ranked by edges."""
        if not 0.0 < self.nu <= 1.0:
            raise UsageError(f"nu={self.nu!r}", hint="expected a number in (0, 1]")
        loss = get_loss(settings.loss)
        if getattr(penalty, "rule", "") != "normalised" or loss.task not in ("binary", "regression"):
            raise UsageError(
                f"AdaBoost+L1 with loss {loss.name!r} and penalty {penalty.name!r}",
                hint="it has a budget and one output: use dboost.AdaBoostL1Classifier or dboost.AdaBoostL1Regressor",
            )
        if not (loss.exponential or math.isfinite(loss.kappa)):
            raise UsageError(
                f"AdaBoost+L1 with loss {loss.name!r}, whose curvature has no limit: no step says how the budget grows",
                hint="use a loss whose curvature is bounded, such as 'squared' or 'huber'",
            )

    def rounds(self, problem: Problem, settings: FitSettings, null: Score, n_rows: int) -> AdaBoostL1Rounds:
        """The rounds of a fit."""
        refuse_searched(problem)
        return AdaBoostL1Rounds(problem, settings, null, self, n_rows)


class AdaBoostL1Rounds(Rounds):
    """Rounds of one fit.

    They end by "tol" (the margin is certified), "budget" (by eq. 17), "edge" (no hypothesis has an edge above `tol`),
    "precision", "max_rounds" or "callback". Where labels are numbers there are no margins: the first two are not met.
    """

    certified = True

    def __init__(self, problem: Problem, settings: FitSettings, null: Score, system: AdaBoostL1, n_rows: int) -> None:
        super().__init__(problem, settings, null, system, n_rows)
        self.free = problem.fit_intercept
        self.margins = problem.loss.task == "binary"
        self.least = problem.loss.floor * problem.statistics.weight
        self.vanished = _VANISHED if self.margins else _EXPLAINED * max(null.iterate.loss - self.least, 0.0)

    def ended(self, state: FitState, reason: str) -> tuple[FitState, str]:
        """The state with the Frank-Wolfe certificate of its model."""
        if not state.history or state.history[-1]["step"] != "certificate":
            state, _ = self._certify(state)
        return state, reason

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason to stop if there is one."""
        clock, before = self.clock(), state
        so_far = Progress.of(state)
        state, scored = self._certify(state)
        so_far = replace(so_far, bound=min(so_far.bound, scored.edge))
        state = replace(state, carried={**state.carried, **so_far.carried()})
        reason = self._reason(state, scored)
        if reason:
            return self._recorded(before, state, scored, "certificate", clock), reason
        budget = so_far.budget + self.system.nu * self._step(scored)
        chosen = self._widened(state, scored)
        limits = self.limits.counted_from(state.passes - clock[1])
        free = float(state.intercept[0]) if self.free else None
        found = solve_within_budget(self.problem, chosen, chosen.weights(state), free, budget, limits)
        model = chosen.model(found.weights)
        nonzero = model[:-1] != 0.0
        carried = Progress(budget, found.margin, so_far.bound, found.least, found.pulls).carried()
        if self.system.keep_zeros:
            carried |= chosen.carried()
        state = replace(
            state,
            active=chosen.active[nonzero],
            W=model[:-1][nonzero, None],
            intercept=model[-1:] + found.intercept,
            carried=carried,
            cut=bool(limits.reason(self.problem.passes)),
        )
        return self._recorded(before, state, scored, "resolve", clock), ""

    def _reason(self, state: FitState, scored: _Edges) -> str:
        """Why to stop before this round; empty to go on."""
        now, tol = Progress.of(state), self.settings.tol
        if not scored.edge > 0.0:
            return "precision" if scored.fitted else "edge"
        if state.round == 0:
            return ""
        if now.bound - now.margin <= tol:
            return "tol"
        if (now.bound if self.margins else scored.edge) <= tol:
            return "edge"
        share = now.least / self.problem.statistics.weight
        reached = now.margin * self._norm(state) / now.budget
        loss = self.problem.loss
        if now.margin > 0.0 and budget_suffices(loss, now.budget, tol, reached, now.bound, share, scored.share):
            return "budget"
        return ""

    def _step(self, scored: _Edges) -> float:
        """How far boosting would go along the hypothesis of the largest edge."""
        if self.margins:
            return min(math.atanh(min(scored.edge, 1.0 - 1e-16)), CAP)
        problem, score, row = self.problem, scored.score, scored.row
        iterate = score.iterate.widened(score.best, score.best_G)
        peak, slope = float(problem.statistics.peak[row]), -scored.edge * scored.pulls
        bound = -slope * peak**2 / (problem.loss.kappa * float(problem.statistics.square[row]))
        if problem.loss.parabolic:
            return bound
        D = np.zeros_like(iterate.W)
        place = int(np.searchsorted(iterate.active, row))
        D[place] = math.copysign(1.0 / peak, float(iterate.G[place, 0]))
        return minimise(problem, iterate, Direction(D, np.zeros(1), slope, 0.0, bound * _FARTHEST), bound)

    # ---- certificates ----------------------------------------------------------------------------------------------

    def _certify(self, state: FitState) -> tuple[FitState, _Edges]:
        """Edges of all hypotheses at the model, and the relative gap that they certify for its budget."""
        problem, so_far = self.problem, Progress.of(state)
        budget, exponential = so_far.budget, problem.loss.exponential
        iterate = Iterate.unsummed(state.active, state.W, state.intercept)
        score = problem.score(iterate, None, 0.0, 1)
        iterate = score.iterate
        loss = iterate.loss
        pulls = loss if exponential else so_far.pulls
        left = loss - self.least > self.vanished
        if not pulls and left:
            pulls = pulls_at(problem, state.active, state.W, state.intercept)
        if not (left and pulls > 0.0):
            # every example is fitted so well that no residuals are left to tell hypotheses by
            # The least loss there may be is all that is known then, which certifies a loss that is as small.
            gap = (loss - self.least) / loss if loss > 0.0 else 0.0
            state = replace(state, objective=loss, gap=gap, lower_bound=self.least)
            return state, _Edges(score, 0.0, CONSTANT, np.zeros(0), 0.0, 0.0, 0.0, fitted=True)
        stats = problem.statistics
        held = iterate.G[:, 0] / stats.peak[iterate.active] / pulls
        best = score.best_G[:, 0] / stats.peak[score.best] / pulls
        constant = float(iterate.bias[0]) / pulls
        offered = np.concatenate([held, best, np.full(int(self.system.constant), constant)])
        rows = np.concatenate([iterate.active, score.best, [CONSTANT]])
        edge = min(float(np.max(np.abs(offered), initial=0.0)), 1.0)
        first = int(np.flatnonzero(np.abs(np.append(offered, edge)) >= edge * (1.0 - _TIED))[0])
        # <e, al> in the signs of W; r max e - <e, al> >= log(L / L*) of the exponential loss, else (L - L*) / pulls
        inner = (
            float((iterate.G * iterate.W).sum()) + (0.0 if self.free else float(iterate.bias @ iterate.intercept))
        ) / pulls
        share = max(budget * edge - inner, 0.0)
        if exponential:
            gap, lower = -math.expm1(-share), loss * math.exp(-share)
        else:
            lower = self._lower(iterate, budget, edge * pulls) if self.free else loss - share * pulls
            lower = max(lower, self.least)
            share = gap = max(loss - lower, 0.0) / loss
        state = replace(self.valued(state, loss), gap=gap, lower_bound=lower)
        return state, _Edges(score, edge, int(rows[first]), held, constant, pulls, share)

    def _lower(self, iterate: Iterate, budget: float, largest: float) -> float:
        """A bound on the loss within the budget where the intercept is free: D(Theta) - r max_j |h_j'Theta|.

        Theta is what the loss makes of the residuals U, so that they sum to zero (``losses.base.Repair``); with
        |h| <= 1 no sum of a hypothesis changes by more than the drift of all examples and the spill. `largest` is
        max_j |h_j'U|.
        """
        problem = self.problem
        repair = problem.objective.repair(iterate)
        if repair.null_share > 0.0:
            # how far sums then move goes by those of the null model, which are not kept here
            return -math.inf
        moved = problem.statistics.weight * float(repair.drift[0]) + float(repair.spill[0])
        return problem.dual_value(iterate, repair, 1.0) - budget * (largest + moved)

    # ---- the re-solve ----------------------------------------------------------------------------------------------

    def _widened(self, state: FitState, scored: _Edges) -> Ensemble:
        """U with the hypothesis of the largest edge."""
        score, peaks = scored.score, self.problem.statistics.peak
        iterate = score.iterate
        fresh = np.abs(score.best_G[:, 0]) / peaks[score.best] / scored.pulls
        constant = abs(scored.constant) if self.system.constant else -1.0
        largest = max(float(np.max(np.abs(scored.held), initial=0.0)), constant)
        takes = bool(fresh.shape[0]) and float(fresh[0]) > largest
        rows, signs = kept_of(state.carried) if self.system.keep_zeros else held_by(state, self.system.constant)
        if takes:
            rows, signs = np.append(rows, score.best[0]), np.append(signs, np.sign(score.best_G[0, 0]))
        elif self.system.constant and constant >= largest:
            rows, signs = np.append(rows, CONSTANT), np.append(signs, np.sign(scored.constant))
        return Ensemble.of(rows, signs, iterate.active, peaks)

    # ---- records ---------------------------------------------------------------------------------------------------

    def _recorded(
        self, before: FitState, state: FitState, scored: _Edges, step: str, clock: tuple[float, int]
    ) -> FitState:
        """The state with its record: objective and gap at the round's start, margin and budget after it."""
        now = Progress.of(state)
        more = {
            "edge": scored.edge,
            "budget": now.budget,
            "l1_norm": self._norm(state),
            "margin": now.margin,
            "margin_gap": now.bound - now.margin,
            "ensemble": self._size_of_ensemble(state),
        }
        return self.recorded(before, state, clock, step, 1.0 if step == "resolve" else 0.0, more)

    def _size_of_ensemble(self, state: FitState) -> int:
        """How many signed hypotheses are in U."""
        rows, _ = kept_of(state.carried) if self.system.keep_zeros else held_by(state, self.system.constant)
        return int(rows.shape[0])

    def _norm(self, state: FitState) -> float:
        """sum al of a model."""
        peaks = self.problem.statistics.peak[state.active]
        return float((np.abs(state.W[:, 0]) * peaks).sum() + (0.0 if self.free else abs(state.intercept[0])))


@dataclass(frozen=True)
class _Edges:
    """A scoring pass: the largest edge and its row, those of the hypotheses held and of the constant, what certifies.

    `pulls` is sum_i |U_i|, and `share` the Frank-Wolfe gap as a share of L. `fitted` says that no residuals are left.
    """

    score: Score
    edge: float
    row: int
    held: Array
    constant: float
    pulls: float
    share: float
    fitted: bool = False
