"""``MultiTaskBoostedClassifierCV``: several tasks with one strength, chosen by cross-validation along the path."""

from __future__ import annotations

from dboost.estimators.cv import BoostedClassifierCV
from dboost.estimators.multitask import MultiTaskBoostedClassifier
from dboost.estimators.params import parameters


@parameters
class MultiTaskBoostedClassifierCV(BoostedClassifierCV, MultiTaskBoostedClassifier):  # type: ignore[misc]
    """``MultiTaskBoostedClassifier`` whose strength is chosen by k-fold cross-validation along the path.

    Parameters
    ----------
    loss, classes, class_weight
        As in ``MultiTaskBoostedClassifier``.
    others
        As in ``BoostedClassifierCV``; ``scoring="error"`` is the share of the observed labels that is wrong. A scorer
        of scikit-learn needs every label, and predictions (``"f1_macro"``) or scores (``"roc_auc"``): the probabilities
        of tasks are none of classes.

    Attributes
    ----------
    alpha_, alpha_best_, alpha_1se_, alphas_, cv_results_, fold_losses_, fold_errors_, fold_scores_, \
best_score_, gammas_, gamma_best_, gamma_1se_, relaxed_, path_
        As in ``BoostedClassifierCV``.
    others
        As in ``MultiTaskBoostedClassifier``, of the model of the chosen strength.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(90, 5))
    >>> Y = np.column_stack([X[:, 0] + rng.normal(size=90) > 0, X[:, 1] > 0]).astype(float)
    >>> model = MultiTaskBoostedClassifierCV(penalty="l1/l2", cv=3, n_alphas=6).fit(X, Y)
    >>> model.fold_losses_.shape, model.predict(X).shape
    ((3, 6), (90, 2))
    """

    _tasks = ("multitask",)
    _task = "multitask"
    _single = MultiTaskBoostedClassifier
