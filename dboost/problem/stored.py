"""The problem of a fit whose rows of W are the stored columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost import passes
from dboost.bounds import exponential, quadratic
from dboost.columns.statistics import FAR, Statistics
from dboost.engine.base import Engine
from dboost.errors import UsageError
from dboost.hypotheses.base import Key
from dboost.hypotheses.held_by_model import Held
from dboost.losses import Loss, get_loss
from dboost.partition import Sums
from dboost.passes import Point
from dboost.passes.centring import Centres
from dboost.problem.first_passes import far_columns, label_sums
from dboost.problem.free_rows import solved_null
from dboost.problem.iterate import Iterate, Score
from dboost.problem.null_model import NullModel
from dboost.problem.objective import Objective
from dboost.problem.pass_runner import PassRunner
from dboost.problem.problem import Problem, ProblemSettings
from dboost.problem.shards import ONE_SHARD_BYTES, column_shards, joined, score_shard, summarise_shard

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Sums this small go to the driver whole: reducing them on a worker costs more in turns through a scheduler.
_DRIVER_BYTES = 4_000_000


class StoredProblem(Problem):
    """Passes at a model of stored columns.

    `engine`: where partitions are mapped and reduced; its plan is set.
    `settings`: what the fit asks for.
    `run_id`: makes the tokens of this fit unique in a process.
    `centres`: what the engine takes off the stored columns: the intercept here is that of columns less their centres.
    `passes_before`: passes that were done for the fit already.
    `labels`: what ``label_sums`` says of the engine's labels, where that is known.
    """

    far = FAR
    screens = True

    def __init__(
        self,
        engine: Engine,
        settings: ProblemSettings,
        run_id: str,
        *,
        centres: Centres | None = None,
        passes_before: int = 0,
        labels: Sums | None = None,
    ) -> None:
        self.n = self.n_candidates = settings.n_features
        self._centres = centres
        # where the partitions lie in this process, the sums of one shard are formed in it anyway
        self._driver_bytes = _DRIVER_BYTES if engine.resident_partitions() is None else ONE_SHARD_BYTES
        # With rows that are in every model, the model without features is scored once only.
        columns, k, fit_intercept = settings.columns, settings.n_outputs, settings.fit_intercept
        keeps_null = settings.keeps_null and (columns is None or not columns.free.size)
        self._free_null: Iterate | None = None
        loss, runner, null = get_loss(settings.loss), PassRunner(engine, run_id, passes_before), NullModel(keeps_null)
        labels = label_sums(runner, loss, k, fit_intercept) if labels is None else labels
        offsets = columns is not None and bool(columns.offset.size)
        together = keeps_null and k == 1 and not settings.exponential
        statistics = _first_sums(runner, loss, labels, fit_intercept, null if together else None, offsets)
        asked = settings.penalty, k, fit_intercept, settings.standardize
        objective = Objective.of(loss, *asked, statistics, columns)
        if fit_intercept and not objective.penalty.weightless:
            objective = replace(objective, columns=objective.columns.beside_intercept(statistics))
        super().__init__(runner, objective, int(labels.add["rows"]), settings, null)

    def null(self) -> Iterate:
        """As in ``Problem``, with the rows without penalty at their optimum, which are in every model."""
        found = super().null()
        if not self.objective.columns.free.size:
            return found
        if self._free_null is None:
            self._free_null = solved_null(self, found)
        return self._free_null

    def columns_of(self, rows: Rows) -> Held:
        """As in ``Problem``."""
        return Held(rows, self.runner.token())

    def register(self, keys: Sequence[Key], pool: Any = None) -> Rows:
        """As in ``Problem``: there are none."""
        if keys or pool is not None:
            raise UsageError(
                f"{len(keys)} hypotheses for a fit whose rows of W are stored columns",
                hint="go on with the hypotheses= that the fit began with",
            )
        return np.zeros(0, np.int64)

    def rows_of(self, active: Rows, keys: Sequence[Key]) -> Rows:
        """As in ``Problem``: columns have the same number in every fit."""
        self.register(keys)
        return active

    def taken_off(self, active: Rows) -> Array:
        """As in ``Problem``."""
        return np.zeros(active.shape[0]) if self._centres is None else self._centres.of(active)

    def _places(self, iterate: Iterate, rows: Rows) -> Rows:
        return rows

    # ---- scoring ---------------------------------------------------------------------------------------------------

    def score(
        self,
        iterate: Iterate,
        candidates: Rows | None,
        strength: float,
        take: int,
        whole: bool = True,
    ) -> Score:
        """As in ``Problem``."""
        where = (candidates, self.point(iterate.active, iterate.W, iterate.intercept), self.exponential)
        count = self.n if candidates is None else candidates.shape[0]
        row_bytes = 8 * self.k * (2 if self.exponential else 1)
        shards = column_shards(count, row_bytes, self.engine.n_workers)

        def finish_args(shard: tuple[int, int]) -> tuple[Any, ...]:
            columns = np.arange(*shard) if candidates is None else candidates[shard[0] : shard[1]]
            scale = self._curvature(columns)
            return columns, iterate.active, scale, self.objective.bound(columns, strength), self.exponential, take

        if count * row_bytes <= self._driver_bytes:
            total = self._one_shard(iterate, where, shards[0])
            summaries = [summarise_shard(total, shards[0], *finish_args(shards[0]))]
        else:
            summaries = self.runner.run(
                score_shard,
                *where,
                False,
                name="score",
                shards=shards,
                finish=summarise_shard,
                finish_args=finish_args,
            )
        return joined(summaries, iterate, np.arange(self.n) if candidates is None else candidates, take)

    def _one_shard(self, iterate: Iterate, where: tuple[Rows | None, Point, bool], shard: tuple[int, int]) -> Sums:
        """Sums of all candidates; those of the null model may be known."""
        null = iterate.active.shape[0] == 0 and where[0] is None
        known = self._null.sums(iterate.intercept) if null else None
        if known is not None:
            return known
        keep = self._on_driver and self.engine.resident_partitions() is not None
        total: Sums = self.runner.run(score_shard, shard, *where, keep, name="score")
        self.columns.note(iterate, total.parts.pop("state", None))
        if null:
            self._null.keep(iterate.intercept, total, 1)
        else:
            self._null.forget()
        return total

    def ranked(self, iterate: Iterate, strength: float, take: int) -> Score:
        """As in ``Problem``: columns are always scored at the residuals themselves."""
        return self.score(iterate, None, strength, take)

    def best_rows(self, iterate: Iterate, take: int) -> Rows:
        """As in ``Problem``."""
        return np.union1d(iterate.active, self.score(iterate, None, 0.0, take).best).astype(np.int64)

    def summed(self, iterate: Iterate, finish: Callable[..., Any], *arguments: Any) -> list[Any]:
        """As in ``Problem``."""
        point = self.point(iterate.active, iterate.W, iterate.intercept)
        shards = column_shards(self.n, 8 * self.k, self.engine.n_workers)
        if self.n * 8 * self.k <= self._driver_bytes:
            total = self.runner.run(score_shard, shards[0], None, point, False, name="score")
            return [finish(total, shards[0], *arguments)]
        found: list[Any] = self.runner.run(
            score_shard, None, point, False, name="score", shards=shards, finish=finish, finish_args=lambda _: arguments
        )
        return found

    def _curvature(self, columns: Rows) -> Array:
        """One-row constants of the bound: a_j (exponential) or D_j (quadratic), docs/math.md 2."""
        if self.exponential:
            return exponential.normalisation(self.statistics.peak[columns], self.edge_constant)
        return quadratic.one_row(self.statistics.square[columns], self.objective.curvature_constant)


def _first_sums(
    runner: PassRunner, loss: Loss, labels: Sums, fit_intercept: bool, null: NullModel | None, offsets: bool
) -> Statistics:
    """The statistics of all columns; one pass, and one more where columns seem to be far from zero.

    `labels`: of ``passes.label_counts``. `null`: keeps the sums that it is given by the same pass, where its intercept
    is known before; None wants none. `offsets`: whether scores begin at offsets, on which the best intercept depends.
    """
    point = None
    if null is not None and ((loss.closed_null and not offsets) or not fit_intercept):
        b = loss.null_intercept(labels.add["mass"], labels.add["total"]) if fit_intercept else np.zeros(1)
        none = Held(np.zeros(0, np.int64), runner.token())
        point = Point(loss, none, np.zeros((0, 1)), b, runner.token())
    features = runner.run(passes.feature_statistics, None, point, name="statistics")
    if null is not None and point is not None:
        # the null model is scored for alpha_max, and by the first round
        null.keep(point.intercept, Sums(add={name: features.add[name] for name in passes.NULL_SUMS}), 2)
    far = far_columns(runner, None, features, labels.add["weight"], FAR)
    return Statistics.of(labels, features, far)
