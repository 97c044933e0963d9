"""Champion and challenger on the same held-out rows: the difference row by row, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost import interruption
from dboost.data.prepared.chunk import read_span
from dboost.errors import DataError
from dboost.estimators.transform_files import read_beside

from ..inputs import read_model
from ..pages import both_sides, labels_of, strength
from ..predicting.rows import RawRows, check_transform, how_of, raw_rows, reads_of
from ..report_page.held_out import BINS, count_bins
from ..templates import page_of

# Least probability that a label is taken to have: a class that a model has never seen would cost infinitely much.
LEAST = 1e-6
# Added to counts, so that a term or label without any is rare and not impossible.
_RARE = 0.5


@dataclass(frozen=True)
class Judged:
    """What held-out rows say of one model."""

    loss: NDArray[np.float64]  # of every row
    wrong: NDArray[np.float64]  # 1 for every row with a wrong label
    # Rows, sum of probabilities and number of right ones by the probability of the predicted class.
    bins: NDArray[np.float64]

    def off(self) -> float:
        """Mean distance between probability and share of right ones."""
        rows, chances, right = self.bins.T
        return float(np.abs(chances - right).sum() / max(rows.sum(), 1.0))

    def off_by_chance(self) -> tuple[float, float]:
        """What `off` is of a model whose probabilities are right, since rows are few: its mean and standard deviation.

        The right ones of a bin deviate from the sum P of n probabilities with a variance of at most P (1 - P / n), and
        of a normal deviate with the variance v the absolute value has the mean sqrt(2 v / pi) and the variance
        (1 - 2 / pi) v.
        """
        rows, chances, _ = self.bins[self.bins[:, 0] > 0].T
        variance = np.maximum(chances * (1.0 - chances / rows), 0.0)
        whole = max(rows.sum(), 1.0)
        mean = np.sqrt(2.0 / np.pi * variance).sum() / whole
        return float(mean), float(np.sqrt((1.0 - 2.0 / np.pi) * variance.sum()) / whole)


@dataclass(frozen=True)
class Comparison:
    """Two models on the same rows; the champion is None where there is none yet."""

    labels: NDArray[Any]  # the right ones
    challenger: Judged
    champion: Judged | None

    def difference(self) -> tuple[float, float]:
        """Mean of the challenger's loss less the champion's, row by row, and its standard error."""
        if self.champion is None:
            return 0.0, 0.0
        gaps = self.challenger.loss - self.champion.loss
        return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else np.inf

    def by_class(self) -> list[dict[str, Any]]:
        """Rows, error of both and the standard error of the difference, for each label."""
        found = []
        mine = self.challenger.wrong
        theirs = mine if self.champion is None else self.champion.wrong
        for label in np.unique(self.labels).tolist():
            at = self.labels == label
            gaps = mine[at] - theirs[at]
            se = float(gaps.std(ddof=1) / np.sqrt(at.sum())) if at.sum() > 1 else float("inf")
            errors = {"challenger": float(mine[at].mean()), "champion": float(theirs[at].mean())}
            difference = {"difference": float(gaps.mean()), "error": se}
            found.append({"label": label, "rows": int(at.sum()), **errors, **difference})
        return found


def compare(challenger: str, champion: str | None, data: Any, label: str, staging: Any, engine: Any) -> Comparison:
    """Judge both models on raw held-out documents."""
    models = [model_and_transform(one) for one in (challenger, champion) if one is not None]
    bins = [np.zeros((BINS, 3)) for _ in models]
    found: list[list[tuple[NDArray[np.float64], NDArray[np.float64]]]] = [[] for _ in models]
    labels: list[NDArray[Any]] = []
    # both transforms read the text themselves; the cut of the rows is that of the first
    read = raw_rows(data, models[0][1], (label,), staging, engine)
    for piece in read.pieces:
        interruption.check()
        columns = [read_span(span, [label])[label].to_pylist() for span in piece.chunk.spans]
        right = np.array([str(one) for column in columns for one in column])
        labels.append(right)
        for (model, transform), parts, counts in zip(models, found, bins):
            reads = reads_of(transform)
            assert reads is not None, "a model that is judged has a transform"
            mine = RawRows(piece.chunk, replace(how_of(transform, reads), types=piece.how.types), reads.given)
            chances = model.probabilities(mine.scores(model, transform))
            parts.append(_judged(chances, np.array([str(name) for name in model.classes.tolist()]), right, counts))
    if not labels:
        raise DataError("there are no held-out rows to judge on", file=str(data.data))
    judged = []
    for parts, counts in zip(found, bins):
        losses, wrong = map(np.concatenate, zip(*parts))
        judged.append(Judged(losses, wrong, counts))
    return Comparison(np.concatenate(labels), judged[0], judged[1] if len(judged) > 1 else None)


def model_and_transform(folder: str) -> tuple[Any, Any]:
    """A model that can judge raw documents, and what makes its features of them."""
    model, transform = read_model(folder), read_beside(folder)
    if transform is None:
        raise DataError("the model holds no transform, and cannot be judged on raw documents", file=folder)
    if model.task not in ("binary", "multiclass"):
        raise DataError(f"a {model.task} is not retrained", file=folder, hint="one label for each document is needed")
    check_transform(model, transform, folder)
    return model, transform


def _judged(
    chances: NDArray[np.float64], classes: NDArray[Any], right: NDArray[Any], bins: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Losses of some rows, and which are labelled wrongly; they are counted in `bins`."""
    order = np.argsort(classes, kind="stable")
    at = np.minimum(np.searchsorted(classes[order], right), len(classes) - 1)
    codes = np.where(classes[order][at] == right, order[at], -1)
    rows = np.arange(len(right))
    own = np.where(codes >= 0, chances[rows, np.maximum(codes, 0)], 0.0)
    top, said = chances.max(axis=1), chances.argmax(axis=1)
    count_bins(bins, top, said == codes)
    return -np.log(np.maximum(own, LEAST)), (said != codes).astype(float)


# ---- drift -----------------------------------------------------------------------------------------------------------


def stability(before: NDArray[np.float64], now: NDArray[np.float64]) -> float:
    """Population stability index of two vectors of counts: sum (q - p) ln(q / p) of their shares."""
    p, q = ((counts + _RARE) / (counts + _RARE).sum() for counts in (before, now))
    return float(((q - p) * np.log(q / p)).sum())


def by_chance(before: dict[str, float], now: dict[str, float], names: int) -> float:
    """What the index of two counts seldom exceeds where nothing has drifted: its mean and two standard deviations.

    Of N and N' draws of T kinds the index is about 1 / N + 1 / N' times a chi-squared variable with T - 1 degrees of
    freedom.
    """
    free = max(names - 1, 0)
    return (free + 2.0 * float(np.sqrt(2.0 * free))) * sum(1.0 / max(sum(one.values()), 1.0) for one in (before, now))


def label_drift(before: dict[str, float], now: dict[str, float]) -> float:
    """The index of two counts of labels."""
    names = sorted({*before, *now})
    return stability(*(np.array([counts.get(name, 0.0) for name in names]) for counts in (before, now)))


def term_drift(before: dict[str, float], now: dict[str, float], most: int = 10) -> tuple[float, list[dict[str, Any]]]:
    """The index of two counts of documents over the terms that both have, and the terms that moved most."""
    names = sorted(set(before) & set(now))
    if not names:
        return float("inf"), []
    p, q = (np.array([counts[name] for name in names]) + _RARE for counts in (before, now))
    p, q = p / p.sum(), q / q.sum()
    parts = (q - p) * np.log(q / p)
    order = np.argsort(-parts, kind="stable")[:most]
    moved = [{"term": names[j], "change": float(q[j] / p[j])} for j in order.tolist()]
    return float(parts.sum()), moved


MOST = 20


def html(values: dict[str, Any], challenger: str | None, champion: str | None) -> str:
    """The page; `challenger` and `champion` are folders of models, None for one that is not there."""
    both = challenger is not None and champion is not None
    change = changes(read_model(challenger), read_model(champion)) if both else None
    return page_of(__package__, "decision.html.j2", values=values, change=change)


def changes(mine: Any, theirs: Any) -> dict[str, Any]:
    """Features that came and went, and for each class those that it shares with before."""
    words = mine.hypotheses.words(), theirs.hypotheses.words()
    sides = both_sides(mine), both_sides(theirs)
    sizes = [dict(zip(w, strength(W).tolist())) for w, W in zip(words, sides)]
    came = sorted(set(sizes[0]) - set(sizes[1]), key=lambda word: (-sizes[0][word], word))
    went = sorted(set(sizes[1]) - set(sizes[0]), key=lambda word: (-sizes[1][word], word))
    by_class: list[dict[str, Any]] = []
    theirs_of = {label: r for r, label in enumerate(labels_of(theirs))}
    for r, label in enumerate(labels_of(mine)):
        now = {w for w, x in zip(words[0], sides[0][:, r].tolist()) if x > 0}
        if label not in theirs_of:
            by_class.append({"label": label, "new": True, "now": len(now), "shared": 0.0})
            continue
        before = {w for w, x in zip(words[1], sides[1][:, theirs_of[label]].tolist()) if x > 0}
        shared = len(now & before) / max(len(now | before), 1)
        by_class.append({"label": label, "new": False, "now": len(now), "shared": shared})
    order = np.argsort(np.array([float(one["shared"]) for one in by_class]), kind="stable")[:MOST].tolist()
    gone = [label for label in theirs_of if label not in set(labels_of(mine))]
    return {
        "came": came[:MOST], "came_all": len(came), "went": went[:MOST], "went_all": len(went),
        "classes": [by_class[j] for j in order], "gone": gone,
    }  # fmt: skip
