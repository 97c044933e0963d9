"""Leveraging (Raetsch, Mika & Warmuth): linear convergence measured, Algorithm 2 at its optimum, LS-Boost that stalls.

Covers: the measurements. Does not cover: claims and the figure (``leveraging_claims``).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.tree import DecisionTreeClassifier

import dboost
from lab.datasets import boston, small_binary
from lab.reproduce.base import Context, Report
from lab.reproduce.leveraging_claims import CLAIMS, END, FIGURES, LOSSES, START, findings
from lab.reproduce.rows import Rows


@dataclass(frozen=True)
class Sizes:
    """Rounds of Algorithm 1 and 2, strengths of Algorithm 2, and how far worse learners fall short of the best."""

    rounds: int = 6000
    penalised_rounds: int = 20_000
    shares: tuple[float, ...] = (0.3, 0.1, 0.03)
    stall_rounds: int = 100
    deltas: tuple[float, ...] = (0.5, 0.2, 0.05)
    worse_rounds: int = 1000


QUICK = Sizes(rounds=600, penalised_rounds=2000, shares=(0.3,), stall_rounds=30, deltas=(0.5,), worse_rounds=50)


def problem(loss: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Standardised columns and labels: Diabetes (Pima) for classes, Boston's houses for the squared loss."""
    if loss == "squared":
        X, y, _ = boston.table()
        return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    X, labels = small_binary.table("pima")
    return (X - X.mean(axis=0)) / X.std(axis=0), labels


def leverager(loss: str, **params: Any) -> Any:
    """The estimator of a loss."""
    if loss == "squared":
        return dboost.LeveragingRegressor(**params)
    return dboost.LeveragingClassifier(loss=loss, **params)


def optimum(loss: str, X: NDArray[np.float64], y: NDArray[Any], **params: Any) -> Any:
    """The totally corrective fit of the same objective."""
    kind = dboost.BoostedRegressor if loss == "squared" else dboost.BoostedClassifier
    with warnings.catch_warnings():
        # without a penalty there is no certificate: such a fit ends at its numerical limit, and says so
        warnings.simplefilter("ignore", dboost.ConvergenceWarning)
        return kind(loss=loss, **params).fit(X, y)


def values(model: Any) -> NDArray[np.float64]:
    """The objective before every round and after the last one."""
    return np.append(model.history_.column("objective").astype(float), float(model.objective_))


def excess_of(measured: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    """Distances to the minimum by round, relative to the first: to `least`, or the lowest value where that is less."""
    least = min(least, float(measured.min()))
    return np.asarray((measured - least) / (measured[0] - least))


def rate(excess: NDArray[np.float64]) -> dict[str, Any]:
    """The straight line through the logarithms of distances from `START` to `END`, and how well it fits."""
    inside = np.flatnonzero((excess <= START) & (excess >= END))
    if len(inside) < 4:
        unknown = ("reached", "contraction", "offset", "first_half", "second_half", "explained")
        return {"from_round": 0, "to_round": 0} | dict.fromkeys(unknown, math.nan)
    first, last = int(inside[0]), int(inside[-1])
    t = np.arange(first, last + 1)
    logs = np.log(np.maximum(excess[t], 1e-300))
    slope, offset = np.polyfit(t, logs, 1)
    halves = [
        np.polyfit(part, np.log(np.maximum(excess[part], 1e-300)), 1)[0] if len(part) > 1 else slope
        for part in np.array_split(t, 2)
    ]
    rest = logs - (slope * t + offset)
    return {
        "from_round": first,
        "to_round": last,
        "reached": float(excess[last]),
        "contraction": float(np.exp(slope)),
        "offset": float(offset),
        "first_half": float(np.exp(halves[0])),
        "second_half": float(np.exp(halves[1])),
        "explained": float(1.0 - rest.var() / logs.var()),
    }


def convergence(sizes: Sizes) -> tuple[Rows, Rows]:
    """Distance to the minimum by round, and the rate, of Algorithm 1 on the three losses."""
    curves, rates = [], []
    for loss in LOSSES:
        X, y = problem(loss)
        model = leverager(loss, max_rounds=sizes.rounds, tol=0.0).fit(X, y)
        best = optimum(loss, X, y, penalty="none", tol=1e-13)
        excess = excess_of(values(model), float(best.objective_))
        rates.append(
            {"loss": loss, "rows": len(y), "columns": X.shape[1]}
            | rate(excess)
            | {"passes": int(model.history_[-1]["passes"]), "rounds": int(model.n_iter_)}
        )
        shown = [t for t in range(len(excess)) if t < 500 or t % 20 == 0]
        curves += [{"loss": loss, "round": t, "excess": float(excess[t])} for t in shown if excess[t] > 0]
    return Rows(curves), Rows(rates)


class WorstAllowed(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A learner that finds one column: of all whose edge is at least delta times the largest, the one of the least.

    Parameters
    ----------
    delta : float
        In (0, 1].
    """

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def fit(self, X: NDArray[np.float64], y: NDArray[np.float64], sample_weight: Any = None) -> WorstAllowed:
        """Choose the column for residuals `y`."""
        edges = np.abs(X.T @ (y * sample_weight))
        allowed = np.flatnonzero(edges >= self.delta * edges.max())
        self.column_ = int(allowed[np.argmin(edges[allowed])])
        return self

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The column."""
        return X[:, self.column_]


def worse_learners(sizes: Sizes) -> Rows:
    """The rate of Algorithm 1 where every round is given the worst hypothesis that delta allows."""
    found = []
    for loss in LOSSES:
        X, y = problem(loss)
        best = optimum(loss, X, y, penalty="none", tol=1e-13)
        with_constant = np.hstack([X, np.ones((len(y), 1))])
        for delta in sizes.deltas:
            learner = dboost.Learned(WorstAllowed(delta))
            model = leverager(loss, hypotheses=learner, fit_intercept=False, max_rounds=sizes.worse_rounds, tol=0.0)
            model.fit(with_constant, y)
            excess = excess_of(values(model), float(best.objective_))
            found.append({"loss": loss, "delta": delta, "rounds": int(model.n_iter_)} | rate(excess))
    return Rows(found)


def penalised(sizes: Sizes) -> Rows:
    """Algorithm 2 against the certified optimum of the l1 problem."""
    found = []
    for loss in LOSSES:
        X, y = problem(loss)
        for share in sizes.shares:
            alpha = share * float(leverager(loss, alpha=1e9, max_rounds=1).fit(X, y).alpha_max_)
            model = leverager(loss, alpha=alpha, max_rounds=sizes.penalised_rounds, tol=1e-10).fit(X, y)
            best = optimum(loss, X, y, penalty="l1", alpha=alpha, tol=1e-11)
            steps = [record["step"] for record in model.history_]
            found.append(
                {
                    "loss": loss,
                    "share": share,
                    "rounds": int(model.n_iter_),
                    "back": steps.count("back"),
                    "stop": str(model.stop_reason_),
                    "gap": float(model.duality_gap_),
                    "excess": float(model.objective_ / best.objective_ - 1.0),
                    "kkt": kkt(loss, model, X, y, alpha),
                    "features": len(model.active_features_),
                    "best_features": len(best.active_features_),
                    "columns": X.shape[1],
                }
                | rate(excess_of(values(model), float(best.objective_)))
            )
    return Rows(found)


def kkt(loss: str, model: Any, X: NDArray[np.float64], y: NDArray[Any], alpha: float) -> float:
    """Largest violation of |G_j| <= alpha, = alpha sign(w_j) where w_j is not zero, relative to alpha."""
    w = model.coef_[0]
    f = X @ w + model.intercept_[0]
    d = {"exp": lambda: y * np.exp(-y * f), "log": lambda: y / (1.0 + np.exp(y * f)), "squared": lambda: y - f}[loss]()
    G = X.T @ d / len(y)
    held = w != 0.0
    violation = np.where(held, np.abs(G - alpha * np.sign(w)), np.maximum(np.abs(G) - alpha, 0.0))
    return float(max(violation.max(), abs(d.mean())) / alpha)


def stall(sizes: Sizes) -> Rows:
    """Both forms of LS-Boost where a small hypothesis is at a right angle to the residuals, and on Boston's houses."""
    small = np.array([[10.0, 0.01], [10.0, -0.01], [-10.0, 0.01], [-10.0, -0.01]])
    X, y = problem("squared")
    raw, _, _ = boston.table()
    sets = {
        "four rows": (small, np.array([1.0, 1.0, -1.0, -1.0])),
        "Boston, standardised": (X, y),
        "Boston, columns as they are": (raw - raw.mean(axis=0), y),
    }
    found = []
    for name, (columns, target) in sets.items():
        for learner in ("nearest", "joint"):
            model = dboost.LeveragingRegressor(
                learner=learner, fit_intercept=False, tol=0.0, max_rounds=sizes.stall_rounds
            ).fit(columns, target)
            least = 0.5 * float(np.mean((target - columns @ np.linalg.lstsq(columns, target, rcond=None)[0]) ** 2))
            found.append(
                {
                    "set": name,
                    "learner": learner,
                    "rounds": int(model.n_iter_),
                    "start": float(model.history_[0]["objective"]),
                    "end": float(model.objective_),
                    "least": least,
                }
            )
    return Rows(found)


def base_learners(sizes: Sizes) -> Rows:
    """scikit-learn's trees as base learners, by depth: the training loss after some rounds."""
    X, y = small_binary.table("pima")
    found = []
    for depth in (1, 2, 3):
        learner = dboost.Learned(DecisionTreeClassifier(max_depth=depth, random_state=0))
        model = dboost.LeveragingClassifier(loss="log", hypotheses=learner, max_rounds=sizes.stall_rounds, tol=0.0)
        model.fit(X, y)
        found.append(
            {"depth": depth, "rounds": int(model.n_iter_), "loss": float(model.objective_), "start": math.log(2.0)}
        )
    return Rows(found)


def run(context: Context) -> Report:
    """Measure convergence, the penalised form and the stalling learner."""
    sizes = QUICK if context.quick else Sizes()
    tables: dict[str, Rows] = {}
    with context.stage("convergence"):
        tables["curves"], tables["rates"] = convergence(sizes)
    with context.stage("penalised"):
        tables["penalised"] = penalised(sizes)
    with context.stage("worse learners"):
        tables["worse"] = worse_learners(sizes)
    with context.stage("stall"):
        tables["stall"] = stall(sizes)
    with context.stage("base learners"):
        tables["learners"] = base_learners(sizes)
    return Report(
        "Leveraging: how fast it converges, and where to",
        "Boosting by one hypothesis a round on three losses. The paper proves linear convergence to the minimum, with "
        "and without an l1 penalty; it reports no experiments. These measure the statements.",
        CLAIMS,
        (
            "Diabetes (Pima) for AdaBoost and logistic regression, Boston's houses for LS-Boost; standardised columns, "
            "each a hypothesis with both signs, and the constant.",
            f"Algorithm 1: {sizes.rounds} rounds; the minimum is that of the totally corrective Newton fit, or the "
            f"least value seen where that is lower. The rate is a straight line through the logarithms of the distance "
            f"to it, from {START:g} to {END:g} of the first.",
            f"Algorithm 2: strengths {', '.join(f'{share:g}' for share in sizes.shares)} of alpha_max, until a "
            "certified gap of 1e-10; the optimum is BoostedClassifier's (BoostedRegressor's) to 1e-11.",
            "Learners with delta < 1: of all columns whose edge is at least delta times the largest, the one of the "
            f"least edge, in every round; delta {', '.join(f'{delta:g}' for delta in sizes.deltas)}, "
            f"{sizes.worse_rounds} rounds.",
            f"LS-Boost: {sizes.stall_rounds} rounds of both forms.",
        ),
        ("The paper has no experiments: tables, sizes and strengths are ours.",),
        tables,
        FIGURES,
        findings(tables),
    )
