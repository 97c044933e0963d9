"""What Raetsch, Mika & Warmuth say of leveraging, how the numbers judge it, and the figure.

Covers: claims, verdicts, findings, the drawing. Does not cover: measuring (``leveraging``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lab.reproduce import figures
from lab.reproduce.base import Figure
from lab.reproduce.claims import Check, Claim, Verdict, judged
from lab.reproduce.rows import Tables

LOSSES = {"exp": "AdaBoost", "log": "logistic regression", "squared": "LS-Boost"}
# from where to where the distance to the minimum is followed, relative to that of the first model
START, END = 1e-1, 1e-9


def linear(r: Any, said: str) -> Check:
    """Whether the logarithms of distances are a straight line that falls, from a tenth to a millionth at least."""
    if math.isnan(r["contraction"]):
        return Check(f"{said}: fewer than four rounds between {START:g} and {END:g} of the first distance", None)
    met = r["explained"] >= 0.98 and r["contraction"] < 1.0 and r["reached"] <= 1e-6
    return Check(
        f"{said}: from {START:g} to {r['reached']:.0e} in rounds {r['from_round']} to "
        f"{r['to_round']}, by {r['contraction']:.4f} a round ({r['first_half']:.4f} in the first half, "
        f"{r['second_half']:.4f} in the second), a straight line explaining {100 * r['explained']:.1f} % of the "
        "variance",
        bool(met),
    )


def judge_linear(tables: Tables) -> Verdict:
    """A straight line in logarithms, which does not flatten."""
    return judged(*(linear(r, LOSSES[r["loss"]]) for r in tables["rates"]))


def judge_worse(tables: Tables) -> Verdict:
    """The same for learners that fall short of the best."""
    return judged(*(linear(r, f"{LOSSES[r['loss']]}, delta {r['delta']:g}") for r in tables["worse"]))


def judge_penalised_rate(tables: Tables) -> Verdict:
    """The same for the penalised form."""
    return judged(*(linear(r, f"{LOSSES[r['loss']]} at {r['share']:g} alpha_max") for r in tables["penalised"]))


def judge_penalised(tables: Tables) -> Verdict:
    """The certificate closes, and the objective is that of the l1 problem."""
    checks = []
    for r in tables["penalised"]:
        met = r["gap"] <= 1e-9 and abs(r["excess"]) <= 1e-8
        said = (
            f"{LOSSES[r['loss']]} at {r['share']:g} alpha_max: certified gap {r['gap']:.0e} after {r['rounds']} rounds "
            f"({r['back']} of them back), KKT violation {r['kkt']:.0e} of C, objective {r['excess']:+.0e} from the "
            f"optimum, {r['features']} of {r['columns']} features (the optimum: {r['best_features']})"
        )
        checks.append(Check(said, bool(met)))
    return judged(*checks)


def judge_stall(tables: Tables) -> Verdict:
    """The first form stands still above the minimum; the second gets there."""
    rows = tables["stall"].where(set="four rows")
    first, second = (rows.where(learner=name)[0] for name in ("nearest", "joint"))
    return judged(
        Check(f"first form: {first['start']:g} before, {first['end']:g} after {first['rounds']} rounds, the least is "
              f"{first['least']:.1g}", bool(first["end"] > 0.99 * first["start"])),
        Check(f"second form: {second['end']:.1g}", bool(second["end"] <= second["least"] + 1e-9 * second["start"])),
    )  # fmt: skip


CLAIMS = (
    Claim(
        "Linear convergence",
        "Theorem 1 and its corollaries for AdaBoost, logistic regression and LS-Boost",
        "The distance of the loss to its minimum falls exponentially in the number of rounds.",
        "Followed from a tenth to 1e-9 of the first distance (to 1e-6 at least), a straight line in its logarithm "
        "explains 98 % of the variance.",
        judge_linear,
    ),
    Claim(
        "Linear with learners that are not the best",
        "Definition 5, Theorem 7",
        "It converges linearly as soon as the hypothesis of every round has an edge of delta times the largest, "
        "0 < delta <= 1.",
        "As before, with a learner that returns the worst hypothesis that delta allows.",
        judge_worse,
    ),
    Claim(
        "The penalised form reaches the minimum",
        "Algorithm 2, Section 4",
        "With an l1 penalty, and moving weights back where needed, leveraging converges to the regularised minimum.",
        "The certified gap is at most 1e-9 and the objective within 1e-8 of the totally corrective fit's.",
        judge_penalised,
    ),
    Claim(
        "Linear with a penalty",
        "Algorithm 2, Theorem 8",
        "Algorithm 2 converges linearly to the minimum of the regularised loss.",
        "As for Algorithm 1, with the distance to the certified optimum of the l1 problem.",
        judge_penalised_rate,
    ),
    Claim(
        "The first LS-Boost may stall",
        "Section 2, on eq. 5; docs/math.md 7 (I)",
        "Choosing the hypothesis nearest to the residuals, and its weight afterwards, may be the worse strategy.",
        "On four rows with a small hypothesis at a right angle to the residuals, the first form does not move and the "
        "second ends at the minimum.",
        judge_stall,
    ),
)


def draw(tables: Tables) -> Any:
    """Distance to the minimum by round."""
    figure, axes = figures.panels(3, height=3.3, width=3.9)
    for axis, (loss, said) in zip(axes, LOSSES.items(), strict=True):
        rows = tables["curves"].where(loss=loss)
        figures.curve(axis, "l1", rows.column("round"), rows.column("excess"), text="measured", dense=True)
        rate = tables["rates"].where(loss=loss)[0]
        ends = np.array([rate["from_round"], rate["to_round"]], dtype=float)
        line = np.exp(rate["offset"]) * rate["contraction"] ** ends
        figures.curve(axis, "l2", ends, line, text=f"{rate['contraction']:.4f} a round", marker="")
        axis.set_yscale("log")
        axis.set_ylim(1e-14, 2)
        axis.set_xlim(0, min(float(rows.column("round").max()), 1.5 * rate["to_round"] + 10))
        figures.label(axis, "round", "distance to the minimum", said)
        figures.legend(axis)
    return figure


FIGURES = (
    Figure(
        "convergence",
        "Distance of the mean loss to its minimum by round, relative to the first, and the fitted straight line.",
        draw,
    ),
)


def findings(tables: Tables) -> tuple[str, ...]:
    """Passes, the real tables of LS-Boost, and trees as base learners."""
    rates = "; ".join(f"{LOSSES[r['loss']]} {r['passes'] / r['rounds']:.1f}" for r in tables["rates"])
    said = [f"Passes over the data a round, the scoring pass included: {rates}."]
    for name in ("Boston, standardised", "Boston, columns as they are"):
        rows = tables["stall"].where(set=name)
        first, second = (rows.where(learner=learner)[0] for learner in ("nearest", "joint"))
        said.append(
            f"{name}: after {first['rounds']} rounds half the mean squared residual is {first['end']:.4f} with the "
            f"first form and {second['end']:.4f} with the second; the least is {first['least']:.4f}."
        )
    trees = ", ".join(f"depth {r['depth']}: {r['loss']:.3g}" for r in tables["learners"])
    said.append(f"Trees of scikit-learn as base learners, training loss after the same rounds: {trees}.")
    return tuple(said)
