"""The problem of one fit: data behind an engine, loss, penalty, and the passes a round may ask for.

Covers: P(W, b) = L(W, b) + sum_j lam_j omega(W_j), the statistics every bound needs, and one method per kind of pass.
Does not cover: what to do with the sums (``solvers.newton.step``, ``row_updates``), or when to stop
(``totally_corrective.loop``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost import passes
from dboost.bounds import exponential, quadratic
from dboost.engine.base import Engine
from dboost.errors import DataError
from dboost.hypotheses.held_by_model import Held
from dboost.losses import Loss, get_loss
from dboost.losses.base import Repair
from dboost.partition import Partition, Sums
from dboost.passes import Point, examples
from dboost.passes.centring import Centres
from dboost.penalties import Penalty
from dboost.problem.driver_columns import DriverColumns
from dboost.problem.iterate import Iterate, Score
from dboost.problem.null_intercept import best_intercept
from dboost.problem.shards import (
    ONE_SHARD_BYTES,
    column_shards,
    joined,
    repaired_shard,
    score_shard,
    size_of_shard,
    summarise_shard,
)
from dboost.problem.statistics import FAR, Far, Statistics, row_weights, suspects

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Residuals of 1e-12 of the labels are rounding: the square of it, as the loss of W = 0 is their square or more.
_RESOLUTION = 1e-24
# Sums this small go to the driver whole: reducing them on a worker costs more in turns through a scheduler.
_DRIVER_BYTES = 4_000_000


class Problem:
    """Passes over the data at a given model, counted; the rows of W are the stored columns.

    Parameters
    ----------
    engine : Engine
        Where partitions are mapped and reduced; its plan is set.
    loss : str or Loss
        The loss, or its name.
    penalty : Penalty
        The penalty.
    n_features, n_outputs : int
        Shape (n, k) of W.
    fit_intercept : bool
        Whether b is optimised, unpenalised; otherwise it is 0.
    run_id : str
        Makes the tokens of this fit unique in a process.
    exponential : bool
        Whether scoring uses the exponential bound (mu+, mu-) instead of the quadratic one.
    standardize : bool
        Whether a row is penalised by the standard deviation of its column.
    centres : Centres or None
        What the engine takes off the stored columns: the intercept here is that of columns less their centres.
    on_driver : bool
        Whether the steps of the fit are taken on the driver, which then keeps the state of the examples at its models.
    keeps_null : bool
        Whether sums of the null model are kept until they are asked for again.
    """

    # a mean of so many deviations is far from zero
    far = FAR
    # whether columns can be ruled out for the rest of a fit
    screens = True
    # whether what may enter is more than a scoring pass looks at
    searched = False

    def __init__(
        self,
        engine: Engine,
        loss: str | Loss,
        penalty: Penalty,
        n_features: int,
        n_outputs: int,
        fit_intercept: bool,
        run_id: str,
        exponential: bool = False,
        standardize: bool = False,
        centres: Centres | None = None,
        on_driver: bool = False,
        keeps_null: bool = True,
    ) -> None:
        self.engine = engine
        self._centres = centres
        self.loss: Loss = get_loss(loss)
        self.penalty = penalty
        self.n = n_features
        self.n_candidates: float = n_features
        # registered hypotheses; stored columns have none
        self.keys: list[Any] = []
        self.k = n_outputs
        self.fit_intercept = fit_intercept
        self.exponential = exponential
        self.passes = 0
        self._run = run_id
        self._counter = 0
        self._held: Held | None = None
        # active columns of all examples, for steps that are taken on the driver
        self.columns = DriverColumns(engine)
        self._on_driver = on_driver
        self._keeps_null = keeps_null
        self._null_intercept: Array | None = None
        # of the null model by its intercept, and how often they will be asked for
        self._null_sums: dict[bytes | None, tuple[Sums, int]] = {}
        # where the partitions lie in this process, the sums of one shard are formed in it anyway
        self._driver_bytes = _DRIVER_BYTES if engine.at_hand() is None else ONE_SHARD_BYTES
        self._seconds_marked = replace(engine.seconds)
        self.statistics = self._statistics()
        self.standardize = standardize
        self.lam_weight = row_weights(self.statistics, standardize, penalty.degree)

    # ---- names of points -------------------------------------------------------------------------------------------

    def _token(self) -> str:
        self._counter += 1
        return f"{self._run}:{self._counter}"

    def held(self, active: Rows) -> Held:
        """The columns of some rows of W; the same object while the rows stay the same."""
        if self._held is None or not np.array_equal(self._held.columns, active):
            self._held = self.columns_of(active)
        return self._held

    def columns_of(self, rows: Rows) -> Held:
        """The columns of some rows of W that the model need not hold."""
        return Held(rows, self._token())

    def point(self, active: Rows, W: Array, intercept: Array) -> Point:
        """Name the model (active rows, W, b) for passes."""
        return Point(self.loss, self.held(active), W, intercept, self._token())

    # ---- passes ----------------------------------------------------------------------------------------------------

    def seconds_of_passes(self) -> tuple[float, float, float]:
        """Seconds of scheduler, network and kernels in the passes since the last call."""
        now, before = self.engine.seconds, self._seconds_marked
        self._seconds_marked = replace(now)
        return now.scheduler - before.scheduler, now.network - before.network, now.kernels - before.kernels

    def _pass(self, leaf: Any, *args: Any, name: str, **kwargs: Any) -> Any:
        self.passes += 1
        total = self.engine.map_reduce(leaf, *args, name=name, **kwargs)
        return total.plain() if isinstance(total, Sums) else total

    def own_pass(self, leaf: Any, at: Iterate, *args: Any, name: str, plain: bool = True) -> Sums:
        """A pass of a system's own at a model: leaf(partition, memo, point, *args) -> Sums.

        Parameters
        ----------
        plain : bool
            Whether sums come in units of one, where such numbers can hold them; otherwise in those of their `shift`.
        """
        self.passes += 1
        found: Sums = self.engine.map_reduce(leaf, self.point(at.active, at.W, at.intercept), *args, name=name)
        return found.plain() if plain else found

    def _statistics(self) -> Statistics:
        """Sums that never change; of one output, those of the null model come from the same pass."""
        labels = self.engine.map_reduce(passes.label_counts, self.loss, self.k, name="labels")
        self.n_rows = int(labels.add["rows"])
        why = self.loss.unbounded(labels.add["mass"], labels.add["total"]) if self.fit_intercept else ""
        if why:
            raise DataError(why, hint="check the label column, or set fit_intercept=False")
        null, closed = None, self.loss.closed_null or not self.fit_intercept
        kept = self._keeps_null and self.screens
        if self.k == 1 and closed and kept and not (self.exponential or self.loss.shifted):
            b = self.loss.null_intercept(labels.add["mass"], labels.add["total"]) if self.fit_intercept else np.zeros(1)
            null = self.point(np.zeros(0, np.int64), np.zeros((0, 1)), b)
        features = self._pass(passes.feature_statistics, None, null, name="statistics")
        if null is not None:
            self._null_sums = {b.tobytes(): (Sums(add={name: features.add[name] for name in passes.NULL_SUMS}), 2)}
        # hypotheses are looked at when they are registered
        far = self._far(None, features, labels.add["weight"]) if self.screens else None
        return Statistics.of(labels, features, far)

    def _far(self, held: Held | None, sums: Sums, weight: float) -> Far | None:
        """Those of the stored columns (None: all), or of the hypotheses held, that are far from zero.

        Parameters
        ----------
        held : Held or None
        sums : Sums
            What ``passes.feature_statistics`` found of them.
        weight : float
            Sum of the example weights.
        """
        total = sums.add["total"]
        chosen = suspects(total, sums.add["square"], weight, self.far)
        if not chosen.size:
            return None
        some = Held(chosen, self._token()) if held is None else held.some(chosen, self._token())
        about = total[chosen] / weight
        return Far.of(chosen, about, self._pass(passes.moments_about, some, about, name="moments"), weight)

    def offset(self, active: Rows, W: Array) -> Array:
        """What the intercept of a model is larger by here than on the columns as they were given, shape (k,)."""
        return np.zeros(self.k) if self._centres is None else self._centres.offset(active, W)

    def null(self) -> Iterate:
        """The model without features, its intercept optimal; the sums are not filled in."""
        if self._null_intercept is None:
            self._null_intercept = np.zeros(self.k)
            if self.fit_intercept:
                start = self.loss.null_intercept(self.statistics.mass, self.statistics.total)
                if not self.loss.closed_null:
                    start = best_intercept(self._slope_of_intercept, start)
                self._null_intercept = start
        intercept = self._null_intercept.copy()
        none = np.zeros((0, self.k))
        return Iterate(np.zeros(0, np.int64), none, intercept, np.nan, none, np.zeros(self.k))

    def _slope_of_intercept(self, b: Array) -> tuple[Array, Array]:
        """The column sums of U of the model without features at an intercept, and minus their slope, both (k,)."""
        none = np.zeros((0, self.k))
        at = self.evaluate(np.zeros(0, np.int64), none, b)
        return at.bias, self.curvature_at(at)(none, np.ones(self.k))[1]

    def score(
        self,
        at: Iterate,
        candidates: Rows | None,
        strength: float,
        take: int,
        whole: bool = True,
        rounding: float = 0.0,
    ) -> Score:
        """SCORE pass: every candidate column (None: all) and the sums of the active rows.

        Parameters
        ----------
        at : Iterate
            The model; its sums are replaced.
        candidates : int64 array or None
            Columns that may be needed, ascending; must contain the active rows.
        strength : float
            Strength of the penalty, for the scores.
        take : int
            How many of the best violating columns to bring back with their sums.
        whole : bool
            Whether a class of hypotheses that is searched is searched now; stored columns always count whole.
        rounding : float
            What sums may be off by, so that residuals may be rounded to float32 (``Rounding.of_column``); 0: exact.
        """
        where = (candidates, self.point(at.active, at.W, at.intercept), self.exponential)
        count = self.n if candidates is None else candidates.shape[0]
        row_bytes = 8 * self.k * (2 if self.exponential else 1)
        shards = column_shards(count, row_bytes, self.engine.n_workers)

        def finish_args(shard: tuple[int, int]) -> tuple[Any, ...]:
            columns = np.arange(*shard) if candidates is None else candidates[shard[0] : shard[1]]
            scale = self._curvature(columns)
            weights = self.lam_weight[columns]
            # a column that is left out stays out where there is no penalty either
            lam = strength * weights if strength > 0.0 else np.where(np.isinf(weights), np.inf, 0.0)
            return columns, at.active, lam, scale, self.penalty, self.exponential, take

        if count * row_bytes <= self._driver_bytes:
            null = at.intercept.tobytes() if at.active.shape[0] == 0 and candidates is None else None
            # the first round scores the null model again, at a strength that its first pass has told: kept until then
            total, left = self._null_sums.pop(null, (None, 2))
            if total is None:
                keep = self._on_driver and self.engine.at_hand() is not None
                total = self._pass(score_shard, shards[0], *where, keep, rounding > 0.0, name="score")
                self.columns.note(at, total.parts.pop("state", None))
            again = self._keeps_null and null is not None and left > 1
            self._null_sums = {null: (total, left - 1)} if again else {}
            summaries = [summarise_shard(total, shards[0], *finish_args(shards[0]))]
        else:
            summaries = self._pass(
                score_shard,
                *where,
                False,
                rounding > 0.0,
                name="score",
                shards=shards,
                finish=summarise_shard,
                finish_args=finish_args,
            )
        return joined(summaries, at, np.arange(self.n) if candidates is None else candidates, take, rounding)

    def forget_null(self) -> None:
        """Keep sums of the null model no longer: the fit begins elsewhere."""
        self._null_sums = {}

    def summed(self, at: Iterate, finish: Callable[..., Any], *arguments: Any) -> list[Any]:
        """G of every candidate at a model, for rules of choice that are not the penalty's.

        Parameters
        ----------
        at : Iterate
            The model; only its rows, W and intercept count.
        finish : function (total, shard, *arguments)
            Reduces the sums of one shard where they are formed: ``total.add["G"]``.

        Returns
        -------
        list
            What `finish` made of each shard, in the order of the columns.
        """
        point = self.point(at.active, at.W, at.intercept)
        shards = column_shards(self.n, 8 * self.k, self.engine.n_workers)
        if self.n * 8 * self.k <= self._driver_bytes:
            total = self._pass(score_shard, shards[0], None, point, False, name="score")
            return [finish(total, shards[0], *arguments)]
        found: list[Any] = self._pass(
            score_shard, None, point, False, name="score", shards=shards, finish=finish, finish_args=lambda _: arguments
        )
        return found

    def _curvature(self, columns: Rows) -> Array:
        """One-row constants of the bound: a_j (exponential) or D_j (quadratic), docs/math.md 2."""
        if self.exponential:
            return exponential.one_row(self.statistics.peak[columns], self.loss.template_constant)
        return quadratic.one_row(self.statistics.square[columns], self.curvature_constant)

    @property
    def curvature_constant(self) -> float:
        """kappa of the quadratic bound; 1 where the loss has none, and rules that ask for no bound see sum s x**2."""
        return self.loss.kappa if math.isfinite(self.loss.kappa) else 1.0

    def evaluate(self, active: Rows, W: Array, intercept: Array) -> Iterate:
        """L, G_A and the bias sums at a model."""
        sums = self._pass(passes.active_gradient, self.point(active, W, intercept), name="gradient")
        return Iterate(active, W, intercept, sums.add["loss"], sums.add["G"], sums.add["bias"], sums.shift)

    def intercept_sums(self, active: Rows, W: Array, intercept: Array) -> tuple[float, Array, Array]:
        """L, the bias sums (k,) and the Hessian of the intercept (k, k) at a model; one pass."""
        sums = self._pass(passes.intercept_sums, self.point(active, W, intercept), name="intercept")
        return sums.add["loss"], sums.add["bias"], sums.add["H"]

    def rows_sums(self, at: Iterate, rows: Rows) -> Sums:
        """G (or mu+ and mu-) of the columns `rows` and of the intercept at a model, and the loss."""
        point = self.point(at.active, at.W, at.intercept)
        found: Sums = self._pass(passes.score, rows, point, self.exponential, True, name="rows")
        return found

    def repair(self, at: Iterate) -> Repair:
        """What makes the residuals at a model feasible for the intercept; nothing where there is none."""
        if not self.fit_intercept:
            return Repair.nothing(self.k)
        return self.loss.repair(self.statistics.mass, self.statistics.total, at.bias)

    def repaired_size(self, at: Iterate, candidates: Rows, repair: Repair) -> float:
        """``penalty.dual_size`` of the candidate columns at the repaired residuals of a model, by a pass of its own."""
        point = self.point(at.active, at.W, at.intercept)
        sizes = self._pass(
            repaired_shard,
            candidates,
            point,
            (repair.keep, repair.mix, repair.shift, repair.prior),
            name="repaired",
            shards=column_shards(candidates.shape[0], 8 * self.k),
            finish=size_of_shard,
            finish_args=lambda shard: (self.penalty, self.lam_weight[candidates[shard[0] : shard[1]]]),
        )
        return self.penalty.join_sizes(sizes)

    def losses_along(self, at: Iterate, D: Array, d: Array, steps: Array) -> Array:
        """GRID pass: L at (W + t D, b + t d) for every t in `steps`."""
        point = self.point(at.active, at.W, at.intercept)
        sums = self._pass(passes.losses_along, point, D, d, steps, name="grid")
        found: Array = sums.add["loss"]
        return found

    def curvature_at(self, at: Iterate) -> Callable[[Array, Array], tuple[Array, Array]]:
        """A function (V, v) -> (X_A'H(X_A V + 1 v'), 1'H(...)), one pass a call, the Hessian fixed at the model."""
        point = self.point(at.active, at.W, at.intercept)

        def product(V: Array, v: Array) -> tuple[Array, Array]:
            sums = self._pass(passes.hessian_product, point, V, v, name="hessian")
            return sums.add["out"], sums.add["bias"]

        return product

    def curvature_diagonal(self, at: Iterate) -> Array:
        """Diagonal of the curvature of the active rows over all examples, the intercept last; shape (a or a + 1, k)."""
        point = self.point(at.active, at.W, at.intercept)
        sums = self._pass(passes.curvature_diagonal, point, self.fit_intercept, name="diagonal")
        found: Array = sums.add["diagonal"]
        return found

    def dual_value(self, at: Iterate, repair: Repair, scale: float) -> float:
        """DUAL pass: value of the repaired residuals of a model, scaled (``loss_rows.dual_row``)."""
        if self._on_driver:
            self.passes += 1
            return self.columns.dual_value(at, self.held, self.loss, repair, scale)
        point = self.point(at.active, at.W, at.intercept)
        arguments = (scale * repair.keep, repair.mix, repair.shift, repair.prior)
        sums = self._pass(passes.dual_value, point, *arguments, name="dual")
        return float(sums.add["dual"])

    def template_sums(self, active: Rows) -> tuple[Array, Array]:
        """Per active column and the intercept: max of rho_i, and sum_i s_i |x_ij| rho_i."""
        extra = 1.0 if self.fit_intercept else 0.0
        sums = self._pass(passes.template_sums, self.held(active), extra, name="template")
        return sums.peak["peak"], sums.add["diagonal"]

    def gram(self, active: Rows) -> Array:
        """X_A' diag(s) X_A with the intercept last, symmetric."""
        extra = 1.0 if self.fit_intercept else 0.0
        upper = self._pass(passes.gram, self.held(active), extra, name="gram").add["gram"]
        found: Array = upper + np.triu(upper, 1).T
        return found

    def sample(self, active: Rows, share: float, seed: int) -> list[Any]:
        """Rows of X_A, labels and weights of a random share of the examples, in partition order."""
        sums = self._pass(examples.sample_rows, self.held(active), share, seed, name="sample")
        found: list[Any] = sums.parts["rows"]
        return found

    def sampled_partitions(self, share: Array, seed: int) -> list[Partition]:
        """Random examples of every partition, a share of each class or of all, weighted to stand for the others."""
        found: list[Partition] = self._pass(examples.sampled_partition, share, seed, name="begin").parts["found"]
        return [part for part in found if part.n_rows]

    # ---- the intercept as one more row -----------------------------------------------------------------------------

    def with_intercept(self, at: Iterate, lam: float) -> tuple[Array, Array, Array]:
        """G, W and lam_j of a model, with the intercept (lam_j = 0) as their last row where there is one."""
        strength = lam * self.lam_weight[at.active]
        if not self.fit_intercept:
            return at.G, at.W, strength
        return np.vstack([at.G, at.bias]), np.vstack([at.W, at.intercept]), np.append(strength, 0.0)

    def split_intercept(self, D: Array) -> tuple[Array, Array]:
        """Rows of W and intercept of an array that `with_intercept` shaped."""
        if self.fit_intercept:
            return D[:-1], D[-1]
        return D, np.zeros(self.k)

    # ---- values ----------------------------------------------------------------------------------------------------

    def penalty_value(self, active: Rows, W: Array, lam: float) -> float:
        """sum_j lam_j omega(W_j), or the penalty of all rows together."""
        return self.penalty.total(W, lam * self.lam_weight[active])

    @property
    def resolution(self) -> float:
        """The objective below which everything is rounding: relative gaps are taken to at least this."""
        return max(_RESOLUTION * self.statistics.at_zero, float(np.finfo(float).tiny))

    def objective(self, at: Iterate, lam: float) -> float:
        """P(W, b) in the sum form; inf where it is too large for a number."""
        loss = at.loss if at.shift == 0.0 else at.loss * math.exp(min(at.shift, 700.0))
        if at.shift > 700.0:
            loss = math.inf
        return loss + self.penalty_value(at.active, at.W, lam)
