"""One hostile problem from one seed: data, labels, weights, and what the fit is asked for.

Every choice is drawn from the seed alone, so that a case can be run again by its number. Problems are small: what is
sought is numbers that go wrong, and these need few of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lab.fuzz.objective import BY_DIFFERENCE, EPSILON, L1_RATIO, LOSSES, SHARPNESS, Objective, long

Random = np.random.Generator

CERTIFIED = ("l1", "l1/l2", "l1/linf", "l1/l2+l1", "l2", "l2_squared")
"""Penalties under which a fit ends with a certified gap."""
_OTHERS = ("smooth_l1", "smooth_l1/linf", "none")
_ESTIMATORS = {
    "log": "BoostedClassifier",
    "exp": "BoostedClassifier",
    "multinomial": "BoostedClassifier",
    "margin_softmax": "BoostedClassifier",
    "multitask": "MultiTaskBoostedClassifier",
    "squared": "BoostedRegressor",
    "multitarget": "MultiTaskBoostedRegressor",
    "epsilon_insensitive": "BoostedRegressor",
    "huber": "BoostedRegressor",
    "quantile": "BoostedRegressor",
    "poisson": "BoostedRegressor",
}
# Decades of float64 and float32 that data are drawn from: the last ones before the next number is infinite or zero.
_DECADES = {"float64": 300.0, "float32": 36.0}
_MAX_ROUNDS = 60
# Losses that came later, by the remainder of the seeds that draw them.
_LATER = {"poisson": 3, "multitarget": 0}
# Those that are drawn far from zero only.
_FAR_ONLY = ("huber", "quantile")
FAR = 10_000_000
"""The first seed of cases whose columns, targets, offsets and weights are far from zero and from each other."""


@dataclass(frozen=True)
class Case:
    """A problem and the parameters of its fit."""

    seed: int
    # What is hostile about it.
    words: tuple[str, ...]
    # As the fit is given it.
    X: Any
    # Labels as the fit is given them.
    y: Any
    # Labels as the oracle takes them: signs (m, k), one-hot (m, k) or targets (m, 1).
    encoded: NDArray[Any]
    weight: NDArray[np.float64] | None
    # Name in ``dboost``.
    estimator: str
    # For its constructor; `loss` and `penalty` by name.
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def dense(self) -> NDArray[Any]:
        """X as an array."""
        found: NDArray[Any] = self.X.toarray() if sparse.issparse(self.X) else self.X
        return found

    @property
    def n_weights(self) -> int:
        """Columns of X that have weights: all but those of offsets, which are the last."""
        return int(self.X.shape[1]) - len(self.params.get("offset") or ())

    def objective(self, alpha: float) -> Objective:
        """What the fit minimises at a strength, in long double."""
        given, n = self.params, self.n_weights
        return Objective.of(
            given["loss"], given["penalty"], self.dense[:, :n], self.encoded, self.weight, alpha,
            given["fit_intercept"], given["standardize"], self.dense[:, n:] if given.get("offset") else None,
        )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """The parameters as the constructor takes them: losses and penalties that have parameters as objects."""
        from dboost.losses import EpsilonInsensitive
        from dboost.penalties import SmoothL1, SmoothLinf, SparseGroup

        objects = {
            "epsilon_insensitive": EpsilonInsensitive(EPSILON),
            "l1/l2+l1": SparseGroup(L1_RATIO),
            "smooth_l1": SmoothL1(SHARPNESS),
            "smooth_l1/linf": SmoothLinf(SHARPNESS),
        }
        return {name: objects.get(value, value) if isinstance(value, str) else value
                for name, value in self.params.items()}  # fmt: skip


def draw(seed: int) -> Case:
    """The case of a seed; from `FAR` on one of data far from zero and from each other."""
    if seed >= FAR:
        return _far(seed)
    rng = np.random.Generator(np.random.Philox(key=[seed, 20]))
    words: list[str] = []
    m, n = _shape(rng, words)
    dtype = "float32" if rng.random() < 0.25 else "float64"
    X = _features(rng, m, n, dtype, words)
    loss = _one(rng, [name for name in LOSSES if name not in (*_LATER, *_FAR_ONLY)])
    # No seed that had found a defect before was of these kinds: those draw what they drew.
    loss = {at: name for name, at in _LATER.items()}.get(seed % 11, loss)
    y, encoded = _labels(rng, loss, X, words)
    weight = _weights(rng, encoded, words)
    given: Any = sparse.csr_matrix(X) if rng.random() < 0.25 else X
    if sparse.issparse(given):
        words.append("sparse")
    if dtype == "float32":
        words.append("float32")
    case = Case(seed, (), given, y, encoded, weight, _ESTIMATORS[loss])
    params = _settings(rng, loss, words)
    case = Case(seed, tuple(words), given, y, encoded, weight, _ESTIMATORS[loss], params)
    params["alpha"] = _alpha(rng, case)
    return case


def _far(seed: int) -> Case:
    """A small problem in other units and places: what it is worth is known by what is left of it."""
    rng = np.random.Generator(np.random.Philox(key=[seed, 55]))
    words: list[str] = []
    m, n = int(rng.integers(6, 40)), int(rng.integers(1, 6))
    loss = _one(rng, [name for name in LOSSES if name not in ("exp", "margin_softmax")])
    Z = np.round(8.0 * rng.standard_normal((m, n))) / 8.0
    y, encoded = _labels(rng, loss if loss not in _FAR_ONLY else "squared", Z, words)
    if loss in BY_DIFFERENCE and rng.random() < 0.5:
        mean, unit = 10.0 ** rng.uniform(0, 15.5), 10.0 ** rng.uniform(-4, 4)
        words.append(f"targets of {unit:.0e} from {mean:.0e} of them")
        encoded = unit * (encoded / max(float(np.nanmax(np.abs(encoded))), 1e-300) + mean)
        y = encoded if loss == "multitarget" else encoded[:, 0]
    X, far = Z.copy(), rng.random(n) < 0.6
    means = np.where(far, np.sign(rng.standard_normal(n)) * 10.0 ** rng.uniform(0, 15.5, n), 0.0)
    X = 10.0 ** rng.uniform(-6, 6, n) * (X + means)
    words.append(f"columns from {np.abs(means).max():.0e} deviations")
    params: dict[str, Any] = {
        "loss": loss,
        "penalty": _one(rng, CERTIFIED),
        "tol": _one(rng, (1e-4, 1e-4, 1e-6, 1e-9)),
        "max_rounds": _MAX_ROUNDS,
        "fit_intercept": bool(rng.random() < 0.9),
        "standardize": bool(rng.random() < 0.5),
    }
    k = encoded.shape[1]
    if rng.random() < 0.3:
        mean, width = 10.0 ** rng.uniform(0, 12), 10.0 ** rng.uniform(-1, 2.3)
        words.append(f"offsets of {width:.0e} from {mean:.0e}")
        # a link that grows without end has no loss at scores that large, unless an intercept takes them back
        mean = 0.0 if not params["fit_intercept"] else mean
        width = min(width, 5.0) if not params["fit_intercept"] else width
        X = np.hstack([X, mean + width * rng.standard_normal((m, k))])
        params["offset"] = list(range(n, n + k))
    weight = _weights(rng, encoded, words) if rng.random() < 0.5 else None
    case = Case(seed, tuple(words), X, y, encoded, weight, _ESTIMATORS[loss], params)
    params["alpha"] = _alpha(rng, case)
    return case


def _one(rng: Random, choices: Sequence[Any]) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _shape(rng: Random, words: list[str]) -> tuple[int, int]:
    kind = rng.random()
    if kind < 0.12:
        words.append("tiny")
        return int(rng.integers(2, 6)), int(rng.integers(1, 4))
    if kind < 0.22:
        words.append("wide")
        return int(rng.integers(4, 12)), int(rng.integers(12, 40))
    return int(rng.integers(8, 80)), int(rng.integers(1, 12))


def _features(rng: Random, m: int, n: int, dtype: str, words: list[str]) -> NDArray[Any]:
    base = _one(rng, ("normal", "normal", "binary", "counts", "sparse values"))
    if base == "normal":
        X = rng.standard_normal((m, n))
    elif base == "binary":
        X = (rng.random((m, n)) < 0.3).astype(float)
    elif base == "counts":
        X = rng.poisson(1.0, (m, n)).astype(float)
    else:
        X = np.where(rng.random((m, n)) < 0.3, rng.standard_normal((m, n)), 0.0)
    decades = _DECADES[dtype]
    if rng.random() < 0.2 and n > 1:
        words.append("collinear")
        to, of = rng.permutation(n)[:2]
        X[:, to] = X[:, of] * _one(rng, (1.0, -1.0, 2.0, 1.0 / 3.0))
    if rng.random() < 0.15:
        words.append("constant column")
        X[:, rng.integers(n)] = _one(rng, (0.0, 1.0, 1.0 / 3.0, -1e6))
    if rng.random() < 0.2:
        words.append("scaled columns")
        X *= 10.0 ** rng.uniform(-6, 6, n)
    if rng.random() < 0.15:
        far = 10.0 ** rng.uniform(1, 9 if dtype == "float64" else 5)
        words.append(f"shifted by {far:.0e}")
        X[:, rng.random(n) < 0.5] += far
    kind = rng.random()
    if kind < 0.12:
        scale = 10.0 ** rng.uniform(-decades, decades)
        words.append(f"one column of {scale:.0e}")
        X[:, rng.integers(n)] *= scale
    elif kind < 0.2:
        scale = 10.0 ** rng.uniform(-decades, decades)
        words.append(f"all columns of {scale:.0e}")
        X *= scale
    elif kind < 0.26:
        words.append(f"columns over {2 * decades:.0f} decades")
        X *= 10.0 ** rng.uniform(-decades, decades, n)
    limit = float(np.finfo(dtype).max)
    return np.clip(X, -limit, limit).astype(dtype)


def _labels(rng: Random, loss: str, X: NDArray[Any], words: list[str]) -> tuple[Any, NDArray[Any]]:
    m, n = X.shape
    Z = X.astype(float)
    peak = np.abs(Z).max(axis=0)
    Z = Z / np.where(peak > 0, peak, 1.0)
    Z = Z - Z.mean(axis=0)
    noise = _one(rng, (0.0, 0.3, 1.0, 1.0, 10.0))
    if noise == 0.0:
        words.append("noiseless")
    several = int(rng.integers(1, 4))
    k = {"multitask": several, "multitarget": several, "multinomial": 0, "margin_softmax": 0}.get(loss, 1)
    k = int(rng.integers(3, 6)) if k == 0 else k
    F = Z @ rng.standard_normal((n, k)) + noise * rng.standard_normal((m, k))
    if loss == "poisson":
        return _counts(rng, F[:, 0], words)
    if loss in ("squared", "epsilon_insensitive"):
        return _targets(rng, F[:, 0], words)
    if loss == "multitarget":
        found, _ = _targets(rng, F, words)
        missing = (rng.random(found.shape) < 0.15) & (rng.random() < 0.4)
        # a target keeps one of its values
        missing[0] = False
        labels = np.where(missing, np.nan, found)
        return labels, labels
    if loss == "multitask":
        return _tasks(rng, F)
    skew = rng.random() < 0.25
    if loss in ("multinomial", "margin_softmax"):
        if skew:
            words.append("rare classes")
            F[:, 0] += 3.0 * max(noise, 1.0)
        codes = F.argmax(axis=1)
        # every class needs an example
        codes[rng.permutation(m)[: min(k, m)]] = np.arange(k)[: min(k, m)]
        found = np.unique(codes)
        return codes, (codes[:, None] == found[None]).astype(float)
    if skew:
        words.append("rare classes")
        F += 2.0 * max(noise, 1.0)
    signs = np.where(F[:, 0] > 0, 1, -1)
    signs[rng.permutation(m)[:2]] = (1, -1)
    return signs, signs[:, None].astype(float)


def _targets(rng: Random, f: NDArray[Any], words: list[str]) -> tuple[Any, NDArray[Any]]:
    kind = rng.random()
    if kind < 0.2:
        scale = 10.0 ** rng.uniform(-300, 300)
        words.append(f"targets of {scale:.0e}")
        f = f * scale
    elif kind < 0.35:
        far = 10.0 ** rng.uniform(1, 12)
        words.append(f"targets from {far:.0e}")
        f = f + far
    elif kind < 0.4:
        words.append("equal targets")
        f = np.full_like(f, _one(rng, (0.0, 1.0, 1.0 / 3.0)))
    return f, f.reshape(len(f), -1)


def _counts(rng: Random, f: NDArray[Any], words: list[str]) -> tuple[Any, NDArray[Any]]:
    mean, kind = np.exp(np.clip(f, -20.0, 8.0)), rng.random()
    if kind < 0.2:
        scale = 10.0 ** rng.uniform(-4, 6)
        words.append(f"counts of {scale:.0e}")
        mean = mean * scale
    counts = rng.poisson(mean).astype(float)
    if kind > 0.9:
        words.append("counts that are no whole numbers")
        counts = counts * rng.uniform(0.1, 1.0, len(counts))
    # counts of zero only have no best intercept
    counts[0] = max(counts[0], 1.0)
    return counts, counts[:, None]


def _tasks(rng: Random, F: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
    signs = np.where(F > 0, 1.0, -1.0)
    for column in signs.T:
        column[rng.permutation(len(column))[:2]] = (1.0, -1.0)
    missing = (rng.random(signs.shape) < 0.15) & (rng.random() < 0.4)
    for column, gone in zip(signs.T, missing.T, strict=True):
        # a task keeps both of its labels
        for label in (-1.0, 1.0):
            gone[np.flatnonzero(column == label)[0]] = False
    labels = np.where(missing, np.nan, (signs > 0).astype(float))
    return labels, np.where(missing, 0.0, signs)


def _weights(rng: Random, encoded: NDArray[Any], words: list[str]) -> NDArray[np.float64] | None:
    m, kind = len(encoded), rng.random()
    if kind < 0.5:
        return None
    if kind < 0.65:
        return np.asarray(rng.uniform(0.1, 3.0, m))
    if kind < 0.8:
        words.append("weights over 24 decades")
        return np.asarray(10.0 ** rng.uniform(-12, 12, m))
    if kind < 0.92:
        each = 10.0 ** rng.uniform(-290, 290)
        words.append(f"weights of {each:.0e}")
        return np.asarray(each * (np.ones(m) if rng.random() < 0.5 else rng.uniform(0.5, 2.0, m)))
    words.append("weights of zero")
    weight = np.where(rng.random(m) < 0.3, 0.0, rng.uniform(0.1, 3.0, m))
    # every label keeps an example that counts
    for column in encoded.T:
        # a target may be missing, which is no label
        for label in np.unique(column[~np.isnan(column)])[:3]:
            weight[np.flatnonzero(column == label)[0]] = 1.0
    return weight


def _settings(rng: Random, loss: str, words: list[str]) -> dict[str, Any]:
    penalty = _one(rng, CERTIFIED if rng.random() < 0.85 else _OTHERS)
    updates = ["newton"] * 3
    if loss not in ("exp", "poisson"):
        updates.append("gradboost")
    if loss != "squared":
        updates.append("adaboost")
    update = _one(rng, updates)
    select = "greedy"
    if update != "newton":
        select = _one(rng, ("greedy", "cyclic", "random", "template", "template_uniform"))
        if penalty == "l2":
            select = _one(rng, ("template", "template_uniform"))
    smooth = penalty.startswith("smooth")
    standardize = bool(rng.random() < 0.25) and not smooth
    if penalty == "smooth_l1/linf":
        # other updates and the exponential loss solve single rows, which this penalty has no formula for
        update, select = "newton", "greedy"
        penalty = "smooth_l1" if loss in ("exp", "poisson") else penalty
    if standardize:
        words.append("standardize")
    return {
        "loss": loss,
        "penalty": penalty,
        "update": update,
        "select": select,
        "tol": _one(rng, (1e-4, 1e-4, 1e-4, 1e-6, 1e-9)),
        "max_rounds": _MAX_ROUNDS,
        "fit_intercept": bool(rng.random() < 0.7),
        "standardize": standardize,
        "features_per_round": None if penalty == "l2" or rng.random() < 0.7 else int(rng.integers(1, 4)),
    }


def _alpha(rng: Random, case: Case) -> float | str:
    """A strength near where the weights vanish, far below, or anywhere; "quick" where that is no float64."""
    penalty = case.params["penalty"]
    if penalty == "none" or rng.random() < 0.25:
        return "quick"
    if rng.random() < 0.05:
        return float(10.0 ** rng.uniform(-300, 300))
    if penalty in ("l2_squared", "smooth_l1", "smooth_l1/linf"):
        return float(10.0 ** rng.uniform(-5, 2))
    problem = case.objective(0.0)
    b = np.zeros(problem.y.shape[1])
    share = problem.share
    if case.params["fit_intercept"]:
        b = np.asarray((share @ problem.y) / share.sum(), dtype=float)
        b = np.log(b) if case.params["loss"] == "poisson" else b
        if "offset" in case.params:
            top = np.max(problem.offset, axis=0)
            grown = top + np.log((share[:, None] * np.exp(problem.offset - top)).sum(axis=0) / share.sum())
            b = b - np.asarray(grown if case.params["loss"] == "poisson" else share @ problem.offset, dtype=float)
    U = problem.loss_at(np.zeros_like(problem.y) + long(b) + problem.offset)[1]
    on = np.isfinite(problem.scale)
    pull = np.abs(problem.X.T @ U)[on] / problem.scale[on, None]
    largest = pull.max(initial=0)
    alpha = float(largest) * float(_one(rng, (1.5, 0.7, 0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-5)))
    return alpha if 0.0 < alpha < math.inf else "quick"
