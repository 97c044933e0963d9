"""Parts of the regressions of Fig. 5: sizes, splits, and the choice of a strength by cross-validation.

Covers: ``Study``, ``Split``, ``Choice`` and how it is made. Does not cover: the learners (``regression``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dboost
from dboost.losses import EpsilonInsensitive
from lab.datasets.base import random_split
from lab.reproduce.measure import in_parallel

Array = NDArray[np.float64]
Table = tuple[Array, Array, NDArray[np.str_]]

FOLDS = 5


@dataclass(frozen=True)
class Study:
    """Sizes and settings of one regression.

    Parameters
    ----------
    name : str
    table : function
        Gives X, y and the names of the columns.
    unit : float
        The target is divided by it, so that its spread is of the order of ten.
    unit_name : str
        The unit in words.
    epsilon : float
        Half width of the tube, in that unit.
    test_share : float
    splits : int
    family : Products
        Hypotheses of the boosters.
    bounded : Products
        A finite class, for the many rounds of classical AdaBoost.
    ratios : tuple of float
        Strengths of l1 boosting, as shares of the smallest one that leaves every weight zero.
    smooth : tuple of float
        Strengths of smooth-l1 boosting, on the mean loss.
    linear : tuple of float
        Strengths of l1 least squares, as shares.
    margins : tuple of float
        Inverse strengths C of the l2 hinge, per example: C = value / m.
    forward_rounds, unbounded_rounds, smooth_rounds, trial_rounds : int
        Rounds of classical AdaBoost on the finite and on the whole class, of smooth-l1 boosting, and of the latter
        while its strength is chosen.
    folds : int
    """

    name: str
    table: Callable[[], Table]
    unit: float
    unit_name: str
    epsilon: float
    test_share: float
    splits: int
    family: Any
    bounded: Any
    ratios: tuple[float, ...]
    smooth: tuple[float, ...]
    linear: tuple[float, ...] = tuple(np.geomspace(0.3, 1e-3, 10).tolist())
    margins: tuple[float, ...] = (1.0, 10.0, 100.0, 1000.0)
    forward_rounds: int = 3000
    unbounded_rounds: int = 300
    smooth_rounds: int = 300
    trial_rounds: int = 60
    folds: int = FOLDS


@dataclass(frozen=True)
class Split:
    """One random split; the target is in the study's unit."""

    number: int
    X: Array
    y: Array
    X_test: Array
    y_test: Array

    def judge(self, model: Any) -> dict[str, float]:
        """Root mean square and mean absolute error on the test part."""
        return errors(model.predict(self.X_test), self.y_test)


def errors(predicted: Array, y: Array) -> dict[str, float]:
    """RMSE and MAE."""
    residual = np.asarray(predicted, dtype=np.float64) - y
    return {"rmse": float(np.sqrt(np.mean(residual**2))), "mae": float(np.mean(np.abs(residual)))}


def split_of(study: Study, number: int) -> Split:
    """The split with that number, which is also its seed."""
    X, y, _ = study.table()
    train, test = random_split(len(y), study.test_share, seed=number)
    y = y / study.unit
    return Split(number, X[train], y[train], X[test], y[test])


def booster(study: Study, **params: Any) -> Any:
    """A regressor on products with the study's tube."""
    loss = EpsilonInsensitive(epsilon=study.epsilon)
    return dboost.BoostedRegressor(loss=loss, hypotheses=study.family, **params)


def fold_rows(n_rows: int, folds: int, seed: int) -> list[NDArray[np.int64]]:
    """The held-out rows of each fold."""
    order = np.random.default_rng(seed).permutation(n_rows)
    return [np.sort(part) for part in np.array_split(order, folds)]


@dataclass(frozen=True)
class Choice:
    """What cross-validation says of some strengths.

    Parameters
    ----------
    strengths : float64 array, shape (s,)
        Strongest first.
    errors : float64 array, shape (folds, s)
        Mean squared error on each fold.
    """

    strengths: Array
    errors: Array

    @property
    def best(self) -> int:
        """The smallest mean error; of equal ones the strongest penalty."""
        return int(np.argmin(self.errors.mean(axis=0)))

    @property
    def sparse(self) -> int:
        """The strongest penalty within one standard error of the best."""
        mean = self.errors.mean(axis=0)
        slack = self.errors[:, self.best].std(ddof=1) / np.sqrt(len(self.errors))
        return int(np.flatnonzero(mean <= mean[self.best] + slack)[0])

    @property
    def at_edge(self) -> bool:
        """Whether the weakest strength on offer was the best."""
        return self.best == len(self.strengths) - 1


def choose_on_path(model: Any, X: Array, y: Array, ratios: tuple[float, ...], folds: int, seed: int) -> Choice:
    """Cross-validate an estimator along a path; the strengths are shares of alpha_max of all rows."""
    largest = quietly(dboost.regularization_path, X, y, n_alphas=1, estimator=model).models[0].certificate.alpha_max
    strengths = np.sort(np.asarray(ratios, dtype=np.float64))[::-1] * largest

    def fold_errors(held_out: NDArray[np.int64]) -> list[float]:
        kept = np.setdiff1d(np.arange(len(y)), held_out)
        path = quietly(dboost.regularization_path, X[kept], y[kept], alphas=strengths.tolist(), estimator=model)
        predicted = (path.estimator(place).predict(X[held_out]) for place in range(len(strengths)))
        return [float(np.mean((f - y[held_out]) ** 2)) for f in predicted]

    # filters of warnings are not a thread's own: those set here hold for all of them
    jobs = [partial(fold_errors, rows) for rows in fold_rows(len(y), folds, seed)]
    found = np.array(quietly(in_parallel, jobs))
    return Choice(strengths, found)


def quietly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call without the warnings of fits that end above their tolerance: the gap reached is in the tables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dboost.ConvergenceWarning)
        return function(*args, **kwargs)
