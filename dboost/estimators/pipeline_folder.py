"""A saved scikit-learn ``Pipeline`` of one transformer and one estimator: a folder of the model and the transform.

``pipeline.json`` describes the transform and holds the digest of the model's document, which in turn holds that of its
arrays: a transform put beside another model is refused. Reading it runs no code from the folder.
"""

from __future__ import annotations

import copy
import os
import stat
from collections.abc import Callable
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dboost.errors import ModelFormatError, UsageError
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.joined_features import JoinedFeatures, with_feature_names
from dboost.estimators.transform_files import TAKES, described, kind_of, restored
from dboost.files.documents import MAX_JSON_BYTES, MODEL_FILE, read_document, to_json
from dboost.files.paths import PathLike, local_path
from dboost.files.storage import read_plain_file, sha256_bytes, write_folder

FILE = "pipeline.json"
FORMAT = "dboost pipeline"
VERSION = 1
_PART = "model"


def is_pipeline(path: PathLike) -> bool:
    """Whether a folder holds a transform and a model."""
    return os.path.lexists(os.path.join(local_path(path), FILE))


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
    with write_folder(path, marker=FILE, force=force) as folder:
        model[1].save(folder / _PART)
        digest = sha256_bytes((folder / _PART / MODEL_FILE).read_bytes())
        about = {"format": FORMAT, "version": VERSION, "steps": names}
        document = {**about, "transform": described(model[0], folder), "model": digest}
        (folder / FILE).write_bytes(to_json(document))


def _saved_form(model: Pipeline) -> Pipeline:
    """A pipeline whose ``ColumnTransformer`` is one of ours, and whose model has the names of its features."""
    if len(model.steps) != 2 or not isinstance(model[0], ColumnTransformer) or not hasattr(model[1], "model_"):
        return model
    check_is_fitted(model[0])
    joined = JoinedFeatures.of(model[0])
    for _, _, part in joined.parts:
        if kind_of(part) is None:
            raise UsageError(f"a ColumnTransformer with a {type(part).__name__} cannot be saved", hint=TAKES)
    named = copy.copy(model[1])._adopt(with_feature_names(model[1].model_, joined.get_feature_names_out().tolist()))
    return Pipeline([(model.steps[0][0], joined), (model.steps[1][0], named)])


def read(path: PathLike, load: Callable[[PathLike], Any]) -> Pipeline:
    """The pipeline of a folder, trusting nothing in it.

    Raises
    ------
    ModelFormatError
    """
    names, features, folder = parts(path)
    estimator = load(folder)
    if estimator.n_features_in_ != len(features.get_feature_names_out()):
        raise ModelFormatError("the model has another number of features than its transform", file=folder)
    return Pipeline([(names[0], features), (names[1], estimator)])


def parts(path: PathLike) -> tuple[tuple[str, ...], Any, str]:
    """The names of the steps, the transform, and the folder of the model, which is the one that belongs to it.

    Raises
    ------
    ModelFormatError
    """
    document = read_document(path, FILE, FORMAT, (VERSION,), VERSION)
    names = document.strings("steps") or ()
    if len(names) != 2 or names[0] == names[1] or any("__" in name or not name for name in names):
        raise ModelFormatError("field steps: expected two different names", file=document.file)
    features = restored(document.child("transform"), path)
    folder = os.path.join(local_path(path), _PART)
    try:
        mode = os.lstat(folder).st_mode
    except OSError as error:
        raise ModelFormatError(f"cannot be opened: {error.strerror or error}", file=folder) from error
    if not stat.S_ISDIR(mode):
        raise ModelFormatError("is no folder; links are not followed", file=folder)
    data = read_plain_file(folder, MODEL_FILE, max_bytes=MAX_JSON_BYTES)
    if sha256_bytes(data) != document.text("model"):
        raise ModelFormatError("is not the model that was saved with this transform", file=folder)
    return names, features, folder
