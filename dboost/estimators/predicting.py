"""Predictions on every kind of input, each giving back its own kind.

Covers: arrays and tables in memory (NumPy out), dask arrays and DataFrames (lazy, same type out), and ``ParquetData``
(read block by block in this process, NumPy out), and rows whose scores are known (``Margins``).
Does not cover: the arithmetic of one batch (``dboost.model.fitted``).

Only the model's columns are read. Of tables their names decide; a collection or a data set on disk may hold further
columns, while a table in memory must have the columns of the fit (as scikit-learn asks), and may have those that the
fit was given by name, such as the label.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.data.collections import refuse_gone
from dboost.data.memory.in_memory import as_rows
from dboost.data.named_columns import behind, flat, refuse_unread
from dboost.errors import DataError, UsageError, type_name
from dboost.model.fitted import Model
from dboost.model.tasks import decision

SCORES, PROBABILITIES, LOG_PROBABILITIES, LABELS = "scores", "probabilities", "log-probabilities", "labels"
# The scores X W + b of all outputs (m, k), as ``Margins`` holds them; SCORES are those that a user is shown.
MARGINS = "margins"


@dataclass(frozen=True, eq=False)
class Margins:
    """Rows whose scores under one model are known, and nothing else of them: that model predicts them."""

    # Shape (m, k). The scores X W + b.
    F: NDArray[np.float64]
    # Columns that the rows had.
    n_features: int

    @property
    def shape(self) -> tuple[int, int]:
        """As of the rows."""
        return len(self.F), self.n_features

    def __len__(self) -> int:
        return len(self.F)


def kind_of(X: Any) -> str:
    """Return "parquet", "array" or "frame" (of dask), "table", "margins" or "matrix"; nothing is imported to tell."""
    if isinstance(X, Margins):
        return "margins"
    refuse_unread(X)
    cls = type(X)
    home = cls.__module__.split(".")[0]
    if cls.__module__.startswith("dboost.data."):
        return "parquet"
    if hasattr(X, "__dask_graph__"):
        return "frame" if hasattr(X, "map_partitions") and hasattr(X, "columns") else "array"
    if home in ("pandas", "pyarrow") or (hasattr(X, "__arrow_c_stream__") and not hasattr(X, "__array_interface__")):
        return "table"
    return "matrix"


def named_columns(model: Model) -> list[str]:
    """Columns of a table that the fit of a model was given by name, as labels or weights, and which are no features."""
    data = model.manifest.get("data")
    named = data.get("named") if isinstance(data, dict) else None
    return flat(named) if isinstance(named, dict) else []


def finish(model: Model, F: NDArray[np.float64], what: str) -> NDArray[Any]:
    """What is asked for, of scores."""
    if what == MARGINS:
        return F
    if what == LABELS:
        return model.labels(F)
    if what == PROBABILITIES:
        return model.probabilities(F)
    if what == LOG_PROBABILITIES:
        return model.log_probabilities(F)
    return decision(model.task, model.loss, F)


def staged(model: Model, X: Any, kind: str, what: str) -> Iterator[Any]:
    """Predictions of the model after each round, in order (`kind` as in ``kind_of``).

    In memory the hypotheses are computed once. Collections and data on disk are read again for every model.
    """
    stages = model.stages
    if stages is None:
        raise UsageError("this model keeps no models of its rounds", hint="use predict")
    if kind in ("matrix", "table"):
        if kind == "table":
            columns = _read_columns(model, X)
        else:
            columns = (X.tocsr() if hasattr(X, "tocsr") else X)[:, model.inputs.tolist()]
        batch = model.held_columns(columns)
        for stage in range(len(stages)):
            W, intercept = stages.at(stage)
            yield finish(model, np.asarray(batch @ W, dtype=np.float64) + intercept, what)
        return
    for stage in range(len(stages)):
        W, intercept = stages.at(stage)
        yield predict(replace(model, W=W, intercept=intercept, stages=None), X, kind, what)


def predict(model: Model, X: Any, kind: str, what: str) -> Any:
    """Predict rows that were checked (`kind` as in ``kind_of``); those in memory have all columns of the fit."""
    if kind == "matrix":
        return finish(model, model.decision_function(X), what)
    if kind == "margins":
        return finish(model, X.F, what)
    if kind == "table":
        return finish(model, model.scores_of_inputs(_read_columns(model, X)), what)
    elsewhere = {"array": _predict_dask_array, "frame": _predict_dask_frame, "parquet": _predict_parquet}
    return elsewhere[kind](model, X, what)


def _read_columns(model: Model, X: Any) -> Any:
    """The columns that a model reads of a table, which has all columns of the fit."""
    if getattr(X, "ndim", 2) != 2:
        raise DataError(f"X is {type_name(X)}, expected a table", hint="use X.to_frame()")
    if type(X).__module__.split(".")[0] != "pandas":
        import pyarrow as pa

        X = X if isinstance(X, pa.Table) else pa.table(X)
    if X.shape[1] != model.n_features:
        raise DataError(f"X has {X.shape[1]} columns; the model was fitted on {model.n_features} features")
    return _columns_of(X, model.inputs.tolist())


def _columns_of(X: Any, positions: list[int]) -> Any:
    """Columns of a pandas or Arrow table (m, len(positions)), dense or as CSR, checked as in a fit."""
    from scipy.sparse import csr_array

    chosen = X.iloc[:, positions] if hasattr(X, "iloc") else X.select(positions)
    shape = (len(X), len(positions))
    if not all(shape):
        # without rows the type of a column says nothing: an empty table of pandas has columns of objects
        return csr_array(shape)
    rows = as_rows(chosen)
    names = chosen.columns if hasattr(chosen, "iloc") else chosen.column_names
    if rows.dense is not None:
        finite = np.isfinite(rows.dense)
        place = 0 if finite.all() else int(np.argmin(finite.all(axis=0)))
        batch = rows.dense
    else:
        batch = csr_array((rows.values, rows.indices, rows.indptr), shape=shape)
        finite = np.isfinite(batch.data)
        place = 0 if finite.all() else int(batch.indices[int(np.argmin(finite))])
    if not finite.all():
        raise DataError("Input X contains NaN or infinity", column=str(names[place]))
    return batch


def _predict_dask_array(model: Model, X: Any, what: str) -> Any:
    """A lazy dask array; the chunks of its rows are kept, unknown sizes included.

    Of rows that a transform made of a dask DataFrame the prediction is as of the frame, with its index.
    """
    import dask
    import dask.array as da

    refuse_gone(X=X)
    if X.ndim != 2 or X.shape[1] != model.n_features:
        raise DataError(f"X has shape {X.shape}; the model was fitted on {model.n_features} features")
    made_of = behind(X)
    if made_of is not None:
        meta = _as_pandas(model, np.zeros((0, model.n_outputs)), made_of.read._meta.index[:0], what)
        # what is in a vocabulary of millions of terms need not be read for a name of the task that holds it
        transform = dask.delayed(made_of.transform, name=f"dboost-transform-{uuid.uuid4().hex}")
        held = dask.delayed(model, pure=True)
        return made_of.read.map_partitions(dboost_predict_part, transform, held, what, meta=meta)
    read = X[:, model.inputs.tolist()].rechunk({1: -1})
    example = finish(model, np.zeros((0, model.n_outputs)), what)
    # One task holds the model, so that it is not repeated in the task of every chunk.
    held = dask.delayed(model, pure=True)
    shape: dict[str, Any] = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (X.chunks[0], (example.shape[1],))}
    return da.map_blocks(dboost_predict, read, what=what, model=held, meta=example, dtype=example.dtype, **shape)


def dboost_predict(batch: Any, *, model: Model, what: str) -> NDArray[Any]:
    return finish(model, model.scores_of_inputs(batch), what)


def dboost_predict_part(part: Any, transform: Any, model: Model, what: str) -> Any:
    return _as_pandas(model, model.decision_function(transform.transform(part)), part.index, what)


def _predict_dask_frame(model: Model, X: Any, what: str) -> Any:
    """A lazy Series (one value per row) or DataFrame with the index of `X`."""
    import dask

    refuse_gone(X=X)
    names = model.input_names
    if names is None:
        if len(X.columns) != model.n_features:
            raise DataError(f"X has {len(X.columns)} columns; the model was fitted on {model.n_features} features")
        names = tuple(X.columns[j] for j in model.inputs.tolist())
    missing = [name for name in names if name not in X.columns]
    if missing:
        raise DataError(f"X lacks {len(missing)} of the {len(names)} columns of the model", column=str(missing[0]))
    meta = _as_pandas(model, np.zeros((0, model.n_outputs)), X._meta.index[:0], what)
    held = dask.delayed(model, pure=True)
    return X[list(names)].map_partitions(dboost_predict_frame, held, what, meta=meta)


def dboost_predict_frame(batch: Any, model: Model, what: str) -> Any:
    values = _columns_of(batch, list(range(batch.shape[1])))
    return _as_pandas(model, model.scores_of_inputs(values), batch.index, what)


def _as_pandas(model: Model, F: NDArray[np.float64], index: Any, what: str) -> Any:
    """Predictions from scores as a Series or DataFrame; of one type whichever labels a partition holds, or none."""
    import pandas as pd

    values = finish(model, F, what)
    if what == LABELS and model.tags is not None:
        import pyarrow as pa

        # of Python's lists a Series would not say what they are where there is none
        return pd.Series(values.tolist(), index=index, name="prediction", dtype=pd.ArrowDtype(pa.list_(pa.string())))
    if values.ndim == 1:
        kind = _type_of_labels(model.classes) if what == LABELS and model.task != "regression" else values.dtype
        return pd.Series(values, index=index, name="prediction", dtype=kind)
    columns = None if what == MARGINS else [str(label) for label in model.classes.tolist()]
    return pd.DataFrame(values, index=index, columns=columns)


def _type_of_labels(classes: NDArray[Any]) -> Any:
    """The type of a Series of labels: pandas infers that of text from its values, which no rows do not show."""
    import pandas as pd

    if isinstance(classes[0], bytes):
        # a Series of Python objects does not say what they are, and Parquet asks for it before there is a value
        import pyarrow as pa

        return pd.ArrowDtype(pa.binary())
    return pd.Series(classes).dtype


def _predict_parquet(model: Model, X: Any, what: str) -> NDArray[Any]:
    """Predict a data set on disk, one block in memory at a time."""
    from dboost.data.parquet.rows import scan_features

    batches = scan_features(
        X, active=model.inputs, n_features=model.n_features, names=model.input_names, dense=model.plain
    )
    pieces = [finish(model, model.scores_of_inputs(batch), what) for batch in batches]
    if not pieces:
        return finish(model, np.zeros((0, model.n_outputs)), what)
    return np.concatenate(pieces)
