"""Columns by name on the command line: what is not there is named, and a model takes what it needs and no more."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dboost
from dboost.model.fitted import read_model
from tests.pipelines.conftest import LOCAL, give

NAMES = ("age", "price", "size")
LABEL = ["--label", "label"]


def houses(**columns):
    """80 rows of which `price` tells the label and `size` nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    label = np.where(X[:, 1] + 0.1 * X[:, 0] > 0, "dear", "cheap")
    return pa.table({**dict(zip(NAMES, X.T, strict=True)), "label": label, **columns})


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("houses")
    pq.write_table(houses(), folder / "train.parquet", write_page_checksum=True)
    give("train", folder / "train.parquet", "--label", "label", "--out", folder / "model", "--alpha", "0.05")
    assert read_model(folder / "model").input_names is not None
    assert "size" not in (read_model(folder / "model").input_names or ())
    return folder / "model"


def test_a_column_that_is_not_there_is_named_with_those_there_are(model, tmp_path, refused):
    train = ["train", model.parent / "train.parquet", "--out", tmp_path / "m", *LOCAL]
    for flag, role, label in (
        ("--label", "label", []),
        ("--weight", "weight", LABEL),
        ("--features", "feature", LABEL),
    ):
        line = refused(*train, *label, flag, "Pirce", code=3)
        assert f"there is no such {role} column" in line and "column 'Pirce'" in line
        assert "did you mean 'price'" in line and "'age', 'price', 'size', 'label'" in line


def test_predict_and_evaluate_leave_out_what_the_model_does_not_need(model, tmp_path, prints):
    # The label is still there, a text too, one column that the model does not read is gone, and the order is another.
    table = houses(note=pa.array(["word"] * 80)).select(["label", "note", "price", "age"])
    pq.write_table(table, tmp_path / "t.parquet")
    give("predict", model, tmp_path / "t.parquet", "--out", tmp_path / "p")
    expected = read_model(model).predict(np.column_stack([houses()[name].to_numpy() for name in NAMES]))
    assert pq.read_table(tmp_path / "p")["prediction"].to_pylist() == expected.tolist()
    wrong = np.mean(expected != houses()["label"].to_numpy())
    said = prints("evaluate", model, tmp_path / "t.parquet", *LABEL)
    assert f"{100 * wrong:.1f} % of labels are wrong" in said


def test_class_weights_name_whole_number_labels_by_their_texts(tmp_path):
    table = houses()
    codes = pa.array((np.array(table["label"].to_pylist()) == "dear").astype(np.int64))
    pq.write_table(table.set_column(3, "label", codes), tmp_path / "t.parquet")
    train = ["train", tmp_path / "t.parquet", *LABEL, "--out", tmp_path / "m", "--alpha", "0.05"]
    give(*train, "--class-weight", '{"1": 2}')
    assert dboost.load_model(tmp_path / "m").class_weight == {0: 1.0, 1: 2.0}


def test_signs_and_columns_without_penalty_are_named(model, tmp_path):
    given = ["--upper", '{"price": 0}', "--penalty-factors", '{"size": 0}', "--penalty", "l1", "--alpha", "1e-3"]
    give("train", model.parent / "train.parquet", *LABEL, "--out", tmp_path / "m", *given)
    found = dboost.load_model(tmp_path / "m")
    assert found.upper == {"price": 0.0} and found.penalty_factors == {"size": 0.0}
    assert "size" in found.active_features_ and found.duality_gap_ <= 1e-4
    assert (found.coef_[:, list(found.feature_names_in_).index("price")] <= 0.0).all()


def test_penalty_factors_name_columns(model, tmp_path):
    (tmp_path / "c.toml").write_text("penalty_factors = {price = inf, size = 0.5}\n")
    train = ["train", model.parent / "train.parquet", *LABEL, "--out", tmp_path / "m", "--alpha", "0.01"]
    give(*train, "--config", tmp_path / "c.toml")
    found = dboost.load_model(tmp_path / "m")
    assert found.penalty_factors == {"price": np.inf, "size": 0.5} and "price" not in found.active_features_
    assert json.loads((tmp_path / "m" / "run.json").read_text())["settings"]["penalty_factors"]["price"] == "inf"


@pytest.mark.full
def test_an_offset_is_a_column_that_predictions_need(model, tmp_path, refused):
    give("train", model.parent / "train.parquet", *LABEL, "--out", tmp_path / "m", "--offset", "size")
    found = dboost.load_model(tmp_path / "m")
    assert found.offset == ["size"] and found.coef_[0, NAMES.index("size")] == 1.0
    give("predict", tmp_path / "m", model.parent / "train.parquet", "--out", tmp_path / "p")
    pq.write_table(houses().drop_columns(["size"]), tmp_path / "less.parquet", write_page_checksum=True)
    less = ["predict", tmp_path / "m", tmp_path / "less.parquet", "--out", tmp_path / "q", *LOCAL]
    assert "columns that the model reads are not there: 'size'" in refused(*less, code=3)


def test_columns_that_the_model_needs_and_that_are_not_there_are_named(model, tmp_path, refused):
    other = houses().rename_columns(["age", "prices", "size", "label"])
    pq.write_table(other, tmp_path / "t.parquet", write_page_checksum=True)
    for command, more in (("predict", ["--out", tmp_path / "p"]), ("evaluate", LABEL)):
        line = refused(command, model, tmp_path / "t.parquet", *more, *LOCAL, code=3)
        assert "columns that the model reads are not there: 'price'" in line and "did you mean 'prices'" in line


def test_a_model_of_no_feature_labels_any_rows(model, tmp_path):
    give("train", model.parent / "train.parquet", *LABEL, "--out", tmp_path / "m", "--alpha", "9")
    pq.write_table(houses().select(["label", "size"]), tmp_path / "u.parquet")
    give("predict", tmp_path / "m", tmp_path / "u.parquet", "--out", tmp_path / "p")
    assert pq.read_table(tmp_path / "p").num_rows == 80
