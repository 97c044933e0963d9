"""The fitted object: which features are active, their weights, and how scores become labels.

Covers: ``Model`` (a frozen value that crosses processes and predicts one batch), its folder on disk, and the checks
on reading it back.
Does not cover: fitting (``dboost.boosting``), the scikit-learn shape (``dboost.estimators``), or reading data.

A saved model is a folder with ``model.json`` and ``arrays.safetensors``. Reading it runs no code from the folder and
follows no link or path in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError, ModelFormatError
from dboost.modelfile import (
    ARRAYS_FILE,
    MODEL_FILE,
    Document,
    decode_labels,
    decode_names,
    encode_labels,
    encode_names,
    read_folder,
    to_json,
)
from dboost.storage import PathLike, pack_arrays, sha256_bytes, write_folder

Float = NDArray[np.float64]

FORMAT = "dboost-model"
VERSION = 1
TASKS = {"binary": "log", "multiclass": "multinomial", "multitask": "multitask"}


@dataclass(frozen=True)
class Columns:
    """The hypothesis family of the raw columns: which of them a model computes.

    Parameters
    ----------
    indices : int64 array, shape (a,)
        Columns, ascending and distinct.
    names : tuple of str, or None
        Their names, when the data has names.
    """

    indices: NDArray[np.int64]
    names: tuple[str, ...] | None = None

    def words(self) -> list[str]:
        """Names for a reader: the columns' own, or x0, x1, ... by position."""
        return list(self.names) if self.names is not None else [f"x{j}" for j in self.indices.tolist()]

    def to_json(self) -> dict[str, Any]:
        """The family as JSON."""
        names = None if self.names is None else list(self.names)
        return {"family": "columns", "indices": self.indices.tolist(), "names": names}


@dataclass(frozen=True)
class Certificate:
    """What is known about the distance to the optimum.

    Parameters
    ----------
    objective : float
        Penalised mean loss.
    gap : float
        Certified relative duality gap (infinite where none is known).
    lower_bound : float
        A value that no model of this objective goes below.
    stop_reason : str
    alpha, alpha_max : float
        Penalty strength on the mean loss, and the smallest one at which no feature is active.
    n_iter, passes : int
        Rounds, and passes over the data.
    """

    objective: float
    gap: float
    lower_bound: float
    stop_reason: str
    alpha: float
    alpha_max: float
    n_iter: int
    passes: int


@dataclass(frozen=True)
class Model:
    """A fitted linear model over the active features.

    Parameters
    ----------
    task : {"binary", "multiclass", "multitask"}
    penalty : str
        Name of the penalty.
    hypotheses : Columns
        The active features.
    W : float64 array, shape (a, k)
        Their weights; k = 1 for two classes.
    intercept : float64 array, shape (k,)
    classes : array, shape (2,) or (k,)
        Labels in the order of the codes; the names of the tasks for ``multitask``.
    n_features : int
        Features offered.
    certificate : Certificate
    feature_names : tuple of str, or None
        Names of all features offered.
    manifest : dict
        How the model came about: fingerprint and rows of the data, versions, settings. JSON values only.
    history : tuple of dict
        One record per round. JSON values only.
    """

    task: str
    penalty: str
    hypotheses: Columns
    W: Float
    intercept: Float
    classes: NDArray[Any]
    n_features: int
    certificate: Certificate
    feature_names: tuple[str, ...] | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    history: tuple[dict[str, Any], ...] = ()

    @property
    def loss(self) -> str:
        """Name of the loss."""
        return TASKS[self.task]

    @property
    def active(self) -> NDArray[np.int64]:
        """Active features, ascending, shape (a,)."""
        return self.hypotheses.indices

    @property
    def n_outputs(self) -> int:
        """Number k of scores per example."""
        return int(self.W.shape[1])

    def decision_function(self, X: Any) -> Float:
        """Scores X W + b of a batch with all columns; only the active ones are read.

        Parameters
        ----------
        X : array or SciPy sparse matrix, shape (m, n_features)

        Returns
        -------
        float64 array, shape (m, k)
            The same bits for an example in any batch, dense or sparse.

        Raises
        ------
        DataError
            When the number of columns differs, or an active value is not finite.
        """
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise DataError(f"a batch of shape {tuple(X.shape)}; the model was fitted on {self.n_features} features")
        if hasattr(X, "toarray"):
            X = X if X.format in ("csr", "csc") else X.tocsr()
        else:
            X = np.asarray(X)
        return self.scores_of_active(X[:, self.active])

    def scores_of_active(self, X: Any) -> Float:
        """Scores of a batch that holds only the active columns, in the model's order.

        Parameters
        ----------
        X : array or SciPy sparse matrix, shape (m, a)

        Returns
        -------
        float64 array, shape (m, k)
        """
        from scipy.sparse import csr_array

        if X.ndim != 2 or X.shape[1] != len(self.active):
            raise DataError(f"a batch of shape {tuple(X.shape)} for {len(self.active)} active features")
        # Through CSR even when dense: each score is then one sum in the order of the columns, while a BLAS product
        # changes its last bits with the size of the batch.
        batch = csr_array(X, dtype=np.float64)
        if not np.all(np.isfinite(batch.data)):
            raise DataError("the batch holds NaN or infinity in a column that the model uses")
        if not batch.has_sorted_indices:
            batch.sort_indices()
        scores = np.asarray(batch @ self.W, dtype=np.float64)
        scores += self.intercept
        return scores

    def probabilities(self, F: Float) -> Float:
        """Probabilities from scores: (m, 2), (m, k), or per task the probability of the positive label (m, k)."""
        if self.task == "multiclass":
            chances: Float = np.exp(F - F.max(axis=1, keepdims=True, initial=-np.inf))
            chances /= chances.sum(axis=1, keepdims=True)
            return chances
        positive = _sigmoid(F)
        return positive if self.task == "multitask" else np.hstack([_sigmoid(-F), positive])

    def labels(self, F: Float) -> NDArray[Any]:
        """Labels from scores: (m,) of `classes`, or int64 (m, k) of 0 and 1 for tasks."""
        if self.task == "multitask":
            return (F > 0).astype(np.int64)
        codes = np.argmax(F, axis=1) if self.task == "multiclass" else (F[:, 0] > 0).astype(np.int64)
        labels: NDArray[Any] = self.classes[codes]
        return labels

    def predict_proba(self, X: Any) -> Float:
        """Probabilities of a batch with all columns."""
        return self.probabilities(self.decision_function(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of a batch with all columns."""
        return self.labels(self.decision_function(X))

    def save(self, path: PathLike, *, force: bool = False) -> None:
        """Write the model as a folder that appears whole or not at all.

        Parameters
        ----------
        path : path
            The folder.
        force : bool
            Replace the folder of an earlier model.

        Raises
        ------
        UsageError
            When the folder exists (without `force`), or the labels are of a type that JSON cannot hold.
        StorageError
            When it cannot be written.
        """
        arrays: dict[str, NDArray[Any]] = {"W": self.W, "intercept": self.intercept}
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


def _sigmoid(z: Float) -> Float:
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, small) / (1.0 + small)


def read_model(path: PathLike) -> Model:
    """Read a folder that `Model.save` wrote, trusting nothing in it.

    Raises
    ------
    ModelFormatError
        When a file is missing, a link, too large or damaged, the version is unknown, or shapes, order, ranges or
        finiteness are wrong.
    """
    document, arrays = read_folder(path, FORMAT, VERSION)
    file = document.file
    task = document.choice("task", tuple(TASKS))
    if document.text("loss") != TASKS[task]:
        raise ModelFormatError(f"loss {document.text('loss')!r} does not belong to task {task!r}", file=file)
    n, k = document.count("n_features"), document.count("n_outputs")
    hypotheses = _columns(document.child("hypotheses"), n)
    classes = decode_labels(document.child("classes"))
    expected = {"W": (len(hypotheses.indices), k), "intercept": (k,)}
    for name, shape in expected.items():
        value = arrays.get(name)
        if value is None or value.dtype != np.float64 or value.shape != shape:
            found = "nothing" if value is None else f"{value.dtype} {value.shape}"
            raise ModelFormatError(f"array {name!r}: expected float64 {shape}, found {found}", file=file)
        if not np.all(np.isfinite(value)):
            raise ModelFormatError(f"array {name!r} holds NaN or infinity", file=file)
    if (len(classes), k) != ((2, 1) if task == "binary" else (k, k)) or k < (2 if task == "multiclass" else 1):
        raise ModelFormatError(f"{len(classes)} classes and {k} outputs for task {task!r}", file=file)
    names = decode_names(arrays.get("names"), arrays.get("name_ends"), n, file)
    if hypotheses.names is not None and names is not None:
        if [names[j] for j in hypotheses.indices.tolist()] != list(hypotheses.names):
            raise ModelFormatError("the names of the active features disagree with those of all features", file=file)
    return Model(
        task=task,
        penalty=document.text("penalty"),
        hypotheses=hypotheses,
        W=arrays["W"],
        intercept=arrays["intercept"],
        classes=classes,
        n_features=n,
        certificate=_certificate(document.child("certificate")),
        feature_names=names,
        manifest=document.mapping("manifest"),
        history=document.records("history"),
    )


def _columns(spec: Document, n: int) -> Columns:
    spec.choice("family", ("columns",))
    indices = spec.integers("indices")
    if len(indices) and (indices[0] < 0 or indices[-1] >= n or np.any(np.diff(indices) <= 0)):
        raise ModelFormatError(f"the active features are not ascending within 0..{n - 1}", file=spec.file)
    names = spec.strings("names")
    if names is not None and len(names) != len(indices):
        raise ModelFormatError(f"{len(names)} names for {len(indices)} active features", file=spec.file)
    return Columns(indices, names)


def _certificate(spec: Document) -> Certificate:
    numbers = {name: spec.number(name) for name in ("objective", "gap", "lower_bound", "alpha", "alpha_max")}
    return Certificate(
        **numbers, stop_reason=spec.text("stop_reason"), n_iter=spec.count("n_iter"), passes=spec.count("passes")
    )
