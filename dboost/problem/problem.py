"""The problem of one fit: an objective, the passes that rounds and solvers may ask for, and what W has rows for.

Covers: what is the same whatever the rows of W belong to. Does not cover: stored columns (``stored``), hypotheses
(``induced``), values that need no pass (``objective``), what to do with the sums (``solvers``), or when to stop
(``totally_corrective.loop``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost import passes
from dboost.columns.statistics import Statistics
from dboost.columns.table import ColumnTable
from dboost.compiled.vectors.scaled_rows import padded
from dboost.engine.base import Engine
from dboost.hypotheses.base import Key
from dboost.hypotheses.held_by_model import Held
from dboost.losses import Loss
from dboost.losses.base import Repair
from dboost.partition import Sums
from dboost.passes import Point, projected
from dboost.penalties import Penalty
from dboost.problem.driver_columns import DriverColumns
from dboost.problem.iterate import Iterate, Score
from dboost.problem.null_model import NullModel
from dboost.problem.objective import Objective
from dboost.problem.pass_runner import PassRunner

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# It parts a number of 53 bits in two of 26 (Veltkamp), whose products are exact.
_SPLITTER = 2.0**27 + 1.0


@dataclass(frozen=True)
class ProblemSettings:
    """What a fit asks of its problem, whatever the rows of W belong to."""

    loss: str | Loss
    penalty: Penalty
    n_features: int  # Stored columns.
    n_outputs: int
    # Whether b is optimised, unpenalised; otherwise it is 0.
    fit_intercept: bool = True
    # Whether scoring uses the exponential bound (mu+, mu-) instead of the quadratic one.
    exponential: bool = False
    # Whether a row is penalised by the standard deviation of its column.
    standardize: bool = False
    # Whether the steps of the fit are taken on the driver, which then keeps the state of the examples at its models.
    on_driver: bool = False
    # Whether sums of the null model are kept until they are asked for again.
    keeps_null: bool = True
    # What was asked of the stored columns; None for nothing. The engine shows offsets beside labels
    # (``passes.offsets``).
    columns: ColumnTable | None = None


class Problem(ABC):
    """An objective and the passes over its data, at any model.

    `runner`: runs the passes.
    `objective`: what is minimised.
    `n_rows`: number of examples.
    `exponential`: as in ``ProblemSettings``.
    `columns`: active columns of all examples, for steps that are taken on the driver.
    `n`: rows that W may have, as far as they can be counted.
    `n_candidates`: the same, infinite for a class of hypotheses without end.
    `keys`: the hypotheses that rows of W stand for, in their order; stored columns have none.
    `pool`: where hypotheses come from; None where the rows of W are stored columns.
    `screens`: whether columns can be ruled out for the rest of a fit.
    `searched`: whether what may enter is more than a scoring pass looks at.
    `far`: a column with a mean of so many deviations is far from zero.
    `lower_by`, (2, k): what scores are lower by here than on the data as they were given: what labels are less, and
    minus what offsets are less. Apart, as their sum would be rounded.
    """

    n: int
    n_candidates: float
    keys: Sequence[Key] = ()
    pool: Any = None
    screens: bool
    searched: bool = False
    far: float

    def __init__(
        self,
        runner: PassRunner,
        objective: Objective,
        n_rows: int,
        settings: ProblemSettings,
        null: NullModel,
    ) -> None:
        self.runner = runner
        self.objective = objective
        self.n_rows = n_rows
        self.exponential = settings.exponential
        self.columns = DriverColumns(runner.engine)
        self._on_driver = settings.on_driver
        self._null = null
        self._held: Held | None = None
        self.lower_by = np.zeros((2, objective.k))

    # ---- parts of the objective that everybody asks for ------------------------------------------------------------

    @property
    def loss(self) -> Loss:
        """As in ``Objective``."""
        return self.objective.loss

    @property
    def penalty(self) -> Penalty:
        """As in ``Objective``."""
        return self.objective.penalty

    @property
    def k(self) -> int:
        """As in ``Objective``."""
        return self.objective.k

    @property
    def fit_intercept(self) -> bool:
        """As in ``Objective``."""
        return self.objective.fit_intercept

    @property
    def statistics(self) -> Statistics:
        """As in ``Objective``."""
        return self.objective.statistics

    @property
    def edge_constant(self) -> float:
        """The constant c of the exponential bound, for scores.

        A loss without the bound is scored in its form only by a system that ranks hypotheses by |G| / max |h|, whatever
        the constant is.
        """
        return self.loss.template_constant or 1.0

    @property
    def engine(self) -> Engine:
        """Where the passes run."""
        return self.runner.engine

    @property
    def passes(self) -> int:
        """Passes over the data done."""
        return self.runner.count

    @contextmanager
    def other_loss(self, loss: Loss) -> Iterator[None]:
        """Have another loss of the same labels meanwhile; what is remembered of the own one's sums is forgotten."""
        own, null = self.objective, self._null
        self.objective, self._null = replace(own, loss=loss, null_loss=math.inf), NullModel(False)
        self.columns.forget_state()
        try:
            yield
        finally:
            self.objective = replace(self.objective, loss=own.loss, null_loss=own.null_loss)
            self._null = null
            self._null.forget()
            self.columns.forget_state()

    # ---- what the rows of W belong to ------------------------------------------------------------------------------

    @abstractmethod
    def columns_of(self, rows: Rows) -> Held:
        """The columns of some rows of W that the model need not hold."""

    @abstractmethod
    def register(self, keys: Sequence[Key], pool: Any = None) -> Rows:
        """Rows of W for hypotheses; new ones cost a pass for their statistics.

        `pool`: where they come from, if that is more than what was known before: it takes the place of `pool`. Raises
        UsageError where the rows of W are stored columns.
        """

    @abstractmethod
    def rows_of(self, active: Rows, keys: Sequence[Key]) -> Rows:
        """Rows of W here for the rows `active` of another fit, whose hypotheses were `keys`."""

    @abstractmethod
    def taken_off(self, active: Rows) -> Array:
        """What is taken off the columns of some rows of W here, shape (a,); 0 for nothing."""

    def moved(self, active: Rows) -> bool:
        """Whether the intercept of a model with these rows is another one here than on the data as they were given."""
        return bool(self.lower_by.any() or self.taken_off(active).any())

    def as_given(self, active: Rows, W: Array, intercept: Array) -> Array:
        """The intercept of a model of this problem on the data as they were given, rounded once."""
        W, centres = self._centred(active, W)
        given = zip(W.T, intercept, self.lower_by.T, strict=True)
        return np.array([exact_dot(-centres, w, b, *less) for w, b, less in given])

    def as_seen(self, active: Rows, W: Array, intercept: Array, common: float = 0.0) -> Array:
        """The intercept here of a model on the data as they were given, less a number, rounded once."""
        W, centres = self._centred(active, W)
        given = zip(W.T, intercept, -self.lower_by.T, strict=True)
        return np.array([exact_dot(centres, w, b, *less, -common) for w, b, less in given])

    def _centred(self, active: Rows, W: Array) -> tuple[Array, Array]:
        """The rows of W whose columns something is taken off, and what that is: an exact sum of zeros takes long."""
        centres = self.taken_off(active)
        held = centres != 0.0
        return W[held], centres[held]

    def held(self, active: Rows) -> Held:
        """The columns of some rows of W; the same object while the rows stay the same."""
        if self._held is None or not np.array_equal(self._held.columns, active):
            self._held = self.columns_of(active)
        return self._held

    def point(self, active: Rows, W: Array, intercept: Array) -> Point:
        """Name the model (active rows, W, b) for passes."""
        return Point(self.loss, self.held(active), W, intercept, self.runner.token())

    # ---- every candidate -------------------------------------------------------------------------------------------

    @abstractmethod
    def score(
        self,
        iterate: Iterate,
        candidates: Rows | None,
        strength: float,
        take: int,
        whole: bool = True,
    ) -> Score:
        """SCORE pass: everything that may enter, and the sums of the active rows.

        `iterate`: the model; its sums are replaced.
        `candidates`: columns that may be needed, ascending; must contain the active rows. None: all.
        `strength`: strength of the penalty, for the scores.
        `take`: how many of the best violating columns to bring back with their sums.
        `whole`: whether a class of hypotheses that is searched is searched now; stored columns always count whole.
        """

    @abstractmethod
    def ranked(self, iterate: Iterate, strength: float, take: int) -> Score:
        """`score` over everything, the best those by the residuals themselves.

        Where hypotheses are scored at repaired residuals, for a certificate, those would rank other ones first. The
        size is the one that certifies.
        """

    @abstractmethod
    def best_rows(self, iterate: Iterate, take: int) -> Rows:
        """Rows of which `take` score best of all at a model without a penalty, those that it holds among the others.

        `iterate`: the model; only its rows, W and intercept count. No sums come back.
        """

    @abstractmethod
    def summed(self, iterate: Iterate, finish: Callable[..., Any], *arguments: Any) -> list[Any]:
        """G of every candidate at a model, for rules of choice that are not the penalty's.

        `iterate`: the model; only its rows, W and intercept count. `finish`: reduces the sums of one shard where they
        are formed: ``total.add["G"]``. Returns what `finish` made of each shard, in the order of the candidates.
        """

    # ---- one model -------------------------------------------------------------------------------------------------

    def own_pass(self, leaf: Any, iterate: Iterate, *args: Any, name: str) -> Sums:
        """A pass of the caller's own at a model: leaf(partition, memo, point, *args) -> Sums (``PassRunner.run``)."""
        found: Sums = self.runner.run(leaf, self.point(iterate.active, iterate.W, iterate.intercept), *args, name=name)
        return found

    def null(self) -> Iterate:
        """The model without features, its intercept optimal; its sums need not be filled in."""
        return self._null.iterate(self.objective, self._sums_of_intercept)

    def _sums_of_intercept(self, b: Array) -> tuple[float, Array, Array]:
        """The loss of the model without features at an intercept, the column sums of U (k,), the Hessian (k, k)."""
        none = np.zeros((0, self.k))
        sums = self.runner.run(passes.intercept_sums, self.point(np.zeros(0, np.int64), none, b), name="intercept").add
        return float(sums["loss"]), sums["bias"], sums["H"]

    def evaluate(self, active: Rows, W: Array, intercept: Array) -> Iterate:
        """L, G_A and the bias sums at a model."""
        sums = self.runner.run(passes.active_gradient, self.point(active, W, intercept), name="gradient")
        return Iterate(active, W, intercept, sums.add["loss"], np.ascontiguousarray(sums.add["G"]), sums.add["bias"])

    def rows_sums(self, iterate: Iterate, rows: Rows) -> Sums:
        """G (or mu+ and mu-) of some rows of W, held or not, and of the intercept at a model, and the loss."""
        point = self.point(iterate.active, iterate.W, iterate.intercept)
        found: Sums = self.runner.run(
            passes.score, self._places(iterate, rows), point, self.exponential, True, name="rows"
        )
        return found

    @abstractmethod
    def _places(self, iterate: Iterate, rows: Rows) -> Rows:
        """Where the columns of some rows of W lie for a pass at a model."""

    def losses_along(self, iterate: Iterate, D: Array, d: Array, steps: Array) -> Array:
        """GRID pass: L at (W + t D, b + t d) for every t in `steps`."""
        found: Array = self.own_pass(passes.losses_along, iterate, padded(D), d, steps, name="grid").add["loss"]
        return found

    def curvature_at(self, iterate: Iterate) -> Callable[[Array, Array], tuple[Array, Array]]:
        """A function (V, v) -> (X_A'H(X_A V + 1 v'), 1'H(...)), one pass a call, the Hessian fixed at the model."""
        return self._products_at(self.point(iterate.active, iterate.W, iterate.intercept))

    def diagonal_and_products(self, iterate: Iterate) -> tuple[Array, Callable[[Array, Array], tuple[Array, Array]]]:
        """The diagonal of the curvature (a or a + 1, k), the intercept last, and `curvature_at`; of one Hessian."""
        point = self.point(iterate.active, iterate.W, iterate.intercept)
        sums = self.runner.run(passes.curvature_diagonal, point, self.fit_intercept, name="diagonal")
        return sums.add["diagonal"], self._products_at(point)

    def _products_at(self, point: Point) -> Callable[[Array, Array], tuple[Array, Array]]:
        def product(V: Array, v: Array) -> tuple[Array, Array]:
            # in the precision that products have, once for all partitions
            sums = self.runner.run(passes.hessian_product, point, padded(V, np.float32), v, name="hessian")
            return sums.add["out"].astype(np.float64), sums.add["bias"]

        return product

    def curvature_among(self, iterate: Iterate, order: Rows, every: int = 1) -> Array:
        """The Hessian of L in the entries of some rows held, in an order of places, and of the intercept last.

        From one of `every` so many examples, scaled up.
        """
        place = np.full(iterate.active.shape[0], -1)
        place[order] = np.arange(order.shape[0])
        found = self.own_pass(projected.free_curvature, iterate, place, self.fit_intercept, every, name="curvature")
        H: Array = found.add["H"]
        return H

    def dual_value(self, iterate: Iterate, repair: Repair, scale: float) -> float:
        """DUAL pass: value of the repaired residuals of a model, scaled (``loss_rows.dual_row``)."""
        if self._on_driver:
            self.runner.count_on_driver()
            return self.columns.dual_value(iterate, self.held, self.loss, repair, scale)
        arguments = (scale * repair.keep, repair.mix, repair.shift, repair.prior)
        return float(self.own_pass(passes.dual_value, iterate, *arguments, name="dual").add["dual"])


def exact_dot(a: Array, b: Array, *terms: float) -> float:
    """sum_j a_j b_j + the terms, rounded once; a and b are (n,), of products that stay within the range of float64."""
    high_a, low_a = _halves(a)
    high_b, low_b = _halves(b)
    product = a * b
    # what the product is rounded by (Dekel), exactly
    error = low_a * low_b - (((product - high_a * high_b) - low_a * high_b) - high_a * low_b)
    return math.fsum([*product.tolist(), *error.tolist(), *terms])


def _halves(x: Array) -> tuple[Array, Array]:
    big = _SPLITTER * x
    high = big - (big - x)
    return high, x - high
