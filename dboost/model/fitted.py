"""The fitted object: which hypotheses it holds, their weights, and how scores become predictions.

Covers: ``Model`` (a frozen value that crosses processes and predicts one batch), the models of all rounds of a fit that
only adds features (``Stages``), its folder on disk, and the checks on reading it back. What a score means for each task
is in ``dboost.model.tasks``.
Does not cover: fitting (``dboost.boosting``), the scikit-learn shape (``dboost.estimators``), or reading data.

A saved model is a folder with ``model.json`` and ``arrays.safetensors``, each under a digest. Reading it runs no code
from the folder and follows no link or path in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples.margins import dense_scores, sparse_scores
from dboost.compiled.read_only import read_only
from dboost.errors import DataError, ModelFormatError, UsageError
from dboost.files.documents import (
    ARRAYS_FILE,
    MODEL_FILE,
    Document,
    check_distinct,
    decode_labels,
    decode_names,
    encode_labels,
    encode_names,
    expect_array,
    read_folder,
    to_json,
    under,
)
from dboost.files.paths import PathLike
from dboost.files.storage import pack_arrays, sha256_bytes, write_folder
from dboost.hypotheses import Chosen, restore_chosen
from dboost.hypotheses.base import Key, block_of_columns, evaluate_rows
from dboost.hypotheses.capabilities import Summed, named_weights
from dboost.hypotheses.columns import ColumnSet
from dboost.model.stages import Stages
from dboost.model.tasks import belongs, chosen_tasks, labels, log_probabilities, probabilities, tag_lists
from dboost.partition import TASKS

Float = NDArray[np.float64]

FORMAT = "dboost-model"
VERSION = 3
# Version 1 knew raw columns only, and one loss per task; version 2 had no digest of the document.
VERSIONS = (1, 2, VERSION)
SEALED_FROM = 3
_NOT_FINITE = "the batch holds NaN or infinity in a column that the model uses"
# Arrays of the hypotheses are saved under this prefix.
_HELD = "hypotheses."
# Those of the models of all rounds under this one.
_STAGES = "stages."


@dataclass(frozen=True)
class Certificate:
    """What is known about the distance to the optimum."""

    # Penalised mean loss.
    objective: float
    # Certified relative duality gap (infinite where none is known).
    gap: float
    # A value that no model of this objective goes below.
    lower_bound: float
    stop_reason: str
    # Penalty strength on the mean loss, and the smallest one at which no feature is active.
    alpha: float
    alpha_max: float
    # Rounds, and passes over the data.
    n_iter: int
    passes: int


@dataclass(frozen=True)
class Origin:
    """Where induced hypotheses were chosen from."""

    # Number of candidates; infinite where they are countably many.
    size: float
    # Names the pool of candidates: equal pools have equal tokens.
    token: str
    # What the pool calls each hypothesis held, in the order of the rows of W.
    keys: tuple[Key, ...]


@dataclass(frozen=True)
class Model:
    """A fitted linear model over the hypotheses it holds: raw columns, or columns computed from them."""

    task: str
    # Their names.
    loss: str
    penalty: str
    # The hypotheses held: ``ColumnSet`` for raw columns.
    hypotheses: Chosen
    # Shape (a, k). Their weights; k = 1 for two classes and for regression.
    W: Float
    # Shape (k,).
    intercept: Float
    # Labels in the order of the codes; the names of several tasks or targets; none for ``regression``.
    classes: NDArray[Any]
    # Raw features offered.
    n_features: int
    certificate: Certificate
    # Names of all raw features offered.
    feature_names: tuple[str, ...] | None = None
    # How the model came about: fingerprint and rows of the data, versions, settings. JSON values only.
    manifest: dict[str, Any] = field(default_factory=dict)
    # One record per round. JSON values only.
    history: tuple[dict[str, Any], ...] = ()
    # For induced hypotheses.
    origin: Origin | None = None
    # The models of all rounds, of a fit that keeps them.
    stages: Stages | None = None

    @property
    def plain(self) -> bool:
        """Whether the hypotheses are raw columns, chosen from all of them."""
        return self.origin is None

    @property
    def active(self) -> NDArray[np.int64]:
        """Raw column of each row of W, ascending, shape (a,)."""
        if not self.plain:
            raise UsageError("induced hypotheses are no columns of the data", hint="use inputs, or hypotheses.words()")
        return self.hypotheses.inputs

    @property
    def inputs(self) -> NDArray[np.int64]:
        """Raw columns that a prediction reads, ascending, shape (b,)."""
        return self.hypotheses.inputs

    @property
    def input_names(self) -> tuple[str, ...] | None:
        """Names of the columns `inputs`, where the data has names."""
        if self.feature_names is None:
            return None
        return tuple(self.feature_names[j] for j in self.inputs.tolist())

    @property
    def n_hypotheses(self) -> int:
        """Number a of hypotheses held: rows of W."""
        return int(self.W.shape[0])

    @property
    def n_candidates(self) -> float:
        """Number of hypotheses offered; infinite for a countable family."""
        return self.n_features if self.origin is None else self.origin.size

    @property
    def n_outputs(self) -> int:
        """Number k of scores per example."""
        return int(self.W.shape[1])

    @property
    def output_names(self) -> list[str]:
        """A word for each score; the one of two classes speaks for the second."""
        if self.task == "regression":
            return ["target"]
        labels = [str(label) for label in self.classes.tolist()]
        return labels[1:] if self.task == "binary" else labels

    @property
    def weights(self) -> Float:
        """Weights of the hypotheses as `hypotheses.words` names them, shape (a, k); W is those of the scaled ones."""
        return named_weights(self.hypotheses, self.W)

    def decision_function(self, X: Any) -> Float:
        """Scores (m, k) of a batch with all raw columns; the same bits for an example in any batch, dense or sparse."""
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise DataError(f"a batch of shape {tuple(X.shape)}; the model was fitted on {self.n_features} features")
        return self._scores(X if hasattr(X, "toarray") else np.asarray(X), self.inputs)

    def scores_of_inputs(self, X: Any) -> Float:
        """Scores H W + b, (m, k), of a batch that holds only the columns `inputs`, in that order."""
        self._check_inputs(X)
        return self._scores(X, np.arange(len(self.inputs)))

    def _scores(self, X: Any, places: NDArray[np.int64]) -> Float:
        """As `scores_of_inputs`, where the batch has the inputs at `places`."""
        scores = self._products(X, places)
        with np.errstate(over="ignore", invalid="ignore"):
            scores += self.intercept
        if not np.all(np.isfinite(scores)):
            row = int(np.argmin(np.isfinite(scores).all(axis=1)))
            raise DataError(
                f"the scores of row {row} of the batch are beyond all numbers",
                hint="its values are far larger than those of the fit: look for a unit that changed, or a broken row",
            )
        return scores

    def _products(self, X: Any, places: NDArray[np.int64]) -> Float:
        """The sums H W, where the batch has the columns `inputs` at `places`."""
        sparse = not isinstance(X, np.ndarray)
        if sparse and X.format not in ("csr", "csc"):
            X = X.tocsr()
        if not self.plain:
            held = X if X.shape[1] == len(places) else X[:, places]
            if isinstance(self.hypotheses, Summed):
                return self.hypotheses.products(block_of_columns(self._checked(held)), self.W)
            return np.asarray(self.held_columns(held) @ self.W, dtype=np.float64)
        if sparse and X.format == "csc":
            X, places = X[:, places].tocsr(), np.arange(len(places))
        W, found = np.ascontiguousarray(self.W), np.zeros((X.shape[0], self.n_outputs))
        if sparse:
            X = X if X.has_sorted_indices else X.sorted_indices()
            values = X.data if X.dtype in (np.float32, np.float64) else X.data.astype(np.float64)
            pointer = X.indptr.astype(np.int64, copy=False)
            stored = read_only(pointer), read_only(X.indices), read_only(values)
            finite = sparse_scores(*stored, X.shape[1], read_only(places), read_only(W), found)
        else:
            if X.dtype not in (np.float32, np.float64) or not (X.flags.c_contiguous or X.flags.f_contiguous):
                X, places = X[:, places].astype(np.float64), np.arange(len(places))
            finite = dense_scores(read_only(X), read_only(places), read_only(W), found)
        if not finite:
            raise DataError(_NOT_FINITE)
        return found

    def _check_inputs(self, X: Any) -> None:
        if X.ndim != 2 or X.shape[1] != len(self.inputs):
            raise DataError(f"a batch of shape {tuple(X.shape)} for {len(self.inputs)} input columns")

    def held_columns(self, X: Any) -> Any:
        """The hypotheses held as a ``csr_array`` of float64 (m, a), of a batch that holds only the columns `inputs`."""
        batch = self._checked(X)
        return batch if self.plain else evaluate_rows(self.hypotheses, batch)

    def _checked(self, X: Any) -> Any:
        """A batch that holds only the columns `inputs`, as a ``csr_array`` of finite float64, each row in order."""
        from scipy.sparse import csr_array

        self._check_inputs(X)
        # Through CSR even when dense: each score is then one sum in the order of the columns, while a BLAS product
        # changes its last bits with the size of the batch.
        batch = csr_array(X, dtype=np.float64)
        if not np.all(np.isfinite(batch.data)):
            raise DataError(_NOT_FINITE)
        if not batch.has_sorted_indices:
            # in a copy: the arrays may be the caller's
            batch = batch.sorted_indices()
        return batch

    def probabilities(self, F: Float) -> Float:
        """Probabilities from scores: (m, 2), (m, k), or per task the probability of the positive label (m, k)."""
        return probabilities(self.task, self.loss, F)

    def log_probabilities(self, F: Float) -> Float:
        """Logarithms of `probabilities`, computed without them: finite where a probability rounds to zero."""
        return log_probabilities(self.task, self.loss, F)

    def labels(self, F: Float) -> NDArray[Any]:
        """Predictions from scores: (m,) of `classes`, int64 (m, k) for tasks, numbers of regressions.

        Those of tasks are `negative` and 1. Of a model of tags they are lists of tags.
        """
        if self.tags is not None:
            return tag_lists(self.chosen_tags(F), self.classes)
        return labels(self.task, self.loss, self.classes, F, self.negative)

    @property
    def tags(self) -> dict[str, Any] | None:
        """How tags are predicted, of a model of lists of them: ``thresholds`` of probabilities, ``top``; else None."""
        found = self._of_data("tags")
        return found if isinstance(found, dict) else None

    @property
    def negative(self) -> int:
        """What a label of a task that is not positive is called: -1 where it was in training, else 0."""
        return -1 if self._of_data("negative") == -1 else 0

    def _of_data(self, name: str) -> Any:
        about = self.manifest.get("data")
        return about.get(name) if isinstance(about, dict) else None

    def chosen_tags(self, F: Float) -> NDArray[np.bool_]:
        """Which tasks are predicted of each row, (m, k): those above their thresholds, and of these the best few."""
        return chosen_tasks(self.probabilities(F), F, self.tags or {})

    def predict_proba(self, X: Any) -> Float:
        """Probabilities of a batch with all columns."""
        return self.probabilities(self.decision_function(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of a batch with all columns."""
        return self.labels(self.decision_function(X))

    def save(self, path: PathLike, *, force: bool = False) -> None:
        """Write the model as a folder that appears whole or not at all; `force` replaces that of an earlier model."""
        arrays: dict[str, NDArray[Any]] = {"W": self.W, "intercept": self.intercept}
        arrays |= {_HELD + name: value for name, value in self.hypotheses.arrays().items()}
        if self.stages is not None:
            arrays |= {_STAGES + name: value for name, value in vars(self.stages).items()}
        if self.feature_names is not None:
            arrays["names"], arrays["name_ends"] = encode_names(self.feature_names)
        packed = pack_arrays(arrays)
        document = {
            "format": FORMAT,
            "version": VERSION,
            "task": self.task,
            "loss": self.loss,
            "penalty": self.penalty,
            "hypotheses": self.hypotheses.to_json(),
            "origin": None if self.origin is None else vars(self.origin),
            "classes": encode_labels(self.classes),
            "n_features": self.n_features,
            "n_outputs": self.n_outputs,
            "certificate": vars(self.certificate),
            "manifest": self.manifest,
            "arrays": {"file": ARRAYS_FILE, "bytes": len(packed), "sha256": sha256_bytes(packed)},
            "history": list(self.history),
        }
        text = to_json(document)
        with write_folder(path, marker=MODEL_FILE, force=force) as folder:
            (folder / ARRAYS_FILE).write_bytes(packed)
            (folder / MODEL_FILE).write_bytes(text)


def read_model(path: PathLike) -> Model:
    """Read a folder that `Model.save` wrote, trusting nothing in it."""
    document, arrays = read_folder(path, FORMAT, VERSIONS, SEALED_FROM)
    file = document.file
    task = document.choice("task", TASKS)
    loss = document.text("loss")
    if not belongs(task, loss):
        raise ModelFormatError(f"loss {loss!r} does not belong to task {task!r}", file=file)
    n, k = document.features("n_features"), document.count("n_outputs")
    hypotheses = restore_chosen(document.child("hypotheses"), under(arrays, _HELD), n)
    origin = _origin(document, hypotheses)
    classes = decode_labels(document.child("classes"))
    W = expect_array(arrays, "W", np.float64, (hypotheses.n_hypotheses, k), file)
    intercept = expect_array(arrays, "intercept", np.float64, (k,), file)
    _check_classes(task, classes, k, file)
    names = decode_names(arrays.get("names"), arrays.get("name_ends"), n, file)
    if isinstance(hypotheses, ColumnSet) and hypotheses.names is not None and names is not None:
        if [names[j] for j in hypotheses.indices.tolist()] != list(hypotheses.names):
            raise ModelFormatError("the names of the active features disagree with those of all features", file=file)
    return Model(
        task=task,
        loss=loss,
        penalty=document.text("penalty"),
        hypotheses=hypotheses,
        W=W,
        intercept=intercept,
        classes=classes,
        n_features=n,
        certificate=_certificate(document.child("certificate")),
        feature_names=names,
        manifest=document.mapping("manifest"),
        history=document.records("history"),
        origin=origin,
        stages=Stages.restored(under(arrays, _STAGES), hypotheses.n_hypotheses, k, file),
    )


def _check_classes(task: str, classes: NDArray[Any], k: int, file: str) -> None:
    expected = {"binary": (2, 1), "regression": (0, 1)}.get(task, (k, k))
    if (len(classes), k) != expected or k < (2 if task == "multiclass" else 1):
        raise ModelFormatError(f"{len(classes)} classes and {k} outputs for task {task!r}", file=file)
    check_distinct(classes, file)


def _origin(document: Document, hypotheses: Chosen) -> Origin | None:
    """The pool of induced hypotheses; none in version 1, and for raw columns chosen from all of them."""
    if document.fields.get("origin") is None:
        if not isinstance(hypotheses, ColumnSet):
            raise ModelFormatError(f"hypotheses of family {hypotheses.family!r} without origin", file=document.file)
        return None
    spec = document.child("origin")
    keys = spec.integer_lists("keys")
    if len(keys) != hypotheses.n_hypotheses:
        raise ModelFormatError(f"{len(keys)} keys for {hypotheses.n_hypotheses} hypotheses", file=document.file)
    return Origin(spec.number("size"), spec.text("token"), keys)


def _certificate(spec: Document) -> Certificate:
    numbers = {name: spec.number(name) for name in ("objective", "gap", "lower_bound", "alpha", "alpha_max")}
    return Certificate(
        **numbers, stop_reason=spec.text("stop_reason"), n_iter=spec.count("n_iter"), passes=spec.count("passes")
    )
