"""The kernel perceptron: which rows become the centres of kernels.

Covers: one sequential pass over the whole data set, and one pass per partition whose mistakes are united.
Does not cover: rows drawn at random (``drawn``), or the hypotheses (``kernels``).

The perceptron visits rows in their order, predicts with the kernels of the rows kept so far, and keeps a row when it
is mistaken (Duchi & Singer 2009, section 6, which leaves the rule open; docs/math.md 7 (F)):

- classes: score_r(x) = sum_s (Y_s - Yhat_s)_r K(x_s, x). A row is a mistake when another class scores at least as high
  as its own; Yhat is the first best of the others. So a tie is a mistake, and the first row is always kept.
- two classes: f(x) = sum_s y_s K(x_s, x); a mistake is y f(x) <= 0. The same rows as with two scores.
- tasks: one such f per task over one set of rows. A row is kept when it is a mistake in any task whose label it has,
  and enters the scores of those tasks.

Rows of weight zero are not visited; what other weights there are has no part in it. Data sorted by label makes a poor
perceptron: shuffle it first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.sparse.columns import transpose
from dboost.errors import UsageError
from dboost.hypotheses.base import Context
from dboost.hypotheses.kernels import kernel_loops
from dboost.hypotheses.kernels.centres import (
    Centres,
    RowBlock,
    by_row,
    chosen_rows,
    distances,
    join_centres,
    live_rows,
    no_centres,
    rows_of,
    squares_of,
)
from dboost.partition import Partition, Sums

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
    """Visit the rows of one partition.

    Raises UsageError: When the labels are numbers of a regression.
    """
    labels = _labels(partition.y)
    rows = by_row(partition)
    there = live_rows(partition)
    if there is not None:
        rows = chosen_rows(rows, there)
        labels = labels.taken(there)
    for start in range(0, rows.n_rows, CHUNK):
        stop = min(start + CHUNK, rows.n_rows)
        state = _visit(rows.piece(start, stop), labels.piece(start, stop), state, rule)
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

    def piece(self, start: int, stop: int) -> Labels:
        """Those of rows [start, stop)."""
        return Labels(self.coded, self.codes[start:stop], self.signs[start:stop])

    def taken(self, rows: NDArray[np.int64]) -> Labels:
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


def sequential_support(context: Context, rule: Rule) -> Centres:
    """Mistakes of one pass in the order of the rows, the same for any cut into partitions and on any engine."""
    state: Mistakes = context.engine.scan(advance, nothing_seen(), rule, name="perceptron")
    return state.centres


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
