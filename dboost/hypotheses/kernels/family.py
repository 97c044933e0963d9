"""Gaussian kernels of rows as hypotheses: h_s(x) = exp(-gamma ||x - x_s||**2) for the rows s of a support set.

Covers: ``Kernels`` (what a user asks for) and ``KernelPool`` (the candidates on one data set). Source: Duchi & Singer
2009, section 6; docs/math.md 7 (F).
Does not cover: the perceptron (``perceptron``), random rows and the median (``drawn``), distances (``centres``), or the
kernels that a model holds (``kernel_set``).

A kernel with 2,766 centres is not written into the data: a partition computes its block of it from the raw features,
and remembers that block between passes where all of them fit half of what the process may remember.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dboost.errors import DataError, UsageError, without_values
from dboost.files.documents import Document
from dboost.hypotheses import drawn
from dboost.hypotheses.base import Array, Block, Chosen, Context, Key, Pool
from dboost.hypotheses.kernels import kernel_loops, perceptron
from dboost.hypotheses.kernels.centres import Centres, by_row, kernel_block, squares_of
from dboost.hypotheses.kernels.in_model import FAMILY, INPUTS, KernelSet, kernel_columns, restore, words_of
from dboost.hypotheses.kernels.kernel_loops import TILE
from dboost.hypotheses.union import Joinable
from dboost.partition import Partition, Sums

PERCEPTRONS = ("perceptron", "perceptron-union")


@dataclass(frozen=True, eq=False)
class Kernels(Joinable):
    """Kernels K(x_s, .) of the rows s in a support set, as hypotheses.

    Parameters
    ----------
    support : {"perceptron", "perceptron-union"}, int, or array of shape (s, n_features)
        The rows that kernels are centred on. ``"perceptron"``: the mistakes of one pass of the kernel perceptron over
        the rows in their order, the same for any partitioning. ``"perceptron-union"``: the mistakes of one perceptron
        per partition; all partitions at once, and more rows. An integer: that many rows at random. An array or SciPy
        sparse matrix: the centres themselves.
    gamma : "median" or float
        ``"median"``: 1 / median of the squared distances among 500 rows at random. Duchi & Singer print 1/2, which on
        unscaled pixels makes every kernel zero but at its own centre.
    input : {"raw", "cosine"}
        Whether distances are between rows as they are, or scaled to length one.
    max_support : int, optional
        With a perceptron: rows kept at most.

    Raises
    ------
    UsageError
        When a parameter has no meaning. A perceptron needs classes: with regression it is refused when the data is
        seen.

    Examples
    --------
    >>> Kernels(support=100, gamma=0.5).to_json()
    {'family': 'kernels', 'support': 100, 'gamma': 0.5, 'input': 'raw', 'max_support': None}
    """

    support: Any = "perceptron"
    gamma: Any = "median"
    input: str = "raw"
    max_support: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.support, str):
            if self.support not in PERCEPTRONS:
                raise UsageError(
                    f"support={self.support!r}", hint=f"use one of {', '.join(PERCEPTRONS)}, an integer, or an array"
                )
        elif isinstance(self.support, int | np.integer) and not isinstance(self.support, bool):
            if self.support < 1:
                raise UsageError(f"support={self.support}", hint="expected at least one row")
        else:
            object.__setattr__(self, "support", _given(self.support))
        if self.gamma != "median" and not _is_positive(self.gamma):
            raise UsageError(f"gamma={self.gamma!r}", hint="expected 'median' or a positive number")
        if self.input not in INPUTS:
            raise UsageError(f"input={self.input!r}", hint=f"use one of {', '.join(INPUTS)}")
        if self.max_support is not None:
            if not isinstance(self.max_support, int | np.integer) or isinstance(self.max_support, bool):
                raise UsageError(f"max_support={self.max_support!r}", hint="expected an integer, or None")
            if not isinstance(self.support, str) or self.max_support < 1:
                raise UsageError(
                    f"max_support={self.max_support} with support={_shown(self.support)!r}",
                    hint="it is a positive limit for a perceptron; rows at random and given centres have their number",
                )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernels) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(repr(self.to_json()))

    def to_json(self) -> dict[str, Any]:
        """The parameters; given centres as lists, by row."""
        return {
            "family": FAMILY,
            "support": _shown(self.support),
            "gamma": self.gamma if isinstance(self.gamma, str) else float(self.gamma),
            "input": self.input,
            "max_support": None if self.max_support is None else int(self.max_support),
        }

    @classmethod
    def from_json(cls, spec: dict[str, Any]) -> Kernels:
        """Undo `to_json`."""
        known = ("support", "gamma", "input", "max_support")
        odd = sorted(set(spec) - {"family", *known})
        if odd:
            raise UsageError(
                f"hypotheses of family {FAMILY!r} have no parameter {odd[0]!r}", hint=f"it takes {', '.join(known)}"
            )
        given = {name: spec[name] for name in known if name in spec}
        if isinstance(given.get("support"), dict):
            given["support"] = _read(given["support"])
        return cls(**given)

    @staticmethod
    def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> KernelSet:
        """The kernels of a saved model; see ``kernel_set.restore``."""
        return restore(spec, arrays, n_features)

    def prepare(self, context: Context) -> Pool:
        """Find gamma and the support set.

        Raises
        ------
        DataError, UsageError
            When there are no rows, fewer than asked for, other columns than the centres have, no scale for gamma, or
            labels that a perceptron cannot use.
        """
        if context.n_rows < 1:
            raise DataError("kernels are centred on rows, and the data has none")
        cosine = self.input == "cosine"
        gamma = drawn.median_gamma(context, cosine) if self.gamma == "median" else float(self.gamma)
        return KernelPool(
            centres=self._centres(context, gamma, cosine),
            gamma=gamma,
            cosine=cosine,
            given=not isinstance(self.support, str | int | np.integer),
            n_features=context.n_features,
            rows_per_worker=-(-context.n_rows // max(1, context.engine.n_workers)),
        )

    def _centres(self, context: Context, gamma: float, cosine: bool) -> Centres:
        if isinstance(self.support, str):
            limit = perceptron.NO_LIMIT if self.max_support is None else int(self.max_support)
            rule = perceptron.Rule(gamma, cosine, context.n_outputs, limit)
            if self.support == "perceptron":
                return perceptron.sequential_support(context, rule)
            return perceptron.united_support(context, rule)
        if isinstance(self.support, int | np.integer):
            if self.support > context.n_rows:
                raise UsageError(
                    f"support={self.support} rows at random, and the data has {context.n_rows}", hint="ask for fewer"
                )
            return drawn.draw(context, int(self.support), purpose=2)
        rows = self.support
        if rows.shape[1] != context.n_features:
            raise DataError(f"the centres have {rows.shape[1]} features, the data has {context.n_features}")
        numbers = np.arange(rows.shape[0], dtype=np.int64)
        return Centres(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, numbers)


def _is_positive(value: Any) -> bool:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return bool(number and 0.0 < value < math.inf)


def _given(rows: Any) -> Any:
    """Given centres as canonical CSR in float64."""
    try:
        found = sparse.csr_array(rows if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64))
    except (TypeError, ValueError) as fault:
        raise UsageError(
            f"support is a {type(rows).__name__} that holds no rows of numbers: {without_values(fault)}",
            hint=f"use one of {', '.join(PERCEPTRONS)}, an integer, or an array of shape (centres, features)",
        ) from None
    if found.ndim != 2 or not found.shape[0]:
        raise UsageError(f"support has shape {found.shape}", hint="expected (centres, features), at least one centre")
    found = found.astype(np.float64)
    found.sum_duplicates()
    found.eliminate_zeros()
    if not np.all(np.isfinite(found.data)):
        raise UsageError("support holds NaN or infinity", hint="expected finite centres")
    return found


def _shown(support: Any) -> Any:
    """The parameter as JSON."""
    if isinstance(support, str):
        return support
    if isinstance(support, int | np.integer):
        return int(support)
    parts = {name: getattr(support, name).tolist() for name in ("indptr", "indices", "data")}
    return {"shape": list(support.shape), **parts}


def _read(spec: dict[str, Any]) -> Any:
    """Undo `_shown` for given centres."""
    try:
        parts = (np.array(spec["data"], np.float64), np.array(spec["indices"]), np.array(spec["indptr"]))
        found = sparse.csr_array(parts, shape=tuple(spec["shape"]))
        found.check_format(full_check=True)
    except (KeyError, TypeError, ValueError) as fault:
        raise UsageError(f"the centres of the kernels cannot be read: {fault}") from fault
    return found


@dataclass(frozen=True, eq=False)
class KernelPool:
    """The kernels of a support set on one data set. Key (s,) is the s-th centre."""

    centres: Centres
    gamma: float
    cosine: bool
    given: bool  # Whether the user gave the centres, so that their numbers are no rows of the data.
    n_features: int
    rows_per_worker: int  # Decides whether the kernel is remembered, and nothing else.

    @property
    def size(self) -> float:
        """Number of centres."""
        return len(self.centres)

    @property
    def searched(self) -> bool:
        """No: every kernel is summed."""
        return False

    @cached_property
    def token(self) -> str:
        """Digest of centres, gamma and input."""
        return hashlib.sha256(repr((FAMILY, self.centres.token, self.gamma, self.cosine)).encode()).hexdigest()

    def columns(self, raw: Block, keys: Sequence[Key]) -> Block:
        """The kernels `keys` as columns; values that underflow to zero are not stored."""
        return kernel_columns(raw, self.centres.take([s for (s,) in keys]), self.gamma, self.cosine)

    def shards(self, active: Sequence[Key], row_bytes: int, shard_bytes: int) -> list[tuple[int, int]]:
        """All centres as ranges; the active ones have no part in it."""
        step = max(1, shard_bytes // max(1, row_bytes) // TILE) * TILE
        return [(first, min(first + step, len(self.centres))) for first in range(0, len(self.centres), step)]

    def keys(self, shard: tuple[int, int], places: NDArray[np.int64] | None = None) -> list[Key]:
        """The centres at some places of a shard, or all of them."""
        first, last = shard
        return [(first + place,) for place in (range(last - first) if places is None else places.tolist())]

    def sums(self, partition: Partition, memo: Any, shard: tuple[int, int], plus: Array, minus: Array | None) -> Sums:
        """Sums of a shard's kernels; see ``Pool.sums``. A kernel is never negative, so mu+ = h'plus, mu- = h'minus."""
        first, last = shard
        shape = (last - first, plus.shape[1])
        given = {"G": plus} if minus is None else {"mu_plus": plus, "mu_minus": minus}
        found = {name: np.empty(shape) for name in given}
        square, total, peak = (np.empty(last - first) for _ in range(3))
        slabs = self._slabs(partition, memo, range(first - first % TILE, last, TILE))
        for start, slab in slabs:
            lo, hi = max(start, first), min(start + TILE, last)
            K, mine = slab[lo - start : hi - start], slice(lo - first, hi - first)
            for name, residual in given.items():
                kernel_loops.block_sums(K, residual, found[name][mine])
            kernel_loops.block_statistics(K, partition.weight, square[mine], total[mine], peak[mine])
        return Sums(add={**found, "square": square, "total": total}, peak={"peak": peak})

    def _slabs(self, partition: Partition, memo: Any, starts: range) -> Iterator[tuple[int, Array]]:
        """The kernel of a partition, TILE centres at a time: the first centre, and an array (at most TILE, m)."""
        # Blocks that do not fit together would push each other out, and decoded partitions with them.
        keeps = 8 * self.rows_per_worker * len(self.centres) <= memo.budget // 2
        lines = cache(lambda: by_row(partition))
        squares = cache(lambda: squares_of(lines()))

        def build(start: int) -> Array:
            centres = self.centres.take(np.arange(start, min(start + TILE, len(self.centres))))
            return kernel_block(lines(), squares(), centres, self.gamma, self.cosine)

        for start in starts:
            yield start, memo.get(f"kernel-{start}", self.token, partial(build, start)) if keeps else build(start)

    def names(self, keys: Sequence[Key], features: Sequence[str] | None) -> list[str]:
        """``K(x; row 17)``, or ``K(x; centre 3)`` for given centres; names of raw features have no part in it."""
        return words_of(self.centres.numbers[[s for (s,) in keys]], self.given)

    def chosen(self, keys: Sequence[Key], features: Sequence[str] | None) -> Chosen:
        """The kernels `keys` with their centres only."""
        centres = self.centres.take([s for (s,) in keys])
        return KernelSet(centres, self.gamma, self.cosine, self.given, self.n_features)
