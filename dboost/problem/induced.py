"""The problem of a fit over hypotheses: columns that exist only while the model holds them.

A row of W belongs to a *registered* hypothesis; rows are numbered in the order of registration. A scoring pass sums
over all candidates of the pool at the repaired dual point, shard by shard, so that it certifies the whole class at
once; what lies between the hypotheses that are summed is looked into where it may be better (``pools``), and a class
too large for that is searched (``search``) when the rest of the fit is done.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost import passes
from dboost.columns.statistics import FAR_HYPOTHESIS, Statistics
from dboost.engine.base import Engine
from dboost.errors import UsageError
from dboost.hypotheses.base import Context, Family, Key
from dboost.hypotheses.capabilities import Stepwise, Tree
from dboost.hypotheses.held_by_model import Held
from dboost.losses import get_loss
from dboost.losses.base import Repair
from dboost.partition import Sums
from dboost.passes import Point, pools
from dboost.problem.first_passes import far_columns, label_sums
from dboost.problem.iterate import Iterate, Score
from dboost.problem.null_model import NullModel
from dboost.problem.objective import Objective
from dboost.problem.pass_runner import PassRunner
from dboost.problem.pools import PoolSummary, Rule, settle_gaps, summarise_between, summarise_pool
from dboost.problem.problem import Problem, ProblemSettings
from dboost.problem.tree_search import Found, Opened, search, worth

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

SHARD_BYTES = 64_000_000
# Shards whose sums a process may hold at a time, half a gigabyte.
SHARDS_AT_ONCE = 8
# Columns that a pass registers take at most so much memory, all examples together.
_REGISTERED_BYTES = 64_000_000
_SUMMED = "max_degree=2 of products, or max_listed= of stumps"
# stands for the number of candidates of a class without end where rows are counted
_MANY = 2**62


class InducedProblem(Problem):
    """Passes at a model of hypotheses.

    `engine`, `settings`, `run_id`, `labels`: as for ``StoredProblem``; hypotheses are made of the stored columns.
    `family`: the hypotheses.
    `seed`: seed of what the family draws.
    `certifies`: whether the fit is to be certified over the whole class.
    `picks`: whether it asks for the best hypothesis of all alone, in each round.
    `centres`: whether hypotheses far from zero are held less a number near their mean: the intercept is then that of
    those.
    """

    far = FAR_HYPOTHESIS
    screens = False

    def __init__(
        self,
        engine: Engine,
        settings: ProblemSettings,
        run_id: str,
        *,
        family: Family,
        seed: int,
        certifies: bool = True,
        picks: bool = False,
        centres: bool = False,
        labels: Sums | None = None,
    ) -> None:
        runner = PassRunner(engine, run_id)
        loss, k, n_features = get_loss(settings.loss), settings.n_outputs, settings.n_features
        labels = label_sums(runner, loss, k, settings.fit_intercept) if labels is None else labels
        n_rows = int(labels.add["rows"])
        features = runner.run(passes.feature_statistics, None, None, name="statistics")
        # no hypothesis is known yet
        statistics = Statistics.of(labels, _no_columns())
        asked = settings.penalty, k, settings.fit_intercept, settings.standardize
        objective = Objective.of(loss, *asked, statistics)
        super().__init__(runner, objective, n_rows, settings, NullModel(keeps=False))
        self.raw_features = n_features
        self._centring = centres
        # of each registered hypothesis, what is taken off it
        self._taken: list[float] = []
        self._last: Point | None = None
        picks = picks and not objective.standardize
        self.pool = family.prepare(Context(engine, n_rows, n_features, k, features.peak["peak"], seed, picks))
        self.searched = bool(self.pool.searched)
        self.n_candidates = self.pool.size
        self.n = int(min(self.pool.size, _MANY))
        self._check_search(certifies)
        self.keys: list[Key] = []
        self._ids: dict[Key, int] = {}

    def _check_search(self, certifies: bool) -> None:
        if self.searched and self.objective.standardize:
            raise UsageError(
                "standardize=True needs the deviation of every hypothesis, and this class is searched, not summed",
                hint=f"set standardize=False, or sum it: {_SUMMED}",
            )
        if self.searched and certifies and self.penalty.join_sizes([1.0, 1.0]) != 1.0:
            raise UsageError(
                f"penalty {self.penalty.name!r} ties all rows, and this class of hypotheses is searched, not summed",
                hint=f"use l1, l1/l2, l1/linf or l1/l2+l1, or sum it: {_SUMMED}",
            )

    # ---- registered hypotheses -------------------------------------------------------------------------------------

    def register(self, keys: Sequence[Key], pool: Any = None) -> Rows:
        """As in ``Problem``."""
        if pool is not None:
            self.pool = pool
        new = [key for key in dict.fromkeys(keys) if key not in self._ids]
        # a partition makes all columns of a pass at once
        most = max(1, _REGISTERED_BYTES // (12 * max(self.n_rows, 1)))
        for first in range(0, len(new), most):
            self._register(new[first : first + most])
        return np.array([self._ids[key] for key in keys], dtype=np.int64)

    def rows_of(self, active: Rows, keys: Sequence[Key]) -> Rows:
        """As in ``Problem``."""
        return self.register([keys[i] for i in active.tolist()])

    def _register(self, new: list[Key]) -> None:
        fresh = Held(np.zeros(0, np.int64), self.runner.token(), self.pool, tuple(new))
        found = self.runner.run(passes.feature_statistics, fresh, name="register")
        mine, first, taken = self.statistics, len(self.keys), np.zeros(len(new))
        far = far_columns(self.runner, fresh, found, mine.weight, self.far)
        if far is not None:
            if self._centring:
                columns, values = far.centres(self.n_rows, self.far)
                taken[columns] = values
            if taken.any():
                less = replace(fresh, token=self.runner.token(), centres=tuple(taken.tolist()))
                found = self.runner.run(passes.feature_statistics, less, name="register")
            far = replace(far, columns=far.columns + first)
        for key in new:
            self._ids[key] = len(self.keys)
            self.keys.append(key)
        self._taken += taken.tolist()
        statistics = replace(
            mine,
            peak=np.append(mine.peak, found.peak["peak"]),
            absolute=np.append(mine.absolute, found.add["absolute"]),
            square=np.append(mine.square, found.add["square"]),
            sum=np.append(mine.sum, found.add["total"]),
            far=far if mine.far is None else mine.far.joined(far),
        )
        self.objective = self.objective.of_columns(statistics)

    def columns_of(self, rows: Rows) -> Held:
        """As in ``Problem``."""
        centres = tuple(self._taken[i] for i in rows.tolist())
        keys = tuple(self.keys[i] for i in rows.tolist())
        return Held(rows, self.runner.token(), self.pool, keys, centres if any(centres) else ())

    def taken_off(self, active: Rows) -> Array:
        """As in ``Problem``."""
        return np.array([self._taken[i] for i in active.tolist()])

    def _places(self, iterate: Iterate, rows: Rows) -> Rows:
        return np.searchsorted(iterate.active, rows)

    # ---- scoring ---------------------------------------------------------------------------------------------------

    def score(
        self,
        iterate: Iterate,
        candidates: Rows | None,
        strength: float,
        take: int,
        whole: bool = True,
    ) -> Score:
        """Score every candidate of the pool, of a searched one those next to the model; with `whole` search the rest.

        `candidates` has no meaning here: nothing is ruled out between rounds. What can be certified is scored at the
        repaired residuals, so that its size is that of a dual point; otherwise at the residuals themselves.
        """
        return self._priced(iterate, strength, take, whole, self.penalty.certified)

    def ranked(self, iterate: Iterate, strength: float, take: int) -> Score:
        """As in ``Problem``; where residuals are repaired, by two scoring passes."""
        if not (self.fit_intercept and self.penalty.certified):
            return self.score(iterate, None, strength, take)
        found = self._priced(iterate, strength, take, True, False)
        return replace(found, size=self.score(iterate, None, strength, 0).size)

    def best_rows(self, iterate: Iterate, take: int) -> Rows:
        """As in ``Problem``: held ones are candidates again where their sums in a pass cost more than a search."""
        again = isinstance(self.pool, Stepwise)
        best = self.register(self._searched(iterate, 0.0, take, True, None, again).best)
        return best if again else np.union1d(iterate.active, best).astype(np.int64)

    def point(self, active: Rows, W: Array, intercept: Array) -> Point:
        """As in ``Problem``; the same one while the model does not change, of which passes remember much."""
        last, held = self._last, self.held(active)
        if last is not None and last.held is held and last.loss is self.loss:
            if np.array_equal(last.W, W) and np.array_equal(last.intercept, intercept):
                return last
        # a copy, since a solver may change its own
        self._last = Point(self.loss, held, W.copy(), intercept.copy(), self.runner.token())
        return self._last

    def rows_sums(self, iterate: Iterate, rows: Rows) -> Sums:
        """As in ``Problem``; but for those of a stepwise pool the model takes them in, with weights of zero."""
        beside = self.columns_of(rows)
        if beside.stepwise is None:
            active = np.union1d(iterate.active, rows).astype(np.int64)
            W = np.zeros((active.shape[0], self.k))
            W[np.searchsorted(active, iterate.active)] = iterate.W
            return super().rows_sums(replace(iterate, active=active, W=W), rows)
        point, places = self.point(iterate.active, iterate.W, iterate.intercept), np.arange(len(rows))
        mu = self.exponential
        found: Sums = self.runner.run(passes.score, places, point, mu, True, False, beside, name="rows")
        return found

    def _priced(self, iterate: Iterate, strength: float, take: int, whole: bool, repaired: bool) -> Score:
        # what the pass at the model with its new rows says of the rows it holds is the same, bit for bit
        once = not repaired and self.k == 1
        if not once:
            iterate = self.evaluate(iterate.active, iterate.W, iterate.intercept)
        if not np.isfinite(iterate.bias).all():
            # residuals beyond all numbers: nothing is induced before the model held has come back from there
            return self._scored(iterate, [], math.inf)
        repair = self.objective.repair(iterate) if repaired else None
        found = self._searched(iterate, strength, take, whole, repair)
        score = self._scored(iterate, found.best, found.size, evaluated=not once)
        score = replace(score, opened=found.opened, complete=found.complete)
        if self.searched and not whole and repair is not None and iterate.active.size:
            # a hypothesis of the model need not be one of those next to it, and bounds what the rest is scaled by
            score = replace(score, size=max(found.size, self._size_held(score.iterate, repair)))
        return score

    def _searched(
        self, iterate: Iterate, strength: float, take: int, whole: bool, repaired: Repair | None, again: bool = False
    ) -> Found:
        """The best of the whole class at a model, by its residuals or, for a certificate, by these `repaired`.

        `again`: whether those that the model holds are candidates.
        """
        repair = Repair.nothing(self.k) if repaired is None else repaired
        point = self.point(iterate.active, iterate.W, iterate.intercept)
        held = frozenset(self.held(iterate.active).keys)
        others: frozenset[Key] = frozenset() if again else held
        arguments = (self.pool, point, (repair.keep, repair.mix, repair.shift, repair.prior))
        row_bytes = 8 * self.k * (3 if self.exponential else 1)
        constant = self.edge_constant if self.exponential else self.objective.curvature_constant
        rule = Rule(
            others,
            strength,
            constant,
            self.penalty,
            self.exponential,
            self.statistics.weight,
            self.objective.standardize,
            take,
            whole=whole and repaired is not None,
            centred=self._centring,
            deviations=self._deviations(),
        )
        # Without a certificate only the sums that rank hypotheses are formed.
        kind = "theta" if not self.exponential else "branches" if self.penalty.certified else "pulls"

        def priced(rule: Rule) -> list[PoolSummary]:
            found: list[PoolSummary] = self.runner.run(
                pools.price,
                *arguments,
                kind,
                name="score",
                at_once=SHARDS_AT_ONCE,
                shards=self.pool.shards(sorted(held), row_bytes, SHARD_BYTES),
                finish=pools.finished,
                finish_args=lambda shard: (self.pool, summarise_pool, self.pool, rule),
            )
            return found

        parts = priced(rule)
        unsure = [key for part in parts for key in part.unsure]
        if unsure:
            # once in a fit for each: their deviations are known from then on
            self.register(unsure)
            rule = replace(rule, deviations=self._deviations())
            parts = priced(rule)
        parts, opened = settle_gaps(parts, rule, self.k, lambda nodes: self._between(nodes, rule, arguments, kind))
        size = self.penalty.join_sizes([part.size for part in parts])
        pairs = (zip(part.scores.tolist(), part.best, strict=True) for part in parts)
        ranked = sorted((-score, key) for found in pairs for score, key in found)
        best = list(dict.fromkeys(key for _, key in ranked))[:take]
        complete = True
        if self.searched and whole and isinstance(self.pool, Tree):
            wanted = strength if take else math.inf
            found = search(
                self.pool,
                lambda parents, seen: self._children(parents, arguments, wanted, seen),
                16 * self.k * self.raw_features,
                strength if take else 0.0,
                take,
            )
            opened, complete = opened + found.opened, found.complete
            size = max(size, found.size)
            best = (best + [key for key in found.best if key not in held and key not in set(best)])[:take]
        return Found(size, best, opened, complete)

    def _size_held(self, iterate: Iterate, repair: Repair) -> float:
        """``penalty.dual_size`` of the model's own hypotheses at its repaired residuals."""
        point, given = (
            self.point(iterate.active, iterate.W, iterate.intercept),
            (repair.keep, repair.mix, repair.shift, repair.prior),
        )
        G = self.runner.run(passes.repaired_gradient, None, point, given, name="repaired").add["G"]
        return self.objective.bound(iterate.active).dual_size(self.penalty.dual_norm(G))

    def summed(self, iterate: Iterate, finish: Callable[..., Any], *arguments: Any) -> list[Any]:
        """As for ``Problem``, shard by shard of the pool: beside "G" there are "square", "total" and "peak".

        Of a pool that is searched, the hypotheses next to the model.
        """
        point = self.point(iterate.active, iterate.W, iterate.intercept)
        whole = Repair.nothing(self.k)
        found: list[Any] = self.runner.run(
            pools.price,
            self.pool,
            point,
            (whole.keep, whole.mix, whole.shift, whole.prior),
            "theta",
            name="score",
            at_once=SHARDS_AT_ONCE,
            shards=self.pool.shards(sorted(self.held(iterate.active).keys), 8 * self.k, SHARD_BYTES),
            finish=pools.finished,
            finish_args=lambda shard: (self.pool, finish, *arguments),
        )
        return found

    def _deviations(self) -> dict[Key, float]:
        """Deviations of the registered hypotheses that are far from zero, where they count."""
        far = self.statistics.far if self.objective.standardize else None
        if far is None:
            return {}
        return {self.keys[i]: d for i, d in zip(far.columns.tolist(), far.deviation.tolist(), strict=True)}

    def _between(self, nodes: Sequence[Any], rule: Rule, arguments: tuple[Any, ...], kind: str) -> PoolSummary:
        found: list[PoolSummary] = self.runner.run(
            pools.price_between,
            *arguments,
            kind,
            name="between",
            shards=[nodes],
            finish=summarise_between,
            finish_args=lambda shard: (self.pool, rule, self.k),
        )
        return found[0]

    def _children(self, parents: Sequence[Key], arguments: tuple[Any, ...], wanted: float, seen: float) -> Opened:
        found: list[Opened] = self.runner.run(
            pools.price,
            *arguments,
            "signs",
            name="search",
            shards=[self.pool.branch(parents)],
            finish=pools.finished,
            finish_args=lambda shard: (self.pool, worth, self.pool, self.penalty.dual_norm, wanted, seen),
        )
        return found[0]

    def _scored(self, iterate: Iterate, best: Sequence[Key], size: float, evaluated: bool = True) -> Score:
        """What a scoring pass says, with the sums of the best rows, and of the model where they are not known yet."""
        rows = self.register(best)
        G = np.zeros((0, self.k))
        if len(rows) or not evaluated:
            active = np.sort(np.concatenate([iterate.active, rows]))
            W = np.zeros((active.shape[0], self.k))
            held = np.searchsorted(active, iterate.active)
            W[held] = iterate.W
            found = self.evaluate(active, W, iterate.intercept)
            G = found.G[np.searchsorted(active, rows)]
            if not evaluated:
                iterate = replace(iterate, loss=found.loss, G=found.G[held], bias=found.bias)
        norms = self.penalty.dual_norm(iterate.G)
        return Score(iterate, iterate.active, norms, rows, G, size=size)


def _no_columns() -> Sums:
    """What ``passes.feature_statistics`` would find of no column at all."""
    none = np.zeros(0)
    return Sums(add={name: none for name in ("absolute", "square", "total")}, peak={"peak": none})
