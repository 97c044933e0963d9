"""A class in the data that the model does not know: `evaluate` counts it and goes on."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost.model.fitted import read_model
from tests.pipelines.conftest import LOCAL, figures, give


def rows(labels, n, seed):
    """`n` rows of one feature per label, which is large for its own rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(labels), n)
    X = 0.7 * rng.normal(size=(n, 4)) + 2.0 * np.eye(4)[y]
    return pa.table({f"x{j}": X[:, j] for j in range(4)} | {"y": [labels[c] for c in y.tolist()]})


def trained(folder, known):
    pq.write_table(rows(known, 150, 0), folder / "train.parquet")
    give("train", folder / "train.parquet", "--label", "y", "--out", folder / "model", "--alpha", "0.01")


def judged(folder, there, prints):
    """The figures of the model on some rows, and what is said of them."""
    pq.write_table(there, folder / "test.parquet", row_group_size=40)
    judge = ["evaluate", folder / "model", folder / "test.parquet", "--label", "y", "--out", folder / "judged"]
    said = prints(*judge, "--force")
    return figures(folder / "judged"), " ".join(said.split())


@pytest.mark.parametrize("known", [("ash", "elm"), ("ash", "elm", "oak")])
def test_rows_of_a_new_class_count_as_wrong_and_are_told(known, tmp_path, prints, refused):
    trained(tmp_path, known)
    plain, page = judged(tmp_path, rows(known, 100, 1), prints)
    assert plain["unknown_classes"] == {} and "does not know" not in page
    # The new class sorts before the others, so that no code of the data is one of the model.
    there = pa.concat_tables([rows(known, 100, 1), rows(("a-new-one",), 30, 2), rows(("zelkova",), 10, 3)])
    found, page = judged(tmp_path, there, prints)
    X = np.column_stack([there[f"x{j}"].to_numpy() for j in range(4)])
    wrong = read_model(tmp_path / "model").predict(X) != np.array(there["y"].to_pylist())
    assert found["examples"] == 140 and found["error"] == pytest.approx(wrong.mean())
    assert found["unknown_classes"] == {"a-new-one": 30, "zelkova": 10}
    assert np.sum(found["confusion"]) == 100 and wrong[100:].all()
    assert "40 of them of 2 classes that the model does not know: 'a-new-one' (30), 'zelkova' (10)" in page
    # the other figures are those without the new rows
    for name in ("log_loss", "coverage", "mean_margin", "min_margin"):
        assert found[name] == pytest.approx(plain[name], rel=1e-12)
    only = there.set_column(4, "y", pa.array([3] * there.num_rows))
    pq.write_table(only, tmp_path / "test.parquet", write_page_checksum=True)
    line = refused("evaluate", tmp_path / "model", tmp_path / "test.parquet", "--label", "y", *LOCAL, code=3)
    assert "none of the labels" in line and "3" in line and ", ".join(map(repr, known)) in line
