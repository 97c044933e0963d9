"""Products of raw features: all monomials up to a degree, or of any degree.

Covers: the family ``Products``, and how its features are scaled. Does not cover: its candidates (``pool``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError
from dboost.files.documents import Document
from dboost.hypotheses import family_from_fields
from dboost.hypotheses.base import Array, Context
from dboost.hypotheses.products import product_loops
from dboost.hypotheses.products.monomials import MonomialSet, restore
from dboost.hypotheses.products.pool import ProductsPool
from dboost.hypotheses.union import Joinable
from dboost.partition import Partition, Sums

ENUMERATED = 10_000_000
"""Monomials of degree three and more that are summed one by one in every round at most, about 1e10 products for a
thousand examples. A larger class is searched: its parents alone may be too many to visit."""
_DECAY = 0.9


@dataclass(frozen=True)
class Products(Joinable):
    """All monomials of raw features, of bounded or of any degree.

    Features are scaled first, so that |x| <= 1; constant features take no part, and a feature with two values, one of
    them 0 after scaling, is not multiplied by itself. The penalty weighs the scaled monomials. ``coef_``, and what is
    printed, are weights of the raw ones as they are named: ``f1 * f2``, or ``(f1 - 2) * f2`` with ``scale="range"``.

    Parameters
    ----------
    max_degree : int or None, default None
        Largest degree. Up to 2 all products are summed in every round, whatever their number, in blocks of which only
        the best come back: time and memory go by the products that occur, those that are not zero in some example. Of
        a higher degree up to ten million are. None is every degree: a countably infinite class. It, and a larger class
        of degree three and more, is searched with a bound and certified as a whole; a rule that needs the best of it
        in every round refuses it.
    min_degree : int, default 1
        Smallest degree; 2 leaves out the raw features themselves.
    scale : {"max", "range"}, default "max"
        ``"max"`` divides by max |x| and keeps zeros. ``"range"`` maps [min, max] to [0, 1]: the tighter bound, for data
        without many zeros, because a feature whose minimum is not 0 then has a value in every row.
    decay : float in (0, 1], optional
        Scaled features are at most this large, so each further factor makes a monomial that much smaller and lets it
        enter that much later. 1 by default, and 0.9 where `max_degree` is None: without it a feature that is 1 in some
        rows has powers that never become small, and no bound ends the search.
    max_opened : int, default 200,000
        At most so many subtrees are opened in one search. A search that would need more bounds the rest by what it
        knows, and the certified gap says so.

    Examples
    --------
    >>> from dboost import BoostedClassifier, Products
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]] * 5, [0, 1, 1, 0] * 5
    >>> BoostedClassifier(hypotheses=Products(max_degree=2), alpha=0.01).fit(X, y).score(X, y)
    1.0
    """

    max_degree: int | None = None
    min_degree: int = 1
    scale: str = "max"
    decay: float | None = None
    max_opened: int = 200_000

    def __post_init__(self) -> None:
        for name, value, least in (
            ("min_degree", self.min_degree, 1),
            ("max_degree", self.min_degree if self.max_degree is None else self.max_degree, self.min_degree),
            ("max_opened", self.max_opened, 1),
        ):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise UsageError(f"Products: {name}={value!r}", hint=f"expected an integer >= {least}")
        if self.scale not in ("max", "range"):
            raise UsageError(f"Products: scale={self.scale!r}", hint='expected "max" or "range"')
        decay = self.decay
        if decay is not None and (isinstance(decay, bool) or not isinstance(decay, int | float) or not 0 < decay <= 1):
            raise UsageError(f"Products: decay={decay!r}", hint="expected a number in (0, 1], or None")

    def to_json(self) -> dict[str, Any]:
        """Name and parameters."""
        return {"family": "products"} | {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, spec: dict[str, Any]) -> Products:
        """Undo `to_json`."""
        found: Products = family_from_fields(cls, spec)
        return found

    @staticmethod
    def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> MonomialSet:
        """The monomials of a saved model."""
        return restore(spec, arrays, n_features)

    def prepare(self, context: Context) -> ProductsPool:
        """Find the scale of every feature; two passes."""
        engine, n = context.engine, context.n_features
        found = engine.map_reduce(_ranges, n, name="ranges")
        low, high = -found.peak["below"], found.peak["above"]
        between = engine.map_reduce(_between, low, high, name="between").peak["between"] > 0.0
        letters = np.flatnonzero(high > low)
        low, high, between = low[letters], high[letters], between[letters]
        nonnegative = self.scale == "range" or bool((low >= 0.0).all())
        if self.scale == "range":
            width, two_valued = high - low, ~between
        else:
            width, two_valued = np.maximum(np.abs(low), np.abs(high)), ~between & (low == 0.0)
            low = np.zeros_like(low)
        # a feature that is moved has a value in every row
        moved = low != 0.0
        more, values = np.count_nonzero(moved), float(found.add["stored"].sum())
        formed = found.add["formed"][letters] + more * found.add["stored"][letters]
        formed[moved] = values + more * context.n_rows
        decay = self.decay
        if decay is None:
            decay = _DECAY if self.max_degree is None else 1.0
        return ProductsPool(
            letters=letters,
            low=low,
            width=width / decay,
            decay=decay,
            two_valued=two_valued,
            nonnegative=nonnegative,
            min_degree=self.min_degree,
            max_degree=math.inf if self.max_degree is None else self.max_degree,
            max_opened=self.max_opened,
            enumerated=ENUMERATED,
            formed=formed.astype(np.int64),
        )


def _ranges(partition: Partition, memo: Any, n: int) -> Sums:
    """Least and greatest value of every raw column, how many values it stores, and how many there are in their rows."""
    low, high = np.empty(n), np.empty(n)
    product_loops.column_ranges(*_live(partition), low, high)
    formed = np.empty(n)
    product_loops.products_formed(partition.indptr, partition.rows, partition.n_rows, formed)
    add = {"stored": np.diff(partition.indptr).astype(np.float64), "formed": formed}
    return Sums(add=add, peak={"below": -low, "above": high})


def _between(partition: Partition, memo: Any, low: Array, high: Array) -> Sums:
    """Whether raw columns have more values than their least and greatest."""
    between = np.empty(low.shape[0])
    product_loops.values_between(*_live(partition), low, high, between)
    return Sums(peak={"between": between})


def _live(partition: Partition) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any], Array, int]:
    live = int(np.count_nonzero(partition.weight > 0.0))
    return partition.indptr, partition.rows, partition.values, partition.weight, live
