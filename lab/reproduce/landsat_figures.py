"""Figures of the Landsat reproduction, drawn from its tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.reproduce.base import Figure
from lab.reproduce.figures import curve, label, legend, panels
from lab.reproduce.landsat_claims import FACTOR, METRICS, PENALTIES, SIZES
from lab.reproduce.rows import Rows, Tables
from lab.reproduce.updates import UPDATES_IN_TIME

COVERAGE = "test coverage (classes above the right one)"
ERROR = "test error (share of pixels)"
WORDS = {"coverage": COVERAGE, "error": ERROR}


def _path_means(rows: Rows, penalty: str, x: str) -> Rows:
    """Mean over draws at each strength; strengths are the same shares of alpha_max in every draw."""
    rounded = Rows({**r, "place": round(float(np.log10(r["ratio"])), 6)} for r in rows.where(penalty=penalty))
    return rounded.means(("place",), (x, *METRICS))


def _paths(rows: Rows, title: str) -> Any:
    figure, axes = panels(2, 2)
    for line, metric in enumerate(METRICS):
        for place, (x, words) in enumerate(
            (("zero_entries", "share of zero entries of W"), ("zero_rows", "share of zero rows of W"))
        ):
            axis = axes[2 * line + place]
            for penalty in PENALTIES:
                found = _path_means(rows, penalty, x)
                curve(axis, penalty, found.column(x), found.column(metric), found.column(f"{metric}_se"))
            best = min(rows.where(penalty=p).column(metric).min() for p in PENALTIES)
            # Where a model makes no mistake, no multiple of the best value is a scale.
            top = 2.6 * best or float(rows.column(metric).max())
            axis.set_ylim(0.9 * best, top)
            axis.set_xlim(left=_left(rows, x, metric, top), right=1.0)
            label(axis, words, WORDS[metric], title if not (line or place) else "")
            legend(axis, loc="upper left")
    return figure


def _left(rows: Rows, x: str, metric: str, top: float) -> float:
    """The smallest share seen among the points inside the panel, with a little room."""
    inside = rows.column(x)[rows.column(metric) <= top]
    return float(inside.min() - 0.03 * (1.0 - inside.min()))


def draw_small(tables: Tables) -> Any:
    """Fig. 6 with the same number of examples of each class."""
    return _paths(tables["paths"].where(size=SIZES[0]), "balanced draws")


def draw_all(tables: Tables) -> Any:
    """Fig. 6 with all examples, or with what was run."""
    rows = tables["paths"].where(size=SIZES[1])
    return _paths(rows, "all training examples") if len(rows) else _paths(tables["paths"], "the sizes that were run")


def draw_need(tables: Tables) -> Any:
    """Features needed for a level, in units of those of l1/l2."""
    sizes = tables["levels"].values("size")
    figure, axes = panels(2, len(sizes))
    for line, size in enumerate(sizes):
        for place, metric in enumerate(METRICS):
            axis = axes[2 * line + place]
            for penalty in PENALTIES:
                rows = Rows(r for r in tables["levels"].where(size=size, metric=metric, penalty=penalty) if r["draws"])
                if len(rows):
                    curve(axis, penalty, rows.column("level"), rows.column("ratio"), rows.column("ratio_se"))
            axis.axhline(FACTOR, color="0.45", linewidth=1.2, linestyle=(0, (1, 2)), label="paper: l1 at least")
            axis.set_ylim(bottom=0.0)
            label(axis, f"level of {WORDS[metric]}", "features needed / those of l1/l2", size)
            legend(axis, loc="lower right")
    return figure


FIGURES = (
    Figure(
        "sparsity-balanced",
        "Beside Fig. 6, equally many training examples of each class: test coverage (above) and error (below) against "
        "the share of zero entries (left) and zero rows (right) among the 1,296 ordered products. Mean over draws, "
        "band of one standard error.",
        draw_small,
    ),
    Figure("sparsity-all", "The same with all 4,435 training pixels (one run).", draw_all),
    Figure(
        "features-needed",
        "Features each penalty must compute to reach a level of test coverage or error, in units of those of l1/l2. "
        "The paper says that l1 lies above the dotted line.",
        draw_need,
    ),
    UPDATES_IN_TIME,
)
