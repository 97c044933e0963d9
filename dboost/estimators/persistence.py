"""Models on disk: saving and loading them.

Covers: the folder of a scikit-learn ``Pipeline`` of one transformer and one estimator, which is the model and the
transform: ``pipeline.json`` describes the transform and holds the digest of the model's document, which in turn holds
that of its arrays, so that a transform put beside another model is refused. Reading runs no code from a folder. Does
not cover: the document and the arrays (``dboost.model.fitted``), the folder of one model for each class
(``one_vs_rest``), finding a model within what a user may name (``model_folders``).
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable
from typing import Any

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dboost.errors import DataError, ModelFormatError, UsageError, type_name
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.classifier import BoostedClassifier, MultiTaskBoostedClassifier
from dboost.estimators.cv import (
    BoostedClassifierCV,
    BoostedRegressorCV,
    MultiTaskBoostedClassifierCV,
    MultiTaskBoostedRegressorCV,
)
from dboost.estimators.fitting import UNSAVED
from dboost.estimators.greedy import (
    AdaBoostL1Classifier,
    AdaBoostL1Regressor,
    JointBoostClassifier,
    LeveragingClassifier,
    LeveragingRegressor,
    ShareBoostClassifier,
)
from dboost.estimators.model_folders import (
    PART,
    PIPELINE,
    PIPELINE_FORMAT,
    PIPELINE_VERSION,
    find_model,
    is_one_vs_rest,
    is_pipeline,
    pipeline_parts,
    read_transform,
)
from dboost.estimators.one_vs_rest import OneVsRestBoostedClassifier, read_one_vs_rest
from dboost.estimators.params import loss_from_spec, penalty_from_spec
from dboost.estimators.regressor import BoostedRegressor, MultiTaskBoostedRegressor
from dboost.estimators.transform_files import TAKES, JoinedFeatures, described, kind_of, with_feature_names
from dboost.files.documents import MODEL_FILE, Document, to_json
from dboost.files.paths import PathLike
from dboost.files.storage import sha256_bytes, write_folder
from dboost.files.store_folders import local_copy
from dboost.hypotheses import family_from_json
from dboost.losses import loss_of_model
from dboost.model.fitted import Model, read_model


def save_model(model: Any, path: PathLike, *, force: bool = False) -> None:
    """Save a fitted estimator, or a ``Pipeline`` of ``Features`` (or what it is made of) and one, as one folder.

    Parameters
    ----------
    model : estimator of dboost, or Pipeline
    path : path
    force : bool, default False
        Replace the folder of an earlier model.

    Raises
    ------
    UsageError
        The pipeline has other steps, or the folder exists.
    NotFittedError

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> import dboost
    >>> rows, labels = {"colour": ["red", "blue", "red", "blue"]}, ["a", "b", "a", "b"]
    >>> model = Pipeline([("rows", dboost.TableFeatures()), ("fit", dboost.BoostedClassifier(alpha=0.01))])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model.fit(pa.table(rows), labels), f"{folder}/model")
    ...     dboost.load_model(f"{folder}/model").predict(pa.table(rows)).tolist()
    ['a', 'b', 'a', 'b']
    """
    if not isinstance(model, Pipeline):
        if not hasattr(model, "save"):
            raise UsageError(f"{type(model).__name__} is no estimator of dboost", hint="give one, or a Pipeline")
        model.save(path, force=force)
        return
    model = _saved_form(model)
    names = [name for name, _ in model.steps]
    kinds = [type(step).__name__ for _, step in model.steps]
    if len(names) != 2 or kind_of(model[0]) is None or not isinstance(model[1], BoostedEstimator):
        raise UsageError(
            f"a Pipeline of {', '.join(kinds)} cannot be saved",
            hint=f"{TAKES}, and one estimator of dboost that holds one model",
        )
    check_is_fitted(model[0])
    check_is_fitted(model[1])
    with write_folder(path, marker=PIPELINE, force=force) as folder:
        model[1].save(folder / PART)
        digest = sha256_bytes((folder / PART / MODEL_FILE).read_bytes())
        about = {"format": PIPELINE_FORMAT, "version": PIPELINE_VERSION, "steps": names}
        document = {**about, "transform": described(model[0], folder), "model": digest}
        (folder / PIPELINE).write_bytes(to_json(document))


def _saved_form(model: Pipeline) -> Pipeline:
    """A pipeline whose ``ColumnTransformer`` is one of ours, and whose model has the names of its features."""
    if len(model.steps) != 2 or not isinstance(model[0], ColumnTransformer) or not hasattr(model[1], "model_"):
        return model
    check_is_fitted(model[0])
    joined = JoinedFeatures.of(model[0])
    for _, _, part in joined.parts:
        if kind_of(part) is None:
            raise UsageError(f"a ColumnTransformer with {type_name(part)} cannot be saved", hint=TAKES)
    named = copy.copy(model[1])._adopt(with_feature_names(model[1].model_, joined.get_feature_names_out().tolist()))
    return Pipeline([(model.steps[0][0], joined), (model.steps[1][0], named)])


def _read_pipeline(path: PathLike, load: Callable[[PathLike], Any]) -> Pipeline:
    """The pipeline of a folder, trusting nothing in it."""
    names, features, folder = pipeline_parts(path)
    estimator = load(folder)
    if estimator.n_features_in_ != len(features.get_feature_names_out()):
        raise ModelFormatError("the model has another number of features than its transform", file=folder)
    return Pipeline([(names[0], features), (names[1], estimator)])


# Only these can come out of a folder: the file names one, it never brings code.
ESTIMATORS: dict[str, type[BoostedEstimator]] = {
    cls.__name__: cls
    for cls in (
        AdaBoostL1Classifier,
        AdaBoostL1Regressor,
        BoostedClassifier,
        BoostedClassifierCV,
        BoostedRegressor,
        BoostedRegressorCV,
        LeveragingClassifier,
        LeveragingRegressor,
        JointBoostClassifier,
        MultiTaskBoostedClassifier,
        MultiTaskBoostedClassifierCV,
        MultiTaskBoostedRegressor,
        MultiTaskBoostedRegressorCV,
        ShareBoostClassifier,
    )
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
    if is_pipeline(path):
        return _read_pipeline(path, _load_one)
    if is_one_vs_rest(path):
        classes, fitted, given = read_one_vs_rest(path, _load_one)
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
    if name in ("penalty_factors", "lower", "upper") and value is not None:
        return _each(float, value)
    if name == "column_groups" and value is not None:
        return _each(list if isinstance(value, dict) else int, value)
    if name == "bounds" and value is not None:
        return tuple(_each(float, side) for side in value)
    if name == "classes" and value == "given":
        return model.classes.tolist()
    if name == "class_weight" and isinstance(value, list):
        return dict(zip(model.classes.tolist(), value, strict=True))
    return value


def _each(kind: Callable[[Any], Any], value: Any) -> Any:
    """A value, or each one of a list or of a dict, as one of a type."""
    if isinstance(value, dict):
        return {key: kind(one) for key, one in value.items()}
    return [*map(kind, value)] if isinstance(value, list) else kind(value)
