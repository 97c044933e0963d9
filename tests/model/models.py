"""A small model for the tests of this folder."""

from __future__ import annotations

import json
import math

import numpy as np

from dboost.files.documents import content_digest
from dboost.hypotheses.columns import ColumnSet
from dboost.losses import losses_of
from dboost.model.fitted import Certificate, Model


def make(task="multiclass", classes=None, names=True, seed=0, n=9, active=(1, 4, 7)):
    rng = np.random.default_rng(seed)
    k = 1 if task in ("binary", "regression") else 3
    if classes is None:
        classes = np.array({"binary": ["no", "yes"], "regression": []}.get(task, ["a", "b", "ü"]))
    feature_names = tuple(f"f{j}·" for j in range(n)) if names else None
    return Model(
        task=task,
        loss=losses_of(task)[0],
        penalty="l1/linf",
        hypotheses=ColumnSet(
            np.array(active, dtype=np.int64), tuple(feature_names[j] for j in active) if names else None
        ),
        W=rng.normal(size=(len(active), k)),
        intercept=rng.normal(size=k),
        classes=classes,
        n_features=n,
        certificate=Certificate(0.5, math.inf, -math.inf, "max_rounds", 0.1, 1 / 3, 7, 19),
        feature_names=feature_names,
        manifest={"rows": 5, "settings": {"tol": 1e-4, "classes": None}},
        history=({"round": 1, "gap": math.inf, "objective": 0.1 + 0.2},),
    )


def write_sealed(file, document):
    """Write a document with the digest of what it says, so that only the checks of its content can refuse it."""
    file.write_text(json.dumps(document | {"sha256": content_digest(document)}))


def write_unsealed(file, document):
    """Write a document of a version that had no digest."""
    file.write_text(json.dumps({name: value for name, value in document.items() if name != "sha256"}))
