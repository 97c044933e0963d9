"""The problem of a fit over hypotheses: columns that exist only while the model holds them.

A row of W belongs to a *registered* hypothesis; rows are numbered in the order of registration. A scoring pass sums
over all candidates of the pool at the repaired dual point, shard by shard, so that it certifies the whole class at
once; a class too large for that is searched (``search``) when the rest of the fit is done.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dboost import passes
from dboost.boosting.problem import Array, Iterate, Problem, Rows, Score
from dboost.boosting.search import search
from dboost.boosting.statistics import Statistics, row_weights
from dboost.bounds import exponential, quadratic
from dboost.errors import UsageError
from dboost.hypotheses.base import Context, Family, Key
from dboost.hypotheses.held import Held
from dboost.losses.base import Repair
from dboost.partition import Sums
from dboost.penalties import Penalty

_SHARD_BYTES = 64_000_000
# stands for the number of candidates of a class without end where rows are counted
_MANY = 2**62


@dataclass(frozen=True)
class PoolSummary:
    """What one shard of a pool has to say; small.

    Parameters
    ----------
    best : list of Key
        The best candidates that violate optimality, best first.
    scores : float64 array
        Their scores.
    size : float
        ``penalty.dual_size`` of the shard.
    """

    best: list[Key]
    scores: Array
    size: float


def summarise_pool(
    total: Sums,
    shard: Any,
    pool: Any,
    held: frozenset[Key],
    strength: float,
    constant: float,
    penalty: Penalty,
    exponential_bound: bool,
    weight: float,
    standardize: bool,
    take: int,
) -> PoolSummary:
    """Reduce the sums of one shard to its size and its best candidates.

    Parameters
    ----------
    held : frozenset of Key
        Hypotheses of the model; they are no candidates.
    constant : float
        c of the exponential bound, or kappa of the quadratic one.
    weight : float
        Sum of the example weights.
    standardize : bool
        Whether hypotheses are penalised by their deviation.
    """
    square, peak = total.add["square"], total.peak["peak"]
    statistics = Statistics(np.zeros(0), np.zeros(0), weight, peak, square, square, total.add["total"])
    weights = row_weights(statistics, standardize, penalty.degree)
    lam = strength * weights
    G = total.add["G"]
    norms = penalty.dual_norm(G)
    usable = (square > 0.0) & np.isfinite(lam)
    size = penalty.dual_size(norms[usable], weights[usable])
    if take == 0:
        return PoolSummary([], np.zeros(0), size)
    scores = np.zeros(norms.shape[0])
    if exponential_bound:
        sums = total.add["mu_plus"][usable], total.add["mu_minus"][usable]
        scores[usable] = penalty.score_exponential(*sums, exponential.one_row(peak[usable], constant), lam[usable])
    else:
        scores[usable] = penalty.score_quadratic(G[usable], quadratic.one_row(square[usable], constant), lam[usable])
    # the model's own rows may be among the best
    order = np.lexsort((np.arange(len(scores)), -scores))[: take + len(held)]
    order = order[scores[order] > 0.0]
    keys = pool.keys(shard, order)
    places = [place for place, key in enumerate(keys) if key not in held][:take]
    return PoolSummary([keys[place] for place in places], scores[order[places]], size)


class InducedProblem(Problem):
    """Passes at a model of hypotheses.

    Parameters
    ----------
    engine, loss, penalty, n_features, n_outputs, fit_intercept, run_id, exponential, standardize
        As for ``Problem``.
    family : Family
        The hypotheses.
    n_rows : int
        Number of examples.
    seed : int
        Seed of what the family draws.
    certifies : bool
        Whether the fit is to be certified over the whole class.
    """

    screens = False

    def __init__(
        self,
        engine: Any,
        loss: Any,
        penalty: Penalty,
        n_features: int,
        n_outputs: int,
        fit_intercept: bool,
        run_id: str,
        exponential: bool,
        standardize: bool,
        *,
        family: Family,
        n_rows: int,
        seed: int,
        certifies: bool = True,
    ) -> None:
        super().__init__(engine, loss, penalty, n_features, n_outputs, fit_intercept, run_id, exponential, standardize)
        self.raw_features = n_features
        raw = self.statistics
        self.pool: Any = family.prepare(Context(engine, self.loss.name, n_rows, n_features, n_outputs, raw.peak, seed))
        self.searched = bool(self.pool.searched)
        self.n_candidates = self.pool.size
        self.n = int(min(self.pool.size, _MANY))
        self._check_search(certifies)
        self.keys: list[Key] = []
        self._ids: dict[Key, int] = {}
        none = np.zeros(0)
        self.statistics = replace(raw, peak=none, absolute=none, square=none, sum=none)
        self.lam_weight = none

    def _check_search(self, certifies: bool) -> None:
        if self.searched and self.standardize:
            raise UsageError(
                "standardize=True needs the deviation of every hypothesis, and this class is searched, not summed",
                hint="set standardize=False, or a smaller max_degree",
            )
        if self.searched and certifies and self.penalty.join_sizes([1.0, 1.0]) != 1.0:
            raise UsageError(
                f"penalty {self.penalty.name!r} ties all rows, and this class of hypotheses is searched, not summed",
                hint="use l1, l1/l2, l1/linf or l1/l2+l1, or a smaller max_degree",
            )

    # ---- registered hypotheses -------------------------------------------------------------------------------------

    def register(self, keys: Sequence[Key]) -> Rows:
        """Number hypotheses; new ones cost a pass for their statistics."""
        new = [key for key in dict.fromkeys(keys) if key not in self._ids]
        if new:
            fresh = Held(np.zeros(0, np.int64), self._token(), self.pool, tuple(new))
            found = self._pass(passes.feature_statistics, fresh, name="register")
            for key in new:
                self._ids[key] = len(self.keys)
                self.keys.append(key)
            mine = self.statistics
            self.statistics = replace(
                mine,
                peak=np.append(mine.peak, found.peak["peak"]),
                absolute=np.append(mine.absolute, found.add["absolute"]),
                square=np.append(mine.square, found.add["square"]),
                sum=np.append(mine.sum, found.add["total"]),
            )
            self.lam_weight = row_weights(self.statistics, self.standardize, self.penalty.degree)
        return np.array([self._ids[key] for key in keys], dtype=np.int64)

    def held(self, active: Rows) -> Held:
        """The hypotheses of some rows of W; the same object while the rows stay the same."""
        if self._held is None or not np.array_equal(self._held.columns, active):
            keys = tuple(self.keys[i] for i in active.tolist())
            self._held = Held(active, self._token(), self.pool, keys)
        return self._held

    def rows_sums(self, at: Iterate, rows: Rows) -> Sums:
        """As for ``Problem``; the rows must be held by the model."""
        return super().rows_sums(at, np.searchsorted(at.active, rows))

    # ---- scoring ---------------------------------------------------------------------------------------------------

    def score(self, at: Iterate, candidates: Rows | None, strength: float, take: int, whole: bool = True) -> Score:
        """Score every candidate of the pool, of a searched one those next to the model; with `whole` search the rest.

        `candidates` has no meaning here: nothing is ruled out between rounds.
        """
        at = self.evaluate(at.active, at.W, at.intercept)
        if at.shift > 0.0:
            # residuals beyond all numbers: nothing is induced before the model held has come back from there
            return self._scored(at, [], math.inf)
        # what is not certified is ranked by the residuals themselves
        repair = self.repair(at) if self.penalty.certified else Repair.nothing(self.k)
        point = self.point(at.active, at.W, at.intercept)
        held = frozenset(self.held(at.active).keys)
        arguments = (self.pool, point, (repair.keep, repair.mix, repair.shift, repair.prior))
        row_bytes = 8 * self.k * (3 if self.exponential else 1)
        constant = self.loss.template_constant if self.exponential else self.curvature_constant
        rule = (constant, self.penalty, self.exponential, self.statistics.weight, self.standardize, take)

        def finish_args(shard: Any) -> tuple[Any, ...]:
            return self.pool, held, strength, *rule

        parts: list[PoolSummary] = self._pass(
            passes.price,
            *arguments,
            "branches" if self.exponential else "theta",
            name="score",
            shards=self.pool.shards(sorted(held), row_bytes, _SHARD_BYTES),
            finish=summarise_pool,
            finish_args=finish_args,
        )
        size = self.penalty.join_sizes([part.size for part in parts])
        pairs = (zip(part.scores.tolist(), part.best, strict=True) for part in parts)
        ranked = sorted((-score, key) for found in pairs for score, key in found)
        best = list(dict.fromkeys(key for _, key in ranked))[:take]
        opened, complete = 0, True
        if self.searched and whole:
            found = search(
                self.pool,
                lambda parents: self._children(parents, arguments),
                self.penalty.dual_norm,
                16 * self.k * self.raw_features,
                strength if take else 0.0,
                take,
            )
            opened, complete = found.opened, found.complete
            size = max(size, found.size)
            best = (best + [key for key in found.best if key not in held and key not in set(best)])[:take]
        return replace(self._scored(at, best, size), opened=opened, complete=complete)

    def summed(self, at: Iterate, finish: Callable[..., Any], *arguments: Any) -> list[Any]:
        """As for ``Problem``, shard by shard of the pool: beside "G" there are "square", "total" and "peak".

        Of a pool that is searched, the hypotheses next to the model.
        """
        point = self.point(at.active, at.W, at.intercept)
        whole = Repair.nothing(self.k)
        found: list[Any] = self._pass(
            passes.price,
            self.pool,
            point,
            (whole.keep, whole.mix, whole.shift, whole.prior),
            "theta",
            name="score",
            shards=self.pool.shards(sorted(self.held(at.active).keys), 8 * self.k, _SHARD_BYTES),
            finish=finish,
            finish_args=lambda shard: arguments,
        )
        return found

    def _children(self, parents: Sequence[Key], arguments: tuple[Any, ...]) -> tuple[list[Key], Array, Array]:
        shard = self.pool.branch(parents)
        sums = self._pass(passes.price, *arguments, "signs", name="search", shards=[shard], finish=_whole)[0]
        return self.pool.keys(shard), sums.add["mu_plus"], sums.add["mu_minus"]

    def _scored(self, at: Iterate, best: Sequence[Key], size: float) -> Score:
        rows = self.register(best)
        G = np.zeros((0, self.k))
        if len(rows):
            active = np.sort(np.concatenate([at.active, rows]))
            W = np.zeros((active.shape[0], self.k))
            W[np.searchsorted(active, at.active)] = at.W
            G = self.evaluate(active, W, at.intercept).G[np.searchsorted(active, rows)]
        norms = self.penalty.dual_norm(at.G)
        return Score(at, at.active, norms, rows, G, size=size)


def _whole(total: Sums, shard: Any) -> Sums:
    return total
