"""ShareBoost, section 6: two constructions in which features can be shared, and which method finds them.

Covers: data, measurement, claims and figures; there is no data to load.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dboost
from lab.reproduce.base import Context, Figure, Report
from lab.reproduce.claims import Check, Claim, Verdict, judged
from lab.reproduce.figures import curve, label, legend, panels
from lab.reproduce.rows import Rows, Tables

PENALTIES = ("l1", "l2", "l1/linf")
RULES = ("norm", "scaled")
# Share of the examples of construction 2 that lose a block, and the training error that counts as accurate there.
ZEROED = 0.2
# "poly(log k)": at most so many times the square of log2 k.
POLY = 1.0


@dataclass(frozen=True)
class Sizes:
    """How much of everything a run does."""

    bits: tuple[int, ...]
    blocks: tuple[int, ...]
    block_bits: int
    copies: int
    n_alphas: int
    eps: float
    tol: float


WHOLE = Sizes((3, 4, 5, 6), (2, 4, 8, 16), 4, 40, 16, 1e-4, 1e-4)
SMALL = Sizes((3, 4), (2, 4), 3, 10, 8, 1e-3, 1e-3)


def signs(bits: int) -> NDArray[np.float64]:
    """bin(y) of every class, shape (2^bits, bits), entries -1 and 1."""
    codes = np.arange(2**bits)
    return np.where((codes[:, None] >> np.arange(bits)) & 1, 1.0, -1.0)


def first(bits: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Construction 1: x = [bin(y), 2 log2(k) e_y], the same example of each class twice."""
    k = 2**bits
    # twice, so that labels look like labels; weights of one half would be the same problem
    return np.tile(np.hstack([signs(bits), 2.0 * bits * np.eye(k)]), (2, 1)), np.tile(np.arange(k), 2)


def second(bits: int, blocks: int, copies: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Construction 2: `blocks` times bin(y); in a share ``ZEROED`` of the examples a random block is zero."""
    k = 2**bits
    rng = np.random.default_rng([bits, blocks])
    y = np.tile(np.arange(k), copies)
    X = np.tile(signs(bits)[y], (1, blocks))
    chosen = rng.permutation(len(y))[: round(ZEROED * len(y))]
    for row, block in zip(chosen.tolist(), rng.integers(0, blocks, len(chosen)).tolist(), strict=True):
        X[row, block * bits : (block + 1) * bits] = 0.0
    return X, y


def run(context: Context) -> Report:
    """Measure; see ``CLAIMS`` for what is judged."""
    sizes = SMALL if context.quick else WHOLE
    found = Rows()
    with context.stage("construction 1"):
        for bits in sizes.bits:
            X, y = first(bits)
            found += measured(X, y, sizes, context, construction=1, bits=bits, classes=2**bits, blocks=1)
    with context.stage("construction 2"):
        for blocks in sizes.blocks:
            X, y = second(sizes.block_bits, blocks, sizes.copies)
            k = 2**sizes.block_bits
            found += measured(
                X, y, sizes, context, construction=2, bits=sizes.block_bits, classes=k, blocks=blocks
            )
    tables = {"models": found, "fewest": fewest(found)}
    return Report(
        title="ShareBoost, section 6: who finds the features that all classes can share",
        about=(
            "Two constructions in which log2 k features serve all k classes. In the first there is beside them one "
            "feature of its own for every class, of which a smaller weight suffices. In the second the shared features "
            "come in s interchangeable blocks. How many features does each method use?"
        ),
        claims=CLAIMS,
        protocol=(
            f"Construction 1: k = {', '.join(str(2**b) for b in sizes.bits)} classes, one example each (twice), "
            "x = [bin(y), 2 log2(k) e_y] of log2 k + k features.",
            f"Construction 2: k = {2**sizes.block_bits} classes, {sizes.copies} examples each, "
            f"s = {', '.join(map(str, sizes.blocks))} blocks of bin(y); in {ZEROED:.0%} of the examples one block, "
            "drawn at random, is zero.",
            "The loss with the margin (eq. 3), no intercept, as in the paper.",
            f"min L(W) + lambda ||W|| for the entrywise l1 norm, the Frobenius norm and l1/linf: paths of "
            f"{sizes.n_alphas} strengths from the largest to {sizes.eps:g} of it, each within a certified relative gap "
            f"of {sizes.tol:g}. A feature is used when its row of W is not exactly zero.",
            "ShareBoost with the printed rule (norm) and the scale-aware one (scaled), ridge 1e-6, one run each; the "
            "number of features is that of rounds.",
            f"A model is accurate when it makes no mistake in training (construction 1), or mistakes in at most "
            f"{ZEROED:.0%} of the examples (construction 2). The table 'fewest' has the accurate model with the fewest "
            "features.",
        ),
        differences=(
            "The paper proves these statements and measures nothing; the sizes are ours.",
            "log is log2, so that bin(y) has log k entries.",
            "The paper's p = 2 is the Frobenius norm, a penalty that puts no single row to zero.",
            "In construction 1 a margin of 1 costs l1/linf k / (2 log2 k) by the features of the classes and log2(k) "
            "/ 2 "
            "by the shared ones: these are cheaper from k > (log2 k)^2 on, which is k > 16. There the features 2 "
            "log2(k) "
            "e_y are also longer than |x| <= 1 allows, which the printed rule assumes and the scale-aware one does "
            "not.",
        ),
        tables=tables,
        figures=FIGURES,
        findings=findings(tables),
    )


def measured(
    X: NDArray[np.float64], y: NDArray[np.int64], sizes: Sizes, context: Context, **labels: Any
) -> Rows:
    """Every model of every method on one problem."""
    found = []
    for penalty in PENALTIES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dboost.ConvergenceWarning)
            path = dboost.regularization_path(
                X, y, penalty=penalty, loss="margin_softmax", fit_intercept=False, n_alphas=sizes.n_alphas,
                eps=sizes.eps, tol=sizes.tol,
            )  # fmt: skip
        largest = path.models[0].certificate.alpha_max
        for model in path.models:
            wrong = float(np.mean(model.predict(X) != y))
            strength = model.certificate.alpha / largest
            found.append({"method": penalty, "strength": strength, "features": model.n_hypotheses, "error": wrong})
    for rule in RULES:
        model = dboost.ShareBoostClassifier(max_rounds=X.shape[1], rule=rule, fit_intercept=False).fit(X, y)
        for record in model.path_:
            line = {"method": f"ShareBoost, {rule}", "strength": None, "features": record["features"]}
            found.append({**line, "error": record["error"]})
    context.say(f"{labels}: {len(found)} models")
    return Rows({**labels, "offered": X.shape[1], **line} for line in found)


def fewest(models: Rows) -> Rows:
    """Per problem and method: the features of the accurate model that has the fewest."""
    found = []
    for construction in models.values("construction"):
        goal = 0.0 if construction == 1 else ZEROED
        here = models.where(construction=construction)
        size = "classes" if construction == 1 else "blocks"
        for value in here.values(size):
            for method in here.values("method"):
                rows = here.where(**{size: value, "method": method})
                accurate = [row["features"] for row in rows if row["error"] <= goal + 1e-12]
                names = ("construction", "bits", "classes", "blocks", "offered", "method")
                keep = {name: rows[0][name] for name in names}
                found.append({**keep, "features": min(accurate) if accurate else None})
    return Rows(found)


# ---- claims ----------------------------------------------------------------------------------------------------------


def _told(rows: Rows, size: str) -> str:
    parts = []
    for row in rows:
        few = "no accurate model" if row["features"] is None else f"{row['features']}"
        parts.append(f"{few} at {size} = {row[size]}")
    return ", ".join(parts)


def judge_entrywise(tables: Tables) -> Verdict:
    """l1 and l2 use k features or more."""
    checks = []
    for method in ("l1", "l2"):
        rows = tables["fewest"].where(construction=1, method=method)
        met = all(row["features"] is not None and row["features"] >= row["classes"] for row in rows)
        checks.append(Check(f"{method}: fewest features of an accurate model {_told(rows, 'classes')}", met))
    return judged(*checks)


def judge_shared(tables: Tables) -> Verdict:
    """ShareBoost and l1/linf use about log k features."""
    checks = []
    for method in (*(f"ShareBoost, {rule}" for rule in RULES), "l1/linf"):
        rows = tables["fewest"].where(construction=1, method=method)
        met = all(row["features"] is not None and row["features"] <= POLY * row["bits"] ** 2 for row in rows)
        checks.append(Check(f"{method}: fewest features of an accurate model {_told(rows, 'classes')}", met))
    return judged(*checks)


def judge_mixed(tables: Tables) -> Verdict:
    """l1/linf spreads over all blocks, ShareBoost does not."""
    rows = tables["fewest"].where(construction=2, method="l1/linf")
    spread = all(row["features"] is not None and row["features"] == row["offered"] for row in rows)
    checks = [Check(f"l1/linf: fewest features of an accurate model {_told(rows, 'blocks')}", spread)]
    for rule in RULES:
        rows = tables["fewest"].where(construction=2, method=f"ShareBoost, {rule}")
        met = all(row["features"] is not None and row["features"] <= POLY * row["bits"] ** 2 for row in rows)
        checks.append(Check(f"ShareBoost, {rule}: {_told(rows, 'blocks')}", met))
    return judged(*checks)


CLAIMS = (
    Claim(
        "l1 and l2 take a feature per class",
        "Section 6, first example",
        "No matter what the regularisation parameter is, the solutions with the l1 or the l2 norm of all weights use k "
        "features, although log k shared ones would do.",
        "On the path of either norm no accurate model uses fewer than k features, for every k.",
        judge_entrywise,
    ),
    Claim(
        "ShareBoost and the mixed norm share",
        "Section 6, first example",
        "ShareBoost finds a matrix with poly(log k) features, and so does the l1/linf norm with the right parameter.",
        f"The accurate model with the fewest features has at most {POLY:g} (log2 k)^2 of them, for every k.",
        judge_shared,
    ),
    Claim(
        "the mixed norm does not break ties",
        "Section 6, second example",
        "With s interchangeable blocks the l1/linf norm spreads its weights over all of them, whatever its parameter, "
        "while ShareBoost needs poly(log k) features.",
        "On the path of l1/linf every accurate model uses all s log2 k features, for every s; ShareBoost is accurate "
        f"with at most {POLY:g} (log2 k)^2.",
        judge_mixed,
    ),
)


def findings(tables: Tables) -> tuple[str, ...]:
    """What else the numbers show."""
    said = []
    for construction, size in ((1, "classes"), (2, "blocks")):
        for method in tables["fewest"].where(construction=construction).values("method"):
            rows = tables["models"].where(construction=construction, method=method)
            accurate = [row for row in rows if row["error"] <= (0.0 if construction == 1 else ZEROED) + 1e-12]
            most = max((row["features"] / row["offered"] for row in accurate), default=math.nan)
            least = min((row["features"] / row["offered"] for row in accurate), default=math.nan)
            said.append(
                f"Construction {construction}, {method}: accurate models use between {least:.0%} and {most:.0%} of the "
                f"features on offer, over all {size}."
            )
    return tuple(said)


LOOKS = {
    "l1": "l1", "l2": "l2", "l1/linf": "l1/linf", "ShareBoost, norm": "newton", "ShareBoost, scaled": "shareboost",
}  # fmt: skip


def draw_fewest(tables: Tables) -> Any:
    """Features of the sparsest accurate model, against classes and against blocks."""
    figure, axes = panels(2)
    for axis, construction, size in zip(axes, (1, 2), ("classes", "blocks"), strict=True):
        here = tables["fewest"].where(construction=construction)
        for method, look in LOOKS.items():
            rows = here.where(method=method)
            curve(axis, look, rows.column(size), rows.column("features"), text=method)
        rows = here.where(method="l1")
        axis.plot(
            rows.column(size), rows.column("bits"), color="0.5", linewidth=1.0, linestyle=":", label="log2 k (shared)"
        )
        axis.set_xscale("log", base=2)
        axis.set_yscale("log", base=2)
        label(axis, "classes k" if construction == 1 else "blocks s", "features used", f"construction {construction}")
        legend(axis)
    return figure


FIGURES = (
    Figure(
        "fewest-features",
        "The accurate model with the fewest features, of the whole path of each method. Left: one feature per class "
        "competes with log2 k shared ones. Right: s interchangeable blocks of shared features.",
        draw_fewest,
    ),
)
