"""What the paper says about MNIST with kernels, how the numbers judge it, and the figures.

Covers: claims, verdicts, findings, drawings. Does not cover: measuring (``mnist_kernel``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.reproduce.base import Figure
from lab.reproduce.claims import Check, Claim, Verdict, grouped, judged, plus_minus
from lab.reproduce.figures import curve, label, legend, panels
from lab.reproduce.rows import Rows, Tables, mean_and_error
from lab.reproduce.updates import PRUNING, UPDATES_IN_TIME, time_findings

PENALTIES = ("l1", "l1/l2", "l1/linf", "l2")
STRUCTURED = ("l1/l2", "l1/linf")
HALF = (0.4, 0.6)


def _means(tables: Tables) -> Rows:
    return tables["chosen"].means(("per_class", "penalty"), ("coverage", "error", "active_rows"))


def _sizes(tables: Tables) -> list[int]:
    return sorted(tables["chosen"].values("per_class"))


def judge_structured(tables: Tables) -> Verdict:
    """The structured penalties have better coverage than l1 and l2, beyond one standard error."""
    checks: list[Check] = []
    for better in STRUCTURED:
        for worse in ("l1", "l2"):
            met, told = [], []
            for size in _sizes(tables):
                rows = tables["chosen"].where(per_class=size)
                drops = rows.where(penalty=worse).column("coverage") - rows.where(penalty=better).column("coverage")
                mean, error = mean_and_error(drops.tolist())
                met.append(mean > (error or 0.0))
                told.append(f"{size} a class {mean:+.4f}{plus_minus(error, 4)}")
            checks += grouped(met, told, f"coverage of {worse} minus that of {better}, same draws:")
    return judged(*checks)


def judge_growth(tables: Tables) -> Verdict:
    """Mean coverage falls with every larger training set."""
    checks = []
    for penalty in PENALTIES:
        values = [_means(tables).where(penalty=penalty, per_class=size)[0]["coverage"] for size in _sizes(tables)]
        shown = ", ".join(f"{value:.4f}" for value in values)
        met = bool(np.all(np.diff(values) < 0)) if len(values) > 1 else None
        checks.append(Check(f"{penalty}: coverage {shown} with {', '.join(map(str, _sizes(tables)))} a class", met))
    return judged(*checks)


def judge_half(tables: Tables) -> Verdict:
    """Error divided by coverage is about one half."""
    checks: list[Check] = []
    for penalty in PENALTIES:
        met, told = [], []
        for size in _sizes(tables):
            (line,) = _means(tables).where(penalty=penalty, per_class=size)
            if line["coverage"] == 0:
                continue
            ratio = line["error"] / line["coverage"]
            met.append(HALF[0] <= ratio <= HALF[1])
            told.append(f"{size} a class {ratio:.2f} ({line['error']:.4f} / {line['coverage']:.4f})")
        checks += grouped(met, told, f"{penalty}, error / coverage:")
    return judged(*checks)


CLAIMS = (
    Claim(
        "structured penalties have better coverage",
        "Fig. 7, left",
        "The penalties that make W sparse, specifically l1/l2 and l1/linf, give better coverage than the others.",
        "For each number of examples, the mean difference over the draws (same examples) between l1 or l2 and each "
        "structured penalty is above zero by more than its standard error.",
        judge_structured,
    ),
    Claim(
        "more examples help every penalty",
        "Fig. 7, left",
        "The coverage of every method improves as the number of training examples grows.",
        "Mean test coverage falls with every step to more examples.",
        judge_growth,
    ),
    Claim(
        "error is about half the coverage",
        "section 6, text to Fig. 7",
        "The error rate on the test set is roughly 50 % of the coverage.",
        f"Mean test error divided by mean test coverage lies between {HALF[0]} and {HALF[1]}, for every penalty and "
        "number of examples.",
        judge_half,
    ),
    PRUNING,
)


def findings(tables: Tables) -> tuple[str, ...]:
    """How sparse the chosen models are, and whether kernels made by the fit give the same."""
    largest = _sizes(tables)[-1]
    parts = []
    for penalty in PENALTIES:
        (line,) = _means(tables).where(penalty=penalty, per_class=largest)
        parts.append(f"{penalty} {line['active_rows']:.0f}{plus_minus(line['active_rows_se'], 0)}")
    smallest = tables["paths"].column("ratio").min()
    at_end = int(np.count_nonzero(tables["chosen"].column("ratio") <= 1.0001 * smallest))
    lazy = tables["lazy"]
    apart = np.abs(lazy.column("objective") / lazy.column("objective_explicit") - 1.0)
    gap = max(lazy.column("gap").max(), lazy.column("gap_explicit").max())
    return (
        f"Kernels used by the chosen models, {largest} a class: {', '.join(parts)}.",
        f"Validation chose the smallest strength of the path in {at_end} of {len(tables['chosen'])} cases; there "
        "a smaller one might have done better.",
        "Kernels made by the fit from pixels, beside the shared matrix: objectives differ by at most "
        f"{apart.max():.1e} (relative), with certified gaps of at most {gap:.1e}.",
        *time_findings(tables),
    )


# ---- figures -------------------------------------------------------------------------------------------------------


def draw_examples(tables: Tables) -> Any:
    """Coverage and error against examples of each class."""
    figure, axes = panels(3, width=4.6)
    means = _means(tables)
    for penalty in PENALTIES:
        rows = means.where(penalty=penalty)
        rows = Rows(sorted(rows, key=lambda r: r["per_class"]))
        sizes = rows.column("per_class")
        for axis, name in zip(axes, ("coverage", "error", "active_rows"), strict=True):
            curve(axis, penalty, sizes, rows.column(name), rows.column(f"{name}_se"))
    for axis in axes:
        axis.set_xscale("log")
        axis.set_xticks(_sizes(tables), [str(size) for size in _sizes(tables)])
        axis.minorticks_off()
        axis.set_ylim(bottom=0.0)
        legend(axis)
    label(axes[0], "training examples of each class", "test coverage (classes above the right one)")
    label(axes[1], "training examples of each class", "test error (share of images)")
    label(axes[2], "training examples of each class", "kernels used")
    return figure


def draw_paths(tables: Tables) -> Any:
    """Coverage along the paths, for the largest training set."""
    figure, axes = panels(2)
    rows = tables["paths"].where(per_class=_sizes(tables)[-1])
    for axis, name in zip(axes, ("coverage", "error"), strict=True):
        for penalty in PENALTIES:
            places = Rows({**r, "place": round(float(np.log10(r["ratio"])), 6)} for r in rows.where(penalty=penalty))
            means = places.means(("place",), ("ratio", name))
            curve(axis, penalty, means.column("ratio"), means.column(name), means.column(f"{name}_se"))
        axis.set_xscale("log")
        axis.invert_xaxis()
        # The empty model is far above all others; what matters is near the best.
        axis.set_ylim(0.0, 3.0 * float(rows.column(name).min()) or None)
        legend(axis)
    label(axes[0], "strength / alpha_max", "test coverage", f"{_sizes(tables)[-1]} examples of each class")
    label(axes[1], "strength / alpha_max", "test error")
    return figure


FIGURES = (
    Figure(
        "examples",
        "Beside Fig. 7 (left) and Fig. 8: coverage, error and kernels used on the test images against the number of "
        "training examples of each class, strength chosen by validation. Mean over draws, band of one standard error.",
        draw_examples,
    ),
    Figure("along-the-path", "The same figures along the whole path, for the largest training set.", draw_paths),
    UPDATES_IN_TIME,
)
