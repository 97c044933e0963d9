"""``groups=``: rows that belong together are held out together, whatever holds them and wherever they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.model_selection import GroupKFold

import dboost
from dboost.errors import DboostError
from dboost_pipelines.cli import main

FEW: dict[str, Any] = {"n_alphas": 3, "eps": 0.05, "penalty": "l1", "tol": 1e-3}


@pytest.fixture(scope="module")
def files() -> tuple[Any, Any, Any]:
    """Rows that resemble others of their file, and labels that are those of the files and have nothing else to tell."""
    rng = np.random.default_rng(0)
    file = rng.integers(0, 30, 240)
    X = rng.normal(size=(30, 25))[file] + 0.2 * rng.normal(size=(240, 25))
    return X, (rng.permutation(30) < 15)[file].astype(int), file


@pytest.mark.full
def test_the_default_is_judged_on_groups_that_it_has_not_seen(files: Any) -> None:
    X, y, file = files
    alone, together = (
        dboost.BoostedClassifier(alpha="auto", tol=1e-2).fit(X, y, groups=groups) for groups in (None, file)
    )
    best = [max(row["score"] for row in model.frontier_) for model in (alone, together)]
    # to tell files apart by their rows is to know their labels, which says nothing of other files
    assert best[0] > 0.85 > 0.7 > best[1]


@pytest.mark.full
def test_folds_are_those_of_groups_wherever_rows_are(files: Any, tmp_path: Path) -> None:
    dd = pytest.importorskip("dask.dataframe")
    X, y, file = files
    model = dboost.BoostedClassifierCV(cv=4, **FEW).fit(X, y, groups=file)
    each = [np.sum(np.isin(file, np.unique(file[test]))) for _, test in GroupKFold(4).split(X, y, file)]
    assert sorted(model.fold_weights_) == sorted(each)
    table = pd.DataFrame(X).add_prefix("x").assign(y=y, file=[f"f{one}.txt" for one in file])
    named = dboost.BoostedClassifierCV(cv=4, **FEW).fit(table, "y", groups="file")
    assert named.n_features_in_ == 25 and named.predict(table).shape == (240,)
    # the same rows as Parquet of several row groups, and as partitions of Dask: the same bits
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), tmp_path / "t.parquet", row_group_size=70)
    data = dboost.ParquetData(tmp_path / "t.parquet", label="y", groups="file")
    for found in (
        dboost.BoostedClassifierCV(cv=4, **FEW).fit(data),
        dboost.BoostedClassifierCV(cv=4, **FEW).fit(dd.from_pandas(table, npartitions=3), "y", groups="file"),
    ):
        np.testing.assert_allclose(found.fold_losses_, named.fold_losses_, rtol=1e-9)
    # a splitter is given the groups
    split = dboost.BoostedClassifierCV(cv=GroupKFold(4), **FEW).fit(table, "y", groups="file")
    assert sorted(split.fold_weights_) == sorted(each)


def test_halves_and_rungs_have_whole_groups(files: Any) -> None:
    X, y, file = files
    estimator = dboost.BoostedClassifier(penalty="l1", tol=1e-2)
    selection = dboost.StabilitySelection(estimator, n_pairs=2, n_alphas=2).fit(X, y, groups=file)
    assert selection.n_pairs_ == 2
    grid = {"alpha": [0.1, 0.02]}
    given = {"estimator": estimator, "param_grid": grid, "factor": 2, "cv": 2, "min_rows": 100, "scoring": "error"}
    alone, together = (dboost.successive_halving(X, y, groups=groups, **given) for groups in (None, file))
    assert alone.halving_results_[0]["mean"] < 0.3 < together.halving_results_[0]["mean"]
    with pytest.raises(DboostError, match="no row of class"):
        dboost.StabilitySelection(estimator, n_pairs=1).fit(X, np.where(file == 3, 2, y), groups=file)


def test_groups_without_a_meaning_are_refused(files: Any) -> None:
    X, y, file = files
    default, chosen = dboost.BoostedClassifier(alpha="auto"), dboost.BoostedClassifierCV(cv=40)
    for model, groups, words in (
        (default, np.zeros(240), "one value for all 240 rows"),
        (default, file[:9], "groups has 9 rows, X has 240"),
        (default, [None, *file[1:].tolist()], "1 groups are missing"),
        (default, file + 0.5, "groups are fractions"),
        (default, "file", "names no column"),
        (dboost.BoostedClassifier(alpha=0.1), file, "holds none out"),
        (dboost.ShareBoostClassifier(), file, "holds none out"),
        (chosen, file, "40 folds, but groups has 30 values"),
        (dboost.BoostedClassifierCV(folds=file), file, "both say"),
    ):
        with pytest.raises(DboostError, match=words):
            model.fit(X, y, groups=groups)


@pytest.mark.full
def test_a_run_keeps_the_column_of_the_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    file = rng.integers(0, 20, 120)
    text = [f"file{one} word{rng.integers(5)} {'good' if one % 2 else 'bad'}" for one in file]
    table = pd.DataFrame({"text": text, "label": file % 2, "file": [f"{one}.py" for one in file]})
    table.to_parquet("documents.parquet")
    lines = (
        '[data]\ndata = "documents.parquet"\nlabel = "label"',
        "[prepare]\nmin_df = 1",
        '[model]\nalpha = "auto"\ntol = 0.01\ngroups = "file"',
    )
    Path("run.toml").write_text("\n".join(lines), encoding="utf-8")
    assert main(["run", "run.toml"]) == 0
    folder = next(Path("runs").rglob("prepared"))
    assert "file" in pq.read_table(next(folder.rglob("part-*.parquet"))).column_names
    table.assign(x=file % 2 + rng.normal(size=120)).drop(columns="text").to_csv("table.csv", index=False)
    assert (
        main(["train", "table.csv", "--label", "label", "--groups", "file", "--alpha", "auto", "--out", "model"]) == 0
    )
    capsys.readouterr()
    for wrong in (["--groups", "file", "--alpha", "0.1"], ["--groups", "file", "--path", "3"]):
        assert main(["train", "table.csv", "--label", "label", *wrong, "--out", "other"]) == 2
        assert "holds none out" in capsys.readouterr().err
