"""A path of models: one optimum for each of a falling sequence of strengths, each started from the last.

Covers: ``regularization_path`` and its result.
Does not cover: which strengths, and the solves (``dboost.boosting.path``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dboost.boosting.fit import Callback, FitResult
from dboost.boosting.path import path
from dboost.errors import UsageError
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.checkpoint import PathFolder
from dboost.estimators.classifier import BoostedClassifier
from dboost.estimators.fitting import Prepared, model_of, prepared
from dboost.estimators.params import count
from dboost.estimators.rounds import ModelCallback, Table, live_line, split
from dboost.former_names import warn_renamed
from dboost.model.fitted import Model
from dboost.penalties import get_penalty


@dataclass(frozen=True)
class RegularizationPath:
    """Models along a path, strongest penalty first.

    Parameters
    ----------
    models : tuple of Model
    template : estimator
        Unfitted, with the parameters of the path.
    """

    models: tuple[Model, ...]
    template: BoostedEstimator

    def __len__(self) -> int:
        return len(self.models)

    @property
    def alphas(self) -> NDArray[np.float64]:
        """Strengths, falling, shape (number of models,)."""
        return np.array([model.certificate.alpha for model in self.models])

    @property
    def objectives(self) -> NDArray[np.float64]:
        """Objectives."""
        return np.array([model.certificate.objective for model in self.models])

    @property
    def gaps(self) -> NDArray[np.float64]:
        """Certified relative gaps."""
        return np.array([model.certificate.gap for model in self.models])

    @property
    def n_active_features(self) -> NDArray[np.int64]:
        """Number of features, or hypotheses, used."""
        return np.array([model.n_hypotheses for model in self.models], dtype=np.int64)

    @property
    def n_active_rows(self) -> NDArray[np.int64]:
        """Former name of `n_active_features`, kept for one version."""
        warn_renamed("n_active_rows", "n_active_features")
        return self.n_active_features

    @property
    def coefs(self) -> NDArray[np.float64]:
        """Weights of all features, shape (number of models, k or 1, n); built on each access.

        Raises
        ------
        UsageError
            With induced hypotheses: each model holds others (``models[i].W``).
        """
        first = self.models[0]
        coefs = np.zeros((len(self.models), first.n_outputs, first.n_features))
        for place, model in zip(coefs, self.models, strict=True):
            place[:, model.active] = model.W.T
        return coefs

    @property
    def intercepts(self) -> NDArray[np.float64]:
        """Intercepts, shape (number of models, k or 1)."""
        return np.array([model.intercept for model in self.models])

    @property
    def entering(self) -> dict[str, float]:
        """Each feature ever used, in words, with the largest strength at which it is; in the order of entering."""
        found: dict[str, float] = {}
        for model in self.models:
            for name in model.hypotheses.words():
                found.setdefault(name, model.certificate.alpha)
        return found

    @property
    def table(self) -> Table:
        """One record per strength."""
        return Table(
            {
                "alpha": model.certificate.alpha,
                "features": model.n_hypotheses,
                "entries": int(np.count_nonzero(model.W)),
                "objective": model.certificate.objective,
                "gap": model.certificate.gap,
                "rounds": model.certificate.n_iter,
                "passes": model.certificate.passes,
                "stop_reason": model.certificate.stop_reason,
            }
            for model in self.models
        )

    def estimator(self, index: int) -> Any:
        """A fitted estimator for one strength."""
        model = self.models[index]
        return clone(self.template).set_params(alpha=model.certificate.alpha)._adopt(model)

    def __repr__(self) -> str:
        return f"RegularizationPath({len(self.models)} models)\n{self.table!r}"

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def regularization_path(
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    feature_names: Sequence[str] | None = None,
    alphas: Sequence[float] | None = None,
    n_alphas: int = 20,
    eps: float = 1e-2,
    estimator: BoostedEstimator | None = None,
    on_model: Callable[[Model], None] | None = None,
    **params: Any,
) -> RegularizationPath:
    """Fit a falling sequence of strengths, each from the last.

    Parameters
    ----------
    X, y, sample_weight, feature_names
        As for ``BoostedClassifier.fit``.
    alphas : sequence of float, optional
        Strengths. By default `n_alphas` values, geometric from alpha_max (no feature) to `eps` times it.
    n_alphas : int
    eps : float
        In (0, 1).
    estimator : estimator, optional
        Whose parameters are used; not changed. By default ``BoostedClassifier(**params)``.
    on_model : callable, optional
        Called with the model of each strength once its fit has ended: what there is of a path that is broken off.
    **params
        Parameters of the estimator, but not `alpha` and `warm_start`, which have no meaning here. `checkpoint` is a
        folder: a path that was broken off goes on there in the next call with the same data and parameters, with the
        bits of the undisturbed one, and makes no fit again that had ended. `callbacks` are functions, called with the
        record of each round, where ``"strength"`` is the place of its strength; a true result ends that one fit.
        `client` is as in ``BoostedClassifier``.

    Returns
    -------
    RegularizationPath

    Raises
    ------
    UsageError, DataError
        Before any training.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> path = regularization_path(X, [0, 0, 1, 1], n_alphas=3, eps=0.1)
    >>> len(path), path.n_active_features.tolist()[0]
    (3, 0)
    """
    chosen = BoostedClassifier(**params) if estimator is None else clone(estimator).set_params(**params)
    if chosen.alpha not in ("auto", "quick") or chosen.warm_start:
        raise UsageError("alpha and warm_start have no meaning for a path", hint="give alphas= for the strengths")
    chosen._fits_several = True
    check_grid(alphas, n_alphas, eps)
    with for_several_fits(chosen, X, y, sample_weight, feature_names) as (parts, callback):
        penalty = get_penalty(parts.settings.penalty)
        if penalty.weightless:
            raise UsageError(f"penalty {penalty.name!r} has no path", hint="use another penalty, or fit once")
        keeper = None if chosen.checkpoint is None else PathFolder(chosen.checkpoint, parts.settings)

        def report(result: FitResult) -> None:
            if on_model is not None:
                on_model(model_of(chosen, parts, result))

        grid = (alphas, n_alphas, eps)
        results = path(parts.plan, parts.engine, parts.settings, *grid, callback, keeper, report)
        models = tuple(model_of(chosen, parts, result) for result in results)
    return RegularizationPath(models, clone(chosen).set_params(checkpoint=None, callbacks=None))


@contextmanager
def for_several_fits(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    feature_names: Sequence[str] | None = None,
    groups: Any = None,
) -> Iterator[tuple[Prepared, Callback | None]]:
    """As ``prepared``, with one callback for the rounds of several fits: what all functions of `callbacks` are told."""
    hooks, functions = split(estimator.callbacks)
    of_models = [one for one in functions if isinstance(one, ModelCallback)]
    if of_models:
        raise UsageError(
            f"the callback {of_models[0]!r} is one of a single fit",
            hint="held-out rows choose among several fits in a cross-validation, such as BoostedClassifierCV",
        )
    if hooks:
        raise UsageError(
            f"the callback {hooks[0]!r} has hooks of scikit-learn's protocol, which is one of a single fit",
            hint="give functions of a round's record",
        )
    with (
        live_line(estimator.callbacks, X) as line,
        prepared(estimator, X, y, sample_weight, feature_names, groups) as parts,
    ):
        every = [*functions, *line]
        # every function is told of every round
        yield parts, (lambda record, state: any([bool(one(dict(record))) for one in every])) if every else None


def check_grid(alphas: Any, n_alphas: Any, eps: Any) -> None:
    """Refuse strengths, or where none are given a grid of them, that have no meaning."""
    if alphas is not None:
        if len(alphas) == 0:
            raise UsageError("alphas is empty", hint="give at least one strength, or leave alphas out")
        return
    count("n_alphas", n_alphas)
    if not isinstance(eps, int | float | np.number) or not 0 < eps < 1:
        raise UsageError(f"eps={eps!r}", hint="expected a number between 0 and 1")
