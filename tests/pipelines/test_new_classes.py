"""A class in the data that the model does not know: `evaluate` counts it and goes on."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost.model.fitted import read_model
from pipelines.cli import main

LOCAL = ["--workers", "0"]


def rows(labels, n, seed):
    """`n` rows of one feature per label, which is large for its own rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(labels), n)
    X = 0.7 * rng.normal(size=(n, 4)) + 2.0 * np.eye(4)[y]
    return pa.table({f"x{j}": X[:, j] for j in range(4)} | {"y": [labels[c] for c in y.tolist()]})


def judged(folder, known, there, capsys):
    pq.write_table(rows(known, 150, 0), folder / "train.parquet")
    pq.write_table(there, folder / "test.parquet", row_group_size=40)
    model, data = str(folder / "model"), str(folder / "test.parquet")
    arguments = ["train", str(folder / "train.parquet"), "--label", "y", "--out", model, "--alpha", "0.01"]
    assert main([*arguments, *LOCAL]) == 0
    capsys.readouterr()
    assert main(["evaluate", model, data, "--label", "y", *LOCAL, "--out", str(folder / "judged")]) == 0
    captured = capsys.readouterr()
    return json.loads((folder / "judged" / "evaluation.json").read_text()), captured.out + captured.err, Path(model)


@pytest.mark.parametrize("known", [("ash", "elm"), ("ash", "elm", "oak")])
def test_rows_of_a_new_class_count_as_wrong_and_are_told(known, tmp_path, capsys):
    # The new class sorts before the others, so that no code of the data is one of the model.
    there = pa.concat_tables([rows(known, 100, 1), rows(("a-new-one",), 30, 2), rows(("zelkova",), 10, 3)])
    found, page, model = judged(tmp_path, known, there, capsys)
    X = np.column_stack([there[f"x{j}"].to_numpy() for j in range(4)])
    wrong = read_model(model).predict(X) != np.array(there["y"].to_pylist())
    assert found["examples"] == 140 and found["error"] == pytest.approx(wrong.mean())
    assert found["unknown_classes"] == {"a-new-one": 30, "zelkova": 10}
    assert np.sum(found["confusion"]) == 100 and wrong[100:].all()
    assert "40 of them of 2 classes that the model does not know: 'a-new-one' (30), 'zelkova' (10)" in " ".join(
        page.split()
    )


def test_the_other_figures_are_those_without_the_new_rows(tmp_path, capsys):
    known = ("ash", "elm", "oak")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    both, _, _ = judged(tmp_path / "a", known, pa.concat_tables([rows(known, 100, 1), rows(("new",), 30, 2)]), capsys)
    plain, page, _ = judged(tmp_path / "b", known, rows(known, 100, 1), capsys)
    for name in ("log_loss", "coverage", "mean_margin", "min_margin"):
        assert both[name] == pytest.approx(plain[name], rel=1e-12)
    assert plain["unknown_classes"] == {} and "does not know" not in page


def test_data_of_new_classes_only_is_refused(tmp_path, capsys):
    pq.write_table(rows(("ash", "elm"), 50, 0), tmp_path / "train.parquet")
    table = rows(("ash", "elm"), 50, 1)
    pq.write_table(table.set_column(4, "y", pa.array([3] * 50)), tmp_path / "test.parquet")
    assert main(["train", str(tmp_path / "train.parquet"), "--label", "y", "--out", str(tmp_path / "m"), *LOCAL]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "m"), str(tmp_path / "test.parquet"), "--label", "y", *LOCAL]) == 3
    line = capsys.readouterr().err
    assert "none of the labels" in line and "3" in line and "'ash', 'elm'" in line
