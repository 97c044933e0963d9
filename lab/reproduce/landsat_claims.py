"""What the paper says about Landsat, and how the numbers judge it.

Covers: the claims, the table of what each penalty needs for a level, the verdicts, findings. Does not cover: measuring
(``landsat``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.reproduce.claims import Check, Claim, Verdict, grouped, judged, plus_minus
from lab.reproduce.measure import interpolated
from lab.reproduce.rows import Rows, Tables, mean_and_error
from lab.reproduce.updates import PRUNING, time_findings

PENALTIES = ("l1", "l1/l2", "l1/linf")
SIZES = ("balanced", "all")
# Levels at which penalties are compared, as multiples of the poorest of their best values.
LEVELS = (1.05, 1.1, 1.2, 1.35, 1.5)
METRICS = ("coverage", "error")
# "at least 50% more features"
FACTOR = 1.5
VARIANCE = 1e-3


def levels(paths: Rows) -> Rows:
    """What each penalty needs to come down to a level of test coverage or error.

    Returns
    -------
    Rows
        Per size, metric, level and penalty: the means over the draws of ``features`` (that must be computed) and of
        ``nonzeros`` (share of nonzero entries), with their standard errors, and of ``ratio``, the features in units of
        those of l1/l2 on the same draw. Only draws in which every penalty reaches the level count; ``draws`` says how
        many.
    """
    found = []
    for size in paths.values("size"):
        for metric in METRICS:
            of_size = paths.where(size=size)
            curves = {
                (draw, p): of_size.where(draw=draw, penalty=p) for draw in of_size.values("draw") for p in PENALTIES
            }
            best = max(rows.column(metric).min() for rows in curves.values())
            for factor in LEVELS:
                found += _at_level(curves, metric, factor * best, {"size": size, "metric": metric, "factor": factor})
    return Rows(found)


def _at_level(
    curves: dict[tuple[Any, str], Rows], metric: str, level: float, labels: dict[str, Any]
) -> list[dict[str, Any]]:
    needs: dict[str, list[tuple[float, float, float]]] = {penalty: [] for penalty in PENALTIES}
    for draw in dict.fromkeys(draw for draw, _ in curves):
        read = {}
        for penalty in PENALTIES:
            rows = curves[draw, penalty]
            loss = rows.column(metric)
            read[penalty] = (
                interpolated(rows.column("features"), loss, level),
                interpolated(1.0 - rows.column("zero_entries"), loss, level),
            )
        base = read["l1/l2"][0]
        if base is not None and all(None not in pair for pair in read.values()):
            for penalty, (features, nonzeros) in read.items():
                needs[penalty].append((float(features or 0), float(nonzeros or 0), float(features or 0) / base))
    lines = []
    for penalty in PENALTIES:
        line: dict[str, Any] = {**labels, "level": level, "penalty": penalty, "draws": len(needs[penalty])}
        for place, name in enumerate(("features", "nonzeros", "ratio")):
            values = [triple[place] for triple in needs[penalty]]
            line[name], line[f"{name}_se"] = mean_and_error(values) if values else (None, None)
        lines.append(line)
    return lines


# ---- judges --------------------------------------------------------------------------------------------------------


def judge_features(tables: Tables) -> Verdict:
    """l1 computes at least half as many features more than l1/l2."""
    checks: list[Check] = []
    for size in tables["levels"].values("size"):
        for metric in METRICS:
            lines = _reached(tables["levels"].where(size=size, metric=metric, penalty="l1"))
            told = [f"{r['level']:.3f}: {r['ratio']:.2f}{plus_minus(r['ratio_se'], 2)} times as many" for r in lines]
            met = [r["ratio"] >= FACTOR for r in lines]
            checks += grouped(met, told, f"{size}, features of l1 beside l1/l2 at test {metric}")
    return judged(*checks)


def judge_entries(tables: Tables) -> Verdict:
    """l1 has the fewest nonzero entries."""
    checks: list[Check] = []
    for size in tables["levels"].values("size"):
        for metric in METRICS:
            rows = tables["levels"].where(size=size, metric=metric)
            lines = _reached(rows.where(penalty="l1"))
            met, told = [], []
            for line in lines:
                share = {r["penalty"]: r["nonzeros"] for r in rows.where(factor=line["factor"])}
                met.append(share["l1"] < min(share["l1/l2"], share["l1/linf"]))
                told.append(f"{line['level']:.3f}: " + ", ".join(f"{p} {100 * share[p]:.2f} %" for p in PENALTIES))
            checks += grouped(met, told, f"{size}, nonzero entries at test {metric}")
    return judged(*checks)


def judge_error_alike(tables: Tables) -> Verdict:
    """The order of the penalties by features is the same whether coverage or error is the level."""
    return _same_order(tables, "factor", [(s, "coverage", s, "error") for s in tables["levels"].values("size")])


def judge_size_alike(tables: Tables) -> Verdict:
    """The order of the penalties by features is the same for the small and the whole training set."""
    if len(tables["levels"].values("size")) < 2:
        return judged(Check("only one size of training set was run", None))
    return _same_order(tables, "factor", [(SIZES[0], metric, SIZES[1], metric) for metric in METRICS])


def _same_order(tables: Tables, by: str, pairs: list[tuple[str, str, str, str]]) -> Verdict:
    checks: list[Check] = []
    for size, metric, other_size, other_metric in pairs:
        met, told = [], []
        for factor in LEVELS:
            first = _order(tables["levels"].where(size=size, metric=metric, **{by: factor}))
            second = _order(tables["levels"].where(size=other_size, metric=other_metric, **{by: factor}))
            if first and second:
                met.append(first == second)
                told.append(f"{factor:g} times the best: {' < '.join(first)} and {' < '.join(second)}")
        before = f"features needed, {size}, {metric}, beside {other_size}, {other_metric}:"
        checks += grouped(met, told, before)
    return judged(*checks)


def _order(lines: Rows) -> list[str]:
    known = _reached(lines)
    return [r["penalty"] for r in sorted(known, key=lambda r: r["features"])]


def _reached(lines: Rows) -> Rows:
    return Rows(line for line in lines if line["draws"])


def judge_variance(tables: Tables) -> Verdict:
    """The variance of every point over the draws is below 0.001."""
    rows = tables["paths"].where(size=SIZES[0])
    if len(rows.values("draw")) < 2:
        return judged(Check("there is only one draw", None))
    checks = []
    for metric in METRICS:
        best = max(rows.where(penalty=penalty).column(metric).min() for penalty in PENALTIES)
        inside, outside = [0.0], [0.0]
        for penalty in PENALTIES:
            values = np.array([rows.where(penalty=penalty, draw=draw).column(metric) for draw in rows.values("draw")])
            near = values.mean(axis=0) <= LEVELS[-1] * best
            variances = values.var(axis=0, ddof=1)
            inside += variances[near].tolist()
            outside += variances[~near].tolist()
        for words, found in ((f"at most {LEVELS[-1]:g} times the best value", inside), ("above that", outside)):
            said = f"points with a mean test {metric} {words}: variance up to {max(found):.1e}"
            checks.append(Check(said, max(found) < VARIANCE))
    return judged(*checks)


CLAIMS = (
    Claim(
        "l1 has fewer nonzero weights",
        "Fig. 6, left",
        "For a given performance the l1 solution has more zeros in W than those of the structured penalties.",
        "At each level of test coverage and error, the share of nonzero entries of l1 is below those of l1/l2 and "
        "l1/linf.",
        judge_entries,
    ),
    Claim(
        "l1 needs at least 50 % more features",
        "Fig. 6, right",
        "For the same test accuracy the l1 classifier needs at least 50 % more features computed than the l1/l2 one.",
        f"At each level, features with a nonzero row under l1, divided by those under l1/l2: at least {FACTOR:g}.",
        judge_features,
    ),
    Claim(
        "error tells the same as coverage",
        "section 6, text to Fig. 6",
        "Results for misclassification rates are similar to those for coverage.",
        "At each multiple of the best, the order of the three penalties by features needed is the same for coverage "
        "and for error.",
        judge_error_alike,
    ),
    Claim(
        "the size of the training set does not matter",
        "section 6, text to Fig. 6",
        "Results with 240 examples a class are similar to those with smaller and larger sets.",
        "At each multiple of the best, the order of the three penalties by features needed is the same for the "
        "balanced draws and for all training examples.",
        judge_size_alike,
    ),
    Claim(
        "points vary little",
        "section 6, text to Fig. 6",
        "The variance of each point is smaller than 0.001.",
        "Variance over the draws of test coverage and error at every strength and penalty: below 0.001. Points near "
        "the best and the others are judged apart: with one or two features, a draw decides much.",
        judge_variance,
    ),
    PRUNING,
)


# ---- findings ------------------------------------------------------------------------------------------------------


def findings(tables: Tables) -> tuple[str, ...]:
    """Which update is faster, and which penalty reaches the best coverage."""
    said = []
    paths = tables["paths"]
    for size in paths.values("size"):
        parts = []
        for penalty in PENALTIES:
            rows = paths.where(size=size, penalty=penalty)
            best = [rows.where(draw=draw).column("coverage").min() for draw in rows.values("draw")]
            mean, error = mean_and_error(best)
            parts.append(f"{penalty} {mean:.4f}{plus_minus(error, 4)}")
        said.append(f"Best test coverage along the path, {size}: {', '.join(parts)}.")
    twice = tables["induced"]
    apart = np.abs(twice.column("objective") / twice.column("objective_explicit") - 1.0)
    gap = max(twice.column("gap").max(), twice.column("gap_explicit").max())
    said.append(
        f"Products made by the fit from spectral values, beside the matrix of products: objectives differ by at most "
        f"{apart.max():.1e} (relative), with certified gaps of at most {gap:.1e}."
    )
    return (*said, *time_findings(tables))
