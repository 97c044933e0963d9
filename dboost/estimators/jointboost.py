"""``JointBoostClassifier``: boosted stumps, each shared by some of the classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dboost.boosting.checks import check_settings
from dboost.boosting.fit import FitSettings
from dboost.boosting.jointboost import JointBoost
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.params import FitParameters, parameters, shared_settings
from dboost.estimators.scoring import ClassifyingMixin
from dboost.hypotheses.stumps.family import Stumps
from dboost.losses import Loss
from dboost.losses.exponential import OneVsRestExponential


@parameters
class JointBoostClassifier(ClassifyingMixin, FitParameters, BoostedEstimator):
    """Classifier of boosted decision stumps, each shared by a set of classes that is searched for.

    JointBoost (Torralba, Murphy & Freeman 2007), the baseline of Shalev-Shwartz, Wexler & Shashua's ShareBoost. Every
    class has a score against the rest under the exponential loss; a round adds one stump to the scores of the classes
    that share it and a constant to each of the others, in weighted least squares. The set is grown greedily, class by
    class, or is the best of all (`search`). With two classes there is one score.

    Parameters
    ----------
    max_rounds : int, default 100
        Stumps to add; one that was added before may be added again.
    max_passes : int, optional
    max_seconds : float, optional
        As in ``BoostedClassifier``.
    hypotheses : Stumps, optional
        The stumps; by default ``dboost.Stumps()``. Where these lie in bins, the candidates are the ends of the bins.
    search : {"greedy", "exhaustive"}, default "greedy"
        How the classes that share a stump are found. ``"greedy"`` begins with the best class and adds one at a time;
        ``"exhaustive"`` tries every set of the K classes, of which there are ``2**K - 1``, and is refused for more than
        12 classes. A round of it takes at least as much off the weighted squares as a greedy round from the same
        scores; a whole fit may still end above a greedy one, as both choose one round at a time.
    tol : float, default 1e-4
        The fit ends once a round takes less than ``0.1 * tol`` of it off the weighted squares (set ``tol=0`` for all
        rounds).
    class_weight : "balanced" or dict of label to weight, optional
    classes : sequence, optional
        All labels there may be, where the data does not hold every one.
    checkpoint : path, optional
        As in ``BoostedClassifier``.
    callbacks : list, optional
        As in ``BoostedClassifier``.
    client : distributed.Client, optional
        As in ``BoostedClassifier``.

    Attributes
    ----------
    history_ : Table
        One record per round; ``sharing_classes`` is how many classes share its stump.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_, active_features_, objective_, stop_reason_, n_iter_,
    model_
        As in ``BoostedClassifier``, for the stumps held; a stump is 1 below its threshold and 0 elsewhere. There is no
        certificate: `duality_gap_` is nan.

    Notes
    -----
    Probabilities are those of ``1 / (1 + exp(-2 f))`` for two classes and of the softmax of ``2 f`` for more.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = JointBoostClassifier(max_rounds=10).fit(X, y)
    >>> model.n_iter_, bool(model.score(X, y) > 0.95)
    (10, True)
    """

    _tasks = ("binary", "multiclass")
    _task = "classification"
    max_rounds: int = 100
    hypotheses: Any = None
    search: str = "greedy"

    def _settings(self) -> FitSettings:
        """The parameters, checked together, as settings of the core fit."""
        settings = FitSettings(**shared_settings(self), penalty="none", system=JointBoost(self.search))
        if self.hypotheses is None:
            settings = replace(settings, hypotheses=Stumps())
        check_settings(settings)
        return settings

    @classmethod
    def _minimises(cls, loss: Loss) -> bool:
        """Exponential losses of classes."""
        return super()._minimises(loss) and loss.exponential

    def _loss_of(self, task: str, n_outputs: int) -> Any:
        """The exponential loss of the one score, or of every class against the rest."""
        return "exp" if task == "binary" else OneVsRestExponential(n_classes=n_outputs)
