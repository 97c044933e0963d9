"""Ending a fit when rows that it does not see are predicted no better any more.

Covers: ``EarlyStopping``, a callback of one fit. Does not cover: choosing a strength by held-out rows
(``cross_validated``).

The rows to be judged may be any input of a fit: in memory, collections of Dask, or data on disk. Of the last two only
labels, weights and scores X W + b come to this process, 8 (k + 2) bytes a row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dboost.data.labels.labels import check_weight
from dboost.data.planned import count_rows
from dboost.errors import DataError, UsageError
from dboost.estimators.callbacks import OfModels, Record
from dboost.estimators.predicting import MARGINS, Margins, kind_of
from dboost.estimators.scorers import Scorer, scorer_of
from dboost.estimators.scoring import labels_and_weights

__all__ = ["EarlyStopping"]


class EarlyStopping(OfModels):
    """A callback that ends a fit once `rounds` rounds in a row have not raised a score.

    The fitted estimator has the model of the round after which it ended, and `stop_reason_` "callback"; the best one is
    in `best_estimator_`. Where a penalty is weak (ShareBoost, AdaBoost+L1, leveraging), the number of rounds is what
    keeps a model simple. The optimum of a penalised fit does not depend on how many rounds lead to it, so that its
    strength is chosen instead, by a cross-validation.

    Parameters
    ----------
    X, y, sample_weight : as for ``fit`` and ``score`` of the estimator
        Rows that the fit does not see; ``ParquetData`` names its own labels and weights.
    scoring : str or callable, optional
        A scorer of scikit-learn, by name or as a callable ``scoring(estimator, X, y)``; greater is better. Of
        collections of Dask and of data on disk it is given rows of which nothing but their scores is known, so it has
        to ask for predictions. By default the estimator's own ``score``: the share of correct labels, or R^2.
    rounds : int, default 10
        Rounds without a better score after which the fit ends.
    gain : float, default 0
        By how much a score must be above the best one to count as better.

    Attributes
    ----------
    best_estimator_ : estimator
        Fitted, that of the best score; of several the first. It has no client, callbacks and checkpoint.
    best_score_ : float
    best_round_ : int
    scores_ : list of float
        After each round of the last fit.

    Notes
    -----
    A fit that goes on from a checkpoint begins to count anew: the scores before it are not kept in the checkpoint.

    Examples
    --------
    >>> import numpy as np
    >>> from dboost import AdaBoostL1Classifier, EarlyStopping
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> y = X[:, 0] + 0.5 * X[:, 1] > 0
    >>> stop = EarlyStopping(X[150:], y[150:], scoring="neg_log_loss", rounds=3)
    >>> model = AdaBoostL1Classifier(callbacks=[stop]).fit(X[:150], y[:150])
    >>> stop.best_round_ <= model.n_iter_
    True
    """

    def __init__(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, scoring: Any = None, rounds: int = 10,
        gain: float = 0.0,
    ) -> None:  # fmt: skip
        if isinstance(rounds, bool) or not isinstance(rounds, int | np.integer) or rounds < 1:
            raise UsageError(f"rounds={rounds!r}", hint="expected an integer >= 1")
        if not isinstance(gain, int | float | np.number) or not 0.0 <= gain < math.inf:
            raise UsageError(f"gain={gain!r}", hint="expected a finite number >= 0")
        scorer = Scorer("score", _own_score) if scoring is None else scorer_of(scoring)
        if scorer is None:
            raise UsageError(
                f"scoring={scoring!r} is one of cross-validations",
                hint="use a scorer of scikit-learn, such as 'neg_log_loss' or 'accuracy'",
            )
        self._scorer = scorer
        self._rows, self._given = X, (y, sample_weight)
        self._kind = kind_of(X)
        self.rounds, self.gain = rounds, gain
        self.begin()

    def begin(self) -> None:
        """Forget the scores of an earlier fit."""
        self.scores_: list[float] = []
        self.best_score_, self.best_round_ = -math.inf, 0
        self.best_estimator_: Any = None
        self._known: Any = None

    def after_round(self, record: Record, estimator: Any) -> bool:
        """Score the model of a round.

        `record`: Of the round. `estimator`: As if the fit had ended here. Returns: Whether the fit is to end.
        """
        where = f"scoring={self._scorer.name!r} of EarlyStopping after round {record['round']}"
        try:
            score = self._score(estimator)
        except Exception as fault:
            raise DataError(f"{where} failed: {fault}") from fault
        if not math.isfinite(score):
            raise DataError(f"{where} is {score}, expected a finite number")
        self.scores_.append(score)
        if self.best_estimator_ is None or score > self.best_score_ + self.gain:
            self.best_score_, self.best_round_, self.best_estimator_ = score, record["round"], estimator
        return bool(record["round"] - self.best_round_ >= self.rounds)

    def _score(self, estimator: Any) -> float:
        if self._known is None:
            X, y, weight = labels_and_weights(self._rows, *self._given)
            weight = None if weight is None else check_weight(weight, count_rows(y))
            # a scorer that knows of no weights can be asked about rows that all weigh the same
            self._known = X, y, None if weight is None or np.all(weight == weight[0]) else weight
        X, y, weight = self._known
        if self._kind in ("array", "frame", "parquet"):
            F = np.asarray(estimator._predict(X, MARGINS), dtype=np.float64)
            X = Margins(F, estimator.n_features_in_)
        return self._scorer(estimator, X, y, weight)


def _own_score(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    return float(estimator.score(X, y, sample_weight))
