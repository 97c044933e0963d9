"""``python -m lab against-glmnet``: what users of R's glmnet bring, solved by both, one line for each option.

The same problem goes to ``BoostedClassifier`` or ``BoostedRegressor`` and, through files, to glmnet (``solve.R``). Both
models are put into one formula of the objective here, in which they may differ by 1e-6 of it, and ours must be
certified to 1e-9. How far the weights are apart, at most, is shown beside it; those of several classes under l1 are not
unique. Relaxed fits, ``dboost.relaxed`` and ``relax=TRUE``, are compared in their loss over the same features; no gap
certifies them, and the largest derivative of the mean loss stands in its column. Without R, or without its package, the
program says so and ends with code 0.

Covers: single strengths. Does not cover: seconds (``lab bench``), choices between strengths.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dboost
from dboost.penalties import ElasticNet
from lab import tables

Array = NDArray[np.float64]

TOL = 1e-9
ALLOWED = 1e-6
# The largest derivative of the mean loss after a refit.
STEEP = 1e-8
COLUMNS = ("option", "family", "penalty", "gap", "ours above glmnet", "weights apart", "features", "seconds", "ok")
SCRIPT = Path(__file__).with_name("solve.R")
FAMILIES = {"squared": "gaussian", "log": "binomial", "multinomial": "multinomial", "poisson": "poisson"}
SEVERAL = {"multitarget": "mgaussian"}
"""Losses whose rows glmnet always takes whole."""


@dataclass(frozen=True)
class Case:
    """A problem that both solve."""

    # What is tried, in words.
    option: str
    loss: str
    penalty: Any = "l1"
    # Of the largest strength.
    share: float = 0.1
    # Parameters of our estimator.
    given: Mapping[str, Any] = field(default_factory=dict)
    factors: Array | None = None
    intercept: bool = True
    # Whether scores begin at offsets, normal with deviation 1.5.
    offset: bool = False
    # Whether the features are fitted again without a penalty.
    relax: bool = False
    # Whether the penalty is on the weights of columns divided by their deviations, the default of both.
    standardize: bool = False


def problem(loss: str, m: int = 200, n: int = 30, k: int = 4, seed: int = 0) -> tuple[Array, NDArray[Any]]:
    """X (m, n) whose columns differ in scale, and labels of a loss."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) * np.exp(rng.uniform(-1.0, 1.0, n))
    W = np.zeros((n, k))
    W[rng.choice(n, 8, replace=False)] = rng.normal(size=(8, k))
    F = 0.5 * X @ W
    if loss == "multinomial":
        return X, np.argmax(F + rng.gumbel(size=F.shape), axis=1)
    if loss == "log":
        return X, (F[:, 0] + rng.logistic(size=m) > 0).astype(np.int64)
    if loss == "poisson":
        return X, rng.poisson(np.exp(np.clip(0.4 * F[:, 0], -3.0, 3.0))).astype(float)
    if loss == "multitarget":
        return X, F + rng.normal(size=F.shape)
    y = F[:, 0] + rng.normal(size=m)
    # glmnet scales targets to deviation one, and the strength of the ridge with them: the elastic net would be another.
    return X, y / y.std()


def cases() -> list[Case]:
    """Every option."""
    f = np.exp(np.random.default_rng(1).uniform(-1.5, 1.5, 30))
    some = f.copy()
    some[[2, 11]] = np.inf
    free = f.copy()
    free[[0, 7]] = 0.0
    return [
        *(Case("plain", loss) for loss in FAMILIES),
        *(Case("standardize", loss, standardize=True) for loss in FAMILIES),
        Case("standardize, factors, grouped", "multinomial", "l1/l2", factors=f, standardize=True),
        *(Case("penalty_factors", loss, factors=f) for loss in FAMILIES),
        Case("penalty_factors, inf", "squared", factors=some),
        Case("penalty_factors, inf", "log", factors=some),
        *(Case("penalty_factors, 0", loss, factors=free) for loss in FAMILIES),
        Case("penalty_factors, 0, no intercept", "log", factors=free, intercept=False),
        Case("penalty_factors, 0", "squared", ElasticNet(0.5), factors=free),
        Case("penalty_factors, 0, grouped", "multinomial", "l1/l2", factors=free),
        *(Case("positive", loss, given={"positive": True}) for loss in FAMILIES),
        Case("positive", "squared", ElasticNet(0.5), given={"positive": True}),
        Case("penalty_factors, no intercept", "log", factors=f, intercept=False),
        Case("penalty_factors", "log", ElasticNet(0.5), factors=f),
        Case("penalty_factors, grouped", "multinomial", "l1/l2", factors=f),
        *(Case("offset", loss, offset=True) for loss in FAMILIES),
        Case("offset, grouped", "multinomial", "l1/l2", offset=True),
        Case("offset, no intercept", "poisson", offset=True, intercept=False),
        Case("offset and factors", "log", ElasticNet(0.5), offset=True, factors=some),
        *(Case("relax", loss, relax=True) for loss in ("squared", "log", "poisson")),
        Case("relax, grouped", "multinomial", "l1/l2", relax=True),
        Case("relax, no intercept", "log", relax=True, intercept=False),
        Case("relax, offset", "poisson", relax=True, offset=True),
        Case("relax, factors", "squared", relax=True, factors=some),
        Case("several targets", "multitarget", "l1/l2"),
        Case("several targets, factors", "multitarget", "l1/l2", factors=some),
        Case("several targets, offset", "multitarget", "l1/l2", offset=True),
        Case("several targets, relax", "multitarget", "l1/l2", relax=True),
    ]


def solve_with_glmnet(case: Case, X: Array, y: NDArray[Any], alpha: float, begin: Array) -> tuple[Array, Array]:
    """W (n, k) and b (k,) of glmnet."""
    job = {
        "alpha": repr(alpha),
        "family": (FAMILIES | SEVERAL)[case.loss],
        "ratio": repr(float(getattr(case.penalty, "l1_ratio", 1.0))),
        "intercept": str(case.intercept).upper(),
        "type": "grouped" if case.penalty == "l1/l2" else "ungrouped",
        "relax": str(case.relax).upper(),
        "standardize": str(case.standardize).upper(),
        "positive": str(bool(case.given.get("positive", False))).upper(),
    }
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        np.savetxt(here / "X.csv", X, delimiter=",", fmt="%.17g")
        np.savetxt(here / "y.csv", y, delimiter=",", fmt="%.17g")
        (here / "job.csv").write_text("".join(f"{name},{value}\n" for name, value in job.items()), encoding="ascii")
        if case.offset:
            np.savetxt(here / "offset.csv", begin, delimiter=",", fmt="%.17g")
        if case.factors is not None:
            shown = ["Inf" if np.isinf(one) else f"{one:.17g}" for one in case.factors]
            (here / "pf.csv").write_text("\n".join(shown) + "\n", encoding="ascii")
        subprocess.run(["Rscript", str(SCRIPT), folder], check=True, capture_output=True, timeout=600, text=True)
        found = np.loadtxt(here / "W.csv", delimiter=",", ndmin=2)
    return found[1:], found[0]


def objective(case: Case, X: Array, y: NDArray[Any], alpha: float, W: Array, b: Array, begin: Array) -> float:
    """What both minimise, in plain NumPy; features that are left out have no part in the penalty."""
    F = begin + X @ W + b
    f = np.ones(X.shape[1]) if case.factors is None else case.factors
    kept = np.isfinite(f)
    if np.any(W[~kept]):
        return float("inf")
    if case.loss == "multinomial":
        loss = np.log(np.exp(F - F.max(axis=1, keepdims=True)).sum(axis=1)) + F.max(axis=1) - F[np.arange(len(y)), y]
    elif case.loss == "log":
        loss = np.logaddexp(0.0, F[:, 0]) - y * F[:, 0]
    elif case.loss == "poisson":
        loss = np.exp(F[:, 0]) - y * F[:, 0] + np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0)), 0.0) - y
    elif case.loss == "multitarget":
        loss = 0.5 * ((y - F) ** 2).sum(axis=1)
    else:
        loss = 0.5 * (y - F[:, 0]) ** 2
    if case.relax:
        return float(loss.mean())
    ratio = getattr(case.penalty, "l1_ratio", 1.0)
    if case.standardize:
        # the penalty is on the weights of columns of deviation one
        W = W * X.std(axis=0)[:, None]
    norms = np.linalg.norm(W, axis=1) if case.penalty == "l1/l2" else np.abs(W).sum(axis=1)
    rows = ratio * norms + (1.0 - ratio) * 0.5 * (W * W).sum(axis=1)
    return float(loss.mean() + alpha * (f[kept] @ rows[kept]))


def compare(case: Case) -> dict[str, Any]:
    """One line of the table."""
    X, y = problem(case.loss)
    m, n = X.shape
    k = 4 if case.loss in ("multinomial", "multitarget") else 1
    begin = np.random.default_rng(2).normal(size=(m, k)) * 1.5 if case.offset else np.zeros((m, k))
    kinds = {"squared": dboost.BoostedRegressor, "poisson": dboost.BoostedRegressor}
    kind = (kinds | {"multitarget": dboost.MultiTaskBoostedRegressor}).get(case.loss, dboost.BoostedClassifier)
    given = dict(case.given) | {"loss": case.loss, "penalty": case.penalty, "fit_intercept": case.intercept}
    given["standardize"] = case.standardize
    if case.factors is not None:
        given["penalty_factors"] = case.factors if not case.offset else np.append(case.factors, np.ones(k))
    given["offset"] = list(range(n, n + k)) if case.offset else None
    whole = np.hstack([X, begin]) if case.offset else X
    largest = kind(**given, max_rounds=1, tol=1.0).fit(whole, y).alpha_max_
    alpha = case.share * largest
    began = time.perf_counter()
    model = kind(**given, alpha=alpha, tol=TOL).fit(whole, y)
    gap = model.duality_gap_
    if case.relax:
        model = dboost.relaxed(model, whole, y)
        gap = model.relaxed_["gradient"]
    seconds = time.perf_counter() - began
    mine = np.ascontiguousarray(model.coef_[:, :n].T)
    ours = objective(case, X, y, alpha, mine, model.intercept_, begin)
    W, b = solve_with_glmnet(case, X, y, alpha, begin)
    theirs = objective(case, X, y, alpha, W, b, begin)
    above = (ours - theirs) / abs(theirs)
    alike = not case.relax or np.array_equal(np.any(mine, axis=1), np.any(W, axis=1))
    return {
        "option": case.option,
        "family": (FAMILIES | SEVERAL)[case.loss],
        "penalty": case.penalty if isinstance(case.penalty, str) else repr(case.penalty),
        "gap": gap,
        "ours above glmnet": above,
        "weights apart": float(np.abs(mine - W).max()),
        "features": int(np.any(mine, axis=1).sum()),
        "seconds": seconds,
        "ok": "yes" if abs(above) <= ALLOWED and alike and gap <= (STEEP if case.relax else TOL) else "NO",
    }


def missing() -> str:
    """Why glmnet cannot be asked; empty where it can."""
    if shutil.which("Rscript") is None:
        return "Rscript is not installed (Debian: apt-get install r-base-core r-cran-glmnet)"
    asked = subprocess.run(["Rscript", "-e", "library(glmnet)"], capture_output=True, timeout=300)
    return "" if asked.returncode == 0 else "R has no package glmnet (Debian: apt-get install r-cran-glmnet)"


def main(arguments: Sequence[str]) -> int:
    """Compare all; exit code 1 where one differs."""
    parser = argparse.ArgumentParser(prog="python -m lab against-glmnet", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/against-glmnet.md"), help="table as Markdown")
    asked = parser.parse_args(arguments)
    why = missing()
    if why:
        print(f"skipped: {why}")
        return 0
    rows = [compare(case) for case in cases()]
    table = tables.markdown(rows, COLUMNS)
    print(table)
    tables.write(asked.out, "Options of glmnet, solved by both", [table])
    return 0 if all(row["ok"] == "yes" for row in rows) else 1
