"""The page as HTML: figures of a model and of held-out rows, put into the template.

Covers: what the page holds, and writing it. Does not cover: how figures are found (``held_out``, ``runs.report``), how
charts are drawn (``charts``), how the page looks (``templates``).
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from dboost.model.fitted import Model
from dboost.redact import redact_value

from .. import pages
from .charts import Line, chart
from .held_out import HeldOut

# Rows and columns of the map, words for a class, rows of a table of mistakes.
MAP_ROWS, MAP_COLUMNS, WORDS, CONFUSED = 40, 40, 10, 15
LARGEST_MATRIX = 20


def html(
    model: Model,
    *,
    title: str,
    evaluation: dict[str, Any] | None = None,
    held_out: HeldOut | None = None,
    path: list[dict[str, Any]] | None = None,
    made: dict[str, Any] | None = None,
) -> str:
    """The page.

    Parameters
    ----------
    model : Model
    title : str
    evaluation : dict, optional
        ``evaluation.json`` of ``dboost evaluate``.
    held_out : HeldOut, optional
    path : list of dict, optional
        The strengths of a path, as in ``path.json``.
    made : dict, optional
        ``run.json`` beside the model: settings, parameters, versions.
    """
    labels = pages.labels_of(model)
    environment = Environment(
        loader=PackageLoader(__package__, "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"percent": pages.percent, "count": lambda n: f"{n:,.6g}" if n < 1e6 else f"{n:,.0f}"}
    made = redact_value(made or {}, frozenset())
    return environment.get_template("report.html.j2").render(
        title=title,
        written=datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        facts=pages.model_facts(model),
        headline=_headline(model, evaluation),
        certificate=model.certificate,
        charts=_charts(model),
        tall=_tall,
        map=_map(model, labels),
        words=_words(model, labels),
        evaluation=evaluation,
        confusion=_confusion(evaluation, labels),
        held_out=held_out,
        calibration=_calibration(held_out),
        path=path,
        path_chart=_path_chart(path),
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
        found.insert(0, ("error on held-out rows", pages.percent(evaluation["error"])))
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
    used = chart([line("active_rows")], "round", "features in use")
    moved = chart([line("rows_in"), line("rows_out", "two")], "round", "features in and out")
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


def _map(model: Model, labels: list[str]) -> dict[str, Any]:
    """The strongest rows of W with a shade for every weight."""
    W, words = pages.both_sides(model), model.hypotheses.words()
    order = np.argsort(-pages.strength(W), kind="stable")[:MAP_ROWS]
    rows = []
    for j in order.tolist():
        largest = float(np.abs(W[j]).max(initial=0.0)) or 1.0
        weights = W[j, :MAP_COLUMNS].tolist()
        cells = [(w, round(abs(w) / largest, 2), "for" if w > 0 else "against") for w in weights]
        rows.append({"word": words[j], "strength": largest, "used": int(np.count_nonzero(W[j])), "cells": cells})
    return {"labels": labels[:MAP_COLUMNS], "more": max(0, len(labels) - MAP_COLUMNS), "rows": rows, "of": len(words)}


def _tall(labels: list[str]) -> int:
    """Height of headings that are written upwards, for the longest of them."""
    return min(112, 14 + 8 * max(map(len, labels), default=1))


def _words(model: Model, labels: list[str]) -> list[dict[str, Any]]:
    """For each class the features that speak most for it and against it."""
    W, words = pages.both_sides(model), model.hypotheses.words()
    found = []
    for r, label in enumerate(labels[: 2 * MAP_COLUMNS]):
        order = np.argsort(-np.abs(W[:, r]), kind="stable")
        for_it = [words[j] for j in order.tolist() if W[j, r] > 0][:WORDS]
        against = [words[j] for j in order.tolist() if W[j, r] < 0][: WORDS // 2]
        found.append({"label": label, "for": for_it, "against": against, "count": int(np.count_nonzero(W[:, r]))})
    return found


def _confusion(evaluation: dict[str, Any] | None, labels: list[str]) -> dict[str, Any] | None:
    """The whole matrix of few classes, and the most frequent mistakes of any number."""
    counts = None if evaluation is None else evaluation.get("confusion")
    if counts is None:
        return None
    matrix = np.asarray(counts, dtype=float)
    totals = np.maximum(matrix.sum(axis=1), 1e-300)
    rows = None
    if len(labels) <= LARGEST_MATRIX:
        shares = (matrix / totals[:, None]).round(3).tolist()
        rows = [
            {"label": labels[r], "cells": [(n, shares[r][s], r == s) for s, n in enumerate(row)]}
            for r, row in enumerate(matrix.tolist())
        ]
    wrong = matrix * (1 - np.eye(len(labels)))
    pairs = []
    for flat in np.argsort(-wrong, axis=None, kind="stable")[:CONFUSED].tolist():
        right, said = divmod(flat, len(labels))
        if wrong[right, said] > 0:
            share = float(wrong[right, said] / totals[right])
            pairs.append({"right": labels[right], "said": labels[said], "count": wrong[right, said], "share": share})
    return {"labels": labels, "rows": rows, "pairs": pairs}


def _calibration(held_out: HeldOut | None) -> str:
    if held_out is None or not held_out.calibration:
        return ""
    points = [(one["probability"], one["right"]) for one in held_out.calibration]
    ideal = Line([(0.0, 0.0), (1.0, 1.0)], "two")
    found = Line(points, "one", marked=True)
    return chart([ideal, found], "probability that was said", "share that was right", unit=True)


def _path_chart(path: list[dict[str, Any]] | None) -> str:
    if not path:
        return ""
    points = [(-float(np.log10(one["alpha"])), _number(one.get("active_rows"))) for one in path if one.get("alpha")]
    return chart([Line(points, marked=True)], "-log10 of the strength", "features in use")


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
