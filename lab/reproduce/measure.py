"""Common steps of the reproductions: following a fit, evaluating a path, drawing examples, choosing a strength.

Covers: ``Staged`` (a fit round by round on held-out data), ``along_path``, ``in_parallel``, ``judge_classes``,
``draw_per_class``, ``best_by_validation``. Does not cover: any data set, or what is claimed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import dboost
from dboost import metrics
from dboost.engine.machine import available_cores
from lab.reproduce.rows import Rows

Measure = Callable[[Any], dict[str, Any]]
Result = TypeVar("Result")


def judge_classes(model: Any, X: Any, y: NDArray[Any]) -> dict[str, float]:
    """Error and coverage of a fitted classifier.

    Parameters
    ----------
    model : fitted classifier
    X : as for ``predict``
    y : array of labels, shape (m,)

    Returns
    -------
    dict
        ``error`` (share), ``coverage`` (classes ranked above the right one, mean).
    """
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    codes = np.searchsorted(model.classes_, y)
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    place = metrics.coverage(scores, codes.astype(np.int32))
    return {"error": float(np.mean(metrics.predicted_codes(scores, codes) != codes)), "coverage": float(place.mean())}


class Staged:
    """Follows a fit round by round; give it to an estimator as a callback, twice over: ``callbacks=staged.hooks``.

    Time is the fit's own: the evaluation between two rounds is not counted.

    Parameters
    ----------
    measure : function of a fitted estimator
        Gives the figures of one round as a dict, such as error, coverage and sparsity on held-out data.
    limit : float, optional
        Seconds of the fit after which it is asked to stop.
    every : int
        Measure in the first ten rounds and then in every so many of them, and in the last.
    **labels
        Columns with the same value in each record, such as the method's name.

    Attributes
    ----------
    rows : Rows
        One record per measured round: the labels, ``round``, ``seconds``, ``passes``, ``objective``, ``gap``,
        ``active_rows``, ``entries``, and what `measure` gave.
    """

    def __init__(self, measure: Measure, *, limit: float | None = None, every: int = 1, **labels: Any) -> None:
        self._measure = measure
        self._limit = limit
        self._every = every
        self._labels = labels
        self._records: list[dict[str, Any]] = []
        self._round: dict[str, Any] = {}
        self._seconds = 0.0
        self._rounds = 0

    @property
    def rows(self) -> Rows:
        """What was measured."""
        return Rows(self._records)

    @property
    def hooks(self) -> list[Any]:
        """The callbacks: a function of a round's record, and scikit-learn's hook that brings the model."""
        return [self._note, _Hook(self._look)]

    def _note(self, record: dict[str, Any]) -> bool:
        self._seconds += record["seconds"]
        self._rounds += 1
        keep = ("round", "passes", "objective", "gap", "alpha", "active_rows", "entries", "step")
        self._round = {"seconds": self._seconds} | {name: record[name] for name in keep}
        return self._limit is not None and self._seconds >= self._limit

    def _look(self, model: Any) -> None:
        last = self._round["step"] == "certificate" or (self._limit is not None and self._seconds >= self._limit)
        if self._rounds <= 10 or self._rounds % self._every == 0 or last:
            self._records.append(self._labels | self._round | self._measure(model))


class _Hook:
    """scikit-learn's fit callback: hands the model of each round on."""

    def __init__(self, look: Callable[[Any], None]) -> None:
        self._look = look

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing to set up."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing happens before a round."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> None:
        """Look at the model, as if the fit had stopped here."""
        if context.task_name == "round":
            self._look(fitted_estimator)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing to tear down."""


def followed(estimator: Any, staged: Staged, X: Any, y: Any) -> Any:
    """Fit with a `Staged` looking on; that a limit of time or rounds ended it is no warning here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dboost.ConvergenceWarning)
        return estimator.set_params(callbacks=staged.hooks).fit(X, y)


def along_path(X: Any, y: Any, measure: Measure, *, n_alphas: int, eps: float, tol: float, **params: Any) -> Rows:
    """Fit a regularisation path and measure every model on it.

    Parameters
    ----------
    X, y : training data
    measure : function of a fitted estimator
    n_alphas, eps : int, float
        Strengths: geometric from alpha_max, the smallest at which no feature is used, to `eps` times it.
    tol : float
        Certified relative gap of every model.
    **params
        Of ``BoostedClassifier``, or ``estimator`` with those of another.

    Returns
    -------
    Rows
        One record per strength, falling: ``ratio`` (share of alpha_max), ``alpha``, ``active_rows``, ``entries``,
        ``objective``, ``gap``, and what `measure` gave.
    """
    path = dboost.regularization_path(X, y, n_alphas=n_alphas, eps=eps, tol=tol, **params)
    largest = path.models[0].certificate.alpha_max
    found = []
    for index, record in enumerate(path.table):
        keep = {name: record[name] for name in ("alpha", "active_rows", "entries", "objective", "gap")}
        found.append({"ratio": record["alpha"] / largest, **keep, **measure(path.estimator(index))})
    return Rows(found)


def in_parallel(jobs: Sequence[Callable[[], Result]]) -> list[Result]:
    """Run jobs in threads, one per core; the compiled loops of a fit let the others run.

    For fits whose time is not measured. Results come in the order of the jobs; the first error ends the run.
    """
    with ThreadPoolExecutor(max_workers=available_cores()) as pool:
        running = [pool.submit(job) for job in jobs]
        try:
            return [one.result() for one in running]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def draw_per_class(y: NDArray[Any], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of a random draw of `count` examples of each class, without repetition, ascending.

    A class with fewer examples gives all it has.
    """
    chosen = []
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        chosen.append(rng.permutation(rows)[:count])
    return np.sort(np.concatenate(chosen)).astype(np.int64)


def split_per_class(
    y: NDArray[Any], share: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Part the rows into two, the second with `share` of every class (rounded, at least one example)."""
    first, second = [], []
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        cut = max(1, round(share * len(rows)))
        second.append(rows[:cut])
        first.append(rows[cut:])
    return np.sort(np.concatenate(first)).astype(np.int64), np.sort(np.concatenate(second)).astype(np.int64)


def walked(values: Sequence[float], error: Callable[[float], float], least: float) -> None:
    """Try values on both sides of the middle one, whose error is `least`, on each side as long as the error falls.

    Parameters
    ----------
    values : sequence of float
        In order; the middle one is not tried again.
    error : function of a value
        Its error, noted by the function itself.
    least : float
        Lowest error so far.
    """
    middle = len(values) // 2
    for side in (values[middle + 1 :], values[:middle][::-1]):
        for value in side:
            found = error(value)
            if found >= least:
                break
            least = found


def best_by_validation(rows: Rows, score: str) -> dict[str, Any]:
    """The record with the smallest `score`; of equal ones the first, which on a path is the sparsest."""
    place = int(np.nanargmin(rows.column(score)))
    found: dict[str, Any] = rows[place]
    return found


def interpolated(x: Sequence[float] | NDArray[Any], y: Sequence[float] | NDArray[Any], level: float) -> float | None:
    """Where a curve first comes down to a level.

    Parameters
    ----------
    x : sequence of float
        Cost, such as features used; taken in rising order.
    y : sequence of float
        Loss at that cost, the smaller the better.
    level : float

    Returns
    -------
    float or None
        Smallest x at which the running minimum of y reaches `level`, linear between points; None when it never does,
        or already does at the smallest x, where the crossing is not seen.
    """
    order = np.argsort(x, kind="stable")
    cost = np.asarray(x, dtype=np.float64)[order]
    best = np.minimum.accumulate(np.asarray(y, dtype=np.float64)[order])
    below = np.flatnonzero(best <= level)
    if not below.size or below[0] == 0:
        return None
    right = int(below[0])
    left = right - 1
    drop = best[left] - best[right]
    share = 1.0 if drop <= 0 else float((best[left] - level) / drop)
    return float(cost[left] + share * (cost[right] - cost[left]))
