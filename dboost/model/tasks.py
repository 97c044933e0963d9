"""The kinds of problems, and what scores predict in each.

What a score says of an example, its link, belongs to the loss; what is made of it, a label or probabilities, to the
kind of problem. Which losses a kind has, the losses say themselves (``dboost.losses.losses_of``). From which
probability on a label is predicted may be chosen on examples that were held out (``best_f1``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError
from dboost.losses import Loss, loss_of_model
from dboost.losses.link import MOST, sigmoid
from dboost.partition import NUMBERS

Float = NDArray[np.float64]
_ABOVE_HALF = float(np.nextafter(0.5, 1.0))
# numpy adds up fewer numbers than this one after the other, and more of them in eight sums.
_FEW = 8


def belongs(task: str, loss: str) -> bool:
    """Whether there is a loss of that name, and it has labels of that kind."""
    found = loss_of_model(loss)
    return found is not None and found.task == task


def probabilities(task: str, loss: str, F: Float) -> Float:
    """Probabilities from scores.

    `F`: shape (m, k). Returns: (m, 2) for two classes, (m, k) for more, and per task the probability of the positive
    label, (m, k). The label that is predicted has the largest, or is above one half.
    """
    odds = _log_odds(task, loss, F)
    if task == "multiclass":
        chances: Float = np.exp(_below_the_best(odds))
        chances /= of_rows(np.add, chances)[:, None]
        return leading(F, chances)
    positive = sigmoid(odds)
    if task == "multitask":
        return np.where(F > 0.0, np.maximum(positive, _ABOVE_HALF), positive)
    return leading(np.hstack([-F, F]), np.hstack([sigmoid(-odds), positive]))


def log_probabilities(task: str, loss: str, F: Float) -> Float:
    """Logarithms of `probabilities`, finite where these round to zero."""
    odds = _log_odds(task, loss, F)
    if task == "multiclass":
        below = _below_the_best(odds)
        return leading(F, below - np.log(of_rows(np.add, np.exp(below)))[:, None])
    positive = -np.logaddexp(0.0, -odds)
    if task == "multitask":
        return positive
    return leading(np.hstack([-F, F]), np.hstack([-np.logaddexp(0.0, odds), positive]))


def _below_the_best(odds: Float) -> Float:
    """How far each score is below the largest of its row: finite, however far that is."""
    with np.errstate(over="ignore"):
        return np.asarray(np.maximum(odds - of_rows(np.maximum, odds)[:, None], -MOST))


def of_rows(function: np.ufunc, values: Float) -> Float:
    """``function.reduce(values, axis=1)``, to the bit; over a few columns it takes a tenth of the time.

    Examples
    --------
    >>> of_rows(np.add, np.arange(6.0).reshape(2, 3)).tolist()
    [3.0, 12.0]
    """
    if 0 < values.shape[1] < _FEW:
        return np.asarray(functools.reduce(function, values.T))
    return np.asarray(function.reduce(values, axis=1))


def leading(F: Float, found: Float) -> Float:
    """What was made of scores, such as probabilities, so that its largest entry is where the largest score is.

    Scores that differ by less than rounding have equal probabilities, of which the first would be taken for the best:
    the one of the best score then becomes the next number, which is as close to the true one.

    `F` and `found`: shape (m, k). But for rounding, an entry of `found` never falls while its score rises within a row.
    It is changed in place.

    Examples
    --------
    >>> F = np.array([[0.0, 1e-20]])
    >>> leading(F, np.array([[0.5, 0.5]])).argmax(axis=1).tolist()
    [1]
    """
    best = F.argmax(axis=1)
    behind = np.flatnonzero(found.argmax(axis=1) != best)
    found[behind, best[behind]] = np.nextafter(found[behind].max(axis=1), np.inf)
    return found


def _log_odds(task: str, loss: str, F: Float) -> Float:
    """Scores on the scale of log-odds, up to what they have in common where there are many classes."""
    if task in NUMBERS:
        raise UsageError("a regression has no probabilities", hint="use predict")
    return _named(loss).predicted(F)


def _named(loss: str) -> Loss:
    found = loss_of_model(loss)
    if found is None:
        raise UsageError(f"no loss is called {loss!r}", hint="import the module that adds it to dboost.losses.LOSSES")
    return found


def chosen_tasks(P: Float, F: Float, rule: dict[str, Any]) -> NDArray[np.bool_]:
    """Which tasks are predicted of each row.

    `P` and `F`: shape (m, k). Probabilities and scores. `rule`: ``thresholds``, the least probability of each task, by
    default above one half; ``top``, so many of the best tasks at most; ``fewest``, so many of them at least.
    """
    thresholds = rule.get("thresholds")
    chosen = F > 0.0 if thresholds is None else P >= np.asarray(thresholds, dtype=np.float64)
    top, fewest = rule.get("top"), rule.get("fewest", 0)
    if top is None and not fewest:
        return np.asarray(chosen)
    # Equal scores keep the order of the tasks.
    place = np.argsort(np.argsort(-F, axis=1, kind="stable"), axis=1, kind="stable")
    within = place < (F.shape[1] if top is None else top)
    return np.asarray((chosen & within) | (place < fewest))


def tag_lists(chosen: NDArray[np.bool_], tags: NDArray[Any]) -> NDArray[Any]:
    """The list of the tags of each row, as an object array (m,)."""
    rows, places = np.nonzero(chosen)
    ends = np.searchsorted(rows, np.arange(1, len(chosen)))
    found = np.empty(len(chosen), dtype=object)
    for row, part in enumerate(np.split(np.asarray(tags, dtype=object)[places], ends)[: len(chosen)]):
        found[row] = part.tolist()
    return found


def decision(task: str, loss: str, F: Float) -> Float:
    """Scores (m, k) as they are shown: a single one as a vector (m,), others as the loss says."""
    return F[:, 0] if task in ("binary", "regression") else _named(loss).shown(F)


def labels(task: str, loss: str, classes: NDArray[Any], F: Float, negative: int = 0) -> NDArray[Any]:
    """Predictions from scores (m, k): (m,) of `classes`, `negative` and 1 (m, k) for tasks, numbers of regressions."""
    if task == "regression":
        return _named(loss).predicted(F)[:, 0]
    if task == "multitarget":
        return _named(loss).predicted(F)
    if task == "multitask":
        return np.where(F > 0, 1, negative)
    codes = np.argmax(F, axis=1) if task == "multiclass" else (F[:, 0] > 0).astype(np.int64)
    found: NDArray[Any] = classes[codes]
    return found


HALF = 0.5


# Thresholds from 1 down to 0, closer to each other near both ends.
_GRID = np.concatenate([[1.0], 1.0 / (1.0 + np.exp(-np.linspace(16.0, -16.0, 1601))), [0.0]])
# Rows of all labels together that stand beside those of each: the best threshold of a few rows fits no others.
_LENT = 10.0


def best_f1(P: Float, true: NDArray[np.bool_], weight: Float, *, of_all: bool = False) -> list[float]:
    """Thresholds of all labels with the best F1, drawn towards those of all together where few rows have a label.

    `P`, `true`: of shape (rows, labels). `of_all`: one threshold for all labels, with the best F1 of all pairs of them
    and a row. A label that no row has keeps one half.

    Examples
    --------
    >>> P = np.array([[0.9, 0.2], [0.4, 0.8], [0.3, 0.1], [0.1, 0.1]])
    >>> found = best_f1(P, P > 0.35, np.ones(4))
    >>> bool(np.all((P >= found) == (P > 0.35)))
    True
    """
    hits, named = np.zeros((P.shape[1], _GRID.size)), np.zeros((P.shape[1], _GRID.size))
    for r in range(P.shape[1]):
        first = np.searchsorted(-_GRID, -P[:, r])
        named[r] = np.cumsum(np.bincount(first, weight, _GRID.size))
        hits[r] = np.cumsum(np.bincount(first, weight * true[:, r], _GRID.size))
    whole = hits[:, -1:]
    if not whole.any():
        return [HALF] * P.shape[1]
    share = 1.0 / whole.sum()
    if of_all:
        best = np.argmax(2.0 * hits.sum(axis=0) / (named.sum(axis=0) + whole.sum()))
        return [float(_GRID[best])] * P.shape[1]
    lent = _LENT * float(weight.mean())
    hits, named = hits + lent * share * hits.sum(axis=0), named + lent * share * named.sum(axis=0)
    best = np.argmax(2.0 * hits / (named + whole + lent), axis=1)
    return [float(each) for each in np.where(whole[:, 0] > 0.0, _GRID[best], HALF)]


def least_with_precision(at_least: float) -> Callable[[Any, Any, Any], float]:
    """A function that gives the least threshold of a label whose precision is so large; 1 where none has."""

    def choose(P: Float, true: NDArray[np.bool_], weight: Float) -> float:
        ends, hits, chosen = _cuts(P, true, weight)
        if not true.any():
            return HALF
        enough = np.flatnonzero(hits >= at_least * chosen * (1.0 - 1e-12))
        return float(ends[enough[-1]]) if enough.size else 1.0

    return choose


def _cuts(P: Float, true: NDArray[np.bool_], weight: Float) -> tuple[Float, Float, Float]:
    """The different probabilities, falling, and what is true, and all, from each on."""
    order = np.argsort(-P, kind="stable")
    falling = P[order]
    last = np.append(np.flatnonzero(falling[1:] != falling[:-1]), len(P) - 1) if len(P) else np.zeros(0, np.int64)
    hits, chosen = np.cumsum((weight * true)[order]), np.cumsum(weight[order])
    return falling[last], hits[last], chosen[last]
