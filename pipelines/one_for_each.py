"""One classifier for each class, seen as one model: what is judged, labelled and shown of a single model is of these.

Covers: ``OneForEach``, from a saved ``OneVsRestBoostedClassifier``. Does not cover: its fit, its folder (``dboost``).
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp

import dboost
from dboost.errors import UsageError
from dboost.hypotheses.columns import ColumnSet
from dboost.model.fitted import Model
from dboost.model.tasks import leading

Float = NDArray[np.float64]


class OneForEach(Model):
    """The union of the columns of several classifiers, one score for each.

    Its scores are the logarithms of the shares of the single probabilities, so that the softmax of them, which is that
    of any model of several classes, are the probabilities of ``OneVsRestBoostedClassifier``.
    """

    def scores_of_inputs(self, X: Any) -> Float:
        """See ``Model``."""
        scores = super().scores_of_inputs(X)
        each: Float = log_expit(scores)
        return leading(scores, each - logsumexp(each, axis=1, keepdims=True))


def read_one_for_each(path: str) -> Model:
    """The models of a folder as one."""
    estimator = dboost.load_model(path)
    parts = [one.model_ for one in estimator.estimators_]
    if len(parts) == 1:
        return replace(parts[0], classes=estimator.classes_)
    if not all(part.plain and part.n_outputs == 1 for part in parts):
        raise UsageError(
            "models of one class each are judged together where they hold columns, one score each", file=path
        )
    active = np.unique(np.concatenate([part.active for part in parts]))
    W = np.zeros((len(active), len(parts)))
    for r, part in enumerate(parts):
        W[np.searchsorted(active, part.active), r] = part.W[:, 0]
    names = parts[0].feature_names
    words = None if names is None else tuple(names[j] for j in active.tolist())
    common = {item.name: getattr(parts[0], item.name) for item in fields(Model)}
    return OneForEach(
        **common
        | {
            "task": "multiclass",
            "loss": "multinomial",
            "hypotheses": ColumnSet(active, words),
            "W": W,
            "intercept": np.concatenate([part.intercept for part in parts]),
            "classes": estimator.classes_,
            "history": (),
            "stages": None,
        }
    )
