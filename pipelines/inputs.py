"""From settings to the data and the estimator of a run, refused here when they have no meaning.

Covers: the split of a prepared folder, the estimator with the parameters that were given, checks before any cluster
starts. Does not cover: the checks over the data's content (``dboost.data``).
"""

from __future__ import annotations

from typing import Any

import dboost
from dboost.data import load_manifest
from dboost.errors import DataError, UsageError
from dboost.model import Model
from dboost.paths import local_path
from dboost.storage import check_writable

from .config import DataSettings, ModelSettings, given, needed

MANIFEST = "_dboost.json"


def open_data(settings: DataSettings, preferred: str, model: Model | None = None) -> Any:
    """The ``ParquetData`` that the settings name; nothing but the manifest is read.

    Parameters
    ----------
    settings : DataSettings
    preferred : str
        The split taken from a prepared folder when none is named.
    model : Model, optional
        Its number of features is the width of sparse rows.

    Raises
    ------
    UsageError, DataError
        No data named, nothing there, or no such split.
    """
    needed(settings, "data")
    path = local_path(str(settings.data), "data")
    split = settings.split
    if split is None and (path / MANIFEST).is_file():
        splits = load_manifest(path).splits
        split = preferred if preferred in splits else next(iter(splits)) if len(splits) == 1 else None
        if split is None:
            raise UsageError(
                f"{path} has no split {preferred!r}", hint=f"use --split, one of {', '.join(sorted(splits))}"
            )
    data = dboost.ParquetData(
        path,
        features=one_or_all(settings.features),
        label=one_or_all(settings.label),
        weight=settings.weight,
        n_features=settings.n_features if model is None else model.n_features,
        split=split,
    )
    data.resolve()
    return data


def one_or_all(found: tuple[str, ...] | None) -> str | list[str] | None:
    """One name as a text, several as a list."""
    return None if found is None else found[0] if len(found) == 1 else list(found)


def make_estimator(settings: ModelSettings, **more: Any) -> Any:
    """The estimator of the settings, its parameters checked.

    Raises
    ------
    UsageError
        A parameter or a pair without meaning.
    """
    from dboost.estimators.params import fit_settings
    from dboost.losses import EpsilonInsensitive

    parameters = given(settings, ModelSettings)
    loss, epsilon = parameters.get("loss"), parameters.pop("epsilon", None)
    kind: Any = dboost.BoostedClassifier
    if loss == "multitask":
        kind = dboost.MultiTaskBoostedClassifier
    elif loss in dboost.BoostedRegressor._losses:
        kind = dboost.BoostedRegressor
    if kind is not dboost.BoostedClassifier and parameters.pop("class_weight", None) is not None:
        raise UsageError(f"class_weight has no meaning for loss {loss!r}", hint="use a column of example weights")
    if epsilon is not None:
        if loss != "epsilon_insensitive":
            raise UsageError(f"epsilon={epsilon:g} with loss {loss!r}", hint="it belongs to epsilon_insensitive")
        parameters["loss"] = EpsilonInsensitive(epsilon=epsilon)
    if "hypotheses" in parameters:
        parameters["hypotheses"] = family_of(parameters["hypotheses"])
    estimator = kind(**parameters, **more)
    fit_settings(estimator, estimator._losses)
    return estimator


def family_of(tables: list[dict[str, Any]]) -> Any:
    """The family of hypotheses of the settings; several tables are a union."""
    from dboost.hypotheses import family_from_json

    if len(tables) == 1:
        return family_from_json(tables[0])
    return family_from_json({"family": "union", "members": tables})


def read_model(path: str | None) -> Model:
    """A saved model.

    Raises
    ------
    DataError, ModelFormatError
        Nothing there, or not a model.
    """
    from dboost import model

    if not local_path(str(path), "model").is_dir():
        raise DataError("there is no such model folder", file=str(path), hint="make one with `dboost train`")
    return model.read_model(str(path))


def refuse_existing(out: str | None, marker: str, force: bool) -> None:
    """Refuse an output folder that exists or that cannot be written, before any work is done for it.

    Raises
    ------
    UsageError
        When it exists and ``--force`` was not given, is no folder of this kind, or is a path that is not served.
    StorageError
        When it cannot be written.
    """
    target = local_path(str(out), "out")
    if not target.exists():
        check_writable(target)
        return
    if not target.is_dir():
        raise UsageError("the output is a file", file=str(target), hint="choose another --out")
    if not force:
        raise UsageError("the output folder exists", file=str(target), hint="choose another --out, or give --force")
    if not (target / marker).is_file() and any(target.iterdir()):
        raise UsageError(
            f"the output folder holds no {marker}, so it is not replaced even with --force",
            file=str(target),
            hint="choose another --out, or delete it yourself",
        )
    check_writable(target)
