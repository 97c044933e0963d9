"""What ShareBoost's Fig. 3 claims, judged from the curves alone, and its figure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lab.reproduce.base import Figure
from lab.reproduce.claims import Check, Claim, Verdict, judged
from lab.reproduce.figures import curve as drawn
from lab.reproduce.figures import label, legend, panels
from lab.reproduce.rows import Rows, Tables

# Numbers of features at which errors are compared: few, and many.
COUNTS = (5, 10, 20, 50)
FEW = (5, 10, 20)
RIDGE = 1e-3
# Stumps at which ShareBoost and JointBoost are compared, and how much longer JointBoost must train.
STUMPS = (5, 10, 20, 40)
SLOWER = 2.0
METHODS = ("ShareBoost, plain", "ShareBoost, ridge", "l1/linf")


def at_most(rows: Rows, count: int) -> float:
    """Mean over the draws of the error with at most so many features: of a path the lowest, of a run its last."""
    found = []
    for draw in rows.values("draw"):
        one = rows.where(draw=draw)
        errors = one.column("error")[one.column("features") <= count]
        if not len(errors):
            return math.nan
        found.append(float(errors.min() if one[0]["method"] == "l1/linf" else errors[-1]))
    return float(np.mean(found))


def noise(error: float, rows: Rows) -> float:
    """Standard error of an error rate on the test rows."""
    return math.sqrt(error * (1 - error) / rows[0]["test_rows"])


def judge_fast(tables: Tables) -> Verdict:
    """ShareBoost has the lower error at few features."""
    checks = []
    for data in tables["curves"].values("data"):
        rows = tables["curves"].where(data=data)
        ours = [at_most(rows.where(method=METHODS[0]), count) for count in FEW]
        theirs = [at_most(rows.where(method="l1/linf"), count) for count in FEW]
        told = ", ".join(
            f"{a:.3f} against {'no model' if math.isnan(b) else f'{b:.3f}'} with at most {count}"
            for count, a, b in zip(FEW, ours, theirs, strict=True)
        )
        # without a model of so few features the path has nothing to set against it
        met = all(math.isnan(b) or a < b - noise(b, rows) for a, b in zip(ours, theirs, strict=True))
        checks.append(Check(f"{data}: test error of ShareBoost and l1/linf {told} features", met))
    return judged(*checks)


def ends(rows: Rows) -> tuple[float, float]:
    """Lowest error along a run and that at its end, means over the draws."""
    pairs = []
    for draw in rows.values("draw"):
        errors = rows.where(draw=draw).column("error")
        pairs.append((float(errors.min()), float(errors[-1])))
    low, last = np.mean(pairs, axis=0)
    return float(low), float(last)


def judge_overfits(tables: Tables) -> Verdict:
    """With many features ShareBoost overfits, and the mixed norm is at least as good."""
    checks = []
    for data in tables["curves"].values("data"):
        rows = tables["curves"].where(data=data)
        low, last = ends(rows.where(method=METHODS[0]))
        theirs, _ = ends(rows.where(method="l1/linf"))
        met = last > low + noise(low, rows) and theirs < last
        checks.append(
            Check(
                f"{data}: ShareBoost's test error is {low:.4f} at its lowest and {last:.4f} at the end of the run; "
                "the best "
                f"of the l1/linf path is {theirs:.4f}",
                bool(met),
            )
        )
    return judged(*checks)


def judge_ridge(tables: Tables) -> Verdict:
    """A ridge prevents the rise."""
    checks = []
    for data in tables["curves"].values("data"):
        rows = tables["curves"].where(data=data)
        _, plain = ends(rows.where(method=METHODS[0]))
        low, last = ends(rows.where(method=METHODS[1]))
        met = last < plain and last <= low + noise(low, rows)
        checks.append(
            Check(
                f"{data}: at the end {plain:.4f} without and {last:.4f} with the ridge, whose lowest is {low:.4f}",
                bool(met),
            )
        )
    return judged(*checks)


def judge_joint(tables: Tables) -> Verdict:
    """With stumps ShareBoost's error falls faster than JointBoost's, and it trains faster."""
    checks = []
    for data in tables["stumps"].values("data"):
        rows = tables["stumps"].where(data=data)
        ours, theirs = (
            [at_most(rows.where(method=method), count) for count in STUMPS] for method in ("ShareBoost", "JointBoost")
        )
        # what was not run is not compared
        longest = rows.column("round").max()
        every = [pair for pair in zip(STUMPS, ours, theirs, strict=True) if pair[0] <= longest]
        known = [(count, a, b) for count, a, b in every if not (math.isnan(a) or math.isnan(b))]
        told = ", ".join(f"{a:.3f} against {b:.3f} with at most {c}" for c, a, b in known)
        met = bool(known) and all(a < b - noise(b, rows) for _, a, b in known)
        checks.append(Check(f"{data}: test error of ShareBoost and JointBoost {told} stumps", met))
        fast, slow = (seconds_of(rows.where(method=method)) for method in ("ShareBoost", "JointBoost"))
        rounds = int(rows.column("round").max())
        checks.append(
            Check(
                f"{data}: {rounds} rounds take ShareBoost {fast:.2f} s and JointBoost {slow:.2f} s of processor time",
                slow >= SLOWER * fast,
            )
        )
    return judged(*checks)


def seconds_of(rows: Rows) -> float:
    """Mean over the draws of the processor time of a method."""
    return float(np.mean([rows.where(draw=draw)[0]["cpu_seconds"] for draw in rows.values("draw")]))


CLAIMS = (
    Claim(
        "few features: faster than the mixed norm",
        "Fig. 3 (top), section 7.2",
        "ShareBoost decreases the error much faster than the mixed-norm regularisation, and is preferable when the "
        "solution is to be rather sparse.",
        f"At {', '.join(map(str, FEW))} features its test error is lower by more than a standard error, on every set.",
        judge_fast,
    ),
    Claim(
        "many features: ShareBoost overfits",
        "Fig. 3 (top), section 7.2",
        "When more features are allowed, ShareBoost starts to overfit, and mixed-norm regularisation can be better.",
        "The error at the end of the run is above its lowest by more than a standard error, and above the best of the "
        "l1/linf path.",
        judge_overfits,
    ),
    Claim(
        "regularisation prevents it",
        "Sections 3.3 and 7.2",
        "To prevent this overfitting effect, one can use the variant of ShareBoost that incorporates regularisation.",
        f"With a ridge of {RIDGE:g} the error at the end is below that without, and within a standard error of its own "
        "lowest.",
        judge_ridge,
    ),
    Claim(
        "stumps: faster and more accurate than JointBoost",
        "Fig. 3 (bottom), section 7.3",
        "With stumps ShareBoost decreases the error much faster than JointBoost, and its training is much shorter.",
        f"At {', '.join(map(str, STUMPS))} stumps its test error is lower by more than a standard error, on every "
        "set, and "
        f"JointBoost takes {SLOWER:g} times as long or longer for the same number of rounds.",
        judge_joint,
    ),
)


def findings(tables: Tables) -> tuple[str, ...]:
    """Errors at the numbers of features compared, and process times."""
    said = []
    for data in tables["curves"].values("data"):
        rows = tables["curves"].where(data=data)
        for method in METHODS:
            errors = [at_most(rows.where(method=method), count) for count in COUNTS]
            words = ["no model" if math.isnan(error) else f"{error:.4f}" for error in errors]
            told = ", ".join(f"{word} with {count}" for word, count in zip(words, COUNTS, strict=True))
            mine = rows.where(method=method)
            seconds = seconds_of(mine)
            said.append(f"{data}, {method}: test error {told} features; {seconds:.1f} s of processor time a draw.")
    return tuple(said)


LOOKS = {"ShareBoost, plain": "shareboost", "ShareBoost, ridge": "newton", "l1/linf": "l1/linf"}


def draw_curves(tables: Tables) -> Any:
    """Test error against the share of features used, a panel for each set."""
    names = tables["curves"].values("data")
    figure, axes = panels(len(names), width=4.4)
    for axis, data in zip(axes, names, strict=True):
        rows = tables["curves"].where(data=data)
        for method, look in LOOKS.items():
            mine = rows.where(method=method)
            counts = np.unique(mine.column("features")).astype(int)
            counts = counts[counts > 0]
            errors = [at_most(mine, int(count)) for count in counts]
            drawn(axis, look, counts / rows[0]["offered"], errors, text=method, dense=True)
        axis.set_xscale("log")
        axis.set_ylim(0, None)
        label(axis, f"share of the {rows[0]['offered']} features", "test error", data)
        legend(axis)
    return figure


def draw_stumps(tables: Tables) -> Any:
    """Test error against stumps used, a panel for each set."""
    names = tables["stumps"].values("data")
    figure, axes = panels(len(names), width=4.4)
    for axis, data in zip(axes, names, strict=True):
        rows = tables["stumps"].where(data=data)
        for method, look in (("ShareBoost", "shareboost"), ("JointBoost", "adaboost")):
            mine = rows.where(method=method)
            counts = np.unique(mine.column("features")).astype(int)
            drawn(axis, look, counts, [at_most(mine, int(count)) for count in counts], text=method, dense=True)
        axis.set_ylim(0, None)
        label(axis, "stumps used", "test error", data)
        legend(axis)
    return figure


FIGURES = (
    Figure(
        "error-against-features",
        "Beside Fig. 3 (top): test error against the share of features used; of the l1/linf path the lowest error "
        "with at "
        "most so many.",
        draw_curves,
    ),
    Figure(
        "error-against-stumps", "Beside Fig. 3 (bottom): test error against the number of stumps used.", draw_stumps
    ),
)
