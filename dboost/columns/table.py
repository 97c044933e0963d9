"""One table with a row for each column of the data: its strength, its sign, its group, and what it is to a fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dboost.columns.given import Features, offset_columns
from dboost.columns.statistics import Statistics
from dboost.errors import DataError, UsageError

Array = NDArray[np.float64]
Int8 = NDArray[np.int8]
Int64 = NDArray[np.int64]

REACH_BITS = 100
"""Columns are used where their largest value is between 2**-100 and 2**100, or zero.

Bounds, curvatures and scores are made of squares of columns and of their products with others; steps on float32 copies
of columns multiply them by weights of the reciprocal size. Within 1e30 all of these keep their digits.
"""

# So many names are in a warning.
_NAMES_SHOWN = 5


@dataclass(frozen=True)
class ColumnTable:
    """What a fit knows of each of n columns beside its values; None stands for a field that is alike for all.

    A column is an offset of scores, or has a row in W. Such a row is free (of strength 0, in every model), left out (of
    infinite strength), or penalised.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from dboost.columns.given import PENALTY_FACTORS
    >>> asked = SimpleNamespace(
    ...     penalty_factors=PENALTY_FACTORS.read({"age": 0.0}), signs=None, column_groups=None, offset=(2,)
    ... )
    >>> table = ColumnTable.of(asked, Features(3, ["age", "price", "exposure"]), 1)
    >>> table.weight.tolist(), table.free.tolist(), table.offset.tolist()
    ([0.0, 1.0, inf], [0], [2])
    """

    n: int
    # What the strength of each row is multiplied by: the user's factor, times a power of the column's scale. (n,)
    weight: Array
    # What the user wants it to be multiplied by. (n,)
    factor: Array | None = None
    # 1 where weights are not negative, -1 where they are not positive, else 0. (n,)
    sign: Int8 | None = None
    # The number of the group, from 0 on; None where each column is penalised by itself. (n,)
    group: Int64 | None = None
    # The columns that are the offsets of scores, one for each output: their weight is one, and they have no row in W.
    offset: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    # Those that are constant, and not zero, which a standardised fit leaves out.
    constant: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def alike(cls, n: int) -> Self:
        """Columns of which nothing is said."""
        # one number for all columns, as far as memory goes
        return cls(n, np.broadcast_to(1.0, (n,)))

    @classmethod
    def of(cls, asked: Any, features: Features, k: int) -> Self:
        """What a user asked of columns of the data (``FitSettings``), for k outputs; unknown ones are a UsageError."""
        factor = sign = group = None
        offset = np.zeros(0, np.int64)
        if asked.offset is not None:
            offset = offset_columns(asked.offset, features, k)
        if asked.penalty_factors is not None:
            factor = asked.penalty_factors.of_columns(features)
            if features.n and np.isinf(np.delete(factor, offset)).all():
                raise UsageError("penalty_factors leaves every feature out", hint="give at least one a finite factor")
        if asked.signs is not None:
            sign = asked.signs.of_columns(features)
        if asked.column_groups is not None:
            group = asked.column_groups.of_columns(features)
            if not asked.column_groups.ties:
                group = None
            elif factor is not None:
                # a column without penalty is in no group that has one
                free = np.flatnonzero(factor == 0.0)
                group[free] = group.max() + 1 + np.arange(free.size)
        # bounds that bound nothing, and groups of one column each, change no bit
        found = cls.alike(features.n)
        found = replace(found, factor=factor, sign=sign if sign is not None and sign.any() else None, group=group)
        return replace(found, offset=offset).scaled(found.weight)

    def scaled(self, scale: Array) -> Self:
        """The same with rows that are penalised by this scale (n,); a column of infinite scale is left out."""
        weight = scale
        if self.factor is not None:
            with np.errstate(invalid="ignore"):
                weight = np.where(np.isinf(scale), np.inf, scale * self.factor)
        if self.offset.size:
            weight = weight.copy()
            weight[self.offset] = np.inf
        return replace(self, weight=weight)

    def standardised(self, statistics: Statistics, degree: int) -> Self:
        """The same with rows penalised by the deviation of their column, which bars constant ones."""
        deviation = statistics.deviation()
        constant = statistics.constant()
        found = self.scaled(np.where(deviation > 0.0, deviation**degree, np.inf))
        return replace(found, constant=np.setdiff1d(constant, self.offset))

    def beside_intercept(self, statistics: Statistics) -> Self:
        """The same without constant columns, which a free intercept stands for: rounding alone would let them enter."""
        constant = statistics.constant()
        if not constant.size:
            return self
        weight = self.weight.copy()
        weight[constant] = np.inf
        return replace(self, weight=weight)

    @cached_property
    def free(self) -> Int64:
        """Rows without penalty, ascending: their strength is 0 at every strength, and every model holds them."""
        if self.factor is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero((self.factor == 0.0) & (self.weight == 0.0))

    @cached_property
    def group_sizes(self) -> Array:
        """How many columns of each group may be used, at least 1: (groups,)."""
        assert self.group is not None
        used = self.candidates.astype(np.float64)
        return np.maximum(np.bincount(self.group, weights=used), 1.0)

    @property
    def charged(self) -> bool:
        """Whether the user's factors leave a column with a penalty; hypotheses, which are made later, have none."""
        return self.factor is None or bool(np.any((self.factor > 0.0) & self.candidates))

    @property
    def candidates(self) -> NDArray[np.bool_]:
        """Which columns may be used at all, (n,): not those that the user left out, and no offsets."""
        found = np.ones(self.n, np.bool_) if self.factor is None else np.isfinite(self.factor)
        found[self.offset] = False
        return found


def listed(columns: Int64, names: Sequence[str] | None) -> str:
    """The first few of some columns by name, or by number, and how many more there are."""
    shown = [repr(names[j]) if names is not None else str(j) for j in columns[:_NAMES_SHOWN].tolist()]
    more = f" and {columns.size - _NAMES_SHOWN} more" if columns.size > _NAMES_SHOWN else ""
    return ", ".join(shown) + more


def refuse_extreme_columns(peak: Array, names: Sequence[str] | None) -> None:
    """Refuse (DataError) columns whose largest size, `peak` (n,), is too large or small to be squared and summed."""
    outside = ~((peak == 0.0) | ((peak >= 2.0**-REACH_BITS) & (peak <= 2.0**REACH_BITS)))
    found = np.flatnonzero(outside)
    if not found.size:
        return
    first = int(found[0])
    size = float(peak[first])
    others = f", and {found.size - 1} other columns are like it" if found.size > 1 else ""
    raise DataError(
        f"the largest value is {size:.3g}, expected a size between {2.0**-REACH_BITS:.1e} and {2.0**REACH_BITS:.1e}: "
        f"sums of squares of others leave the range of float64{others}",
        column=str(first) if names is None else names[first],
        hint=f"divide it by {10.0 ** math.floor(math.log10(size)):.0e}, or leave it out",
    )
