"""Fitted linear models as ONNX graphs: ``to_onnx``, and converters for ``skl2onnx``.

Covers: every estimator without hypotheses, alone, behind ``TableFeatures`` or ``TextFeatures``, and in any pipeline
that ``skl2onnx`` converts. Only the columns with weights are read, and the sums are float64 whatever the input.
Does not cover: induced hypotheses, which are refused; running a graph.

ONNX has no operator for some of what ``TextFeatures`` may do; what has none is refused (``_vectorizer``). One letter is
read otherwise than in Python, which no vocabulary tells: the capital I with a dot of Turkish. Lower documents that hold
it before, with ``lowercase=False``.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from dboost.errors import UsageError
from dboost.estimators.features import ColumnFeatures, Features, TableFeatures
from dboost.estimators.one_vs_rest import OneVsRestBoostedClassifier
from dboost.estimators.persistence import ESTIMATORS
from dboost.estimators.text_features import TextFeatures
from dboost.interop.extras import imported
from dboost.interop.linear import Linear, say_what_is_left_out
from dboost.losses.link import LARGEST_EXPONENT, Link
from dboost.partition import NUMBERS

EXTRA = "onnx"


def register() -> None:
    """Teach ``skl2onnx`` our estimators and transformers; any number of calls is as one.

    ``to_onnx`` does so itself; it is needed before ``skl2onnx.to_onnx`` is called with one of them.

    Raises
    ------
    UsageError
        skl2onnx is not installed.

    Examples
    --------
    >>> register()
    """
    skl2onnx = imported("skl2onnx", EXTRA)
    for cls in ESTIMATORS.values():
        labelled = {"zipmap": [True, False, "columns"], "nocl": [True, False], "output_class_labels": [False, True]}
        options = labelled if issubclass(cls, ClassifierMixin) else None
        skl2onnx.update_registered_converter(
            cls, f"Dboost{cls.__name__}", _estimator_shapes, _convert_estimator, options=options, overwrite=True
        )
    transformers = ((TableFeatures, _convert_features), (TextFeatures, _convert_text), (Features, _convert_features))
    for transformer, convert in transformers:
        name = f"Dboost{transformer.__name__}"
        skl2onnx.update_registered_converter(transformer, name, _features_shapes, convert, overwrite=True)


def to_onnx(model: Any, X: Any = None, *, target_opset: int | None = None) -> Any:
    """A fitted model as an ONNX graph.

    Parameters
    ----------
    model : estimator of dboost, or Pipeline that ends in one
        An estimator by itself reads one input "X", float64 of shape (m, n).
    X : array or table, optional
        A few rows of what the first step of a pipeline takes, for the types of the inputs. A table gives one input of
        shape (m, 1) for each of its columns, under its name; documents one input "X" of strings, shape (m, 1).
    target_opset : int, optional
        As for ``skl2onnx``; by default the newest it knows.

    Returns
    -------
    onnx.ModelProto
        With the outputs "label" and "probabilities" of a classifier, (m,) and (m, classes), of several tasks (m, k)
        each, or "variable" (m, targets) of a regression.

    Raises
    ------
    UsageError
        A step has no operators in ONNX, or skl2onnx is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import dboost
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> graph = to_onnx(dboost.BoostedClassifier(alpha=0.1).fit(X, [0, 0, 1, 1]))
    >>> [output.name for output in graph.graph.output]
    ['label', 'probabilities']
    """
    register()
    skl2onnx = imported("skl2onnx", EXTRA)
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if isinstance(last, OneVsRestBoostedClassifier):
        raise UsageError(
            "OneVsRestBoostedClassifier is several models, a graph has one",
            hint="make a graph of each of its estimators_; the class is that of the highest score",
        )
    if type(last).__name__ not in ESTIMATORS:
        raise UsageError(f"{type(last).__name__} is no estimator of dboost", hint="give one, or a Pipeline of it")
    Linear.of(last)  # refuses what has no operators before the graph is begun
    say_what_is_left_out(last)
    options = {} if last.model_.task in NUMBERS else {id(last): {"zipmap": False}}
    inputs = _inputs(model, X)
    return skl2onnx.convert_sklearn(model, initial_types=inputs, options=options, target_opset=target_opset)


def _inputs(model: Any, X: Any) -> list[tuple[str, Any]]:
    """The names and types of what a graph reads."""
    types = imported("skl2onnx.common.data_types", EXTRA)
    first = model.steps[0][1] if hasattr(model, "steps") else model
    if isinstance(first, TextFeatures):
        if first.column is not None:
            return [(first.column, types.StringTensorType([None, 1]))]
        return [("X", types.StringTensorType([None, 1]))]
    if isinstance(first, ColumnFeatures):
        kinds = {"number": types.DoubleTensorType, "embedding": types.DoubleTensorType}
        kinds |= {"category": types.StringTensorType, "boolean": types.BooleanTensorType}
        for column in first.columns_:
            if column.kind not in kinds:
                raise UsageError(
                    f"a column of {column.kind} has no operators in ONNX",
                    column=column.name,
                    hint="make numbers of it before, and give these",
                )
        made = [(one.name, kinds[one.kind]([None, one.width or 1])) for one in first.columns_]
        return made + [(name, types.StringTensorType([None, 1])) for name in first.texts_]
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        found: list[tuple[str, Any]] = types.guess_data_type(X)
        return found
    width = first.n_features_in_ if X is None else np.shape(X)[1]
    return [("X", types.DoubleTensorType([None, width]))]


# ---- estimators ------------------------------------------------------------------------------------------------------


def _estimator_shapes(operator: Any) -> None:
    """Types and shapes of the outputs."""
    types = imported("skl2onnx.common.data_types", EXTRA)
    linear = Linear.of(operator.raw_operator)
    if linear.model.task in NUMBERS:
        operator.outputs[0].type = types.DoubleTensorType([None, linear.W.shape[1]])
        return
    several = linear.model.task == "multitask"
    text = linear.model.classes.dtype.kind in "UO"
    labels = types.StringTensorType if text and not several else types.Int64TensorType
    operator.outputs[0].type = labels([None, len(linear.model.classes)] if several else [None])
    operator.outputs[1].type = types.DoubleTensorType([None, len(linear.model.classes)])


def _inverse(ops: Any, link: Link, scores: Any, **options: Any) -> Any:
    """What makes predictions of scores."""
    if link.logistic:
        return ops.OnnxSigmoid(scores, **options)
    if link.exponential:
        largest = ops.OnnxMin(scores, np.array([LARGEST_EXPONENT]), op_version=options["op_version"])
        return ops.OnnxExp(largest, **options)
    return ops.OnnxIdentity(scores, **options)


def _convert_estimator(scope: Any, operator: Any, container: Any) -> None:
    """W of the active columns, the intercept, and what the task makes of their sum."""
    ops = imported("skl2onnx.algebra.onnx_ops", EXTRA)
    opset = {"op_version": container.target_opset}
    linear, outputs = Linear.of(operator.raw_operator), operator.outputs
    given = ops.OnnxCast(operator.inputs[0], to=_DOUBLE, **opset)
    F = linear.intercept[None]
    if linear.model.active.size:
        columns = ops.OnnxGather(given, linear.model.active, axis=1, **opset)
        scores = ops.OnnxAdd(ops.OnnxMatMul(columns, linear.W, **opset), F, **opset)
    else:
        # the product with a column of zeros has the rows of the batch
        first = ops.OnnxGather(given, np.zeros(1, np.int64), axis=1, **opset)
        scores = ops.OnnxAdd(ops.OnnxMatMul(first, np.zeros((1, F.shape[1])), **opset), F, **opset)
    name = outputs[0].full_name
    if linear.model.task in NUMBERS:
        if len(set(linear.links)) == 1:
            _inverse(ops, linear.links[0], scores, output_names=[name], **opset).add_to(scope, container)
            return
        parts = [ops.OnnxGather(scores, np.array([r]), axis=1, **opset) for r in range(len(linear.links))]
        parts = [_inverse(ops, link, part, **opset) for link, part in zip(linear.links, parts, strict=True)]
        ops.OnnxConcat(*parts, axis=1, output_names=[name], **opset).add_to(scope, container)
        return
    chances = outputs[1].full_name
    if linear.model.task == "multiclass":
        ops.OnnxSoftmax(scores, axis=1, output_names=[chances], **opset).add_to(scope, container)
        best = ops.OnnxArgMax(scores, axis=1, keepdims=0, **opset)
    else:
        positive = ops.OnnxSigmoid(scores, **opset)
        above = ops.OnnxCast(ops.OnnxGreater(scores, np.zeros(1), **opset), to=_INT64, **opset)
        if linear.model.task == "multitask":
            ops.OnnxIdentity(positive, output_names=[chances], **opset).add_to(scope, container)
            called = np.array([linear.model.negative, 1])
            ops.OnnxGather(called, above, axis=0, output_names=[name], **opset).add_to(scope, container)
            return
        negative = ops.OnnxSigmoid(ops.OnnxNeg(scores, **opset), **opset)
        ops.OnnxConcat(negative, positive, axis=1, output_names=[chances], **opset).add_to(scope, container)
        best = ops.OnnxReshape(above, np.array([-1]), **opset)
    classes = np.asarray(linear.model.classes)
    if classes.dtype.kind in "UO":
        classes = classes.astype(str)
    elif classes.dtype.kind in "iub":
        classes = classes.astype(np.int64)
    else:
        raise UsageError(f"labels of type {classes.dtype} have no place in an ONNX graph", hint="fit integers or text")
    ops.OnnxGather(classes, best, axis=0, output_names=[name], **opset).add_to(scope, container)


# The numbers that ONNX gives its types (TensorProto.DataType).
_DOUBLE, _INT64 = 11, 7


# ---- transformers ----------------------------------------------------------------------------------------------------


def _features_shapes(operator: Any) -> None:
    types = imported("skl2onnx.common.data_types", EXTRA)
    width = len(operator.raw_operator.get_feature_names_out())
    operator.outputs[0].type = types.DoubleTensorType([None, width])


def _table_parts(features: ColumnFeatures, inputs: Any, ops: Any, opset: dict[str, Any]) -> list[Any]:
    """A column of numbers as it is, one comparison with all its values for each of the others but text."""
    parts = []
    for column, values in zip(features.columns_, inputs, strict=True):
        if column.kind in ("number", "embedding"):
            number = ops.OnnxCast(values, to=_DOUBLE, **opset)
            parts.append(number if column.scale == 1.0 else ops.OnnxDiv(number, np.array([column.scale]), **opset))
            continue
        text = column.kind == "category"
        known: NDArray[Any] = np.array(column.values) if text else np.array([one == "true" for one in column.values])
        if known.size:
            parts.append(ops.OnnxCast(ops.OnnxEqual(values, known[None], **opset), to=_DOUBLE, **opset))
        if column.rare:
            if known.size:
                # whatever has no feature of its own is rare
                own = ops.OnnxReduceSum(parts[-1], np.array([1]), keepdims=1, **opset)
                parts.append(ops.OnnxSub(np.ones((1, 1)), own, **opset))
            else:
                same = ops.OnnxEqual(values, values, **opset)
                parts.append(ops.OnnxCast(same, to=_DOUBLE, **opset))
    return parts


def _convert_features(scope: Any, operator: Any, container: Any) -> None:
    """The features of each column; of one of text what ``TextFeatures`` makes of it."""
    ops = imported("skl2onnx.algebra.onnx_ops", EXTRA)
    opset = {"op_version": container.target_opset}
    features: ColumnFeatures = operator.raw_operator
    if features.missing != "refuse":
        what = f"{type(features).__name__}(missing={features.missing!r}) has no operators in ONNX"
        raise UsageError(what, hint='use missing="refuse"')
    n_columns = len(features.columns_)
    parts = _table_parts(features, operator.inputs[:n_columns], ops, opset)
    for one, values in zip(features.texts_.values(), operator.inputs[n_columns:], strict=True):
        parts.append(ops.OnnxCast(_text_weights(one, values, opset), to=_DOUBLE, **opset))
    name = operator.outputs[0].full_name
    ops.OnnxConcat(*parts, axis=1, output_names=[name], **opset).add_to(scope, container)


def _convert_text(scope: Any, operator: Any, container: Any) -> None:
    """The weights of one column of documents."""
    ops = imported("skl2onnx.algebra.onnx_ops", EXTRA)
    opset = {"op_version": container.target_opset}
    weights = _text_weights(operator.raw_operator, operator.inputs[0], opset)
    name = operator.outputs[0].full_name
    ops.OnnxCast(weights, to=_DOUBLE, output_names=[name], **opset).add_to(scope, container)


def _text_weights(features: TextFeatures, documents: Any, opset: dict[str, Any]) -> Any:
    """The graph that ``skl2onnx`` makes of the same terms and weights in scikit-learn's vectorizer."""
    algebra = imported("skl2onnx.algebra.onnx_operator", EXTRA)
    ops = imported("skl2onnx.algebra.onnx_ops", EXTRA)
    words = ops.OnnxReshape(documents, np.array([-1, 1]), **opset)
    options = {"tokenexp": _TOKENS, "locale": "C.UTF-8"}
    return algebra.OnnxSubEstimator(_vectorizer(features), words, options=options, **opset)


# Runs of at least two letters, digits and underscores, which are Python's words. Greedy runs need no word boundaries,
# and the operator's expressions know these for ASCII only.
_TOKENS = r"[\p{L}\p{N}_][\p{L}\p{N}_]+"


_ENDS_IN_SIGMA = re.compile("\u03c3\\b")


def _vectorizer(features: TextFeatures) -> Any:
    """scikit-learn's vectorizer with the terms and weights of a transform; a UsageError for what no graph does."""
    text = imported("sklearn.feature_extraction.text", EXTRA)
    for name, value, expected in (
        ("hashing", features.hashing, None),
        ("analyzer", features.analyzer, "word"),
        ("token_pattern", features.token_pattern, TextFeatures().token_pattern),
        ("binary", features.binary, False),
        ("sublinear_tf", features.sublinear_tf, False),
    ):
        if value != expected:
            raise UsageError(f"TextFeatures({name}={value!r}) has no operators in ONNX", hint=f"it takes {expected!r}")
    if features.stop_words is not None and tuple(features.ngram_range) != (1, 1):
        raise UsageError(
            f"TextFeatures(stop_words=..., ngram_range={features.ngram_range!r}) has no operators in ONNX, which join "
            "no words across one that is left out",
            hint="leave one of the two out",
        )
    # Python writes a capital sigma at the end of a word in another way than within it, an operator does not.
    if features.lowercase and any("\u03c2" in term or _ENDS_IN_SIGMA.search(term) for term in features.vocabulary_):
        raise UsageError(
            "TextFeatures(lowercase=True) of Greek words that end in sigma has no operators in ONNX",
            hint="lower the documents before, and set lowercase=False",
        )
    made = text.TfidfVectorizer(
        vocabulary=features.vocabulary_,
        lowercase=features.lowercase,
        stop_words=features.stop_words,
        ngram_range=features.ngram_range,
        norm=features.norm,
        use_idf=features.use_idf,
        token_pattern=features.token_pattern,
    )
    made._validate_vocabulary()
    if features.use_idf:
        made.idf_ = np.asarray(features.idf_, np.float64)
    return made
