"""The commands as functions, for a notebook at a Dask client: arguments in place of flags, results in place of pages.

A function checks its arguments by the code that checks the flags of the same names, and calls what the command calls;
its progress is what the command prints, below the cell.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import dboost
from dboost.errors import UsageError
from dboost.files.stores import AnyPath, any_path

from .asynchronous import serves_asynchronous
from .commands import evaluate as evaluate_command
from .commands import predict as predict_command
from .commands import prepare as prepare_command
from .commands import train as train_command
from .config import ClusterSettings, LogSettings, given, load
from .console import console_of_call, finite

F = TypeVar("F", bound=Callable[..., Any])
# Arguments that name data or a model: the result of another function stands for its folder.
_PATHS = ("data", "test", "model", "out", "expect", "write_contract", "start")


@dataclass(frozen=True)
class StageResult:
    """What a function of a stage has done.

    Parameters
    ----------
    folder : path or None
        What it wrote; None where nothing was written.
    figures : dict
        What the command says in numbers.
    converged : bool
        Whether a training reached what was asked for before a limit.

    Examples
    --------
    >>> StageResult(None, {"error": 0.25, "examples": 8}).figures["error"]
    0.25
    """

    folder: AnyPath | None
    figures: dict[str, Any] = field(repr=False)
    converged: bool = True

    @property
    def model(self) -> Any:
        """The estimator that a training saved; read on each access."""
        return dboost.load_model(str(self.folder))


def _takes(kind: type[Any]) -> Callable[[F], F]:
    """Give a function the arguments of a command, to be seen by ``help`` and completed by a notebook."""

    def with_signature(function: F) -> F:
        own = [one for one in inspect.signature(function).parameters.values() if one.kind is not one.VAR_KEYWORD]
        names = {one.name for one in own} | {item.name for item in dataclasses.fields(LogSettings)}
        more = [
            inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=item.default)
            for item in dataclasses.fields(kind)
            if item.name not in names
        ]
        function.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]
        return function

    return with_signature


def _settings(kind: type[Any], values: Mapping[str, Any], client: Any) -> Any:
    """The settings of a command, checked as its flags are."""
    plain: dict[str, Any] = {}
    for name, value in values.items():
        if name in (item.name for item in dataclasses.fields(LogSettings)):
            raise UsageError(f"{name} is a key of the command line", hint="use show= to turn the progress off")
        found = value.folder if name in _PATHS and isinstance(value, StageResult) else value
        if found is not None:
            plain[name] = os.fspath(found) if isinstance(found, os.PathLike) else _plain(found)
    settings = load(kind, None, plain, python=True)
    for name in settings.required:
        if getattr(settings, name) is None:
            raise UsageError(f"{name} is missing")
    cluster = [name for name in given(settings, ClusterSettings) if name in plain]
    if client is not None and cluster:
        raise UsageError(f"client and {cluster[0]} name two clusters", hint="give one of them")
    if not cluster:
        # No process is started that nobody asked for: that needs a guard in a script.
        settings = dataclasses.replace(settings, workers=0)
    return settings


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as those of Python, which settings are."""
    return value.tolist() if hasattr(value, "tolist") else value


def _do(done: Callable[..., Any], kind: type[Any], values: Mapping[str, Any], client: Any, show: bool | None) -> Any:
    """The settings of a command, and what it gives."""
    settings = _settings(kind, values, client)
    with contextlib.ExitStack() as opened:
        return settings, done(settings, console_of_call(opened, show), client)


@serves_asynchronous
@_takes(prepare_command.PrepareSettings)
def prepare(data: Any, *, out: Any, client: Any = None, show: bool | None = None, **keys: Any) -> StageResult:
    """Turn documents into features, as ``dboost prepare`` does.

    Parameters
    ----------
    data : path
        Documents: a file, a folder or a pattern of Parquet, CSV or JSON lines.
    out : path
        The folder to write.
    client : distributed.Client, optional
        Where the work runs; default: threads of this process. Of an asynchronous client the call is awaited.
    show : bool, optional
        Whether progress is printed; by default below the cell of a notebook, and nowhere else.
    **keys
        The flags of the command, with underscores: ``text``, ``label``, ``keep``, ``test``, ``min_df``, ...

    Returns
    -------
    StageResult
        Its figures are the number of ``features`` and the rows of each of the ``splits``.

    Raises
    ------
    UsageError, DataError, StorageError, ClusterError
        As the command ends.

    Examples
    --------
    >>> import tempfile, pyarrow, pyarrow.parquet
    >>> from dboost_pipelines import prepare
    >>> folder = tempfile.mkdtemp()
    >>> table = pyarrow.table({"text": ["sea and salt", "sky and wind"] * 4, "topic": ["sea", "sky"] * 4})
    >>> pyarrow.parquet.write_table(table, folder + "/docs.parquet")
    >>> made = prepare(folder + "/docs.parquet", out=folder + "/made", label="topic", min_df=2)
    >>> made.figures["features"], made.figures["splits"]
    (4, {'train': 8})
    """
    values = {"data": data, "out": out, **keys}
    settings, manifest = _do(prepare_command.done, prepare_command.PrepareSettings, values, client, show)
    figures = {
        "features": manifest.features["n_features"],
        "splits": {name: split["rows"] for name, split in manifest.splits.items()},
    }
    return StageResult(any_path(settings.out), figures)


@serves_asynchronous
@_takes(train_command.TrainSettings)
def train(data: Any, *, out: Any, client: Any = None, show: bool | None = None, **keys: Any) -> StageResult:
    """Train a model and save it, as ``dboost train`` does.

    Parameters
    ----------
    data : path or StageResult
        What ``prepare`` has made, or Parquet of features.
    out : path
        The folder to write.
    client, show
        As in ``prepare``.
    **keys
        The flags of the command, with underscores: ``alpha``, ``penalty``, ``label``, ``cv``, ...

    Returns
    -------
    StageResult
        ``model`` is the estimator.

    Raises
    ------
    UsageError, DataError, StorageError, ClusterError
        As the command ends.

    Examples
    --------
    >>> import tempfile, numpy, pyarrow, pyarrow.parquet
    >>> from dboost_pipelines import train
    >>> folder = tempfile.mkdtemp()
    >>> table = pyarrow.table({"x": numpy.arange(8.0), "y": ["no"] * 4 + ["yes"] * 4})
    >>> pyarrow.parquet.write_table(table, folder + "/rows.parquet")
    >>> made = train(folder + "/rows.parquet", out=folder + "/model", label="y", alpha=0.01)
    >>> made.converged, made.model.active_features_
    (True, ['x'])
    """
    values = {"data": data, "out": out, **keys}
    settings, trained = _do(train_command.done, train_command.TrainSettings, values, client, show)
    return StageResult(any_path(settings.out), finite(train_command.outcome(trained)[0]), trained.converged)


@serves_asynchronous
@_takes(evaluate_command.EvaluateSettings)
def evaluate(model: Any, data: Any, *, client: Any = None, show: bool | None = None, **keys: Any) -> StageResult:
    """Judge a model on data with labels, as ``dboost evaluate`` does.

    Parameters
    ----------
    model : path or StageResult
    data : path or StageResult
    client, show
        As in ``prepare``.
    **keys
        The flags of the command, with underscores: ``split``, ``label``, ``out``, ...

    Returns
    -------
    StageResult

    Raises
    ------
    UsageError, DataError, StorageError, ClusterError
        As the command ends.

    Examples
    --------
    >>> import tempfile, numpy, pyarrow, pyarrow.parquet
    >>> from dboost_pipelines import evaluate, train
    >>> folder = tempfile.mkdtemp()
    >>> table = pyarrow.table({"x": numpy.arange(8.0), "y": ["no"] * 4 + ["yes"] * 4})
    >>> pyarrow.parquet.write_table(table, folder + "/rows.parquet")
    >>> made = train(folder + "/rows.parquet", out=folder + "/model", label="y", alpha=0.01)
    >>> evaluate(made, folder + "/rows.parquet", label="y").figures["error"]
    0.0
    """
    values = {"model": model, "data": data, **keys}
    settings, figures = _do(evaluate_command.done, evaluate_command.EvaluateSettings, values, client, show)
    return StageResult(None if settings.out is None else any_path(settings.out), finite(figures))


@serves_asynchronous
@_takes(predict_command.PredictSettings)
def predict(
    model: Any, data: Any, *, out: Any, client: Any = None, show: bool | None = None, **keys: Any
) -> StageResult:
    """Label data with a model and write the labels as Parquet, as ``dboost predict`` does.

    Parameters
    ----------
    model : path or StageResult
    data : path or StageResult
        Raw documents, where the model has their transform, or features.
    out : path
        The folder to write.
    client, show
        As in ``prepare``.
    **keys
        The flags of the command, with underscores: ``keep``, ``probabilities``, ``top``, ...

    Returns
    -------
    StageResult
        Its figures say how many ``rows`` were labelled, and what was read.

    Raises
    ------
    UsageError, DataError, StorageError, ClusterError
        As the command ends.

    Examples
    --------
    >>> import tempfile, numpy, pyarrow, pyarrow.parquet
    >>> from dboost_pipelines import predict, train
    >>> folder = tempfile.mkdtemp()
    >>> table = pyarrow.table({"x": numpy.arange(8.0), "y": ["no"] * 4 + ["yes"] * 4})
    >>> pyarrow.parquet.write_table(table, folder + "/rows.parquet")
    >>> made = train(folder + "/rows.parquet", out=folder + "/model", label="y", alpha=0.01)
    >>> found = predict(made, folder + "/rows.parquet", out=folder + "/labels", keep=["x"])
    >>> pyarrow.parquet.read_table(found.folder)["prediction"].to_pylist()[3:5]
    ['no', 'yes']
    """
    values = {"model": model, "data": data, "out": out, **keys}
    settings, about = _do(predict_command.done, predict_command.PredictSettings, values, client, show)
    return StageResult(any_path(settings.out), dict(about))
