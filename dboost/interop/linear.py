"""What other systems need to know of a fitted linear model, and the same model as a plain one of scikit-learn.

Covers: ``Linear``, the active columns and their weights on the scale of log-odds or of the mean; ``to_sklearn``.
Does not cover: models of induced hypotheses, which are no linear functions of the columns and are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.utils.validation import check_is_fitted

from dboost.errors import UsageError, type_name
from dboost.losses import loss_of_model
from dboost.losses.link import Link
from dboost.notices import warn_user

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Linear:
    """A fitted linear model, whatever the loss."""

    # Of raw columns.
    model: Any
    # Shapes (a, k) and (k,). Of the log-odds, or for a regression of the prediction.
    W: Array
    intercept: Array
    # What the prediction of a regression is of the linear function.
    links: tuple[Link, ...]

    @classmethod
    def of(cls, estimator: Any) -> Linear:
        """The linear model of a fitted estimator."""
        check_is_fitted(estimator, "model_")
        model = estimator.model_
        if not model.plain:
            raise UsageError(
                f"{type_name(estimator)} of {model.hypotheses.family} is no linear function of the columns",
                hint="use dboost itself to predict, or fit without hypotheses=",
            )
        loss = loss_of_model(model.loss)
        if loss is None:
            raise UsageError(f"no loss is called {model.loss!r}", hint="import the module that adds it")
        links = loss.links(model.W.shape[1])
        scale = np.array([link.scale for link in links])
        return cls(model, scale * model.W, scale * model.intercept, links)

    @property
    def coef(self) -> Array:
        """Weights of all columns, shape (k, n)."""
        coef = np.zeros((self.W.shape[1], self.model.n_features))
        coef[:, self.model.active] = self.W.T
        return coef


def say_what_is_left_out(estimator: Any) -> None:
    """Warn that the rule by which tags are named is not in what other systems run."""
    if estimator.model_.tags:
        warn_user(
            "what choose_thresholds chose is not in the exported model, which names the tags with a probability above "
            "one half: apply it to the probabilities"
        )


def to_sklearn(estimator: Any) -> Any:
    """A fitted linear model as a plain one of scikit-learn, which predicts the same without dboost.

    Parameters
    ----------
    estimator : fitted estimator of dboost without hypotheses

    Returns
    -------
    LogisticRegression, LinearRegression, PoissonRegressor, MultiOutputRegressor or MultiOutputClassifier
        Fitted. Of a loss without probabilities of its own (``margin_softmax``) they are dboost's. A classifier of
        several tasks is one ``LogisticRegression`` for each.

    Raises
    ------
    UsageError

    Examples
    --------
    >>> import numpy as np
    >>> from dboost import BoostedClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> ours = BoostedClassifier(alpha=0.1).fit(X, ["a", "a", "b", "b"])
    >>> plain = to_sklearn(ours)
    >>> type(plain).__name__, bool(np.allclose(plain.predict_proba(X), ours.predict_proba(X), rtol=1e-12))
    ('LogisticRegression', True)
    """
    linear = Linear.of(estimator)
    say_what_is_left_out(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    task = linear.model.task
    if task == "regression":
        return _named(_regression(linear), linear, names)
    if task == "multitarget":
        return _named(_targets(linear, names), linear, names)
    if task == "multitask":
        called = np.array([linear.model.negative, 1])
        parts = [_named(_logistic(linear, [r], called), linear, names) for r in range(linear.W.shape[1])]
        made = MultiOutputClassifier(LogisticRegression())
        made.estimators_ = parts
        made.classes_ = [part.classes_ for part in parts]
        return _named(made, linear, names)
    outputs = list(range(linear.W.shape[1]))
    return _named(_logistic(linear, outputs, np.asarray(linear.model.classes)), linear, names)


def _logistic(linear: Linear, outputs: list[int], classes: NDArray[Any]) -> Any:
    made = LogisticRegression()
    made.coef_, made.intercept_ = linear.coef[outputs], linear.intercept[outputs].copy()
    if len(outputs) == 2:
        # of two classes scikit-learn has one score, the log-odds of the second
        made.coef_, made.intercept_ = np.diff(made.coef_, axis=0), np.diff(made.intercept_)
    made.classes_, made.n_iter_ = classes, np.zeros(1, np.int32)
    return made


def _targets(linear: Linear, names: Any) -> Any:
    """Of several targets one regression, or one for each where their links differ."""
    made: Any
    if all(link.linear for link in linear.links):
        made = LinearRegression()
        made.coef_, made.intercept_ = linear.coef, linear.intercept.copy()
        return made
    binary = [r for r, link in enumerate(linear.links) if link.logistic]
    if binary:
        raise UsageError(
            f"target {binary[0]} is predicted as a probability, which no regression of scikit-learn does",
            hint="use dboost itself to predict, or to_onnx",
        )
    made = MultiOutputRegressor(LinearRegression())
    made.estimators_ = [_named(_regression(linear, r), linear, names) for r in range(len(linear.links))]
    return made


def _regression(linear: Linear, r: int = 0) -> Any:
    exponential = linear.links[r].exponential
    made = PoissonRegressor() if exponential else LinearRegression()
    made.coef_, made.intercept_ = linear.coef[r], float(linear.intercept[r])
    if exponential:
        # what its own fit leaves for predict, the inverse link
        made._base_loss = made._get_loss()
    return made


def _named(made: Any, linear: Linear, names: Any) -> Any:
    made.n_features_in_ = linear.model.n_features
    if names is not None:
        made.feature_names_in_ = names
    return made
