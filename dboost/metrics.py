"""How good a model is, from scores and labels, in sums that partitions can add up.

Each measure comes per example, and as partial sums that merge: ``partial`` maps a batch to ``Sums``, ``summarise``
turns the total into numbers. Coverage is that of Duchi & Singer 2009, section 6. Of a model there are the two measures
of sparsity, and what must be computed to classify. Does not cover: computing the scores (``dboost.model.fitted``), or
where the batches come from.

Labels are encoded as in ``dboost.partition.Partition``: int8 (m, k) of -1, +1 and 0 for a missing label (one column
for two classes), or int32 (m,) class codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dboost.errors import DataError, type_name
from dboost.partition import Sums

__all__ = [
    "Computed",
    "Evaluation",
    "computed_features",
    "coverage",
    "coverage_counts",
    "log_loss",
    "margin_norm",
    "margins",
    "normalised_margins",
    "partial",
    "predicted_codes",
    "row_sparsity",
    "sparsity",
    "summarise",
]

Float = NDArray[np.float64]


def predicted_codes(F: Float, y: NDArray[Any]) -> NDArray[Any]:
    """Predictions in the encoding of `y`: the sign of a score (zero counts as -1), or the first largest score.

    Parameters
    ----------
    F : float64 array, shape (m, k)
        Scores.
    y : int8 array (m, k) of signs, 0 where a label is missing, or int32 array (m,) of class codes

    Returns
    -------
    array, of the shape of `y`

    Examples
    --------
    >>> predicted_codes(np.array([[3.0, 1.0], [0.0, 5.0]]), np.array([0, 0])).tolist()
    [0, 1]
    """
    codes: NDArray[Any] = np.where(F > 0, 1, -1).astype(np.int8) if y.ndim == 2 else np.argmax(F, axis=1)
    return codes if y.ndim == 2 else codes.astype(np.int32)


def log_loss(F: Float, y: NDArray[Any]) -> Float:
    """Loss of each label: softplus(-yF) per entry (zero where the label is missing), or lse(F) - F_y per example.

    Parameters
    ----------
    F : float64 array, shape (m, k)
        Scores.
    y : int8 array (m, k) of signs, 0 where a label is missing, or int32 array (m,) of class codes

    Returns
    -------
    float64 array, shape (m, k) for signs, (m,) for class codes

    Examples
    --------
    >>> log_loss(np.array([[0.0, 0.0]]), np.array([1])).round(4).tolist()
    [0.6931]
    """
    loss: Float
    if y.ndim == 2:
        z = -F * y
        loss = np.where(y == 0, 0.0, np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z))))
        return loss
    own = F[np.arange(len(y)), y]
    peak = F.max(axis=1)
    gap = np.exp(F - peak[:, None]).sum(axis=1)
    # Where the true class leads, the sum without it keeps the digits of a small loss.
    others = np.exp(np.where(_others(F, y), F - own[:, None], -np.inf).clip(max=0.0)).sum(axis=1)
    loss = np.where(own == peak, np.log1p(others), np.log(gap) + (peak - own))
    return loss


def coverage(F: Float, y: NDArray[Any]) -> Float:
    """How many classes are ranked above the true one: #{r != y : F_r > F_y} + (number of ties) / 2.

    A tie counts one half, so that constant scores have the coverage of a random order. Two classes with the single
    score F rank the positive class by F and the negative one by -F.

    Parameters
    ----------
    F : float64 array, shape (m, k)
    y : int32 array (m,), or int8 array (m, 1) without missing labels

    Returns
    -------
    float64 array, shape (m,)
        0 where the true class stands alone at the top, up to k - 1.

    Examples
    --------
    >>> F = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 1.0], [0.0, 5.0, 4.0]])
    >>> coverage(F, np.array([0, 0, 0])).tolist()
    [0.0, 1.0, 2.0]
    """
    if y.ndim == 2:
        if y.shape[1] != 1 or np.any(y == 0):
            raise DataError("coverage ranks the classes of one label per example; found tasks or missing labels")
        z = (F * y)[:, 0]
        found: Float = (z < 0) + 0.5 * (z == 0)
        return found
    own = F[np.arange(len(y)), y][:, None]
    others = _others(F, y)
    found = ((F > own) & others).sum(axis=1) + 0.5 * ((F == own) & others).sum(axis=1)
    return found


def coverage_counts(F: Float, y: NDArray[Any], weight: ArrayLike | None = None) -> Float:
    """Distribution of the coverage: the weight of the examples at coverage 0, 1/2, 1, ..., k - 1.

    Halves come from ties (docs/math.md 7 (L)).

    Parameters
    ----------
    F : float64 array, shape (m, k)
    y : int32 array (m,), or int8 array (m, 1) without missing labels
    weight : array, shape (m,), optional
        Example weights; one each when missing.

    Returns
    -------
    float64 array, shape (2k - 1,); two classes with a single score count as k = 2

    Examples
    --------
    >>> F = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0], [0.0, 5.0, 4.0]])
    >>> coverage_counts(F, np.array([0, 0, 0])).tolist()
    [1.0, 1.0, 0.0, 0.0, 1.0]
    """
    k = max(2, F.shape[1])
    twice = np.rint(2 * coverage(F, y)).astype(np.int64)
    s = np.ones(len(twice)) if weight is None else np.asarray(weight, dtype=np.float64)
    return np.asarray(np.bincount(twice, weights=s, minlength=2 * k - 1), dtype=np.float64)


def margins(F: Float, y: NDArray[Any]) -> Float:
    """Unnormalised margin y F per entry (zero where missing), or F_y - max over r != y of F_r per example.

    Parameters
    ----------
    F : float64 array, shape (m, k)
        Scores.
    y : int8 array (m, k) of signs, 0 where a label is missing, or int32 array (m,) of class codes

    Returns
    -------
    float64 array, shape (m, k) for signs, (m,) for class codes

    Examples
    --------
    >>> margins(np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]]), np.array([0, 0])).tolist()
    [1.0, -5.0]
    """
    if y.ndim == 2:
        found: Float = F * y
        return found
    own = F[np.arange(len(y)), y]
    found = own - np.where(_others(F, y), F, -np.inf).max(axis=1)
    return found


def margin_norm(W: Float) -> float:
    """The norm that margins are divided by: ||w||_1 for one output, the sum of ||W_j||_inf over rows otherwise.

    The intercept is not part of it.

    Parameters
    ----------
    W : float64 array, shape (rows, k)
        Weights of what the model holds.

    Returns
    -------
    float

    Examples
    --------
    >>> margin_norm(np.array([[3.0, -4.0], [1.0, 0.0]]))
    5.0
    """
    return float(np.abs(W).max(axis=1, initial=0.0).sum())


def normalised_margins(F: Float, y: NDArray[Any], W: Float) -> Float:
    """``margins`` divided by ``margin_norm``, so that scaling a model changes nothing; zero for an empty model.

    Without an intercept, and with features in [-1, 1], they lie in [-1, 1] for one output and in [-2, 2] otherwise
    (docs/math.md 7 (L)).

    Parameters
    ----------
    F : float64 array, shape (m, k)
        Scores.
    y : int8 array (m, k) of signs, 0 where a label is missing, or int32 array (m,) of class codes
    W : float64 array, shape (rows, k)
        Weights of what the model holds.

    Returns
    -------
    float64 array, shape (m, k) for signs, (m,) for class codes

    Examples
    --------
    >>> F = np.array([[2.0], [-1.0]])
    >>> normalised_margins(F, np.array([[1], [1]]), W=np.array([[3.0], [-1.0]])).ravel().tolist()
    [0.5, -0.25]
    """
    norm = margin_norm(W)
    found: Float = margins(F, y) / norm if norm > 0.0 else np.zeros_like(margins(F, y))
    return found


def _others(F: Float, y: NDArray[Any]) -> NDArray[np.bool_]:
    others: NDArray[np.bool_] = np.arange(F.shape[1])[None, :] != y[:, None]
    return others


# Of so many best tasks the precision is said.
BEST = 5


def partial(
    F: ArrayLike, y: NDArray[Any], weight: ArrayLike | None = None, chosen: NDArray[np.bool_] | None = None
) -> Sums:
    """Sums of one batch.

    Parameters
    ----------
    F : array, shape (m, k)
        Scores; k = 1 for two classes.
    y : int8 array (m, k) of signs, or int32 array (m,) of class codes
    weight : array, shape (m,), optional
        Example weights; one each when missing.
    chosen : bool array, shape (m, k), optional
        Which tasks are predicted of each example; those with scores above zero by default.

    Returns
    -------
    Sums
        With weights: `weight`, `errors`, `log_loss`, `margin` (one number for a label per example, (k,) for tasks);
        for tasks `hits`, `chosen` and `true` (k,), `best_hits` (``BEST``,), `examples`, `tagged` and `depth`; and for a
        label per example `confusion` (k, k) and `coverage` (2k - 1,), the weight at coverage 0, 1/2, ...
        In `peak`: `minus_margin`, minus the smallest margin of an example of positive weight.

    Raises
    ------
    DataError
        When shapes disagree or a score is not finite.

    Examples
    --------
    >>> sums = partial(np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([0, 0]))
    >>> float(sums.add["weight"]), float(sums.add["errors"])
    (2.0, 1.0)
    """
    scores = np.asarray(F, dtype=np.float64)
    _check(scores, y)
    s = np.ones(len(scores)) if weight is None else np.asarray(weight, dtype=np.float64)
    if s.shape != (len(scores),):
        raise DataError(f"weights of shape {s.shape} for {len(scores)} examples")
    margin = margins(scores, y)
    if y.ndim == 2 and y.shape[1] > 1:
        seen = (y != 0) * s[:, None]
        counted = np.where(seen > 0, -margin, -np.inf)
        picked = scores > 0 if chosen is None else chosen
        add: dict[str, Any] = {
            "weight": seen.sum(axis=0),
            "errors": ((np.where(picked, 1, -1) != y) * seen).sum(axis=0),
            "log_loss": (log_loss(scores, y) * s[:, None]).sum(axis=0),
            "margin": (margin * s[:, None]).sum(axis=0),
            **_of_tasks(scores, y, s, picked),
        }
        return Sums(add=add, peak={"minus_margin": counted.max(axis=0, initial=-np.inf)})
    k = max(2, scores.shape[1])
    true = (y[:, 0] > 0).astype(np.int64) if y.ndim == 2 else y.astype(np.int64)
    if y.ndim == 2 and np.any(y == 0):
        raise DataError("a missing label in a problem with two classes")
    guess = predicted_codes(scores, y)
    guess = (guess[:, 0] > 0).astype(np.int64) if y.ndim == 2 else guess.astype(np.int64)
    margin = margin.reshape(len(scores))
    add = {
        "weight": float(s.sum()),
        "errors": float(s[guess != true].sum()),
        "log_loss": float(np.sum(s * log_loss(scores, y).reshape(len(scores)))),
        "margin": float(np.sum(s * margin)),
        "confusion": np.bincount(true * k + guess, weights=s, minlength=k * k).reshape(k, k),
        "coverage": coverage_counts(scores, y, s),
    }
    worst = (-margin)[s > 0].max(initial=-np.inf)
    return Sums(add=add, peak={"minus_margin": np.array([worst])})


def _of_tasks(F: Float, y: NDArray[Any], s: Float, picked: NDArray[np.bool_]) -> dict[str, Any]:
    """The sums of what is predicted of several tasks, as lists of tags have them."""
    true = y > 0
    order = np.argsort(-F, axis=1, kind="stable")
    best = np.take_along_axis(true, order[:, :BEST], axis=1)
    hits = np.zeros(BEST)
    hits[: best.shape[1]] = s @ np.cumsum(best, axis=1)
    hits[best.shape[1] :] = hits[best.shape[1] - 1]
    tagged = true.any(axis=1)
    # how many tasks are ranked at least as high as the lowest of the true ones, less one
    lowest = np.where(true, F, np.inf).min(axis=1, initial=np.inf)
    depth = (F >= lowest[:, None]).sum(axis=1) - 1
    return {
        "hits": s @ (picked & true),
        "chosen": s @ (picked & (y != 0)),
        "true": s @ true,
        "best_hits": hits,
        "examples": float(s.sum()),
        "tagged": float(s[tagged].sum()),
        "depth": float(s[tagged] @ depth[tagged]),
    }


def _check(F: Float, y: NDArray[Any]) -> None:
    if F.ndim != 2 or len(F) != len(y) or (y.ndim == 2 and y.shape != F.shape) or y.ndim not in (1, 2):
        raise DataError(f"scores of shape {F.shape} and labels of shape {y.shape} do not belong together")
    if not np.all(np.isfinite(F)):
        raise DataError("a score is not finite")
    if y.ndim == 1 and len(y) and (y.min() < 0 or y.max() >= F.shape[1]):
        raise DataError(f"class codes {y.min()}..{y.max()} for {F.shape[1]} scores")
    if y.ndim == 1 and F.shape[1] < 2:
        raise DataError("class codes need at least two scores per example; two classes with one score use signs")
    if y.ndim == 2 and not np.all((y == 0) | (y == 1) | (y == -1)):
        raise DataError("signs must be -1, +1, or 0 for a missing label")


@dataclass(frozen=True)
class Evaluation:
    """The metrics of a data set.

    Parameters
    ----------
    weight : float
        Total weight of the labels.
    error : float
        Share of wrong labels; over all observed labels for tasks.
    log_loss : float
        Mean log-loss of a label, in nats.
    mean_margin, min_margin : float
        Margins divided by `margin_norm` (0 when the model is empty).
    coverage : float or None
        Mean coverage; None for tasks.
    coverage_counts : float64 array, shape (2k - 1,), or None
        Weight at coverage 0, 1/2, 1, ..., k - 1.
    confusion : float64 array, shape (k, k), or None
        Weight by true class (row) and predicted class (column).
    task_errors, task_log_losses : float64 array, shape (k,), or None
        For tasks; NaN for a task without a label.
    task_f1, task_precision, task_recall : float64 array, shape (k,), or None
        For tasks; 0 where nothing is predicted, or nothing is there.
    micro_f1, macro_f1 : float or None
        Over all labels of all tasks, and the mean over the tasks.
    precision_at : float64 array, shape (``BEST``,), or None
        Share of true ones among the 1, 2, ... tasks of an example with the highest scores.
    depth : float or None
        How many tasks, less one, are to be named in the order of their scores before all true ones are (the coverage of
        several labels), on average over the examples that have some.
    """

    weight: float
    error: float
    log_loss: float
    mean_margin: float
    min_margin: float
    coverage: float | None = None
    coverage_counts: Float | None = None
    confusion: Float | None = None
    task_errors: Float | None = None
    task_log_losses: Float | None = None
    task_f1: Float | None = None
    task_precision: Float | None = None
    task_recall: Float | None = None
    micro_f1: float | None = None
    macro_f1: float | None = None
    precision_at: Float | None = None
    depth: float | None = None

    def coverage_at_most(self) -> Float:
        """Share of examples whose true class is among the first t + 1 ranked, t = 0..k-1 (half ranks rounded up)."""
        if self.coverage_counts is None:
            raise DataError("coverage is defined for one label per example, not for tasks")
        return np.cumsum(self.coverage_counts)[::2] / self.weight


def summarise(total: Sums, norm: float = 1.0) -> Evaluation:
    """Turn merged sums into metrics.

    Parameters
    ----------
    total : Sums
        Merged results of `partial`.
    norm : float
        What margins are divided by, usually `margin_norm` of the model.

    Returns
    -------
    Evaluation

    Raises
    ------
    DataError
        When no label has positive weight.

    Examples
    --------
    >>> found = summarise(partial(np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([0, 0])))
    >>> found.error
    0.5
    """
    add = total.add
    weight = np.asarray(add["weight"], dtype=np.float64)
    if not weight.sum() > 0:
        raise DataError("nothing to evaluate: no label has a positive weight")
    scale = 1.0 / norm if norm > 0 else 0.0
    shared: dict[str, Any] = {
        "weight": float(weight.sum()),
        "error": float(np.sum(add["errors"]) / weight.sum()),
        "log_loss": float(np.sum(add["log_loss"]) / weight.sum()),
        "mean_margin": float(np.sum(add["margin"]) / weight.sum() * scale),
        "min_margin": float(-np.max(total.peak["minus_margin"]) * scale),
    }
    if weight.ndim:
        with np.errstate(invalid="ignore", divide="ignore"):
            errors, losses = add["errors"] / weight, add["log_loss"] / weight
        hits, chosen, true = (np.asarray(add[name], np.float64) for name in ("hits", "chosen", "true"))
        return Evaluation(
            **shared,
            task_errors=errors,
            task_log_losses=losses,
            task_f1=_share(2.0 * hits, chosen + true),
            task_precision=_share(hits, chosen),
            task_recall=_share(hits, true),
            micro_f1=float(_share(2.0 * hits.sum(), chosen.sum() + true.sum())),
            macro_f1=float(np.mean(_share(2.0 * hits, chosen + true))),
            precision_at=np.asarray(add["best_hits"]) / (add["examples"] * np.arange(1, BEST + 1)),
            depth=float(_share(add["depth"], add["tagged"])),
        )
    counts = np.asarray(add["coverage"])
    mean = float(counts @ (0.5 * np.arange(len(counts))) / weight)
    return Evaluation(**shared, coverage=mean, coverage_counts=counts, confusion=add["confusion"])


def _share(part: Any, whole: Any) -> Any:
    """part / whole, 0 where there is nothing."""
    whole = np.asarray(whole, np.float64)
    return np.divide(part, whole, out=np.zeros(whole.shape), where=whole > 0)


def sparsity(W: Float, n_features: float) -> float:
    """Share of zero entries of the (n_features, k) matrix whose kept rows are `W`; the intercept is not counted.

    `n_features` is the number of candidates: raw features, or hypotheses; 1 is returned where they have no end.

    Parameters
    ----------
    W : float64 array, shape (rows, k)
        Weights of what the model holds.
    n_features : float
        Number of candidates; may be infinite.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> sparsity(np.array([[1.0, 0.0], [2.0, 3.0]]), n_features=4)
    0.625
    """
    entries = n_features * W.shape[1]
    return 1.0 - int(np.count_nonzero(W)) / entries if entries else 1.0


def row_sparsity(W: Float, n_features: float) -> float:
    """Share of all-zero rows, i.e. of candidates that are never computed; the intercept is not counted.

    Parameters
    ----------
    W : float64 array, shape (rows, k)
        Weights of what the model holds.
    n_features : float
        Number of candidates; may be infinite.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> row_sparsity(np.array([[1.0, 0.0], [2.0, 3.0]]), n_features=4)
    0.5
    """
    return 1.0 - int(np.count_nonzero(np.any(W != 0, axis=1))) / n_features if n_features else 1.0


@dataclass(frozen=True)
class Computed:
    """What must be computed to classify one example."""

    # Hypotheses with a weight that is not zero; for a model of raw features these are the features.
    hypotheses: int
    # Raw features they are made from.
    features: int
    # Raw features offered.
    of_features: int


def computed_features(model: Any) -> Computed:
    """How many hypotheses, and how many raw features, must be computed to classify an example.

    It is what Duchi & Singer (2009, section 6) compare penalties by: a weight that is zero saves nothing while
    another class uses the same hypothesis.

    Parameters
    ----------
    model : Model, or a fitted estimator
        Hypotheses whose row of weights is zero are not counted. Raw features are those of all hypotheses that it
        holds.

    Returns
    -------
    Computed

    Raises
    ------
    DataError
        When it is neither.

    Examples
    --------
    >>> import dboost
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> computed_features(dboost.BoostedClassifier(alpha=0.3).fit(X, [0, 0, 1, 1]))
    Computed(hypotheses=1, features=1, of_features=2)
    """
    found = getattr(model, "model_", model)
    if not all(hasattr(found, name) for name in ("W", "hypotheses", "n_features")):
        raise DataError(f"{type_name(model)} has no model", hint="give a dboost Model, or an estimator after fit")
    used = np.any(np.asarray(found.W) != 0, axis=1)
    return Computed(int(np.count_nonzero(used)), len(found.hypotheses.inputs), int(found.n_features))
