"""Landsat: products of spectral values, penalties by what they cost to compute, AdaBoost beside GradBoost.

Covers: the measurements of Figs. 6, 7 (right) and 8 on Landsat. Does not cover: claims and figures, which lie in
``landsat_claims`` and ``landsat_figures``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dboost
from lab.datasets import landsat
from lab.reproduce.base import Context, Report
from lab.reproduce.landsat_claims import CLAIMS, LEVELS, PENALTIES, SIZES, findings, levels
from lab.reproduce.landsat_figures import FIGURES
from lab.reproduce.measure import along_path, draw_per_class, in_parallel, judge_classes
from lab.reproduce.rows import Rows
from lab.reproduce.updates import Followed, measure_updates, time_protocol

# Strength of the fits that are made twice, as a share of alpha_max.
CHECKED = 0.2


@dataclass(frozen=True)
class Sizes:
    """How much of everything a run does."""

    per_class: int
    draws: int
    n_alphas: int
    eps: float
    tol: float
    full: bool
    rounds: int
    seconds: float


WHOLE = Sizes(per_class=240, draws=3, n_alphas=14, eps=0.01, tol=3e-4, full=True, rounds=1500, seconds=120.0)
SMALL = Sizes(per_class=40, draws=2, n_alphas=4, eps=0.1, tol=5e-3, full=False, rounds=15, seconds=5.0)


@dataclass(frozen=True)
class Products:
    """All products of two spectral values, each distinct one once.

    Parameters
    ----------
    raw : float64 array, shape (m, 36)
        The spectral values.
    X, X_test : float64 array, shapes (m, 666) and (m_test, 666)
    y, y_test : array of labels
    times : int64 array, shape (666,)
        How often a product stands among the 36 x 36 ordered ones: 1 for a square, 2 otherwise.
    """

    raw: NDArray[np.float64]
    X: NDArray[np.float64]
    y: NDArray[Any]
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]
    times: NDArray[np.int64]


def products() -> Products:
    """Load the data and multiply: values divided by their largest in training, columns centred on their mean there."""
    data = landsat.load()
    largest = np.abs(data.X).max(axis=0)
    X, X_test = multiplied(data.X / largest), multiplied(data.X_test / largest)
    middle = X.mean(axis=0)
    first, second = np.triu_indices(data.X.shape[1])
    return Products(data.X, X - middle, data.y, X_test - middle, data.y_test, np.where(first == second, 1, 2))


def multiplied(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """All products of two columns, squares included, each once."""
    first, second = np.triu_indices(X.shape[1])
    return X[:, first] * X[:, second]


def run(context: Context) -> Report:
    """Measure; see ``CLAIMS`` for what is judged."""
    sizes = SMALL if context.quick else WHOLE
    with context.stage("data"):
        data = products()
    with context.stage("paths"):
        paths = measure_paths(data, sizes, context)
    with context.stage("updates in time"):
        rows = draw_per_class(data.y, sizes.per_class, np.random.default_rng(0))
        followed = Followed(sizes.rounds, sizes.seconds, sizes.tol)
        updates = measure_updates(data.X[rows], data.y[rows], data.X_test, data.y_test, followed, context)
    with context.stage("products made by the fit"):
        induced = measure_induced(data, sizes)
    tables = {"paths": paths, "levels": levels(paths), "induced": induced, "updates": updates}
    return Report(
        title="Landsat: which penalty needs the fewest features, and how boosting induces and prunes",
        about=(
            "A pixel of a satellite image is one of six kinds of ground. Features are the products of two of the 36 "
            "spectral values of its 3 x 3 neighbourhood. Which penalty on the weights W (a row per feature, a column "
            "per class) classifies the test pixels best when few weights, or few features, may be used?"
        ),
        claims=CLAIMS,
        protocol=protocol(sizes),
        differences=DIFFERENCES,
        tables=tables,
        figures=FIGURES,
        findings=findings(tables),
    )


def protocol(sizes: Sizes) -> tuple[str, ...]:
    """What was done."""
    whole = " and once with all 4,435 training pixels" if sizes.full else ""
    return (
        f"Training: {sizes.per_class} examples a class drawn without repetition from the 4,435 training pixels, "
        f"{sizes.draws} draws{whole}. Test: the 2,000 test pixels of the source's split, every time.",
        "Features: each spectral value divided by its largest training value; all products of two of them, 36 x 36 = "
        "1,296 ordered ones.",
        "An ordered pair and its mirror image are the same column, so 666 distinct products are fitted and every one "
        "of two different values is counted twice in the shares of 1,296. Splitting the weights of a product between "
        "two equal columns changes neither the model nor any of the three penalties, so both problems have the same "
        "optimum. The number of features that must be computed is counted among the 666 distinct ones.",
        f"Multinomial loss, free intercept. Paths of {sizes.n_alphas} strengths from alpha_max to {sizes.eps:g} "
        f"alpha_max, each model within a certified relative gap of {sizes.tol:g} of its optimum. Zeros are exact.",
        "Coverage: classes that score above the right one, mean over the test pixels; 0 is right.",
        f"One fit per penalty at {CHECKED:g} alpha_max on the first draw is repeated with products that the fit makes "
        "from the spectral values (dboost.Products(max_degree=2, min_degree=2)); induced.csv compares the two.",
        f"Levels: the poorest of the best values that the three penalties reach, times {', '.join(map(str, LEVELS))}. "
        "What a penalty needs for a level is read off its path, linear between neighbouring models, for every draw; "
        "then averaged over the draws that all penalties reach it in.",
        f"Time: the first draw. {time_protocol(Followed(sizes.rounds, sizes.seconds, sizes.tol))}",
    )


DIFFERENCES = (
    "Paths are solved by this library's Newton update instead of GradBoost: both end at the same optimum, which the "
    "certificate checks, and Newton gets there in the time we have. GradBoost and AdaBoost are followed where time is "
    "the subject.",
    "Columns are centred. With a free intercept this changes only the intercept, not W; the paper says nothing of "
    "scaling or centring.",
    "The paper does not say how its strengths were spaced, how many draws were made, or which strength its time curves "
    "have. Ours are stated above.",
    "The paper reads differences off a figure. We interpolate at fixed levels.",
    "The paper speaks of a few thousand iterations; how many rows each of them updated is not said.",
)


# ---- paths ---------------------------------------------------------------------------------------------------------


def measure_paths(data: Products, sizes: Sizes, context: Context) -> Rows:
    """The path of every penalty on every draw."""
    jobs: list[Callable[[], Rows]] = []
    plans = [(SIZES[1], 0, np.arange(len(data.y)))] if sizes.full else []
    for draw in range(sizes.draws):
        plans.append((SIZES[0], draw, draw_per_class(data.y, sizes.per_class, np.random.default_rng(draw))))
    for size, draw, rows in plans:
        for penalty in PENALTIES:
            jobs.append(partial(one_path, data, rows, penalty, sizes, context, {"size": size, "draw": draw}))
    # The longest jobs come first, the tables begin with the balanced draws.
    done = in_parallel(jobs)
    return Rows(record for size in SIZES for rows in done for record in rows.where(size=size))


def one_path(
    data: Products, rows: NDArray[np.int64], penalty: str, sizes: Sizes, context: Context, labels: dict[str, Any]
) -> Rows:
    """One penalty on one draw."""

    def figures(model: Any) -> dict[str, Any]:
        return {**shares(model.coef_.T, data.times), **judge_classes(model, data.X_test, data.y_test)}

    found = along_path(
        data.X[rows], data.y[rows], figures, n_alphas=sizes.n_alphas, eps=sizes.eps, tol=sizes.tol, penalty=penalty
    )
    best = found.column("coverage").min()
    context.say(f"{labels['size']}, draw {labels['draw']}, {penalty}: best coverage {best:.3f}")
    return Rows({**labels, "penalty": penalty, **record} for record in found)


def shares(W: NDArray[np.float64], times: NDArray[np.int64]) -> dict[str, Any]:
    """Zeros among the 1,296 ordered products, and features that must be computed.

    Parameters
    ----------
    W : float64 array, shape (666, k)
    times : int64 array, shape (666,)
    """
    nonzero = np.count_nonzero(W, axis=1)
    return {
        "features": int(np.count_nonzero(nonzero)),
        "zero_entries": 1.0 - float(nonzero @ times) / (times.sum() * W.shape[1]),
        "zero_rows": 1.0 - float((nonzero > 0) @ times) / float(times.sum()),
    }


def measure_induced(data: Products, sizes: Sizes) -> Rows:
    """The first draw with the matrix of products, and with products that the fit makes from the spectral values.

    ``dboost.Products`` scales by the largest values of the rows it is given, so here the matrix does too.
    """
    rows = draw_per_class(data.y, sizes.per_class, np.random.default_rng(0))
    raw, y = data.raw[rows], data.y[rows]
    X = multiplied(raw / raw.max(axis=0))
    X -= X.mean(axis=0)
    family = dboost.Products(max_degree=2, min_degree=2)
    found = []
    for penalty in PENALTIES:
        (empty,) = dboost.regularization_path(X, y, n_alphas=1, penalty=penalty).models
        asked: dict[str, Any] = {
            "penalty": penalty, "alpha": CHECKED * empty.certificate.alpha_max, "tol": sizes.tol,
        }  # fmt: skip
        explicit = dboost.BoostedClassifier(**asked).fit(X, y)
        induced = dboost.BoostedClassifier(**asked, hypotheses=family).fit(raw, y)
        found.append(
            {
                "penalty": penalty,
                "objective": induced.objective_,
                "gap": induced.duality_gap_,
                "features": len(induced.active_features_),
                "objective_explicit": explicit.objective_,
                "gap_explicit": explicit.duality_gap_,
                "features_explicit": len(explicit.active_features_),
            }
        )
    return Rows(found)
