"""Models over hypotheses that are computed from raw columns: scores, names, the folder; and older folders."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from dboost import hypotheses
from dboost.errors import DataError, DboostWarning, ModelFormatError, UsageError
from dboost.files.storage import pack_arrays, sha256_bytes
from dboost.hypotheses import family_from_json, same_hypotheses
from dboost.hypotheses.columns import Columns, ColumnSet
from dboost.model.fitted import read_model
from tests.model.models import make, write_unsealed
from tests.model.pairs import PAIRS, Pairs, induced
from tests.model.test_model_refusals import edit, put


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setitem(hypotheses.FAMILIES, "pairs", ("tests.model.pairs", "Pairs"))


def rows(m=40, n=9, seed=1):
    X = np.random.default_rng(seed).normal(size=(m, n))
    X[np.random.default_rng(seed + 1).random(X.shape) < 0.4] = 0.0
    return X


def test_scores_are_those_of_the_explicit_columns_with_the_same_bits_in_every_batch():
    model, X = induced(), rows()
    H = X[:, PAIRS[:, 0]] * X[:, PAIRS[:, 1]]
    whole = model.decision_function(X)
    np.testing.assert_allclose(whole, H @ model.W + model.intercept, rtol=1e-13)
    for kind in (sp.csr_matrix, sp.csc_array, sp.coo_array):
        assert model.decision_function(kind(X)).tobytes() == whole.tobytes()
    single = np.vstack([model.decision_function(X[i : i + 1]) for i in range(len(X))])
    assert single.tobytes() == whole.tobytes()
    assert model.scores_of_inputs(X[:, model.inputs]).tobytes() == whole.tobytes()
    assert pickle.loads(pickle.dumps(model)).decision_function(X).tobytes() == whole.tobytes()
    assert model.decision_function(X[:0]).shape == (0, 3)


def test_rows_in_any_order_are_read_and_left_as_they_are():
    model = induced()
    X = sp.csr_array(rows()[:, model.inputs])
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(X.indptr, X.indptr[1:])])
    mixed = sp.csr_array((X.data[order], X.indices[order], X.indptr), shape=X.shape)
    before = mixed.indices.copy()
    mixed.data.flags.writeable = mixed.indices.flags.writeable = False
    assert model.scores_of_inputs(mixed).tobytes() == model.scores_of_inputs(X).tobytes()
    np.testing.assert_array_equal(mixed.indices, before)


def test_only_the_inputs_are_read_and_an_overflow_is_named():
    model, X = induced(), rows()
    assert model.inputs.tolist() == [1, 2, 4, 7]
    assert model.input_names == ("f1·", "f2·", "f4·", "f7·")
    spoiled = X.copy()
    spoiled[:, [0, 3, 5, 6, 8]] = np.nan
    assert model.decision_function(spoiled).tobytes() == model.decision_function(X).tobytes()
    spoiled[3, 2] = 1e200
    with np.errstate(over="ignore"), pytest.raises(DataError, match=r"x2\^2' overflows"):
        model.decision_function(spoiled)


def test_induced_models_have_no_active_columns():
    model = induced()
    assert (model.plain, model.n_hypotheses, model.n_candidates) == (False, 3, 45.0)
    with pytest.raises(UsageError, match="no columns"):
        _ = model.active
    plain = make()
    assert (plain.plain, plain.n_hypotheses, plain.n_candidates) == (True, 3, 9)


@pytest.mark.parametrize("task", ["binary", "multiclass", "multitask", "regression"])
def test_round_trip(tmp_path, task):
    model = induced(task)
    model.save(tmp_path / "m")
    back = read_model(tmp_path / "m")
    assert same_hypotheses(back.hypotheses, model.hypotheses)
    assert back.origin == model.origin
    assert (back.task, back.loss) == (model.task, model.loss)
    assert back.decision_function(rows()).tobytes() == model.decision_function(rows()).tobytes()


CHANGES = {
    "unknown family": put("hypotheses", "family", "os.system"),
    "family of columns": put("hypotheses", "family", "columns"),
    "held": put("hypotheses", "held", 4),
    "no origin": put("origin", None),
    "keys fewer": put("origin", "keys", [[1, 4]]),
    "keys of floats": put("origin", "keys", [[1.0, 4], [2, 2], [4, 7]]),
    "keys of text": put("origin", "keys", "abc"),
    "size": put("origin", "size", "many"),
    "token": put("origin", "token", 3),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_changed_documents_are_refused(tmp_path, change):
    induced().save(tmp_path / "m")
    edit(tmp_path / "m", change)
    with pytest.raises(ModelFormatError):
        read_model(tmp_path / "m")


def test_an_infinite_pool_is_kept(tmp_path):
    induced().save(tmp_path / "m")
    edit(tmp_path / "m", put("origin", "size", "inf"))
    assert read_model(tmp_path / "m").n_candidates == np.inf


def test_families_come_back_from_json():
    assert family_from_json(Pairs(3).to_json()) == Pairs(3)
    assert family_from_json(Columns().to_json()) == Columns()
    for spec in ({"family": "columns", "degree": 2}, {"family": "none"}, {"family": ["columns"]}, "columns", None):
        with pytest.raises(UsageError):
            family_from_json(spec)


def test_same_hypotheses_compares_every_bit():
    one = ColumnSet(np.array([1, 4]), ("a", "b"))
    assert one == ColumnSet(np.array([1, 4]), ("a", "b"))
    assert same_hypotheses(one, ColumnSet(np.array([1, 4]), ("a", "b")))
    for other in (ColumnSet(np.array([1, 5]), ("a", "b")), ColumnSet(np.array([1, 4])), induced().hypotheses):
        assert one != other
        assert not same_hypotheses(one, other)
    assert not same_hypotheses(induced().hypotheses, induced(pairs=PAIRS[:, ::-1].copy()).hypotheses)


def version_1(folder, W, intercept):
    """A folder as version 1 of the format had it, written field by field."""
    data = pack_arrays({"W": W, "intercept": intercept})
    document = {
        "format": "dboost-model",
        "version": 1,
        "task": "binary",
        "loss": "log",
        "penalty": "l1/linf",
        "hypotheses": {"family": "columns", "indices": [0, 3], "names": None},
        "classes": {"dtype": "<U3", "values": ["no", "yes"]},
        "n_features": 5,
        "n_outputs": 1,
        "certificate": {
            "objective": 0.5, "gap": 1e-5, "lower_bound": 0.4, "alpha": 0.1, "alpha_max": 1.0, "stop_reason": "tol",
            "n_iter": 3, "passes": 9,
        },
        "manifest": {
            "estimator": {"class": "BoostedClassifier", "params": {"penalty": {"name": "l1/linf"}, "loss": None}}
        },
        "arrays": {"file": "arrays.safetensors", "bytes": len(data), "sha256": sha256_bytes(data)},
        "history": [],
    }  # fmt: skip
    folder.mkdir()
    (folder / "arrays.safetensors").write_bytes(data)
    (folder / "model.json").write_text(json.dumps(document))


def test_folders_of_version_1_are_read_with_a_warning(tmp_path):
    from dboost import load_model

    W, intercept = np.array([[0.5], [-1.0]]), np.array([0.25])
    version_1(tmp_path / "m", W, intercept)
    with pytest.warns(DboostWarning, match="version 1 has no digest"):
        model = read_model(tmp_path / "m")
    assert (model.loss, model.plain, model.active.tolist()) == ("log", True, [0, 3])
    X = rows(n=5)
    np.testing.assert_allclose(model.decision_function(X), 0.5 * X[:, :1] - X[:, 3:4] + 0.25, rtol=1e-12)
    with pytest.warns(DboostWarning, match="save the model again") as seen:
        assert load_model(tmp_path / "m").predict(X).tolist() == model.predict(X).tolist()
    assert {warning.filename for warning in seen} == {__file__}
    model.save(tmp_path / "again")
    assert json.loads((tmp_path / "again" / "model.json").read_text())["version"] == 3
    assert read_model(tmp_path / "again").W.tobytes() == W.tobytes()


def test_folders_of_version_2_are_read_with_a_warning_and_need_no_digest(tmp_path):
    induced().save(tmp_path / "m")
    file = tmp_path / "m" / "model.json"
    document = json.loads(file.read_text()) | {"version": 2}
    write_unsealed(file, document)
    with pytest.warns(DboostWarning, match="version 2 has no digest"):
        assert read_model(tmp_path / "m").W.tobytes() == induced().W.tobytes()
    # Version 3 must have one, and a digest that is there is checked whatever the version claims.
    write_unsealed(file, document | {"version": 3})
    with pytest.raises(ModelFormatError, match="field sha256: expected text, found nothing"):
        read_model(tmp_path / "m")
    file.write_text(json.dumps(document | {"sha256": "0" * 64}))
    with pytest.raises(ModelFormatError, match="does not match its SHA-256"):
        read_model(tmp_path / "m")
