"""What the ShareBoost paper says about digits, how the numbers judge it, and the figures.

Covers: claims, verdicts, findings, drawings. Does not cover: measuring (``shareboost_digits``).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from lab.reproduce.base import Figure
from lab.reproduce.claims import Check, Claim, Verdict, judged
from lab.reproduce.figures import BLUE, VERMILION, label, legend, panels
from lab.reproduce.rows import Tables
from lab.reproduce.shareboost_drawn import FEW_OPERATIONS
from lab.reproduce.shareboost_drawn import FIGURES as DRAWN

SHOWN = (10, 25, 50, 75, 100, 150, 200, 266)


def error_at(tables: Tables, features: int) -> float | None:
    """Test error of the model of so many features; None where the fit has not come so far."""
    rows = tables["path"].where(features=features)
    return None if not len(rows) else float(rows[0]["test_error"])


def judge_at(features: int, most: float, strictly: bool) -> Any:
    """The judge of: an error of at most `most` (or below it) with so many features."""

    def judge(tables: Tables) -> Verdict:
        found = error_at(tables, features)
        if found is None:
            return judged(Check(f"the fit ended before {features} features", None))

        def enough(error: float) -> bool:
            return error < most if strictly else error <= most

        first = next((r["features"] for r in tables["path"] if enough(r["test_error"])), None)
        when = "never within the run" if first is None else f"first with {first} features"
        said = f"{features} features: {100 * found:.2f} % of the test images wrong"
        words = f"{'below' if strictly else 'at most'} {100 * most:g} %"
        return judged(Check(f"{said}; {words} {when}", enough(found)))

    return judge


def judge_fast(tables: Tables) -> Verdict:
    """Most of the fall of the error comes from the first features."""
    early, late = error_at(tables, 75), error_at(tables, 266)
    if early is None or late is None:
        return judged(Check("the fit ended before 266 features", None))
    return judged(
        Check(f"error {100 * early:.2f} % with 75 features, {100 * late:.2f} % with 266", late <= early <= 2.0 * late)
    )


CLAIMS = (
    Claim(
        "75 features are enough for an error below 1 %",
        "section 7.4",
        "75 rounds are enough for achieving less than 1 % error.",
        "Test error of the model of round 75 below 1 %.",
        judge_at(75, 0.01, strictly=True),
    ),
    Claim(
        "0.71 % with 266 features on the original training set",
        "Table 1",
        "Trained on the original 60,000 images, ShareBoost has an error of 0.71 % with 266 features.",
        "Test error of the model of round 266 of at most 0.71 %.",
        judge_at(266, 0.0071, strictly=False),
    ),
    Claim(
        "the error converges fast",
        "Fig. 4",
        "The error falls steeply with the first features and slowly after them.",
        "The test error with 75 features is at most twice that with 266.",
        judge_fast,
    ),
    FEW_OPERATIONS,
)


def findings(tables: Tables) -> tuple[str, ...]:
    """What the features cost."""
    (cost,) = tables["cost"]
    last = tables["path"][-1]
    validation = sorted(tables["validation"], key=lambda r: r["error"])
    ends = (validation[0], validation[-1])
    told = "; ".join(f"{r['kind']}, ridge {r['ridge']:g}: {100 * r['error']:.2f} %" for r in ends)
    return (
        f"{cost['candidates']:,} features of {cost['images']:,} images took {cost['feature_bytes'] / 1e9:.2f} GB as "
        f"bytes; the process held at most {cost['peak_bytes'] / 1e9:.1f} GB. All rounds took {cost['seconds']:.0f} s.",
        f"The last model has {last['features']} features of {cost['templates_used']} different templates: "
        f"{100 * last['training_error']:.2f} % of the training images wrong, {100 * last['test_error']:.2f} % of the "
        "test images.",
        f"Validation, best and worst: {told}.",
    )


# ---- figures -------------------------------------------------------------------------------------------------------


def draw_errors(told: float, tables: Tables) -> Any:
    """Error against features, whole and enlarged; with the error that the paper tells, in per cent."""
    figure, axes = panels(2)
    rows = tables["path"]
    looks = {"training": {"color": BLUE}, "test": {"color": VERMILION, "linestyle": "--"}}
    for axis in axes:
        for name, look in looks.items():
            axis.plot(rows.column("features"), 100 * rows.column(f"{name}_error"), linewidth=1.6, label=name, **look)
    axes[0].set_yscale("log")
    lowest = 100 * rows.column("test_error").min()
    axes[1].set_ylim(0.0, max(4.0 * lowest, 1.0))
    if lowest <= 1.0:
        for level in (1.0, told):
            axes[1].axhline(level, color="0.4", linewidth=0.8, linestyle=":")
            axes[1].annotate(f"{level:g} %", (0.0, level), fontsize=8, va="bottom", color="0.3")
    label(axes[0], "features", "images classified wrongly (%)")
    label(axes[1], "features", "images classified wrongly (%)", "enlarged")
    legend(axes[0])
    return figure


def figures(told: float) -> tuple[Figure, ...]:
    """The figures, beside the error that the paper tells for the same training images, in per cent."""
    errors = Figure(
        "error-by-features",
        "Beside Fig. 4: share of the training and test images that the model of each round classifies wrongly.",
        partial(draw_errors, told),
    )
    return (errors, *DRAWN)


FIGURES = figures(0.71)
