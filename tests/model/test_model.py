"""The model as a value: scores, labels, and the round trip through its folder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import dboost
from dboost.errors import DataError, UsageError
from dboost.hypotheses.columns import ColumnSet
from dboost.model.fitted import read_model
from dboost.model.tasks import of_rows
from tests.model.models import make


def dense_scores(model, X):
    W = np.zeros((model.n_features, model.n_outputs))
    W[model.active] = model.W
    return X @ W + model.intercept


@pytest.mark.parametrize("task", ["binary", "multiclass", "multitask"])
def test_scores_labels_and_probabilities_follow_from_w(task):
    model = make(task)
    X = np.random.default_rng(1).normal(size=(6, 9))
    F = dense_scores(model, X)
    np.testing.assert_allclose(model.decision_function(X), F, rtol=1e-13)
    P = model.predict_proba(X)
    if task == "multiclass":
        np.testing.assert_allclose(P, np.exp(F) / np.exp(F).sum(axis=1, keepdims=True), rtol=1e-13)
        assert model.predict(X).tolist() == [model.classes[r] for r in F.argmax(axis=1)]
    elif task == "binary":
        np.testing.assert_allclose(P, np.hstack([1 / (1 + np.exp(F)), 1 / (1 + np.exp(-F))]), rtol=1e-13)
        assert model.predict(X).tolist() == ["yes" if f > 0 else "no" for f in F[:, 0]]
    else:
        np.testing.assert_allclose(P, 1 / (1 + np.exp(-F)), rtol=1e-13)
        assert model.predict(X).tolist() == (F > 0).astype(int).tolist()


def test_an_example_has_the_same_bits_in_every_batch_and_layout():
    model = make(n=300, active=tuple(range(0, 300, 2)))
    X = np.random.default_rng(2).normal(size=(64, 300))
    X[np.random.default_rng(3).random(X.shape) < 0.6] = 0
    whole = model.decision_function(X)
    unsorted = sp.csr_matrix(X)[:, ::-1][:, ::-1]
    kinds = (sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array, sp.bsr_array, sp.lil_array)
    for other in (*(kind(X) for kind in kinds), unsorted):
        assert model.decision_function(other).tobytes() == whole.tobytes(), type(other)
    single = np.vstack([model.decision_function(X[i : i + 1]) for i in range(64)])
    assert single.tobytes() == whole.tobytes()
    assert model.scores_of_inputs(X[:, model.active]).tobytes() == whole.tobytes()


def test_sparse_rows_have_the_bits_of_a_product_of_scipy():
    model, rng = make(n=300, active=tuple(range(0, 300, 2))), np.random.default_rng(2)
    X = sp.csr_array(rng.normal(size=(30, 300)) * (rng.random((30, 300)) < 0.4))
    twice = X[:]
    again = 1 + np.flatnonzero((rng.random(X.nnz - 1) < 0.2) & (np.diff(X.indices) > 0))
    twice.indices[again] = X.indices[again - 1]
    wide = X[:]
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    for rows in (X, twice, wide, X.astype(np.float32), (X * 4).astype(np.int32), X[:0]):
        held = sp.csr_array(rows, dtype=np.float64).sorted_indices()[:, model.active]
        expected = (held @ model.W + model.intercept).tobytes()
        assert model.decision_function(rows).tobytes() == expected
        assert model.scores_of_inputs(held).tobytes() == expected
        # few values are looked up one by one, and many in a table of all columns
        assert b"".join(model.decision_function(rows[[i]]).tobytes() for i in range(rows.shape[0])) == expected
    odd = X[:]
    odd.data[odd.indices % 2 == 1] = np.inf
    assert model.decision_function(odd).tobytes() == model.decision_function(X).tobytes()
    odd.data[odd.indices == 0] = np.nan
    with pytest.raises(DataError, match="NaN or infinity"):
        model.decision_function(odd)


@pytest.mark.full
def test_dense_rows_have_the_same_bits_wherever_they_are_cut_and_however_they_are_stored():
    model = make(n=300, active=tuple(range(0, 300, 2)))
    X = np.random.default_rng(2).integers(-3, 4, size=(70, 300)).astype(np.float32)
    whole = model.decision_function(sp.csr_array(X)).tobytes()
    for same in (X, np.asfortranarray(X), X.astype(np.int8), X.astype(np.longdouble), np.repeat(X, 2, axis=0)[::2]):
        assert model.decision_function(same).tobytes() == whole
        assert b"".join(model.decision_function(same[i : i + 1]).tobytes() for i in range(70)) == whole


def test_only_the_active_columns_are_read():
    model = make()
    X = np.random.default_rng(4).normal(size=(6, 9))
    spoiled = X.copy()
    spoiled[:, [0, 2, 8]] = np.nan
    assert model.decision_function(spoiled).tobytes() == model.decision_function(X).tobytes()
    spoiled[2, 4] = np.nan
    with pytest.raises(DataError, match="NaN"):
        model.decision_function(spoiled)


@pytest.mark.parametrize("task", ["binary", "multiclass", "multitask"])
def test_empty_models_and_empty_batches(tmp_path, task):
    model = make(task, active=())
    model.save(tmp_path / "m")
    back = read_model(tmp_path / "m")
    assert (back.task, back.hypotheses.words()) == (task, []) and back.classes.tolist() == model.classes.tolist()
    np.testing.assert_array_equal(back.decision_function(np.ones((2, 9))), np.vstack([model.intercept] * 2))
    assert make().predict_proba(np.ones((0, 9))).shape == (0, 3)
    assert make().predict(sp.csr_array((0, 9))).shape == (0,)


def test_a_batch_of_another_width_is_refused():
    with pytest.raises(DataError, match="9 features"):
        make().decision_function(np.ones((2, 8)))
    with pytest.raises(DataError, match="3 input"):
        make().scores_of_inputs(np.ones((2, 9)))


LABELS = [
    np.array([3, 5, 8]),
    np.array([1, 2, 3], dtype=np.uint8),
    np.array([0.5, 1.5, 2.25], dtype=np.float32),
    np.array([0.1, 0.2, 0.30000000000000004]),
    np.array(["a", "long label", "ü"]),
    np.array(["a", "b", "inf"], dtype=object),
    np.array(["a", "b\udcff", ""]),
    np.array([b"a", b"\xff", b""]),
    np.array([b"a", b"\xff\0", b""], dtype=object),
    np.array([False, True, 7], dtype=object),
    np.array(["2020-01-01", "2020-01-02", "2021-01-01"], dtype="datetime64[D]"),
    np.array(["a", "b", "c"], dtype=np.dtypes.StringDType()),
]


@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: str(labels.dtype))
@pytest.mark.parametrize("names", [True, False])
def test_round_trip_keeps_every_bit(tmp_path, labels, names):
    model = make(classes=labels, names=names)
    model.save(tmp_path / "m")
    back = read_model(tmp_path / "m")
    assert back.W.tobytes() == model.W.tobytes()
    assert back.intercept.tobytes() == model.intercept.tobytes()
    assert back.active.tolist() == [1, 4, 7]
    assert back.classes.dtype == labels.dtype
    assert back.classes.tolist() == labels.tolist()
    assert [type(x) for x in back.classes.tolist()] == [type(x) for x in labels.tolist()]
    for name in ("task", "loss", "penalty", "n_features", "feature_names", "certificate", "manifest", "history"):
        assert getattr(back, name) == getattr(model, name), name
    assert back.hypotheses.names == model.hypotheses.names
    assert back.hypotheses.words() == (["f1·", "f4·", "f7·"] if names else ["x1", "x4", "x7"])


def test_labels_of_bytes_are_learned_and_kept(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, np.bytes_("yes"), np.bytes_("no"))
    model = dboost.BoostedClassifier(alpha=0.01).fit(X, y)
    model.save(tmp_path / "m")
    back = dboost.load_model(tmp_path / "m")
    assert back.classes_.dtype == model.classes_.dtype and back.classes_.tolist() == [b"no", b"yes"]
    assert back.predict(X).tolist() == model.predict(X).tolist()


def test_names_that_are_no_utf_8_are_kept(tmp_path):
    names = tuple(f"f{j}\udcff" for j in range(9))
    model = replace(make(), feature_names=names, hypotheses=ColumnSet(make().active, (names[1], names[4], names[7])))
    model.save(tmp_path / "m")
    back = read_model(tmp_path / "m")
    assert (back.feature_names, back.hypotheses.words()) == (names, [names[1], names[4], names[7]])


def test_two_saves_have_the_same_bytes(tmp_path):
    make().save(tmp_path / "a")
    make().save(tmp_path / "b")
    for name in ("model.json", "arrays.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_saving_refuses_what_it_cannot_read_back(tmp_path):
    make().save(tmp_path / "m")
    with pytest.raises(UsageError, match="folder exists"):
        make().save(tmp_path / "m")
    make(seed=5).save(tmp_path / "m", force=True)
    assert read_model(tmp_path / "m").W.tobytes() == make(seed=5).W.tobytes()
    for labels in (np.array([(1,), b"b", "c"], dtype=object), np.array([0, 1, np.nan])):
        with pytest.raises(UsageError, match="cannot be saved"):
            make(classes=labels).save(tmp_path / "odd")
    assert not (tmp_path / "odd").exists()


def test_reductions_over_rows_have_the_bits_of_numpys():
    rng = np.random.default_rng(8)
    for k in range(1, 18):
        values = rng.normal(size=(40, k)) * 10.0 ** rng.integers(-8, 8, size=(40, k))
        for function in (np.add, np.maximum):
            assert of_rows(function, values).tobytes() == function.reduce(values, axis=1).tobytes()
