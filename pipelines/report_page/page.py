"""The page as HTML: figures of a model and of held-out rows, put into the template."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dboost.estimators.model_folders import read_transform
from dboost.estimators.selecting import FRONTIER
from dboost.files.store_folders import local_copy
from dboost.model.fitted import Model
from dboost.redact import redact_value

from .. import pages
from ..templates import page_of
from .held_out import HeldOut

# What the words of the page mean, where they stand.
EXPLAINED = {
    "model": "minimised is the mean loss plus alpha times the penalty; alpha_max is the least that uses no feature",
    "outputs": "what is told apart",
    "features used": "features with a weight other than zero, of all that were offered",
    "hypotheses used": "computed features with a weight other than zero, of all that were offered",
    "weights used": "weights other than zero: a feature has one for each class",
    "certificate": "a proof: no model of this loss and penalty has an objective lower by more than this share",
    "work": "a round takes features in and solves for their weights; a pass reads all rows once",
    "error": "share of rows whose class was said wrongly",
    "log-loss": "mean of -ln of the probability that the right class was given; 0 is best, ln of the number of classes "
    "is guessing",
    "coverage error": "how many classes are ranked above the right one, on average; 0 is best",
    "mean margin": "how far the score of the right class is above the best other one, for weights of size 1",
    "micro F1": "of all tags of all rows, the harmonic mean of precision and recall; 1 is best",
    "macro F1": "the mean of the F1 of each tag, a rare one counting as much as a frequent one",
    "precision at": "of so many tags that are most probable, the share that the row has",
    "root mean squared error": "in the unit of what is predicted",
    "explained variance (R²)": "1 is best, 0 is what the mean of all rows would reach",
    "precision": "of the rows that were said to be of the class, the share that is",
    "recall": "of the rows that are of the class, the share that was said to be",
    "strength": "alpha: the larger, the fewer features",
    "probability": "what the model gave the class that it said",
}
# Pixels that a heading may be high.
TALLEST = 360
# Rows and columns of the map, words for a class, rows of a table of mistakes.
MAP_ROWS, MAP_COLUMNS, WORDS, CONFUSED = 40, 40, 10, 15
LARGEST_MATRIX = 20


def html(
    model: Model,
    folder: str | None = None,
    *,
    title: str,
    evaluation: dict[str, Any] | None = None,
    held_out: HeldOut | None = None,
    path: list[dict[str, Any]] | None = None,
) -> str:
    """The page.

    `folder`: of the model, as ``find_model`` gives it. Its transform tells words by which a document is from those that
    all have, and ``run.json`` in it has settings, parameters, versions, cross-validation.
    `path`: the strengths of a path, as in ``path.json``.
    """
    labels = pages.labels_of(model)
    transform = None if folder is None else read_transform(folder)
    made = None if folder is None else read_json(Path(local_copy(folder)) / "run.json")
    matter = _matter(model, transform)
    made = redact_value(made or {}, frozenset())
    return page_of(
        __package__,
        "report.html.j2",
        title=title,
        facts=[(name, value, EXPLAINED.get(name, "")) for name, value in pages.model_facts(model)],
        explained=EXPLAINED,
        headline=_headline(model, evaluation),
        certificate=model.certificate,
        charts=_charts(model),
        tall=_tall,
        tallest=TALLEST,
        map=_map(model, labels, matter),
        words=_words(model, labels, matter),
        evaluation=evaluation,
        classes=_classes(evaluation, labels),
        n_classes=len(labels),
        confusion=_confusion(evaluation, labels),
        held_out=held_out,
        calibration=_calibration(held_out),
        folds=made.get("cross_validation") or [],
        folds_chart=_by_strength(made.get("cross_validation"), "mean_loss", "mean loss on the folds"),
        chosen=model.certificate.alpha,
        path=path,
        path_chart=_by_strength(path, "features", "features in use"),
        frontier=model.manifest.get(FRONTIER) or [],
        frontier_chart=_frontier(model.manifest.get(FRONTIER) or []),
        data=_flat(model.manifest.get("data", {})),
        settings=_flat(made.get("parameters") or made.get("settings") or {}),
        versions=_flat(made.get("versions") or model.manifest.get("versions", {})),
    )


def read_json(path: Path) -> Any:
    """A JSON file; None where it is not there."""
    return json.loads(path.read_bytes()) if path.is_file() else None


def _headline(model: Model, evaluation: dict[str, Any] | None) -> list[tuple[str, str]]:
    """The few numbers that are read first."""
    found = [("features used", f"{len(model.inputs):,} of {model.n_features:,}")]
    if evaluation and evaluation.get("error") is not None:
        found.insert(0, ("error on the rows judged", pages.percent(evaluation["error"])))
    if evaluation and evaluation.get("rmse") is not None:
        found.insert(0, ("root mean squared error", f"{evaluation['rmse']:.4g}"))
    gap = model.certificate.gap
    found.append(("from the best possible objective", f"{gap:.1e}" if np.isfinite(gap) else "not known"))
    return found


def _charts(model: Model) -> list[tuple[str, str]]:
    """Charts over the rounds of the fit with what they show."""
    rounds = [(float(r.get("round", i + 1)), r) for i, r in enumerate(model.history)]

    def line(name: str, kind: str = "one") -> Line:
        return Line([(at, _number(r.get(name))) for at, r in rounds], kind, marked=len(rounds) < 40)

    gap = chart([line("gap")], "round", "certified relative gap", logarithmic=True)
    used = chart([line("features")], "round", "features in use")
    moved = chart([line("features_in"), line("features_out", "two")], "round", "features in and out")
    return [
        (caption, svg)
        for caption, svg in (
            ("How far the model was from the best possible one: none has an objective lower by more than that.", gap),
            ("Features in use after each round.", used),
            ("Features that entered (line) and left (dashes) in each round.", moved),
        )
        if svg
    ]


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def _matter(model: Model, transform: Any) -> Any:
    """How much each feature tells apart, shape (a, classes): how far its weights are from their mean over the classes.

    What all classes have in common changes no probability of one among several. The weight of a term in a document that
    has it once grows with its rarity, so that what is read here is what a word does where it stands: "of" has large
    weights and does little.
    """
    W = pages.both_sides(model)
    if model.task in ("multiclass", "binary"):
        W = W - W.mean(axis=1, keepdims=True)
    rarity = getattr(transform, "idf", getattr(transform, "idf_", None))
    if rarity is None or not model.plain or len(rarity) != model.n_features:
        return W
    return W * np.asarray(rarity, dtype=float)[model.active][:, None]


def _map(model: Model, labels: list[str], matter: Any) -> dict[str, Any]:
    """The rows of W that tell most apart, with a shade for every weight."""
    W, words = pages.both_sides(model), model.hypotheses.words()
    order = np.argsort(-matter.std(axis=1) if matter.shape[1] > 1 else -np.abs(matter[:, 0]), kind="stable")[:MAP_ROWS]
    rows = []
    for j in order.tolist():
        largest = float(np.abs(W[j]).max(initial=0.0)) or 1.0
        weights = W[j, :MAP_COLUMNS].tolist()
        cells = [(w, round(abs(w) / largest, 2), "for" if w > 0 else "against") for w in weights]
        rows.append({"word": words[j], "strength": largest, "used": int(np.count_nonzero(W[j])), "cells": cells})
    return {"labels": labels[:MAP_COLUMNS], "more": max(0, len(labels) - MAP_COLUMNS), "rows": rows, "of": len(words)}


def _tall(labels: list[str]) -> int:
    """Height of headings that are written upwards, for the longest of them; beyond it they go on beside themselves."""
    return min(TALLEST, 14 + 8 * max(map(len, labels), default=1))


def _words(model: Model, labels: list[str], matter: Any) -> list[dict[str, Any]]:
    """For each class the features that speak most for it and against it, beside the other classes."""
    W, words = pages.both_sides(model), model.hypotheses.words()
    found = []
    for r, label in enumerate(labels[: 2 * MAP_COLUMNS]):
        order = np.argsort(-np.abs(matter[:, r]), kind="stable").tolist()
        for_it = [words[j] for j in order if W[j, r] > 0 and matter[j, r] > 0][:WORDS]
        against = [words[j] for j in order if W[j, r] < 0 and matter[j, r] < 0][: WORDS // 2]
        found.append({"label": label, "for": for_it, "against": against, "count": int(np.count_nonzero(W[:, r]))})
    return found


def _classes(evaluation: dict[str, Any] | None, labels: list[str]) -> list[dict[str, Any]]:
    """Precision and recall of each class, with its rows, or of each tag, with its F1; of many the lowest recalls."""
    found = evaluation or {}
    if found.get("confusion") is not None:
        judged = {name: found[name] for name in ("precision", "recall") if found.get(name) is not None}
        judged["rows"] = np.asarray(found["confusion"], dtype=float).sum(axis=1).tolist()
    else:
        names = ("precision", "recall", "f1")
        judged = {name: found[f"task_{name}"] for name in names if found.get(f"task_{name}") is not None}
    if "recall" not in judged:
        return []
    rows = [{"label": label} | {name: each[r] for name, each in judged.items()} for r, label in enumerate(labels)]
    if len(rows) <= MAP_COLUMNS:
        return rows
    known = [one for one in rows if one["recall"] is not None and one["recall"] == one["recall"]]
    return sorted(known, key=lambda one: one["recall"])[:MAP_COLUMNS]


def _confusion(evaluation: dict[str, Any] | None, labels: list[str]) -> dict[str, Any] | None:
    """The whole matrix of few classes, and the most frequent mistakes of any number."""
    counts = None if evaluation is None else evaluation.get("confusion")
    if counts is None:
        return None
    matrix = np.asarray(counts, dtype=float)
    rows = None
    if len(labels) <= LARGEST_MATRIX:
        shares = (matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-300)).round(3).tolist()
        rows = [
            {"label": labels[r], "cells": [(n, shares[r][s], r == s) for s, n in enumerate(row)]}
            for r, row in enumerate(matrix.tolist())
        ]
    return {"labels": labels, "rows": rows, "pairs": pages.mistakes(matrix, labels, CONFUSED)}


def _calibration(held_out: HeldOut | None) -> str:
    if held_out is None or not held_out.calibration:
        return ""
    points = [(one["probability"], one["right"]) for one in held_out.calibration]
    ideal = Line([(0.0, 0.0), (1.0, 1.0)], "two")
    found = Line(points, "one", marked=True)
    return chart([ideal, found], "probability that was said", "share that was right", unit=True)


def _by_strength(rows: Sequence[dict[str, Any]] | None, name: str, what: str) -> str:
    """A figure of the strengths of a path, or of a cross-validation."""
    points = [(-float(np.log10(one["alpha"])), _number(one.get(name))) for one in rows or () if one.get("alpha")]
    return chart([Line(points, marked=True)], "-log10 of the strength", what)


def _frontier(rows: Sequence[dict[str, Any]]) -> str:
    """Score of held-out rows by the number of features, and one standard error to either side."""
    points = sorted((math.log10(one["features"]), one["score"], one["se_score"]) for one in rows if one["features"])
    lines = [Line([(at, score + side * error) for at, score, error in points], "two") for side in (-1.0, 1.0)]
    lines.append(Line([(at, score) for at, score, _ in points], "one", marked=True))
    return chart(lines, "log10 of the number of features", "score of held-out rows", zero=False)


def _flat(values: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Nested settings as names and texts."""
    if not isinstance(values, dict):
        return []
    found = []
    for name, value in values.items():
        if isinstance(value, dict) and value:
            found += _flat(value, f"{prefix}{name}.")
        elif value is not None and value != [] and value != {}:
            text = value if isinstance(value, str) else json.dumps(value, default=str)
            found.append((prefix + str(name), text if len(text) <= 200 else text[:200] + " ..."))
    return found


WIDTH, HEIGHT = 460, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 10, 34


@dataclass(frozen=True)
class Line:
    """A line."""

    points: Sequence[tuple[float, float]]  # those that are not finite are left out
    kind: str = "one"  # its class in the style sheet, which gives its colour and dashes
    marked: bool = False  # whether points are drawn too


def chart(
    lines: Sequence[Line], x: str, y: str, *, logarithmic: bool = False, unit: bool = False, zero: bool = True
) -> str:
    """An SVG of some lines; empty text where there are no points.

    `logarithmic`: whether y is drawn by its logarithm; what is not positive is left out.
    `unit`: whether both axes go from 0 to 1. `zero`: whether y begins at 0.
    """
    kept = [
        (line, [(a, b) for a, b in line.points if math.isfinite(a) and math.isfinite(b) and (b > 0 or not logarithmic)])
        for line in lines
    ]
    every = [point for _, points in kept for point in points]
    if not every:
        return ""
    xs, ys = [a for a, _ in every], [math.log10(b) if logarithmic else b for _, b in every]
    low_x, high_x = (0.0, 1.0) if unit else (min(xs), max(max(xs), min(xs) + 1))
    if unit:
        ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    elif logarithmic:
        step = max(1, math.ceil((max(ys) - min(ys)) / 5))
        ticks = [float(v) for v in range(math.floor(min(ys)), math.ceil(max(ys)) + step, step)]
    else:
        ticks = round_numbers(min(0.0, min(ys)) if zero else min(ys), max(ys))
    low_y, high_y = ticks[0], max(ticks[-1], ticks[0] + 1e-12)

    def at(a: float, b: float) -> tuple[float, float]:
        b = math.log10(b) if logarithmic else b
        across = (a - low_x) / (high_x - low_x) * (WIDTH - _LEFT - _RIGHT)
        up = (b - low_y) / (high_y - low_y) * (HEIGHT - _TOP - _BOTTOM)
        return round(_LEFT + across, 1), round(HEIGHT - _BOTTOM - up, 1)

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{y} by {x}">']
    for tick in ticks:
        _, up = at(low_x, 10**tick if logarithmic else tick)
        words = f"1e{tick:.0f}" if logarithmic else f"{tick:g}"
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{up}" y2="{up}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{up + 4}" text-anchor="end">{words}</text>')
    for tick in ticks if unit else round_numbers(low_x, high_x):
        # rounds and strengths are counted: between two of them there is nothing
        if low_x <= tick <= high_x and (unit or high_x - low_x > 8 or tick == int(tick)):
            across, _ = at(tick, 10**low_y if logarithmic else low_y)
            parts.append(f'<text x="{across}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
    for line, points in kept:
        places = [at(*point) for point in points]
        drawn = " ".join(f"{a},{b}" for a, b in places)
        parts.append(f'<polyline class="{line.kind}" fill="none" stroke="currentColor" points="{drawn}"/>')
        if line.marked or len(places) == 1:
            parts += [f'<circle class="{line.kind}" cx="{a}" cy="{b}" r="3"/>' for a, b in places]
    parts.append(f'<text x="{(WIDTH + _LEFT) / 2}" y="{HEIGHT - 4}" text-anchor="middle">{x}</text>')
    middle = (HEIGHT - _BOTTOM + _TOP) / 2
    parts.append(f'<text transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">{y}</text></svg>')
    return "".join(parts)


def round_numbers(low: float, high: float, most: int = 6) -> list[float]:
    """Numbers of one or two digits that enclose a range."""
    if high <= low:
        high = low + 1.0
    rough = (high - low) / (most - 1)
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    first = math.floor(low / step)
    return [round(step * i, 12) for i in range(first, math.ceil(high / step - 1e-9) + 1)]
