"""The kinds of problems: which losses each has, and what its scores predict."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError

Float = NDArray[np.float64]

# The losses of each task; the first is the default.
TASKS: dict[str, tuple[str, ...]] = {
    "binary": ("log", "exp"),
    "multiclass": ("multinomial", "margin_softmax", "exp_one_vs_rest"),
    "multitask": ("multitask",),
    "regression": ("squared", "epsilon_insensitive"),
}
# Losses of many classes in which every score stands for itself, and not for its difference from the others.
ONE_VS_REST = ("exp_one_vs_rest",)


def probabilities(task: str, loss: str, F: Float) -> Float:
    """Probabilities from scores.

    Parameters
    ----------
    task, loss : str
    F : float64 array, shape (m, k)

    Returns
    -------
    float64 array
        (m, 2) for two classes, (m, k) for more, and per task the probability of the positive label, (m, k).

    Raises
    ------
    UsageError
        For a regression.
    """
    F = _log_odds(task, loss, F)
    if task == "multiclass":
        chances: Float = np.exp(F - F.max(axis=1, keepdims=True, initial=-np.inf))
        chances /= chances.sum(axis=1, keepdims=True)
        return chances
    positive = _sigmoid(F)
    return positive if task == "multitask" else np.hstack([_sigmoid(-F), positive])


def log_probabilities(task: str, loss: str, F: Float) -> Float:
    """Logarithms of `probabilities`, finite where these round to zero."""
    F = _log_odds(task, loss, F)
    if task == "multiclass":
        below = F - F.max(axis=1, keepdims=True, initial=-np.inf)
        return np.asarray(below - np.log(np.exp(below).sum(axis=1, keepdims=True)))
    positive = -np.logaddexp(0.0, -F)
    return positive if task == "multitask" else np.hstack([-np.logaddexp(0.0, F), positive])


def _log_odds(task: str, loss: str, F: Float) -> Float:
    """Scores on the scale of log-odds, up to what they have in common where there are many classes."""
    if task == "regression":
        raise UsageError("a regression has no probabilities", hint="use predict")
    # The score that minimises exp(-yf) in expectation is half the log-odds.
    return 2.0 * F if loss in ("exp", *ONE_VS_REST) else F


def labels(task: str, classes: NDArray[Any], F: Float) -> NDArray[Any]:
    """Predictions from scores.

    Parameters
    ----------
    task : str
    classes : array
        Labels in the order of the codes.
    F : float64 array, shape (m, k)

    Returns
    -------
    array
        (m,) of `classes`, int64 (m, k) of 0 and 1 for tasks, float64 (m,) of a regression.
    """
    if task == "regression":
        return F[:, 0]
    if task == "multitask":
        return (F > 0).astype(np.int64)
    codes = np.argmax(F, axis=1) if task == "multiclass" else (F[:, 0] > 0).astype(np.int64)
    found: NDArray[Any] = classes[codes]
    return found


def _sigmoid(z: Float) -> Float:
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, small) / (1.0 + small)
