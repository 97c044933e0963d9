"""``load_model``: a saved folder back as the estimator it came from; ``load_pipeline``: with its transform."""

from __future__ import annotations

import inspect
import os
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from dboost.errors import DataError, ModelFormatError
from dboost.estimators import one_vs_rest_folder, pipeline_folder
from dboost.estimators.adaboost_l1 import AdaBoostL1Classifier, AdaBoostL1Regressor
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.classifier import BoostedClassifier
from dboost.estimators.cv import BoostedClassifierCV
from dboost.estimators.fitting import UNSAVED
from dboost.estimators.jointboost import JointBoostClassifier
from dboost.estimators.leveraging import LeveragingClassifier, LeveragingRegressor
from dboost.estimators.model_folders import find_model, read_transform
from dboost.estimators.multitask import MultiTaskBoostedClassifier
from dboost.estimators.multitask_cv import MultiTaskBoostedClassifierCV
from dboost.estimators.multitask_regressor import MultiTaskBoostedRegressor
from dboost.estimators.multitask_regressor_cv import MultiTaskBoostedRegressorCV
from dboost.estimators.one_vs_rest import OneVsRestBoostedClassifier
from dboost.estimators.params import loss_from_spec, penalty_from_spec
from dboost.estimators.regressor import BoostedRegressor
from dboost.estimators.regressor_cv import BoostedRegressorCV
from dboost.estimators.shareboost import ShareBoostClassifier
from dboost.files.documents import Document
from dboost.files.paths import PathLike
from dboost.files.store_folders import local_copy
from dboost.hypotheses import family_from_json
from dboost.losses import loss_of_model
from dboost.model.fitted import Model, read_model

# Only these can come out of a folder: the file names one, it never brings code.
ESTIMATORS: dict[str, type[BoostedEstimator]] = {
    "AdaBoostL1Classifier": AdaBoostL1Classifier,
    "AdaBoostL1Regressor": AdaBoostL1Regressor,
    "BoostedClassifier": BoostedClassifier,
    "BoostedClassifierCV": BoostedClassifierCV,
    "BoostedRegressor": BoostedRegressor,
    "BoostedRegressorCV": BoostedRegressorCV,
    "LeveragingClassifier": LeveragingClassifier,
    "LeveragingRegressor": LeveragingRegressor,
    "JointBoostClassifier": JointBoostClassifier,
    "MultiTaskBoostedClassifier": MultiTaskBoostedClassifier,
    "MultiTaskBoostedClassifierCV": MultiTaskBoostedClassifierCV,
    "MultiTaskBoostedRegressor": MultiTaskBoostedRegressor,
    "MultiTaskBoostedRegressorCV": MultiTaskBoostedRegressorCV,
    "ShareBoostClassifier": ShareBoostClassifier,
}


def load_model(path: PathLike) -> Any:
    """Read a model that ``save`` wrote.

    Parameters
    ----------
    path : path
        The folder, here or in a store (``s3://bucket/model``); also of a run, or of a retraining, whose champion it is.

    Returns
    -------
    estimator of one of the classes in ``ESTIMATORS``, ``OneVsRestBoostedClassifier``, or a ``Pipeline``
        Fitted, with its parameters (but no client, callbacks or checkpoint) and its history.

    Raises
    ------
    ModelFormatError
        When the folder is damaged, of an unknown version, or reaches outside itself.

    Examples
    --------
    >>> import numpy as np
    >>> import dboost
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> dboost.BoostedClassifier(alpha=0.1).fit(X, [0, 0, 1, 1]).save("model")
    >>> load_model("model").predict(X).tolist()
    [0, 0, 1, 1]
    """
    path = local_copy(find_model(path))
    if pipeline_folder.is_pipeline(path):
        return pipeline_folder.read(path, _load_one)
    if one_vs_rest_folder.is_one_vs_rest(path):
        classes, fitted, given = one_vs_rest_folder.read(path, _load_one)
        return OneVsRestBoostedClassifier(clone(fitted[0]) if given else None)._adopt(classes, fitted)
    return _load_one(path)


def load_pipeline(path: PathLike) -> Pipeline:
    """A saved model with the transform that it was trained behind: it reads raw documents, or rows of a raw table.

    Parameters
    ----------
    path : path
        Folder of ``dboost train`` on prepared documents, of ``dboost run``, of ``dboost retrain`` (its home, whose
        champion it is), or of ``save_model`` of a pipeline.

    Returns
    -------
    sklearn.pipeline.Pipeline
        Of the transform and the estimator.

    Raises
    ------
    DataError
        The model was trained on features, and there is no transform.
    ModelFormatError
        A file is damaged, or belongs to another model.

    Examples
    --------
    >>> model = load_pipeline("runs/topics")  # doctest: +SKIP
    >>> model.predict(["a document that nobody has seen"])  # doctest: +SKIP
    array(['gardening'], dtype=object)
    """
    path = local_copy(find_model(path))
    estimator = load_model(path)
    if isinstance(estimator, Pipeline):
        return estimator
    transform = read_transform(path)
    if transform is None:
        raise DataError(
            "the model holds no transform: it was trained on features, not on raw documents",
            file=os.fspath(path),
            hint="load_model reads it; give it rows of the same features",
        )
    if estimator.n_features_in_ != len(transform.get_feature_names_out()):
        raise ModelFormatError("the model has another number of features than its transform", file=os.fspath(path))
    return Pipeline([("transform", transform), ("model", estimator)])


def _load_one(path: PathLike) -> Any:
    """The estimator of a folder of one model."""
    model = read_model(path)
    spec = Document(model.manifest, str(path), "manifest.").child("estimator")
    name = spec.choice("class", tuple(ESTIMATORS))
    cls = ESTIMATORS[name]
    loss = loss_of_model(model.loss)
    if loss is None or not cls._minimises(loss):
        raise ModelFormatError(f"a model of task {model.task!r} is no {name}", file=str(path))
    known = set(inspect.signature(cls.__init__).parameters) - {"self", *UNSAVED}
    params = spec.mapping("params")
    odd = sorted(set(params) - known)
    if odd:
        raise ModelFormatError(f"{name} has no parameter {odd[0]!r}", file=str(path))
    try:
        return cls(**{key: _param(key, value, model) for key, value in params.items()})._adopt(model)
    except (AttributeError, TypeError, ValueError) as error:
        raise ModelFormatError(f"the parameters cannot be read: {error}", file=str(path)) from error


def _param(name: str, value: Any, model: Model) -> Any:
    if name == "penalty":
        return penalty_from_spec(value)
    if name == "loss" and isinstance(value, dict):
        return loss_from_spec(value)
    if name == "hypotheses" and value is not None:
        return family_from_json(value)
    if name == "penalty_factors" and value is not None:
        return {key: float(one) for key, one in value.items()} if isinstance(value, dict) else [*map(float, value)]
    if name == "column_groups" and value is not None:
        return {key: list(one) for key, one in value.items()} if isinstance(value, dict) else [*map(int, value)]
    if name in ("lower", "upper") and value is not None:
        if not isinstance(value, dict | list):
            return float(value)
        return {key: float(one) for key, one in value.items()} if isinstance(value, dict) else [*map(float, value)]
    if name == "bounds" and value is not None:
        return tuple([*map(float, side)] if isinstance(side, list) else float(side) for side in value)
    if name == "classes" and value == "given":
        return model.classes.tolist()
    if name == "class_weight" and isinstance(value, list):
        return dict(zip(model.classes.tolist(), value, strict=True))
    return value
