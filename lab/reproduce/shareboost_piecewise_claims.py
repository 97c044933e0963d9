"""What the ShareBoost paper says about piecewise linear models, how the numbers judge it, and the figure.

Covers: claims, verdicts, findings, drawing. Does not cover: measuring (``shareboost_piecewise``).
"""

from __future__ import annotations

from typing import Any

from lab.reproduce.base import Figure
from lab.reproduce.claims import Check, Claim, Verdict, judged
from lab.reproduce.figures import BLUE, VERMILION, label, legend, panels
from lab.reproduce.rows import Tables

ANCHORS = 230
NEAR = 1.25
FEW = 0.2


def _machine(tables: Tables) -> dict[str, Any]:
    (line,) = tables["machine"].where(chosen=True)
    return dict(line)


def judge_near(tables: Tables) -> Verdict:
    """The error of 230 pieces is near that of the machine."""
    machine = _machine(tables)["test_error"]
    rows = tables["path"].where(pieces=ANCHORS)
    if not len(rows):
        return judged(Check(f"the fit ended before {ANCHORS} pieces", None))
    found = rows[0]["test_error"]
    said = f"{ANCHORS} pieces: {100 * found:.2f} % of the test images wrong; machine: {100 * machine:.2f} %"
    return judged(Check(f"{said}; {found / machine:.2f} times as many", found <= NEAR * machine))


def judge_few(tables: Tables) -> Verdict:
    """230 is well below the number of support vectors."""
    machine = _machine(tables)
    vectors = machine["different_vectors"]
    said = f"{ANCHORS} anchors; {vectors:,} different support vectors, {machine['support_vectors']:,} over all classes"
    return judged(Check(said, vectors * FEW >= ANCHORS))


CLAIMS = (
    Claim(
        "230 anchors come close to Gaussian kernels",
        "section 7.5, Fig. 7",
        "ShareBoost comes close to the error rate of a Gaussian SVM while only requiring 230 anchor points.",
        f"Test error with {ANCHORS} pieces at most {NEAR:g} times that of the machine trained on the same images.",
        judge_near,
    ),
    Claim(
        "far fewer anchors than support vectors",
        "section 7.5",
        "230 anchors are well below the number of support vectors that a kernel machine needs.",
        f"{ANCHORS} is at most {FEW:g} of the number of different support vectors.",
        judge_few,
    ),
)


def findings(tables: Tables) -> tuple[str, ...]:
    """Cost, and where the curve has its lowest error."""
    (cost,) = tables["cost"]
    rows, machine = tables["path"], _machine(tables)
    best = min(rows, key=lambda r: r["test_error"])
    return (
        f"Lowest test error on the path: {100 * best['test_error']:.2f} % with {best['pieces']} pieces (not a choice: "
        f"it is read off the test images). The last model: {100 * rows[-1]['test_error']:.2f} % with "
        f"{rows[-1]['pieces']}, {100 * rows[-1]['training_error']:.2f} % in training.",
        f"{cost['candidates']:,} groups were scored in every round; all rounds took {cost['seconds']:.0f} s, the "
        f"machine {machine['seconds']:.0f} s; the process held at most {cost['peak_bytes'] / 1e9:.1f} GB.",
    )


def draw_errors(tables: Tables) -> Any:
    """Accuracy against pieces, with the machine's as a line."""
    figure, axes = panels(2)
    rows = tables["path"]
    machine = 100 * _machine(tables)["test_error"]
    looks = {"training": {"color": BLUE}, "test": {"color": VERMILION, "linestyle": "--"}}
    for axis in axes:
        for name, look in looks.items():
            axis.plot(rows.column("pieces"), 100 * rows.column(f"{name}_error"), linewidth=1.6, label=name, **look)
        axis.axhline(machine, color="0.3", linewidth=1.0, linestyle=":", label="Gaussian kernels, test")
    axes[0].set_ylim(bottom=0.0)
    axes[1].set_ylim(0.0, max(4.0 * machine, 4.0 * 100 * float(rows.column("test_error").min()), 1.0))
    label(axes[0], "pieces", "images classified wrongly (%)")
    label(axes[1], "pieces", "images classified wrongly (%)", "enlarged")
    legend(axes[0])
    return figure


FIGURES = (
    Figure(
        "error-by-pieces",
        "Beside Fig. 7: share of the training and test images that the model of each round classifies wrongly.",
        draw_errors,
    ),
)
