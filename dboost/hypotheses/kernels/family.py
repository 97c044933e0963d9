"""Gaussian kernels of rows as hypotheses: h_s(x) = exp(-gamma ||x - x_s||**2) for the rows s of a support set.

Source: Duchi & Singer 2009, section 6; docs/math.md 7 (F). Does not cover: random rows and the median, distances
(``centres``).

A kernel with 2,766 centres is not written into the data: a partition computes its block of it from the raw features,
and remembers that block between passes where all of them fit half of what the process may remember.

The kernel perceptron visits rows in their order, predicts with the kernels of the rows kept so far, and keeps a row
when it is mistaken (Duchi & Singer leave the rule open):

- classes: score_r(x) = sum_s (Y_s - Yhat_s)_r K(x_s, x). A row is a mistake when another class scores at least as high
  as its own; Yhat is the first best of the others. So a tie is a mistake, and the first row is always kept.
- two classes: f(x) = sum_s y_s K(x_s, x); a mistake is y f(x) <= 0. The same rows as with two scores.
- tasks: one such f per task over one set of rows. A row is kept when it is a mistake in any task whose label it has,
  and enters the scores of those tasks.

Rows of weight zero are not visited; what other weights there are has no part in it. Data sorted by label makes a poor
perceptron: shuffle it first.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dboost.compiled.sparse.columns import transpose
from dboost.errors import DataError, ModelFormatError, UsageError, type_name, without_values
from dboost.files.documents import Document, plain
from dboost.hypotheses.base import (
    Array,
    Block,
    Chosen,
    Context,
    InRanges,
    Key,
    Pool,
    is_positive,
    is_whole,
    saved_arrays,
    tiles,
)
from dboost.hypotheses.centres import (
    Centres,
    RowBlock,
    by_row,
    chosen_rows,
    distances,
    draw,
    join_centres,
    kernel_block,
    live_rows,
    median_gamma,
    no_centres,
    rows_of,
    squares_of,
)
from dboost.hypotheses.kernels import kernel_loops
from dboost.hypotheses.kernels.kernel_loops import TILE
from dboost.hypotheses.union import Joinable
from dboost.partition import Partition, Sums

FAMILY = "kernels"
INPUTS = ("raw", "cosine")


def kernel_columns(raw: Block, centres: Centres, gamma: float, cosine: bool) -> Block:
    """The kernels of all rows and centres as columns; values that underflow to zero are not stored."""
    lines = by_row(raw)
    K = kernel_block(lines, squares_of(lines), centres, gamma, cosine)
    indptr, rows, values = kernel_loops.sparse_columns(K)
    return Block(indptr, rows, values, raw.n_rows)


def words_of(numbers: NDArray[np.int64], given: bool) -> list[str]:
    """Names of kernels by the numbers of their centres."""
    kind = "centre" if given else "row"
    return [f"K(x; {kind} {number})" for number in numbers.tolist()]


@dataclass(frozen=True, eq=False)
class KernelSet(Chosen):
    """The kernels that a model holds, with their centres."""

    centres: Centres
    gamma: float
    cosine: bool  # cosine, given: As in `KernelPool`.
    given: bool
    n_features: int  # Raw columns offered.

    family = FAMILY

    @property
    def inputs(self) -> NDArray[np.int64]:
        """All raw columns: each one is part of the distance."""
        return np.arange(self.n_features, dtype=np.int64)

    def words(self) -> list[str]:
        """``K(x; row 17)``, ..."""
        return words_of(self.centres.numbers, self.given)

    def evaluate(self, raw: Block) -> Block:
        """The kernels as columns."""
        if len(raw.indptr) - 1 != self.n_features:
            raise DataError(f"a block of {len(raw.indptr) - 1} columns; the kernels need {self.n_features}")
        return kernel_columns(raw, self.centres, self.gamma, self.cosine)

    def to_json(self) -> dict[str, Any]:
        return {
            "family": FAMILY,
            "gamma": self.gamma,
            "input": INPUTS[self.cosine],
            "given": self.given,
            "n_features": self.n_features,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {f"kernel_{name}": getattr(self.centres, name) for name in _KINDS}


_KINDS = {"pointer": np.int64, "slots": np.int32, "values": (np.float32, np.float64), "numbers": np.int64}


NO_LIMIT = 2**62
CHUNK = 2048
"""Rows visited together. Larger chunks leave more to the slower loop over single centres; no bit depends on it."""


@dataclass(frozen=True)
class Rule:
    """What a perceptron needs to know beside the data."""

    gamma: float
    cosine: bool
    n_outputs: int  # k.
    limit: int = NO_LIMIT  # Rows kept at most.


@dataclass(frozen=True)
class Mistakes:
    """The state of the perceptron between two partitions."""

    seen: int  # Rows visited.
    centres: Centres  # Rows kept.
    # (s + 1,): The steps of row s are entries steps[s] .. steps[s + 1] - 1 of the next two.
    steps: NDArray[np.int64]
    outputs: NDArray[np.int32]
    signs: NDArray[np.int8]  # Score outputs[q] moves by signs[q] K(x_s, .).


def nothing_seen() -> Mistakes:
    """The state before the first row."""
    return Mistakes(0, no_centres(), np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int8))


def advance(partition: Partition, state: Mistakes, rule: Rule) -> Mistakes:
    """Visit the rows of one partition."""
    labels = _labels(partition.y)
    rows = by_row(partition)
    there = live_rows(partition)
    if there is not None:
        rows = chosen_rows(rows, there)
        labels = labels.taken(there)
    for start in range(0, rows.n_rows, CHUNK):
        stop = min(start + CHUNK, rows.n_rows)
        state = _visit(rows.piece(start, stop), labels.taken(slice(start, stop)), state, rule)
    return state


def _visit(rows: RowBlock, labels: Labels, state: Mistakes, rule: Rule) -> Mistakes:
    """Visit a few rows: the centres found before score all of them at once, a new one the rows after it."""
    m, kept = rows.n_rows, len(state.centres)
    if kept >= rule.limit:
        return replace(state, seen=state.seen + m)
    xx = squares_of(rows)
    F = np.zeros((m, rule.n_outputs))
    for first, part in distances(rows, xx, state.centres, rule.cosine):
        kernel_loops.exponentiate(part, rule.gamma)
        kernel_loops.add_scores(part, state.steps, state.outputs, state.signs, first, F)
    picks, steps = np.empty(m, np.int64), np.empty(m + 1, np.int64)
    by_column = transpose(*rows)
    settings = (rule.gamma, rule.cosine, rule.limit - kept)
    n, outputs, signs = kernel_loops.perceptron(*by_column, *rows[:3], xx, *labels, F, *settings, picks, steps)
    return Mistakes(
        seen=state.seen + m,
        centres=join_centres([state.centres, rows_of(rows, picks[:n], state.seen)]),
        steps=np.concatenate([state.steps, state.steps[-1] + steps[1 : n + 1]]),
        outputs=np.concatenate([state.outputs, outputs]),
        signs=np.concatenate([state.signs, signs]),
    )


class Labels(NamedTuple):
    """Labels as class codes (m,) or as signs (m, k), whichever `coded` says; the other is empty."""

    coded: bool
    codes: NDArray[np.int32]
    signs: NDArray[np.int8]

    def taken(self, rows: NDArray[np.int64] | slice) -> Labels:
        """Those of some rows."""
        if self.coded:
            return Labels(True, self.codes[rows], self.signs)
        return Labels(False, self.codes, self.signs[rows])


def _labels(y: NDArray[Any]) -> Labels:
    if y.dtype.kind == "f":
        raise UsageError(
            "a perceptron needs classes, and the labels are numbers to predict",
            hint="give Kernels(support=...) a number of rows to draw at random, or an array of centres",
        )
    if y.ndim == 1:
        return Labels(True, np.ascontiguousarray(y, dtype=np.int32), np.empty((0, 0), np.int8))
    return Labels(False, np.empty(0, np.int32), np.ascontiguousarray(y, dtype=np.int8))


def alone(partition: Partition, memo: Any, rule: Rule) -> Sums:
    """The mistakes of a perceptron that sees one partition only."""
    found = advance(partition, nothing_seen(), rule)
    return Sums(parts={"mistakes": [(found.seen, found.centres)]})


def united_support(context: Context, rule: Rule) -> Centres:
    """Mistakes of one perceptron per partition, side by side; they depend on the cut, and are more.

    With a limit, each perceptron stops at it, and as many of the union are drawn at random.
    """
    found = context.engine.map_reduce(alone, rule, name="perceptron").parts["mistakes"]
    starts = np.cumsum([0, *(seen for seen, _ in found)])
    parts = [replace(part, numbers=part.numbers + start) for (_, part), start in zip(found, starts)]
    union = join_centres(parts)
    if len(union) <= rule.limit:
        return union
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([context.seed, 3])))
    return union.take(np.sort(rng.choice(len(union), size=rule.limit, replace=False)))


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

    name = FAMILY
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
        elif isinstance(self.support, int | np.integer):
            if not is_whole(self.support):
                raise UsageError(f"support={self.support}", hint="expected at least one row")
        else:
            object.__setattr__(self, "support", _given(self.support))
        if self.gamma != "median" and not is_positive(self.gamma):
            raise UsageError(f"gamma={self.gamma!r}", hint="expected 'median' or a positive number")
        if self.gamma != "median":
            object.__setattr__(self, "gamma", float(self.gamma))
        if self.input not in INPUTS:
            raise UsageError(f"input={self.input!r}", hint=f"use one of {', '.join(INPUTS)}")
        if self.max_support is not None:
            if not isinstance(self.max_support, int | np.integer):
                raise UsageError(f"max_support={self.max_support!r}", hint="expected an integer, or None")
            if not isinstance(self.support, str) or not is_whole(self.max_support):
                raise UsageError(
                    f"max_support={self.max_support} with support={self.shown(self.support)!r}",
                    hint="it is a positive limit for a perceptron; rows at random and given centres have their number",
                )

    @staticmethod
    def shown(value: Any) -> Any:
        """A parameter in JSON's own types: given centres by row."""
        if not sparse.issparse(value):
            return plain(value)
        parts = {name: getattr(value, name).tolist() for name in ("indptr", "indices", "data")}
        return {"shape": list(value.shape), **parts}

    @classmethod
    def from_json(cls, spec: dict[str, Any]) -> Kernels:
        support = spec.get("support")
        return super().from_json(spec | ({"support": _read(support)} if isinstance(support, dict) else {}))

    @staticmethod
    def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> KernelSet:
        """The hypotheses of a saved model, trusting nothing in it."""
        file = spec.file
        spec.choice("family", (FAMILY,))
        gamma, cosine = spec.number("gamma"), spec.choice("input", INPUTS) == "cosine"
        given = spec.fields.get("given")
        if not 0.0 < gamma < math.inf or not isinstance(given, bool) or spec.count("n_features") != n_features:
            raise ModelFormatError("the kernels' gamma, number of features or origin is wrong", file=file)
        kinds = {f"kernel_{name}": (kind, 1) for name, kind in _KINDS.items()}
        centres = Centres(*saved_arrays(FAMILY, arrays, kinds, file))
        pointer, slots, size = centres.pointer, centres.slots, len(centres.slots)
        sound = (
            len(pointer) == len(centres.numbers) + 1
            and len(centres.values) == size
            and pointer[0] == 0
            and pointer[-1] == size
            and bool(np.all(np.diff(pointer) >= 0))
            and bool(np.all((slots >= 0) & (slots < n_features)))
            and bool(np.all(centres.numbers >= 0))
        )
        if sound and size > 1:
            ascends = np.diff(slots.astype(np.int64)) > 0
            starts = pointer[1:-1]
            ascends[starts[(starts > 0) & (starts < size)] - 1] = True
            sound = bool(np.all(ascends))
        if not sound:
            raise ModelFormatError("the centres of the kernels are damaged", file=file)
        return KernelSet(centres, gamma, cosine, given, n_features)

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
        gamma = median_gamma(context, cosine) if self.gamma == "median" else float(self.gamma)
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
            limit = NO_LIMIT if self.max_support is None else int(self.max_support)
            rule = Rule(gamma, cosine, context.n_outputs, limit)
            if self.support == "perceptron":
                state: Mistakes = context.engine.scan(advance, nothing_seen(), rule, name="perceptron")
                return state.centres
            return united_support(context, rule)
        if isinstance(self.support, int | np.integer):
            if self.support > context.n_rows:
                raise UsageError(
                    f"support={self.support} rows at random, and the data has {context.n_rows}", hint="ask for fewer"
                )
            return draw(context, int(self.support), purpose=2)
        rows = self.support
        if rows.shape[1] != context.n_features:
            raise DataError(f"the centres have {rows.shape[1]} features, the data has {context.n_features}")
        numbers = np.arange(rows.shape[0], dtype=np.int64)
        return Centres(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, numbers)


def _given(rows: Any) -> Any:
    """Given centres as canonical CSR in float64."""
    try:
        found = sparse.csr_array(rows if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64))
    except (TypeError, ValueError) as fault:
        raise UsageError(
            f"support is {type_name(rows)} that holds no rows of numbers: {without_values(fault)}",
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


def _read(spec: dict[str, Any]) -> Any:
    """Undo ``Kernels.shown`` of given centres."""
    try:
        parts = (np.array(spec["data"], np.float64), np.array(spec["indices"]), np.array(spec["indptr"]))
        found = sparse.csr_array(parts, shape=tuple(spec["shape"]))
        found.check_format(full_check=True)
    except (KeyError, TypeError, ValueError) as fault:
        raise UsageError(f"the centres of the kernels cannot be read: {fault}") from fault
    return found


@dataclass(frozen=True, eq=False)
class KernelPool(InRanges):
    """The kernels of a support set on one data set. Key (s,) is the s-th centre."""

    step = TILE

    centres: Centres
    gamma: float
    cosine: bool
    given: bool  # Whether the user gave the centres, so that their numbers are no rows of the data.
    n_features: int
    rows_per_worker: int  # Decides whether the kernel is remembered, and nothing else.

    @property
    def units(self) -> int:
        return len(self.centres)

    @cached_property
    def token(self) -> str:
        return hashlib.sha256(repr((FAMILY, self.centres.token, self.gamma, self.cosine)).encode()).hexdigest()

    def columns(self, raw: Block, keys: Sequence[Key]) -> Block:
        """The kernels `keys` as columns; values that underflow to zero are not stored."""
        return kernel_columns(raw, self.centres.take([s for (s,) in keys]), self.gamma, self.cosine)

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
        keeps = 8 * self.rows_per_worker * len(self.centres) <= memo.budget // 2
        lines = cache(lambda: by_row(partition))
        squares = cache(lambda: squares_of(lines()))

        def build(start: int) -> Array:
            centres = self.centres.take(np.arange(start, min(start + TILE, len(self.centres))))
            return kernel_block(lines(), squares(), centres, self.gamma, self.cosine)

        return tiles(memo, "kernel", self.token, starts, build, lambda start: keeps)

    def names(self, keys: Sequence[Key], features: Sequence[str] | None) -> list[str]:
        """``K(x; row 17)``, or ``K(x; centre 3)`` for given centres; names of raw features have no part in it."""
        return words_of(self.centres.numbers[[s for (s,) in keys]], self.given)

    def chosen(self, keys: Sequence[Key], features: Sequence[str] | None) -> Chosen:
        centres = self.centres.take([s for (s,) in keys])
        return KernelSet(centres, self.gamma, self.cosine, self.given, self.n_features)
