"""What a model is like: how many of its weights and rows are zero, and what must be computed to classify."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError

Float = NDArray[np.float64]


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
        raise DataError(f"a {type(model).__name__} has no model", hint="give a dboost Model, or an estimator after fit")
    used = np.any(np.asarray(found.W) != 0, axis=1)
    return Computed(int(np.count_nonzero(used)), len(found.hypotheses.inputs), int(found.n_features))
