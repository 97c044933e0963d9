"""Every loss with every penalty and bound, tried on random problems: is the bound one, are score and zero test exact?

Covers: the passes and row solves of this library against the true change of the loss, which is a pass of its own.
Does not cover: the losses' formulas (tests/losses), or optima found by other solvers (``lab.oracle``).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dboost.boosting.checks import check_settings
from dboost.boosting.fit import FitSettings, Fitting
from dboost.bounds import exponential, quadratic
from dboost.engine.local import LocalEngine
from dboost.errors import ConvergenceWarning, UsageError
from dboost.losses import LOSSES
from dboost.partition import Partition
from dboost.penalties import PENALTIES, SmoothL1, get_penalty
from dboost.penalties.capabilities import exponential_solves
from dboost.problem.problem import ProblemSettings
from dboost.problem.state import FitResult
from dboost.problem.stored import StoredProblem

Array = NDArray[np.float64]

BOUNDS = {"exponential": "adaboost", "quadratic": "gradboost"}
GAP = 1e-10
# A change of the loss is the difference of two sums: what it carries of rounding, relative to them.
ROUNDING = 1e-12
# Scores documented as lower bounds where a row has several entries (docs/math.md 5).
LOWER = {("l1/l2", "exponential"), ("l1/l2+ridge", "exponential"), ("l1/l2+l1", "exponential")}
# A capped step of 30 a, where a row has no finite minimiser, misses e^-30 of the decrease that its score counts.
SHORT = 1e-9


@dataclass
class Measured:
    """Counts and worst values of one combination."""

    # Steps of one row whose true change was compared with the bound.
    steps: int = 0
    # Largest amount by which the bound lay below the true change, relative to the sums that it is a difference of.
    below: float = 0.0
    # Largest relative difference of the bound's slope at zero from that of the loss.
    slope: float = 0.0
    # Rows at zero whose score is positive.
    scores: int = 0
    # Smallest and largest ratio of score to the bound's decrease at the solved row.
    ratio: list[float] = field(default_factory=lambda: [np.inf, 0.0])
    # Rows at zero for which score > 0 and the zero test were compared.
    tests: int = 0
    # Of these, how many disagreed.
    wrong: int = 0
    # Certified relative gap at the end of a fit; nan where the penalty has no certificate.
    gap: float = np.nan
    # Why that fit ended.
    reason: str = ""
    passes: int = 0


def pairs() -> Iterator[tuple[str, str, str]]:
    """(loss, penalty, bound) of all combinations that ``check_settings`` accepts."""
    for loss in LOSSES:
        for penalty in PENALTIES:
            for bound, update in BOUNDS.items():
                try:
                    check_settings(FitSettings(loss, penalty, update=update, select=_select(penalty)))
                except UsageError:
                    continue
                yield loss, penalty, bound


def _select(penalty: str) -> str:
    """Rows in turn; all at once where the penalty ties them together."""
    return "cyclic" if getattr(get_penalty(penalty), "separable", True) else "template"


def _labels(loss: str, F: Array, rng: np.random.Generator) -> NDArray[Any]:
    if LOSSES[loss].task == "multiclass":
        codes = F.argmax(axis=1).astype(np.int32)
        codes[: F.shape[1]] = np.arange(F.shape[1])
        return codes
    if LOSSES[loss].task == "multitarget":
        return np.where(rng.random(F.shape) < 0.1, np.nan, F)
    if LOSSES[loss].task == "regression":
        real = np.ascontiguousarray(F[:, 0])
        return real if LOSSES[loss].invalid(real) < 0 else np.abs(real)
    sign = np.where(F > 0.0, 1, -1).astype(np.int8)
    sign[:2] = [[1], [-1]]
    if LOSSES[loss].task == "multitask":
        sign[2:][rng.random(sign[2:].shape) < 0.1] = 0
    return sign


def _plan(loss: str, rng: np.random.Generator, m: int, n: int) -> SimpleNamespace:
    """Random sparse data in two partitions, with columns of different scales, and sometimes a zero or a sign column."""
    k = int(rng.integers(2, 5)) if LOSSES[loss].task in ("multiclass", "multitask", "multitarget") else 1
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < rng.choice([0.3, 0.7, 1.0])) * 10.0 ** rng.uniform(-1, 1, n)
    if rng.random() < 0.3:
        X[:, 0] = 0.0
    if rng.random() < 0.3:
        X[:, -1] = np.sign(X[:, -1])
    F = X @ (rng.normal(size=(n, k)) / (1.0 + np.abs(X).max(axis=0))[:, None]) + 1.5 * rng.normal(size=(m, k))
    y, weight = _labels(loss, F, rng), rng.uniform(0.1, 2.0, m)
    items = []
    for number, rows in enumerate((slice(0, m // 3), slice(m // 3, m))):
        part = sp.csc_array(X[rows])
        part.sort_indices()
        indptr, indices = part.indptr.astype(np.int64), part.indices.astype(np.int32)
        items.append(Partition(indptr, indices, part.data, y[rows].copy(), weight[rows].copy(), f"p{number}"))
    rows_of = tuple(item.n_rows for item in items)
    shape = {"rows": rows_of, "n_features": n, "n_outputs": k, "n_rows": m, "weight_exponent": 0}
    stored = sum(item.nbytes for item in items)
    return SimpleNamespace(items=tuple(items), **shape, nbytes_estimate=stored, classes=None, feature_names=None)


class _Trial:
    """One random problem at one random model, half of its rows zero."""

    def __init__(self, loss: str, penalty: str, bound: str, rng: np.random.Generator) -> None:
        self.exponential = bound == "exponential"
        self.rng = rng
        n = int(rng.integers(2, 7))
        plan = _plan(loss, rng, int(rng.integers(12, 30)), n)
        engine = LocalEngine(1)
        engine.set_plan(plan.items, plan.rows, "pairs")
        self.penalty = get_penalty(penalty)
        asked = ProblemSettings(loss, self.penalty, n, plan.n_outputs, exponential=self.exponential)
        self.problem = StoredProblem(engine, asked, "pairs")
        peak = np.where(self.problem.statistics.peak > 0.0, self.problem.statistics.peak, 1.0)
        self.W = rng.normal(size=(n, plan.n_outputs)) * rng.choice([0.1, 1.0, 3.0]) / peak[:, None]
        self.W[rng.permutation(n)[: (n + 1) // 2]] = 0.0
        self.rows = np.arange(n)
        self.iterate = self.problem.evaluate(self.rows, self.W, rng.normal(size=plan.n_outputs))
        sums = self.problem.rows_sums(self.iterate, self.rows).add
        if self.exponential:
            self.plus, self.minus = sums["mu_plus"], sums["mu_minus"]
            self.G = self.plus - self.minus
            self.scale = exponential.normalisation(self.problem.statistics.peak, self.problem.loss.template_constant)
        else:
            self.G = sums["G"]
            self.scale = quadratic.one_row(self.problem.statistics.square, self.problem.loss.kappa)
        # lengths of steps worth trying: a, or 1 / max |x|
        self.length = 1.0 / peak

    def change(self, delta: Array) -> Array:
        """The bound's change for each row."""
        if self.exponential:
            return exponential.change(delta, self.plus, self.minus, self.scale)
        return quadratic.change(delta, self.G, self.scale)

    def decrease(self, new: Array, lam: Array) -> Array:
        """How far bound plus penalty falls for each row that moves from zero to `new`."""
        if self.exponential and isinstance(self.penalty, SmoothL1):
            # one bound of both: half an example of weight lam on either side of every weight (docs/math.md 7 (G))
            pseudo = 0.5 * lam[:, None]
            scale = np.minimum(self.scale, 1.0 / self.penalty.sharpness)
            return -exponential.change(new - self.W, self.plus + pseudo, self.minus + pseudo, scale)
        return -self.change(new - self.W) - lam * (self.penalty.value(new) - self.penalty.value(self.W))

    def compare_changes(self, into: Measured) -> None:
        """Steps of one row, of many lengths, and the slope at zero."""
        zero = np.zeros(self.problem.k)
        for j in self.rows:
            direction = self.rng.normal(size=self.problem.k) * self.length[j]
            delta = np.zeros_like(self.W)
            delta[j] = direction
            steps = np.concatenate([10.0 ** self.rng.uniform(-3, 0.7, 4), [1e-4, -1e-4]])
            true = self.problem.losses_along(self.iterate, delta, zero, steps) - self.iterate.loss
            bound = np.array([self.change(t * delta)[j] for t in steps])
            size = np.abs(true) + np.abs(bound) + self.iterate.loss
            into.below = max(into.below, float(np.max((true - bound) / size)))
            into.steps += steps.size
            assert not self.change(0.0 * delta).any(), "the bound is not tight at zero"
            slope = -float(self.G[j] @ direction)
            pull = float(np.sum(np.abs(self.G[j] * direction))) + 1e-6 * self.iterate.loss
            into.slope = max(into.slope, float(abs((bound[4] - bound[5]) / 2e-4 - slope)) / pull)

    def compare_scores(self, into: Measured) -> None:
        """Scores of the zero rows against the decrease of bound plus penalty at the solved row, and the zero test."""
        penalty = self.penalty
        usable = ~self.W.any(axis=1) & (np.isfinite(self.scale) & (self.scale > 0.0))
        norms = penalty.dual_norm(self.G)
        largest = float(np.max(norms[np.isfinite(norms)], initial=0.0)) or float(np.abs(self.G).max(initial=0.0))
        lam = np.full(len(self.W), largest * float(self.rng.choice([0.05, 0.3, 0.7, 0.95])))
        if penalty.name == "none":
            lam[:] = 0.0
        if self.exponential:
            score = exponential_solves(penalty).score_exponential(self.plus, self.minus, self.scale, lam)
            new, _ = exponential_solves(penalty).solve_exponential(self.W, self.plus, self.minus, self.scale, lam)
        else:
            score = penalty.score_quadratic(self.G, self.scale, lam)
            new = penalty.solve_quadratic(self.W, self.G, self.scale, lam)
        decrease = self.decrease(new, lam)
        leaves = np.asarray(penalty.leaves_zero(self.G, lam))
        into.tests += int(usable.sum())
        into.wrong += int(np.sum((score[usable] > 0.0) != leaves[usable]))
        into.wrong += int(np.sum((np.abs(new[usable]).max(axis=1) > 0.0) != leaves[usable]))
        compared = usable & (score > 1e-9 * self.iterate.loss)
        into.scores += int(compared.sum())
        ratio = score[compared] / decrease[compared]
        into.ratio[0] = min(into.ratio[0], float(ratio.min(initial=np.inf)))
        into.ratio[1] = max(into.ratio[1], float(ratio.max(initial=0.0)))


def measure(loss: str, penalty: str, bound: str, trials: int, seed: int = 0) -> Measured:
    """Try one combination on random problems, and fit one to the end."""
    result = tried(loss, penalty, bound, trials, seed)
    fitted = closed(loss, penalty, bound, seed)
    result.gap, result.reason, result.passes = fitted.gap, fitted.stop_reason, fitted.passes
    return result


def tried(loss: str, penalty: str, bound: str, trials: int, seed: int = 0) -> Measured:
    """Bounds, scores and zero tests on random problems."""
    names = (list(LOSSES).index(loss), list(PENALTIES).index(penalty), list(BOUNDS).index(bound))
    rng = np.random.default_rng([seed, *names])
    result = Measured()
    by_rows = getattr(get_penalty(penalty), "separable", True)
    for _ in range(trials):
        trial = _Trial(loss, penalty, bound, rng)
        trial.compare_changes(result)
        if by_rows:
            trial.compare_scores(result)
    return result


def closed(loss: str, penalty: str, bound: str, seed: int = 0) -> FitResult:
    """A fit of one random problem by updates on this bound alone, to the end."""
    settings = FitSettings(loss, penalty, update=BOUNDS[bound], select=_select(penalty), tol=GAP, max_rounds=200)
    fitting = Fitting(_plan(loss, np.random.default_rng(seed), 40, 4), LocalEngine(1), settings)
    # where no strength puts all weights to zero, one at which the penalty matters
    largest = fitting.alpha_max()
    alpha = 0.2 * largest if np.isfinite(largest) else "auto" if penalty == "none" else 0.05
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fitting.fit(alpha)


def holds(loss: str, penalty: str, bound: str, got: Measured) -> bool:
    """Whether everything a combination promises was found."""
    above = got.below <= ROUNDING and got.slope <= 1e-5 and got.wrong == 0
    exact = (penalty, bound) not in LOWER
    score = got.ratio[1] <= 1.0 + SHORT and (got.ratio[0] >= 1.0 - SHORT or not exact)
    return bool(above and score and (got.gap <= GAP or (np.isnan(got.gap) and got.reason == "gradient")))
