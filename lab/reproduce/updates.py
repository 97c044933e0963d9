"""AdaBoost beside GradBoost with l1/linf, in time: the measurements of Figs. 7 (right) and 8 on any multiclass problem.

Covers: the table ``updates``, the claim that induction is followed by pruning, the figure and findings.
Does not cover: the loop that is followed (``rounds``), or any data set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dboost
from dboost import metrics
from lab.reproduce.base import Context, Figure
from lab.reproduce.claims import Check, Claim, Verdict, judged
from lab.reproduce.figures import curve, label, legend, panels
from lab.reproduce.measure import judge_classes
from lab.reproduce.rounds import Rounds, follow
from lab.reproduce.rows import Rows, Tables

UPDATES = ("adaboost", "gradboost")
PENALTY = "l1/linf"
# The number of features must fall to this share of its maximum, to speak of pruning.
PRUNED = 0.9
# A fit whose objective is so much above the optimum (as a share) has not shown its end.
NEAR = 0.01


@dataclass(frozen=True)
class Followed:
    """What is followed in time.

    Parameters
    ----------
    rounds : int
        Of each fit.
    seconds : float
        After which a fit is ended earlier.
    tol : float
        Certified relative gap of the optimum they are compared with.
    ratio : float
        Strength as a share of alpha_max; the same for all data, fixed before any fit was run.
    rows_per_round : int
    selects : tuple of str
        How the rows of an update are chosen.
    """

    rounds: int
    seconds: float
    tol: float
    ratio: float = 0.03
    rows_per_round: int = 1
    selects: tuple[str, ...] = ("template", "greedy")


def time_protocol(asked: Followed) -> str:
    """How the updates are followed, in words."""
    joining = (
        "the best violating one joins"
        if asked.rows_per_round == 1
        else (f"the best {asked.rows_per_round} violating ones join")
    )
    meaning = {
        "template": "all rows of the model at once, with the local a of the exponential bound or the diagonal of the "
        "quadratic one",
        "greedy": "the one row that gains most",
    }
    rows = "; ".join(f"{select}: {meaning[select]}" for select in asked.selects)
    return (
        f"Penalty {PENALTY} at {asked.ratio:g} alpha_max, {asked.rounds:,} rounds, or {asked.seconds:g} seconds, of "
        f"{' and '.join(UPDATES)}. "
        f"One round scores all hypotheses, {joining}, rows are updated, and those that became zero are dropped. Rows "
        f"that are updated: {rows}. Seconds are those of the fit, without the evaluation between rounds."
    )


def measure_updates(X: Any, y: Any, X_test: Any, y_test: Any, asked: Followed, context: Context) -> Rows:
    """AdaBoost and GradBoost on one multiclass problem, one after the other, and the optimum they run to.

    Parameters
    ----------
    X, X_test : float64 array, shapes (m, n) and (m_test, n)
    y, y_test : arrays of labels
    asked : Followed
    context : Context

    Returns
    -------
    Rows
        Per update, selection and measured round: what ``rounds.follow`` gives, ``error`` and ``coverage`` on the test
        rows, and ``optimum``, ``optimum_rows``, ``optimum_error`` of the solved problem.
    """
    (empty,) = dboost.regularization_path(X, y, n_alphas=1, penalty=PENALTY).models
    alpha = asked.ratio * empty.certificate.alpha_max
    best = dboost.BoostedClassifier(penalty=PENALTY, alpha=alpha, tol=asked.tol).fit(X, y)
    there = {
        "optimum": best.objective_,
        "optimum_rows": len(best.active_features_),
        "optimum_error": judge_classes(best, X_test, y_test)["error"],
        "test_rows": len(y_test),
    }
    codes = np.searchsorted(empty.classes, y_test).astype(np.int32)

    def look(active: NDArray[np.int64], W: NDArray[np.float64], intercept: NDArray[np.float64]) -> dict[str, Any]:
        scores = X_test[:, active] @ W + intercept
        wrong = metrics.predicted_codes(scores, codes) != codes
        return {"error": float(wrong.mean()), "coverage": float(metrics.coverage(scores, codes).mean())}

    found = Rows()
    for update in UPDATES:
        for select in asked.selects:
            one = Rounds(update, select, PENALTY, alpha, asked.rounds, asked.seconds, asked.rows_per_round, asked.tol)
            # Compiled code is loaded before the clock starts.
            follow(X, y, replace(one, rounds=1), look)
            lines = follow(X, y, one, look)
            last = lines[-1]
            context.say(
                f"{update}, {select}: {last['round']} rounds, objective {last['objective']:.4f} (optimum "
                f"{best.objective_:.4f}), {last['active_rows']} features, error {last['error']:.4f}"
            )
            found = found + Rows({"update": update, "select": select, **there, **line} for line in lines)
    return found


def judge_shape(tables: Tables) -> Verdict:
    """Features are added, then removed, and the test error does not rise meanwhile."""
    checks = []
    for update in UPDATES:
        for select in tables["updates"].values("select"):
            rows = tables["updates"].where(update=update, select=select)
            count, error = rows.column("active_rows"), rows.column("error")
            peak = int(np.argmax(count))
            noise = math.sqrt(error[peak] * (1 - error[peak]) / rows[-1]["test_rows"])
            fell = peak > 0 and bool(count[-1] <= PRUNED * count[peak])
            kept = bool(error[-1] <= error[peak] + noise)
            above = rows[-1]["objective"] / rows[-1]["optimum"] - 1.0
            # A fit that was still adding when it was ended says nothing about what comes after.
            cut_short = count[-1] == count[peak] and above > NEAR
            checks.append(
                Check(
                    f"{update}, {select}: {count[0]:.0f} features after round 1, {count[peak]:.0f} at the most (round "
                    f"{rows[peak]['round']}), {count[-1]:.0f} in the end (round {rows[-1]['round']}), "
                    f"{rows[-1]['optimum_rows']} at the optimum; objective {above:.1%} above it in the end; test error "
                    f"{error[peak]:.4f} at the most features, {error[-1]:.4f} in the end",
                    None if cut_short else fell and kept,
                )
            )
    return judged(*checks)


PRUNING = Claim(
    "induction, then pruning",
    "Fig. 8",
    "AdaBoost and GradBoost with l1/linf first add many features that lower the loss, then remove features without "
    "making more mistakes on the test set.",
    f"The number of features has its maximum after the first round and ends at {PRUNED:g} of it or less, and the test "
    "error at the end is at most one standard error above that at the maximum. Undecided where the fit was ended with "
    f"as many features as ever and an objective more than {NEAR:.0%} above the optimum.",
    judge_shape,
)


def time_findings(tables: Tables) -> tuple[str, ...]:
    """Which update gets near the optimum first."""
    said = []
    updates = tables["updates"]
    for select in updates.values("select"):
        for excess in (0.5, 0.1, 0.02):
            parts = []
            for update in UPDATES:
                rows = updates.where(update=update, select=select)
                reached = np.flatnonzero(rows.column("objective") <= (1 + excess) * rows.column("optimum"))
                last = rows[-1]
                above = last["objective"] / last["optimum"] - 1
                parts.append(
                    f"{update} after {rows[int(reached[0])]['seconds']:.1f} s"
                    if reached.size
                    else f"{update} not within {last['seconds']:.0f} s (then {above:.1%} above)"
                )
            said.append(f"Training objective within {excess:.0%} of the optimum, {select}: {', '.join(parts)}.")
    one = updates[0]
    said.append(
        f"At the optimum of the problem that was followed in time: {one['optimum_rows']} features, test error "
        f"{one['optimum_error']:.4f}."
    )
    return tuple(said)


def draw_time(tables: Tables) -> Any:
    """Objective, error and features against seconds, a line of panels per selection."""
    selects = tables["updates"].values("select")
    figure, axes = panels(3, len(selects), width=4.3)
    for line, select in enumerate(selects):
        three = axes[3 * line : 3 * line + 3]
        lines = {update: tables["updates"].where(select=select, update=update) for update in UPDATES}
        for axis, name in zip(three, ("objective", "error", "active_rows"), strict=True):
            for update, rows in lines.items():
                curve(axis, update, rows.column("seconds"), rows.column(name), dense=True)
        first = lines[UPDATES[0]][0]
        for axis, name in zip(three, ("optimum", "optimum_error", "optimum_rows"), strict=True):
            axis.axhline(first[name], color="0.3", linewidth=1.0, linestyle=(0, (4, 2)), label="at the optimum")
            axis.set_xscale("log")
            legend(axis)
        label(three[0], "seconds of training", "training objective", f"rows updated: {select}")
        label(three[1], "seconds of training", "test error (share of examples)")
        label(three[2], "seconds of training", "features in the model")
        three[1].set_ylim(0.0, None)
    return figure


UPDATES_IN_TIME = Figure(
    "updates-in-time",
    "Beside Figs. 7 (right) and 8: training objective, test error and number of features against seconds of training, "
    "AdaBoost and GradBoost with l1/linf.",
    draw_time,
)
