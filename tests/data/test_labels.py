"""Labels of any type, encodings, class weights, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from dboost.data.labels.labels import LabelStats, check_weight, plan_labels, scan
from dboost.errors import DataError, UsageError
from tests.data.conftest import plan

X2 = np.ones((6, 1))
WORDS = ["b", "a", "c", "a", "b", "b"]


def same_words():
    """The same labels in every container of strings."""
    yield np.array(WORDS)
    yield np.array(WORDS, dtype=object)
    yield WORDS
    yield pd.Series(WORDS, index=list("uvwxyz"))
    yield pd.Series(WORDS, dtype="category")
    yield pd.Series(WORDS, dtype="string")
    yield pa.array(WORDS)
    yield pa.array(WORDS, pa.large_string())
    yield pa.array(WORDS, pa.string_view())
    yield pa.array(WORDS).dictionary_encode()
    yield pa.chunked_array([WORDS[:2], [], WORDS[2:]])
    yield pa.chunked_array([pa.array(WORDS[:2]).dictionary_encode(), pa.array(WORDS[2:]).dictionary_encode()])
    yield np.array(WORDS)[:, None]


def test_strings_are_strings():
    for y in list(same_words()):
        found = plan(X2, y)
        assert found.task == "multiclass" and found.n_outputs == 3
        assert found.classes.tolist() == ["a", "b", "c"]
        assert found.class_counts == (2, 3, 1)
        assert found.items[0].y.dtype == np.int32
        assert found.items[0].y.tolist() == [1, 0, 2, 0, 1, 1]


def test_two_classes():
    for y, classes in [
        (np.array([3, -1, 3, -1, 3, -1]), [-1, 3]),
        (np.array([3, 1, 3, 1, 3, 1], dtype=np.uint8), [1, 3]),
        (np.array([True, False] * 3), [False, True]),
        (np.array([True, False] * 3, dtype=object), [False, True]),
        (np.array([2, 1] * 3, dtype=object), [1, 2]),
        (np.array([2.0, 1.0] * 3), [1.0, 2.0]),
        ([b"y", b"x"] * 3, [b"x", b"y"]),
        (np.array([b"y", b"x"] * 3, dtype=object), [b"x", b"y"]),
        (pa.array([True, False] * 3), [False, True]),
        (pa.array([2, 1] * 3, pa.int8()), [1, 2]),
        (pa.array([b"y", b"x"] * 3, pa.binary_view()), [b"x", b"y"]),
        (pa.array([2, 1] * 3).dictionary_encode(), [1, 2]),
    ]:
        found = plan(X2, y)
        assert found.task == "binary" and found.n_outputs == 1
        assert found.classes.tolist() == classes
        first = 1 if np.asarray(y, dtype=object)[0] == classes[1] else -1
        assert found.items[0].y.dtype == np.int8 and found.items[0].y.shape == (6, 1)
        assert found.items[0].y[:, 0].tolist() == [first, -first] * 3
        codes = plan(X2, y, task="multiclass").items[0].y
        assert codes.dtype == np.int32 and set(codes.tolist()) == {0, 1}


def test_numpy_types_of_classes_survive():
    assert plan(X2, np.array([3, 1] * 3, dtype=np.int16)).classes.dtype == np.int16
    assert plan(X2, np.array(["x", "yy"] * 3)).classes.dtype == np.dtype("<U2")


def test_refused_labels():
    for y, words in [
        (np.array([1, "a"] * 3, dtype=object), "mixed types: int and str"),
        (np.array([1, 2.0] * 3, dtype=object), "mixed types: float and int"),
        (np.array([True, 1] * 3, dtype=object), "mixed types: bool and int"),
        (np.array([1.0, np.nan] * 3), "3 labels are missing"),
        (np.array(["a", None] * 3, dtype=object), "3 labels are missing"),
        (np.array(["a", np.nan] * 3, dtype=object), "3 labels are missing"),
        (pd.Series(["a", None] * 3, dtype="string"), "3 labels are missing"),
        (pa.array(["a", None] * 3), "3 labels are missing"),
        (np.array([0.5, 1.0] * 3), "Unknown label type: continuous"),
        (np.array([np.inf, 1.0] * 3), "infinity"),
        (np.array([1 + 2j] * 6), "complex128"),
        (np.array(["2020-01-01"] * 6, dtype="datetime64[D]"), "datetime64"),
        (pa.array([[1]] * 6), "list<"),
        ([object()] * 6, "type object"),
        (np.ones((6, 2)), "expected one label per row"),
        (["a"] * 6, "only one class: every label is 'a'"),
        (["a"] * 5, "inconsistent numbers of samples"),
        ([], "inconsistent numbers of samples"),
    ]:
        with pytest.raises(DataError, match=words):
            plan(X2, y)
    with pytest.raises(DataError, match="no rows"):
        plan(np.zeros((0, 2)), np.array([], dtype=int))
    with pytest.raises(DataError, match="3 classes for a binary loss"):
        plan(X2, WORDS, task="binary")
    with pytest.raises(UsageError, match="task='ranking'"):
        plan(X2, WORDS, task="ranking")


def test_classes_given():
    found = plan(X2, WORDS, classes=["d", "c", "b", "a"])
    assert found.classes.tolist() == ["a", "b", "c", "d"]
    assert found.class_counts == (2, 3, 1, 0)
    with pytest.raises(DataError, match="not among the 2 classes given: 'c'"):
        plan(X2, WORDS, classes=["a", "b"])
    with pytest.raises(UsageError, match="twice"):
        plan(X2, WORDS, classes=["a", "b", "c", "c"])
    with pytest.raises(UsageError, match="type int, the labels of type str"):
        plan(X2, WORDS, classes=[1, 2])
    with pytest.raises(UsageError, match="empty"):
        plan(X2, WORDS, classes=[])


def test_unseen_label_at_encoding():
    coder = pickle.loads(pickle.dumps(plan(X2, WORDS).coder))
    assert coder.codes(["c", "a"]).tolist() == [2, 0]
    with pytest.raises(DataError, match="not among the 3 classes: 'd'"):
        coder.codes(["a", "d"])
    with pytest.raises(DataError, match="mixed types"):
        coder.codes([1, 2])


def test_class_weights():
    weight = np.array([1.0, 2, 1, 1, 0, 1])
    found = plan(X2, WORDS, weight, class_weight={"a": 2.0, "b": 0.5})
    assert found.items[0].weight.tolist() == [0.5, 4, 1, 2, 0.5]
    assert found.class_weights == (6.0, 1.0, 1.0)
    balanced = plan(X2, WORDS, weight, class_weight="balanced")
    np.testing.assert_allclose(balanced.class_weights, [2.0, 2.0, 2.0])
    repeated = np.repeat(np.arange(6), weight.astype(int))
    twice = plan(X2[repeated], [WORDS[i] for i in repeated], class_weight="balanced")
    np.testing.assert_allclose(twice.coder.factors, balanced.coder.factors)


def test_texts_name_the_numbers_they_write():
    for labels in [[1, 2, 2, 10, 1, 2], [1.0, 2.0, 2.0, 10.0, 1.0, 2.0]]:
        named = {"1": 3.0, "10": 0.5}
        found, expected = (plan(X2, labels, class_weight=given) for given in (named, {1: 3.0, 10: 0.5}))
        assert found.coder.factors.tolist() == expected.coder.factors.tolist()
        assert len(set(found.coder.factors.tolist())) == 3
        with pytest.raises(UsageError, match=r"names the label 1(\.0)? twice, as '1' and as 1"):
            plan(X2, labels, class_weight={"1": 3.0, 1: 2.0})
        with pytest.raises(UsageError, match="not classes: '01'"):
            plan(X2, labels, class_weight={"01": 3.0})
    labels = [1.0, 2.0, 2.0, 1.0, 1.0, 2.0]
    assert plan(X2, labels, class_weight={"1": 2.0, "2.0": 1}).coder.factors.tolist() == [2.0, 1.0]
    with pytest.raises(UsageError, match=r"names the label 2\.0 twice, as '2' and as '2\.0'"):
        plan(X2, labels, class_weight={"2": 3.0, "2.0": 2.0})
    with pytest.raises(UsageError, match="not classes: 1"):
        plan(X2, ["1", "2", "2", "1", "1", "2"], class_weight={1: 2.0})


def test_refused_class_weights():
    for class_weight, words in [
        ("even", "class_weight='even'"),
        ({"z": 1}, "not classes: 'z'"),
        ({"a": -1}, "finite, >= 0"),
        ({"a": np.nan}, "finite, >= 0"),
        ({"a": 0, "b": 0, "c": 0}, "not all zero"),
        ([1, 2, 3], "class_weight is a list"),
    ]:
        with pytest.raises(UsageError, match=words):
            plan(X2, WORDS, class_weight=class_weight)


def test_refused_sample_weights():
    for weight, words in [
        ([1, 1], r"shape \(2,\), expected \(6,\)"),
        (np.ones((6, 2)), "shape"),
        ([1, 1, -1, 1, 1, 1], "-1.0 in row 2"),
        ([1, 1, 1, np.nan, 1, 1], "nan in row 3"),
        ([1, 1, 1, np.inf, 1, 1], "inf in row 3"),
        (["x"] * 6, "not numbers"),
        (np.zeros(6), "weight.*zero"),
    ]:
        with pytest.raises(DataError, match=words):
            plan(X2, WORDS, weight)
    assert check_weight(2, 3).tolist() == [2, 2, 2]


TASKS = np.array([[0, 1], [1, 1], [1, 0], [0, 0]])


def test_tasks():
    for y in [
        TASKS,
        TASKS * 2 - 1,
        TASKS.astype(bool),
        TASKS.astype(float),
        TASKS.astype(object),
        sparse.csr_matrix(TASKS),
        pd.DataFrame(TASKS, columns=["u", "v"]),
        TASKS.tolist(),
    ]:
        found = plan(np.ones((4, 1)), y, task="multitask")
        assert found.n_outputs == 2 and found.task == "multitask"
        np.testing.assert_array_equal(found.items[0].y, TASKS * 2 - 1)
        assert found.items[0].y.dtype == np.int8
        assert (found.classes is None) == (not hasattr(y, "columns"))


def test_tasks_with_missing_labels():
    y = TASKS.astype(float)
    y[0, 1] = np.nan
    assert plan(np.ones((4, 1)), y, task="multitask").items[0].y[0].tolist() == [-1, 0]
    objects = TASKS.astype(object)
    objects[0, 1] = None
    assert plan(np.ones((4, 1)), objects, task="multitask").items[0].y[0].tolist() == [-1, 0]


def test_refused_tasks():
    for y, words in [
        (np.array([[0, 1], [1, 2], [0, 0], [1, 1]]), "label 2 in row 1, task 1"),
        (np.array([[0, 1], [1, -1], [0, 0], [1, 1]]), "hold both 0 and -1"),
        (np.array([[0, 1], [1, 1], [0, 1], [1, 1]]), "only one class in 1 of 2 tasks, which are called 1"),
        (np.array([["a", "b"]] * 4, dtype=object), "not numbers"),
        (np.array([["a", "b"]] * 4), "have type"),
        (np.ones(4), r"expected \(m, k\)"),
    ]:
        with pytest.raises(DataError, match=words):
            plan(np.ones((4, 1)), y, task="multitask")


def test_names_of_tasks():
    assert plan(np.ones((4, 1)), TASKS, task="multitask", classes=["u", "v"]).classes.tolist() == ["u", "v"]
    with pytest.raises(UsageError, match="one name per column"):
        plan(np.ones((4, 1)), TASKS, task="multitask", classes=["u"])
    with pytest.raises(UsageError, match="class_weight has no meaning"):
        plan(np.ones((4, 1)), TASKS, task="multitask", class_weight="balanced")
    with pytest.raises(DataError, match="tasks, which are called 'v'"):
        plan(np.ones((4, 1)), [[0, 1], [1, 1]] * 2, task="multitask", classes=["u", "v"])


def test_regression():
    found = plan(X2, [1, 2.5, 3, 4, 5, 6], task="regression")
    assert found.items[0].y.dtype == np.float64 and found.classes is None
    with pytest.raises(DataError, match="row 1 is not finite"):
        plan(X2, [1, np.nan, 3, 4, 5, 6], task="regression")
    with pytest.raises(DataError, match="not numbers"):
        plan(X2, WORDS, task="regression")
    for text in (np.array(["1.5"] * 6), np.array(["1.5"] * 6, dtype=object), np.arange(6).astype("M8[D]")):
        with pytest.raises(DataError, match="not numbers but of type"):
            plan(X2, text, task="regression")


def test_reports_on_the_targets_of_partitions_merge():
    total = LabelStats()
    for block in (np.zeros(0), np.array([1.0, 2.5]), np.array([3, 4])):
        total.merge(scan("regression", block, np.ones(len(block))))
    assert (total.n_rows, total.kind, total.sum_weight) == (4, "float", 4.0)


def test_reports_merge_like_one_report():
    y = np.array(["x", "longer", "x", "y", "longer", "x"])
    weight = np.array([1.0, 2, 0, 1, 1, 3])
    whole = scan("multiclass", y, weight)
    parts = LabelStats()
    for part in (slice(0, 0), slice(0, 1), slice(1, 5), slice(5, 6)):
        parts.merge(scan("multiclass", y[part], weight[part]))
    assert (parts.count, parts.weight, parts.n_kept) == (whole.count, whole.weight, 5)
    assert plan_labels(parts, "multiclass").classes.tolist() == ["longer", "x", "y"]
    with pytest.raises(DataError, match="mixed types: int and str"):
        parts.merge(scan("multiclass", np.array([1, 2]), np.ones(2)))
