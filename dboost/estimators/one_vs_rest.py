"""One class against the others, k times: what features cost when each class chooses its own.

Covers: ``OneVsRestBoostedClassifier``, the comparison of ShareBoost's section 7.1, and the folder it is saved as: one
of a model for each class, and ``one_vs_rest.json`` with the classes and, of each model, the digest of its own document,
which in turn holds that of its arrays. A folder put together from several models is refused, and so is a changed
document. Does not cover: the binary fits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dboost.data.named_columns import refuse_unread, split_named
from dboost.data.parquet.input import ParquetData
from dboost.data.plan import build_plan
from dboost.engine.select import open_engine
from dboost.errors import DataError, ModelFormatError, UsageError
from dboost.estimators import predicting
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.greedy import ShareBoostClassifier
from dboost.estimators.model_folders import ONE_VS_REST, check_part
from dboost.estimators.repr import ShownMixin, html_maps
from dboost.estimators.rounds import Table
from dboost.estimators.scoring import accuracy, agree
from dboost.files.documents import (
    MODEL_FILE,
    check_distinct,
    decode_labels,
    encode_labels,
    read_document,
    to_json,
)
from dboost.files.paths import PathLike, local_path
from dboost.files.storage import sha256_bytes, write_folder
from dboost.interruption import as_raised
from dboost.model.tasks import leading, log_probabilities, probabilities


class OneVsRestBoostedClassifier(ShownMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """k independent binary classifiers, one for each class, and the union of the features they use.

    A prediction needs every feature that any of them uses: that number is what is compared with classifiers whose
    classes share features.

    Parameters
    ----------
    estimator : ShareBoostClassifier or BoostedClassifier, optional
        Fitted anew for every class. By default ``ShareBoostClassifier(loss="log")``: the binary logistic loss by the
        same greedy machinery as ShareBoost (paper, section 7.1).

    Attributes
    ----------
    estimators_ : list of estimators
        One for each class, fitted to "is this class"; one alone for two classes.
    classes_ : array, shape (k,)
    active_features_ : list of str
        The union of the features used, in the order of the classes.
    path_ : Table
        With ``ShareBoostClassifier``: one record per round, ``features`` being the size of the union after it.
    n_features_in_ : int
    feature_names_in_ : object array, shape (n,)
        Where the data has names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsRestBoostedClassifier(ShareBoostClassifier(max_rounds=2, loss="log")).fit(X, y)
    >>> len(model.estimators_), len(model.active_features_) <= 4
    (3, True)
    """

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Sequence[str] | None = None) -> Self:
        """Fit one classifier for each class.

        Parameters
        ----------
        X : array, SciPy sparse matrix, pandas, Arrow or polars table, dask array or DataFrame, or ParquetData
            Shape (m, n). Parquet files are read where the fits run, and their labels are compared there.
        y : array-like, or str
            Labels, or the name of the label column of a table. None for ``ParquetData``, which names its own.
        sample_weight : array-like, shape (m,), or str, optional
            Weights, or the name of a column of a table.
        feature_names : sequence of str, optional
            As for ``BoostedClassifier.fit``.

        Raises
        ------
        UsageError
            For an estimator that is none of dboost's for two classes, or that has a checkpoint.
        DataError
            For labels that are missing, or of one class.
        """
        template = ShareBoostClassifier(loss="log") if self.estimator is None else self.estimator
        _check_template(template)
        if isinstance(X, ParquetData):
            return self._fit_parquet(template, X, y, sample_weight, feature_names)
        X, y, sample_weight, named = _split(X, y, sample_weight)
        labels = _labels(y)
        classes = np.unique(labels)
        _refuse_one_class(classes)
        lazy = hasattr(y, "__dask_graph__")
        wanted = classes[1:] if len(classes) == 2 else classes
        fitted = []
        for label in wanted.tolist():
            mine = (y if lazy else labels) == label
            fitted.append(_with_named(clone(template).fit(X, mine, sample_weight, feature_names), named))
        return self._adopt(classes, fitted)

    def _fit_parquet(
        self, template: Any, data: ParquetData, y: Any, sample_weight: Any, feature_names: Sequence[str] | None
    ) -> Self:
        """The fits of a data set whose labels are read where the fits run."""
        with as_raised(), open_engine(template.client, distributed_input=True) as engine:
            if y is None and sample_weight is None:
                data = data.opened()
            plan = build_plan(data, y, sample_weight, task="classification", engine=engine)
        classes = np.asarray(plan.classes)
        _refuse_one_class(classes)
        wanted = classes[1:] if len(classes) == 2 else classes
        fitted = [clone(template).fit(data.of_one_label(one), feature_names=feature_names) for one in wanted.tolist()]
        return self._adopt(classes, fitted)

    def _adopt(self, classes: NDArray[Any], fitted: list[Any]) -> Self:
        """Become the classifier of these binary ones."""
        self.estimators_ = fitted
        self.classes_ = classes
        self.n_features_in_ = fitted[0].n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(fitted[0], "feature_names_in_"):
            self.feature_names_in_ = fitted[0].feature_names_in_
        self.active_features_ = list(dict.fromkeys(name for one in fitted for name in one.active_features_))
        self.path_ = _union_path(fitted)
        return self

    def _map_html(self) -> str:
        if "estimators_" not in self.__dict__:
            return ""
        labels = [str(label) for label in self.classes_.tolist()][-len(self.estimators_) :]
        return html_maps([one.model_ for one in self.estimators_], labels)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of the binary classifiers.

        Returns
        -------
        float64 array, shape (m, k); (m,) for two classes
        """
        check_is_fitted(self, "estimators_")
        return _together([np.asarray(one.decision_function(X)) for one in self.estimators_])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the binary classifiers, divided by their sum; shape (m, k)."""
        return self._shares(X, probabilities)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Natural logarithms of `predict_proba`, finite where a probability rounds to zero."""
        return self._shares(X, log_probabilities)

    def _shares(self, X: Any, what: Callable[[str, str, Any], Any]) -> NDArray[np.float64]:
        """The softmax of the logarithms of the single probabilities, which are finite where these are all zero."""
        check_is_fitted(self, "estimators_")
        models = [one.model_ for one in self.estimators_]
        margins = [np.asarray(one._predict(X, predicting.MARGINS)) for one in self.estimators_]
        if len(models) == 1:
            return np.asarray(what(models[0].task, models[0].loss, margins[0]))
        logs = [model.log_probabilities(F)[:, 1] for model, F in zip(models, margins, strict=True)]
        return leading(_together(margins), what("multiclass", "multinomial", np.column_stack(logs)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class whose classifier has the highest score."""
        return self._chosen(self.decision_function(X))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Labels after each round of all the classifiers, which must be ``ShareBoostClassifier``.

        A classifier that ended earlier stays with its last model.
        """
        check_is_fitted(self, "estimators_")
        if not all(hasattr(one, "staged_decision_function") for one in self.estimators_):
            raise UsageError(
                f"{type(self.estimators_[0]).__name__} keeps no models of its rounds",
                hint="use estimator=ShareBoostClassifier(loss='log')",
            )
        return self._staged(X)

    def _staged(self, X: Any) -> Iterator[NDArray[Any]]:
        streams = [one.staged_decision_function(X) for one in self.estimators_]
        last: list[Any] = [None] * len(streams)
        for _ in range(len(self.path_)):
            last = [np.asarray(next(stream, before)) for stream, before in zip(streams, last, strict=True)]
            yield self._chosen(_together(last))

    def _chosen(self, scores: NDArray[np.float64]) -> NDArray[Any]:
        codes = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[codes]
        return chosen

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of correct labels."""
        return accuracy(self, X, y, sample_weight, agree)

    def save(self, path: PathLike, *, force: bool = False) -> None:
        """Write the models of all classes as one folder; see ``dboost.load_model``.

        Parameters
        ----------
        path : path
        force : bool
            Replace the folder of an earlier model of this kind.

        Raises
        ------
        UsageError
            When the folder exists.
        StorageError
            When it cannot be written.
        """
        check_is_fitted(self, "estimators_")
        _write(path, self.classes_, self.estimators_, self.estimator is not None, force)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _with_named(fitted: Any, named: dict[str, Any]) -> Any:
    """A binary classifier that knows which columns of the whole table are no features."""
    model = fitted.model_
    fitted.model_ = replace(model, manifest={**model.manifest, "data": {**model.manifest["data"], "named": named}})
    return fitted


def _check_template(template: Any) -> None:
    fits = isinstance(template, BoostedEstimator) and isinstance(template, ClassifierMixin)
    if isinstance(template, type) or not fits:
        raise UsageError(
            f"estimator={template!r}", hint="expected a classifier of dboost such as ShareBoostClassifier(loss='log')"
        )
    if getattr(template, "checkpoint", None) is not None:
        raise UsageError("one checkpoint cannot hold the fits of all classes", hint="leave checkpoint out")
    if getattr(template, "classes", None) is not None or isinstance(getattr(template, "class_weight", None), dict):
        raise UsageError(
            "classes= and the labels of class_weight= are not those of the binary fits",
            hint="leave them out; class_weight='balanced' weighs each class against the rest",
        )


def _split(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Data, labels and weights apart, and the names of those that are columns of a table."""
    refuse_unread(X)
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    X, y, sample_weight, _, named = split_named(X, y, sample_weight)
    return X, y, sample_weight, named


def _refuse_one_class(classes: NDArray[Any]) -> None:
    if len(classes) < 2:
        raise DataError(f"only one class: every label is {classes.tolist()[0]!r}, expected at least two classes")


def _labels(y: Any) -> NDArray[Any]:
    """The labels in memory, checked."""
    labels: NDArray[Any] = column_or_1d(np.asarray(y), warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    if labels.dtype.kind == "O" and any(label is None or label != label for label in labels.tolist()):
        raise DataError("a label is missing", hint="leave rows without a label out")
    if not labels.shape[0]:
        raise DataError("no rows: Found array with 0 sample(s) while a minimum of 1 is required")
    check_classification_targets(labels)
    return labels


def _together(scores: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """One score for each class, also where a binary loss has one for each of its two labels."""
    each = [F if F.ndim == 1 else F[:, 0] if F.shape[1] == 1 else F[:, 1] - F[:, 0] for F in scores]
    return each[0] if len(each) == 1 else np.column_stack(each)


def _union_path(fitted: list[Any]) -> Table:
    """How many features all classifiers use together after each round; empty where they keep no stages."""
    kept = [(one.model_.hypotheses.words(), one.model_.stages) for one in fitted if one.model_.stages is not None]
    used: set[str] = set()
    records = []
    for turn in range(max((len(stages) for _, stages in kept), default=0)):
        for words, stages in kept:
            count = int(stages.counts[min(turn, len(stages) - 1)]) if len(stages) else 0
            used.update(words[j] for j in stages.order[:count].tolist())
        records.append({"round": turn + 1, "features": len(used)})
    return Table(records)


_FORMAT = "dboost one-vs-rest"
_VERSION = 2
# Version 1 had no digest of the document.
_VERSIONS = (1, _VERSION)
_SEALED_FROM = 2


def _write(path: PathLike, classes: NDArray[Any], models: Sequence[Any], given: bool, force: bool) -> None:
    """Write the folder, which appears whole or not at all; `given` says whether the estimator is not the default."""
    labels = encode_labels(classes)
    with write_folder(path, marker=ONE_VS_REST, force=force) as folder:
        digests = []
        for place, model in enumerate(models):
            model.save(folder / _folder_of(place))
            digests.append(sha256_bytes((folder / _folder_of(place) / MODEL_FILE).read_bytes()))
        document = {"format": _FORMAT, "version": _VERSION, "classes": labels, "given": given, "models": digests}
        (folder / ONE_VS_REST).write_bytes(to_json(document))


def read_one_vs_rest(path: PathLike, load: Callable[[PathLike], Any]) -> tuple[NDArray[Any], list[Any], bool]:
    """The classes, the estimators and whether their template was given, trusting nothing in the folder."""
    document = read_document(path, ONE_VS_REST, _FORMAT, _VERSIONS, _SEALED_FROM)
    file = document.file
    classes = decode_labels(document.child("classes"))
    given = document.fields.get("given")
    if not isinstance(given, bool):
        raise ModelFormatError("field given: expected true or false", file=file)
    digests = document.strings("models") or ()
    expected = 1 if len(classes) == 2 else len(classes)
    check_distinct(classes, file)
    if len(classes) < 2 or len(digests) != expected:
        raise ModelFormatError(f"{len(digests)} models for the classes {classes.tolist()[:10]}", file=file)
    models = []
    for place, digest in enumerate(digests):
        folder = os.path.join(local_path(path), _folder_of(place))
        check_part(folder, digest, "here")
        models.append(load(folder))
        if getattr(models[-1], "classes_", np.zeros(0)).tolist() != [False, True]:
            raise ModelFormatError("is no classifier of one class against the others", file=folder)
    if len({(type(one), one.n_features_in_) for one in models}) != 1:
        raise ModelFormatError("models of different kinds or numbers of features", file=file)
    return classes, models, given


def _folder_of(place: int) -> str:
    """The folder of a model."""
    return f"class-{place}"
