"""What held-out rows say of a classifier beyond its error: calibration, and the mistakes it was surest of.

Covers: one pass over the rows, block by block, in this process. Does not cover: the figures of ``dboost evaluate``.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dboost import interruption
from dboost.data.parquet.plan import blocks_of
from dboost.model.explained import contributions
from dboost.model.fitted import Model

from ..predicting.rows import feature_positions, positions

# Rows of equal width in which probabilities are compared with shares, and mistakes that are shown.
BINS = 10
MISTAKES = 12
# Words that are shown for a mistake.
WORDS = 4


@dataclass
class HeldOut:
    """What was found.

    Parameters
    ----------
    rows : int
    calibration : list of dict
        For each bin of the probability of the predicted class: rows, their mean probability, their share of right ones.
    mistakes : list of dict
        The rows whose wrong label was the most probable, the surest first: where they are, both labels, the
        probability, and what spoke for the wrong one.
    """

    rows: int = 0
    calibration: list[dict[str, float]] = field(default_factory=list)
    mistakes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def off(self) -> float:
        """Mean distance between probability and share of right ones, over rows (expected calibration error)."""
        gaps = [one["rows"] * abs(one["probability"] - one["right"]) for one in self.calibration]
        return float(sum(gaps) / max(self.rows, 1))


def look_at(model: Model, data: Any) -> HeldOut | None:
    """Look at labelled rows; None for a model without one label for each row, and for rows without labels."""
    if model.task not in ("binary", "multiclass"):
        return None
    blocks = blocks_of(data, labels=True)
    if not blocks or not blocks[0].label:
        return None
    at, number = feature_positions(model, data, blocks), {str(c): i for i, c in enumerate(model.classes.tolist())}
    found = HeldOut()
    sums = np.zeros((BINS, 3))
    worst: list[tuple[float, int, dict[str, Any]]] = []
    for block in blocks:
        interruption.check()
        raw = block.read(label=True)
        rows = raw.csr(block.layout.n_features)[:, at]
        chances = model.probabilities(model.scores_of_inputs(rows))
        codes = np.array([number.get(str(label), -1) for label in raw.label_array().tolist()])
        said, known = chances.argmax(axis=1), codes >= 0
        top, right = chances.max(axis=1), said == codes
        bins = np.minimum((top * BINS).astype(int), BINS - 1)
        for column, weight in enumerate((np.ones(len(top)), top, right.astype(float))):
            sums[:, column] += np.bincount(bins[known], weight[known], minlength=BINS)
        file, row = positions(block)
        for i in np.flatnonzero(known & ~right).tolist():
            item = (float(top[i]), -found.rows - i, {"block": rows[[i]], "said": int(said[i]), "right": int(codes[i]),
                                                     "file": file[i].as_py(), "row": row[i].as_py()})  # fmt: skip
            (heapq.heappush if len(worst) < MISTAKES else heapq.heappushpop)(worst, item)
        found.rows += len(top)
    found.calibration = [{"rows": n, "probability": p / n, "right": r / n} for n, p, r in sums.tolist() if n]
    labels = model.classes.tolist()
    for chance, _, one in sorted(worst, key=lambda item: (-item[0], -item[1])):
        speaks = contributions(model, one["block"])
        part = speaks.of_class(one["said"])
        order = np.argsort(-part, kind="stable")[:WORDS]
        words = [speaks.words[j] for j in order.tolist() if part[j] > 0.0]
        found.mistakes.append(
            {"file": one["file"], "row": one["row"], "right": labels[one["right"]], "said": labels[one["said"]],
             "probability": chance, "words": words}
        )  # fmt: skip
    return found
