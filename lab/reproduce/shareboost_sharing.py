"""ShareBoost, section 7.1 and Fig. 2: features needed for a fixed error against the number of classes.

Covers: ShareBoost against one-vs-rest by the same machinery, on digits (USPS), documents (arXiv archives) and printed
characters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dboost
from lab.datasets import arxiv, characters, usps
from lab.reproduce.base import Context, Figure, Report
from lab.reproduce.claims import Check, Claim, Verdict, judged
from lab.reproduce.figures import curve, label, legend, panels
from lab.reproduce.measure import interpolated
from lab.reproduce.rows import Rows, Tables

METHODS = ("ShareBoost", "one-vs-rest")
# Test errors at which features are counted, fixed before any fit was run; the paper's are 20 % and 8 %.
LEVELS = {"digits": (0.2, 0.08), "documents": (0.4, 0.25), "characters": (0.2, 0.08)}
# Of which classes are drawn in random orders; others are taken by size.
DRAWN = ("digits", "characters")
# What one-vs-rest must need more, at the largest number of classes that both reach.
FACTOR = 1.5


@dataclass(frozen=True)
class Problem:
    """A data set whose classes are offered a few at a time."""

    name: str
    X: Any
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    counts: tuple[int, ...]
    rounds: int
    binary_rounds: int
    hypotheses: Any = None


@dataclass(frozen=True)
class Sizes:
    """How much of everything a run does."""

    digits: tuple[int, ...]
    documents: tuple[int, ...]
    n_documents: int
    orders: int
    rounds: int
    binary_rounds: int
    characters: tuple[int, ...]
    per_face: int
    templates: int


WHOLE = Sizes((2, 4, 6, 8, 10), (2, 4, 8, 12), 4000, 2, 60, 30, (2, 6, 12, 24, 36), 8, 60)
SMALL = Sizes((2, 3, 5), (2, 4), 1500, 1, 20, 10, (2, 4), 1, 10)


def problems(sizes: Sizes) -> Iterator[Problem]:
    """The three data sets."""
    digits = usps.load()
    yield Problem(
        "digits", digits.X, digits.y, digits.X_test, digits.y_test, sizes.digits, sizes.rounds, sizes.binary_rounds
    )
    found = arxiv.load(n_documents=sizes.n_documents, n_test=sizes.n_documents, min_df=10)
    yield Problem(
        "documents", found.X, found.y, found.X_test, found.y_test, sizes.documents, 2 * sizes.rounds, sizes.rounds
    )
    printed, rounds = characters.load(per_face=sizes.per_face), (sizes.rounds, sizes.binary_rounds)
    patches = dboost.Patches(templates=sizes.templates, size=7)
    yield Problem(
        "characters", printed.X, printed.y, printed.X_test, printed.y_test, sizes.characters, *rounds, patches
    )


def run(context: Context) -> Report:
    """Measure; see ``CLAIMS`` for what is judged."""
    sizes = SMALL if context.quick else WHOLE
    curves = Rows()
    shapes = {}
    for problem in problems(sizes):
        with context.stage(problem.name):
            shapes[problem.name] = (problem.X.shape, problem.X_test.shape[0])
            curves += measured(problem, sizes.orders, context)
    tables = {"curves": curves, "needed": needed(curves)}
    return Report(
        title="ShareBoost, section 7.1: features needed against the number of classes",
        about=(
            "A classifier whose classes share features should need hardly more of them for more classes. How many "
            "features does a fixed test error take, when 2, 3, ... classes are told apart, with ShareBoost and with "
            "one "
            "greedy binary classifier for each class?"
        ),
        claims=CLAIMS,
        protocol=(
            f"Digits: USPS, {shapes['digits'][0][0]:,} training and {shapes['digits'][1]:,} test images, 256 pixels in "
            f"[0, 1]; the classes are {', '.join(map(str, sizes.digits))} of the ten digits.",
            f"Documents: arXiv abstracts as tf-idf, {shapes['documents'][0][0]:,} training documents and "
            f"{shapes['documents'][0][1]:,} words, {shapes['documents'][1]:,} test documents; the classes are the "
            f"{', '.join(map(str, sizes.documents))} archives with the most training documents.",
            f"Characters: digits and capitals in {len(characters.FACES)} faces, tilted, sheared, scaled, moved and "
            f"noisy, {shapes['characters'][0][0]:,} training and {shapes['characters'][1]:,} test images of 20 x 20 "
            f"pixels; the classes are {', '.join(map(str, sizes.characters))} of the 36. Features: "
            f"dboost.Patches(templates={sizes.templates}, size=7), each under 16 masks.",
            f"Digits and characters are drawn in {sizes.orders} random orders, and results averaged; archives are "
            "taken by size, which is one order.",
            "ShareBoost: loss with the margin, rule 'scaled', ridge 1e-6. One-vs-rest: the same with the binary "
            "logistic "
            "loss, once for each class; round t has the t-th feature of every class, and the size of their union "
            "counts.",
            f"At most {sizes.rounds} rounds of ShareBoost and {sizes.binary_rounds} of each binary classifier on "
            f"digits and characters, {2 * sizes.rounds} and {sizes.rounds} on documents.",
            "The number of features at which the test error first comes down to the level, linear between rounds.",
        ),
        differences=(
            "Char74k (36 classes of digits and letters in photographs) cannot be had; printed characters of as many "
            "classes stand for it, which are cleaner.",
            "Features of digits and documents are pixels and words; the paper's are the patches of its section 7.4, as "
            "those of the characters are.",
            "The paper does not say in which order classes were added, or how one-vs-rest chose the length of each "
            "run.",
            "Levels for documents are our own.",
        ),
        tables=tables,
        figures=FIGURES,
        findings=findings(tables),
    )


def measured(problem: Problem, orders: int, context: Context) -> Rows:
    """Test error against features of both methods, for every number of classes."""
    found = []
    labels, sizes = np.unique(problem.y, return_counts=True)
    by_size = labels[np.argsort(-sizes, kind="stable")]
    drawn = problem.name in DRAWN
    for number in range(orders if drawn else 1):
        order = np.random.default_rng(number).permutation(labels) if drawn else by_size
        for k in problem.counts:
            few = order[:k]
            train, test = np.isin(problem.y, few), np.isin(problem.y_test, few)
            X, y, X_test, y_test = problem.X[train], problem.y[train], problem.X_test[test], problem.y_test[test]
            for method in METHODS:
                model = fitted(method, problem, X, y)
                lines = zip(model.path_, model.staged_predict(X_test), strict=True)
                errors = [(record["features"], float(np.mean(predicted != y_test))) for record, predicted in lines]
                context.say(
                    f"order {number}, {k} classes, {method}: {errors[-1][0]} features, test error {errors[-1][1]:.3f}"
                )
                found += [
                    {
                        "data": problem.name, "order": number, "classes": k, "method": method, "round": turn + 1,
                        "features": features, "error": error, "test_rows": len(y_test),
                    }
                    for turn, (features, error) in enumerate(errors)
                ]  # fmt: skip
    return Rows(found)


def fitted(method: str, problem: Problem, X: Any, y: NDArray[Any]) -> Any:
    """One run of a method."""
    common: dict[str, Any] = {"tol": 1e-2, "hypotheses": problem.hypotheses}
    if method == "ShareBoost":
        return dboost.ShareBoostClassifier(max_rounds=problem.rounds, **common).fit(X, y)
    each = dboost.ShareBoostClassifier(max_rounds=problem.binary_rounds, loss="log", **common)
    return dboost.OneVsRestBoostedClassifier(each).fit(X, y)


def needed(curves: Rows) -> Rows:
    """Features at which the test error first reaches each level."""
    found = []
    for data in curves.values("data"):
        here = curves.where(data=data)
        for level in LEVELS[data]:
            for k in here.values("classes"):
                for method in METHODS:
                    counts = []
                    rows = here.where(classes=k, method=method)
                    for order in rows.values("order"):
                        one = rows.where(order=order)
                        error, features = one.column("error"), one.column("features")
                        first = float(features[0]) if error[0] <= level else interpolated(features, error, level)
                        counts.append(math.nan if first is None else first)
                    mean = float(np.mean(counts))
                    found.append(
                        {
                            "data": data, "level": level, "classes": k, "method": method,
                            "features": None if math.isnan(mean) else mean, "orders": len(counts),
                        }  # fmt: skip
                    )
    return Rows(found)


def compared(needed: Rows, data: str, level: float) -> list[tuple[int, float, float]]:
    """(classes, features of ShareBoost, features of one-vs-rest) where both reach the level."""
    rows = needed.where(data=data, level=level)
    pairs = []
    for k in rows.values("classes"):
        ours, theirs = (rows.where(classes=k, method=method)[0]["features"] for method in METHODS)
        if ours is not None and theirs is not None:
            pairs.append((int(k), float(ours), float(theirs)))
    return pairs


def judge_fewer(tables: Tables) -> Verdict:
    """ShareBoost needs fewer features at the largest number of classes, and its need grows less."""
    checks = []
    for data in tables["needed"].values("data"):
        for level in tables["needed"].where(data=data).values("level"):
            pairs = compared(tables["needed"], data, level)
            if len(pairs) < 2:
                checks.append(Check(f"{data}, error {level:.0%}: not reached by both often enough", None))
                continue
            (k0, a0, b0), (k1, a1, b1) = pairs[0], pairs[-1]
            met = b1 >= FACTOR * a1 and (b1 - b0) > (a1 - a0)
            checks.append(
                Check(
                    f"{data}, error {level:.0%}: from {k0} to {k1} classes ShareBoost needs {a0:.1f} and then {a1:.1f} "
                    f"features, one-vs-rest {b0:.1f} and then {b1:.1f}",
                    bool(met),
                )
            )
    return judged(*checks)


CLAIMS = (
    Claim(
        "features are shared as classes are added",
        "Fig. 2, section 7.1",
        "The increase in the number of features that a fixed accuracy requires is mild for ShareBoost but significant "
        "for "
        "the one-vs-rest approach.",
        f"At the largest number of classes at which both reach the error, one-vs-rest needs {FACTOR:g} times the "
        "features "
        "of ShareBoost or more, and from the smallest to the largest its need grows by more.",
        judge_fewer,
    ),
)


def findings(tables: Tables) -> tuple[str, ...]:
    """Errors at the end of the runs."""
    said = []
    for data in tables["curves"].values("data"):
        here = tables["curves"].where(data=data)
        k = max(here.values("classes"))
        parts = []
        for method in METHODS:
            rows = here.where(classes=k, method=method)
            best = float(np.mean([rows.where(order=o).column("error").min() for o in rows.values("order")]))
            parts.append(f"{method} {best:.3f}")
        said.append(f"{data}, {k} classes: lowest test error of a run {', '.join(parts)}.")
        for level in LEVELS[data]:
            ratios = [f"{theirs / ours:.1f} at {k}" for k, ours, theirs in compared(tables["needed"], data, level)]
            told = ", ".join(ratios) or "nowhere, as one of them does not reach it"
            said.append(f"{data}, error {level:.0%}: features of one-vs-rest over those of ShareBoost: {told}.")
    return tuple(said)


LOOKS = {"ShareBoost": "shareboost", "one-vs-rest": "one-vs-rest"}


def draw_needed(tables: Tables) -> Any:
    """Features against classes, a panel for each data set."""
    names = tables["needed"].values("data")
    figure, axes = panels(len(names))
    for axis, data in zip(axes, names, strict=True):
        levels = tables["needed"].where(data=data).values("level")
        for level, dash in zip(levels, ("-", ":"), strict=True):
            for method in METHODS:
                rows = tables["needed"].where(data=data, level=level, method=method)
                curve(
                    axis, LOOKS[method], rows.column("classes"), rows.column("features"), linestyle=dash,
                    text=f"{method}, error {level:.0%}",
                )  # fmt: skip
        label(axis, "classes", "features needed", data)
        axis.set_ylim(0, None)
        legend(axis)
    return figure


FIGURES = (
    Figure(
        "features-needed",
        "Beside Fig. 2: features needed for a fixed test error against the number of classes.",
        draw_needed,
    ),
)
