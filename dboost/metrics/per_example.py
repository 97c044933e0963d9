"""Error, log-loss, coverage (Duchi & Singer 2009, section 6) and margins of each example, from scores and labels.

Does not cover: their sums (``sums``).

Labels are encoded as in ``dboost.partition.Partition``: int8 (m, k) of -1, +1 and 0 for a missing label (one column
for two classes), or int32 (m,) class codes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dboost.errors import DataError

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
