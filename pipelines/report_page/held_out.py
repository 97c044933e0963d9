"""What held-out rows say of a classifier beyond its error: calibration, and the mistakes it was surest of."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost import interruption
from dboost.model.explained import contributions
from dboost.model.fitted import Model

from ..config import DataSettings
from ..predicting.judged import Labelled, codes_of, labelled_rows

# Rows of equal width in which probabilities are compared with shares, and mistakes that are shown.
BINS = 10
MISTAKES = 12
# Words that are shown for a mistake, and characters of its text.
WORDS, LONGEST = 4, 240


@dataclass
class HeldOut:
    """Calibration and mistakes of a model on rows with labels."""

    rows: int = 0
    # For each bin of the probability of the predicted class: rows, their mean probability, their share of right ones.
    calibration: list[dict[str, float]] = field(default_factory=list)
    # The rows whose wrong label was the most probable, the surest first: file and row, text and kept columns where the
    # rows are documents, both labels, the probability, and what spoke for the wrong one.
    mistakes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def off(self) -> float:
        """Mean distance between probability and share of right ones, over rows (expected calibration error)."""
        gaps = [one["rows"] * abs(one["probability"] - one["right"]) for one in self.calibration]
        return float(sum(gaps) / max(self.rows, 1))


def look_at(
    model: Model, settings: DataSettings, folder: str, client: Any = None, keep: Sequence[str] = ()
) -> HeldOut | None:
    """Look at the labelled rows that settings name; None for a model without one label a row."""
    if model.task not in ("binary", "multiclass"):
        return None
    with labelled_rows(settings, model, folder, client, keep) as rows:
        return _looked(model, rows, keep)


def _looked(model: Model, held_out: Labelled, keep: Sequence[str]) -> HeldOut:
    found = HeldOut()
    sums = np.zeros((BINS, 3))
    worst: list[tuple[float, int, dict[str, Any]]] = []
    # features are read as they are, and have no columns to keep
    keep = keep if held_out.transform is not None else ()
    for piece in held_out.pieces:
        interruption.check()
        rows, labels, _ = piece.labelled(model, held_out.transform, held_out.labels)
        _, codes = codes_of(labels, piece, held_out.labels, model)
        chances = model.probabilities(model.scores_of_inputs(rows))
        said, known = chances.argmax(axis=1), codes >= 0
        top, right = chances.max(axis=1), said == codes
        count_bins(sums, top[known], right[known])
        for i in np.flatnonzero(known & ~right).tolist():
            one = {"features": rows[[i]], "said": int(said[i]), "right": int(codes[i]), "at": i}
            (heapq.heappush if len(worst) < MISTAKES else heapq.heappushpop)(
                worst, (float(top[i]), -found.rows - i, one)
            )
        _place([one for _, _, one in worst if "at" in one], piece, keep)
        found.rows += len(top)
    found.calibration = [{"rows": n, "probability": p / n, "right": r / n} for n, p, r in sums.tolist() if n]
    labels = model.classes.tolist()
    for chance, _, one in sorted(worst, key=lambda item: (-item[0], -item[1])):
        speaks = contributions(model, one.pop("features"))
        part = speaks.of_class(one["said"])
        order = np.argsort(-part, kind="stable")[:WORDS]
        words = [speaks.words[j] for j in order.tolist() if part[j] > 0.0]
        one |= {"right": labels[one["right"]], "said": labels[one["said"]], "probability": chance, "words": words}
        found.mistakes.append(one)
    return found


def count_bins(bins: NDArray[np.float64], chances: NDArray[np.float64], right: NDArray[np.bool_]) -> None:
    """Add to rows, sum of probabilities and number of right ones, by the probability of the predicted class."""
    place = np.minimum((chances * BINS).astype(int), BINS - 1)
    for column, values in enumerate((np.ones(len(place)), chances, right.astype(float))):
        bins[:, column] += np.bincount(place, values, minlength=BINS)


def _place(mistakes: Sequence[dict[str, Any]], piece: Any, keep: Sequence[str]) -> None:
    """Say of the mistakes of a piece where they are, and what their rows hold."""
    if not mistakes:
        return
    rows = [one.pop("at") for one in mistakes]
    file, row = piece.positions()
    kept = piece.kept(keep)
    for one, i, text in zip(mistakes, rows, piece.texts(rows), strict=True):
        shown = text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
        values = {name: kept[name][i].as_py() for name in keep}
        one |= {"file": file[i].as_py(), "row": row[i].as_py(), "text": shown, "kept": values}
