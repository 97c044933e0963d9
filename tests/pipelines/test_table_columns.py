"""Tables on the command line: columns by their kind, lists of tags as labels, the same features as in memory."""

import datetime
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import dboost
from dboost.data import load_manifest
from dboost.estimators.transform_files import transform_of_prepared
from pipelines.commands.models import values_of
from tests.pipelines.conftest import LOCAL, figures, give

N = 60
TEXTS = ["the sea and its waves", "a sky full of clouds", "rain on sand"]
TABLE = pa.table({
    "title": [f"{TEXTS[i % 3]} w{i % 7}" for i in range(N)],
    "price": [i % 11 * 0.5 for i in range(N)],
    "colour": [["red", "blue"][i % 2] for i in range(N)],
    "day": [datetime.date(2024, 1 + i % 12, 1 + i % 28) for i in range(N)],
    "tags": pa.array([[["sea"], ["sky", "air"], []][i % 3] for i in range(N)], pa.list_(pa.string())),
    "topic": [["sea", "sky"][int(i % 3 == 0)] for i in range(N)],
    "id": list(range(N)),
})  # fmt: skip
KINDS = {"title": "text", "price": "number", "colour": "category", "day": "date"}


def named(kinds):
    return ",".join(f"{name}={kind}" for name, kind in kinds.items())


def test_a_table_is_prepared_learned_and_predicted_with_the_bits_of_memory(tmp_path, prints, refused):
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=25)
    pq.write_table(TABLE.drop_columns(["topic"]), tmp_path / "new.parquet")
    kinds = KINDS | {"tags": "tags"}
    given = ["--label", "topic", "--min-df", "1", "--keep", "id"]
    give("prepare", tmp_path / "a.parquet", "--column", named(kinds), *given, "--out", tmp_path / "p")
    text = dboost.TextFeatures(sublinear_tf=True, max_df=0.5)
    features = dboost.Features(kinds, others="drop", text=text)
    rows = features.fit_transform(TABLE)
    written = pq.read_table(tmp_path / "p" / "train").sort_by("id").to_pylist()
    assert all(row["indices"] == rows[[i]].indices.tolist() for i, row in enumerate(written))
    assert all(row["values"] == rows[[i]].data.tolist() for i, row in enumerate(written))
    give("train", tmp_path / "p", "--alpha", "0.01", "--out", tmp_path / "m")
    model = dboost.load_pipeline(tmp_path / "m")
    assert model[0].get_feature_names_out().tolist() == features.get_feature_names_out().tolist()
    assert set(model[-1].active_features_) <= set(features.get_feature_names_out())
    give("predict", tmp_path / "m", tmp_path / "new.parquet", "--keep", "id", "--out", tmp_path / "pred")
    found = pq.read_table(tmp_path / "pred").sort_by("id")
    assert found["prediction"].to_pylist() == model.predict(TABLE).tolist()
    explained = ["explain", tmp_path / "m", "--data", tmp_path / "new.parquet", "--row"]
    said, found = prints(*explained, "30"), dboost.explain(model, TABLE.slice(30, 1))
    assert found.columns == ["tags"] and re.search("tags=sea +1 +sea +[-+]", said)
    row = dict.fromkeys(TABLE.column_names, [("sea", 1 / 3), ("sky", 2.0)])
    shown = {one["column"]: one["holds"] for one in values_of(found, model[-1].model_, 99, row)["features"]}
    assert shown == {"tags": "sea: 0.3333, sky: 2"}
    assert "row 60, but the data has 60 rows" in refused(*explained, "60")
    for column, code, said in (
        ("title=text,colour=number", 3, "row 0 holds 'red', which is no number; .*column 'colour'"),
        ("title=text,day=tags", 3, "expected a list of tags"),
        ("title", 2, "--column title; give each column once with its kind"),
        ("title=words", 2, "kind='words'; column 'title'; use one of"),
        ("topic=category", 2, "label column 'topic' is a column of features too"),
        ("size=number", 3, "column 'size'"),
    ):
        prepare = ["prepare", tmp_path / "a.parquet", "--column", column, *given, "--out", tmp_path / "x"]
        assert re.search(said, error := refused(*prepare, *LOCAL, code=code)), error
    assert not (tmp_path / "x").exists()


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask's own calls of pandas
@pytest.mark.parametrize("parts", [1, 3])
def test_a_dask_frame_files_and_memory_give_a_model_of_the_same_bits(tmp_path, monkeypatch, parts):
    dd = pytest.importorskip("dask.dataframe")
    monkeypatch.setattr("dboost.data.prepared.prepare.GROUP_ROWS", N // parts)
    for module in ("parquet.plan", "collections", "memory.in_memory"):
        monkeypatch.setattr(f"dboost.data.{module}.rows_per_block", lambda *_: N // parts)
    monkeypatch.setattr("dboost.data.parquet.plan.GROUP_ROWS", N // parts)
    (tmp_path / "rows").mkdir()
    for part in range(3):
        pq.write_table(TABLE.drop_columns("id").slice(20 * part, 20), tmp_path / "rows" / f"{part}.parquet")
    texts = ["--column", "find", "--min-df", "1", "--max-df", "1.0", "--no-sublinear-tf"]
    give("prepare", tmp_path / "rows", *texts, "--label", "topic", "--out", tmp_path / "p")
    give("train", tmp_path / "p", "--penalty", "l1", "--alpha", "0.001", "--out", tmp_path / "m")
    frame = dd.read_parquet(tmp_path / "rows").repartition(npartitions=parts)
    assert frame.npartitions == parts and len(list((tmp_path / "p" / "train").iterdir())) == parts
    learner = dboost.BoostedClassifier(penalty="l1", alpha=0.001)
    lazy = make_pipeline(dboost.Features(), clone(learner)).fit(frame, "topic")
    rows = pq.read_table(tmp_path / "rows").to_pandas()
    held = make_pipeline(dboost.Features(), clone(learner)).fit(rows.drop(columns="topic"), rows["topic"])
    command = dboost.load_pipeline(tmp_path / "m")
    features = learner.fit(dboost.ParquetData(tmp_path / "p", label="topic"))
    for found in (command[-1], features, held[-1]):
        assert found.coef_.tobytes() == lazy[-1].coef_.tobytes() and found.coef_.any()
        assert found.intercept_.tobytes() == lazy[-1].intercept_.tobytes()


def test_csv_of_other_habits_and_without_rows(tmp_path, capsys, refused):
    source, out = tmp_path / "a.csv", tmp_path / "out"
    rows = "".join(f"{i % 5},{i % 7}0;1.{i % 9}00;{i % 3},5\n" for i in range(N))
    source.write_text(f"size;group;target\n{rows}")
    words = ["prepare", source, "--label", "target", "--column", "find", "--out", out, "--force"]
    give(*words, "--decimal", ",")
    said = capsys.readouterr()
    assert "size   number" in said.out and "targets from 0.5 to 2.5" in said.out
    assert "'group', taken for 'category': 60 of 60 texts look like numbers with separators of thousands" in said.err
    give(*words)
    assert "numbers with a decimal comma; to use them as numbers" in capsys.readouterr().err
    for content in ("size,target\n", "size,target", "", "\n"):
        source.write_text(content)
        for command in (words, ["train", source, "--label", "target", "--out", tmp_path / "model"]):
            said = refused(*command, *LOCAL, code=3)
            assert "there is no row below the names" in said or "the file is empty, or has no row" in said


def test_lists_of_tags_are_labels_of_files(tmp_path, prints, refused):
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=25)
    given = ["--text", "title", "--label", "tags", "--min-df", "1", "--out", tmp_path / "p"]
    said = prints("prepare", tmp_path / "a.parquet", *given)
    assert "60 documents" in said and "3 tags" in said
    said = refused("train", tmp_path / "p", "--alpha", "0.01", "--out", tmp_path / "m", *LOCAL, code=3)
    assert "lists of tags are learned with --loss multitask" in said
    learned = ["--loss", "multitask", "--penalty", "l1/l2", "--alpha", "0.01", "--out", tmp_path / "m"]
    give("train", tmp_path / "p", *learned)
    model = dboost.load_pipeline(tmp_path / "m")
    assert model[-1].classes_.tolist() == ["air", "sea", "sky"]
    said = prints("evaluate", tmp_path / "m", tmp_path / "p")
    judged = model[-1].judge(model[0].transform(TABLE["title"]), TABLE["tags"])
    assert f"{judged.micro_f1:.4f} micro, {judged.macro_f1:.4f} macro" in said and "recall" in said
    give("predict", tmp_path / "m", tmp_path / "a.parquet", "--top", "2", "--out", tmp_path / "pred")
    found = pq.read_table(tmp_path / "pred").to_pylist()
    assert [row["prediction"] for row in found] == model.predict(TABLE["title"]).tolist()
    assert all(len(row["prediction"]) == len(row["probability"]) and len(row["top_classes"]) == 2 for row in found)


def test_the_kinds_of_columns_are_found_in_files_as_in_memory(tmp_path, prints):
    table = TABLE.append_column("vector", pa.array([[i % 3 - 0.5, 1.25] for i in range(N)]))
    table = table.append_column("few", pa.array([None if i % 4 else "rare" for i in range(N)]))
    texts = pa.array([";".join(row) for row in TABLE["tags"].to_pylist()])
    flat = table.drop_columns(["vector"]).set_column(table.column_names.index("tags"), "tags", texts)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=25)
    frame = flat.to_pandas().assign(day=[str(day) for day in TABLE["day"].to_pylist()])
    frame.to_csv(tmp_path / "a.csv", index=False)
    rows = [{**row, "day": str(row["day"])} for row in table.to_pylist()]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = dboost.TextFeatures(sublinear_tf=True, max_df=0.5)
    for name, given, memory in (
        ("a.parquet", "find", table),
        ("a.jsonl", "find", table),
        ("a.csv", "find,tags=tags:;", flat),
    ):
        out = tmp_path / f"{name}-prepared"
        end = ["--label", "topic", "--min-df", "1", "--keep", "id", "--missing", "zero", "--out", out]
        said = prints("prepare", tmp_path / name, "--column", given, *end)
        assert re.search(r"title +text +\d\.?\d* words a value", said) and re.search(r"day +date", said)
        assert re.search(r"few +category", said) and not re.search(r"topic|\bid\b.*number", said)
        told = {"tags": {"kind": "tags", "separator": ";"}} if name == "a.csv" else {}
        features = dboost.Features(told | {"id": "drop"}, missing="zero", text=text).fit(memory, "topic")
        here = features.transform(memory)
        mine = pq.read_table(out / "train").sort_by("id").to_pylist()
        transform = transform_of_prepared(load_manifest(out))
        assert transform.kinds_ == {k: v for k, v in features.kinds_.items() if v != "drop"}
        order = [features.get_feature_names_out().tolist().index(one) for one in transform.get_feature_names_out()]
        ours = here[:, order].toarray()
        for i, row in enumerate(mine):
            assert ours[i][row["indices"]].tolist() == row["values"] and np.count_nonzero(ours[i]) == len(row["values"])


def test_tags_in_one_text_are_labels(tmp_path, prints, refused):
    tags = [";".join(row) for row in TABLE["tags"].to_pylist()]
    TABLE.to_pandas().assign(tags=tags).to_csv(tmp_path / "a.csv", index=False)
    given = ["--text", "title", "--label", "tags", "--min-df", "1", "--out", tmp_path / "p"]
    assert "3 tags" in prints("prepare", tmp_path / "a.csv", *given, "--label-separator", ";")
    assert pq.read_table(tmp_path / "p" / "train")["tags"].to_pylist() == TABLE["tags"].to_pylist()
    give("train", tmp_path / "p", "--loss", "multitask", "--alpha", "0.1", "--out", tmp_path / "m")
    (tmp_path / "a.jsonl").write_text("".join(f'{{"title": "sea sky", "tags": ["x", "y{i % 2}"]}}\n' for i in range(9)))
    given += ["--max-df", "1.0", "--force"]
    give("prepare", tmp_path / "a.jsonl", *given)
    assert pq.read_table(tmp_path / "p" / "train")["tags"].to_pylist()[:2] == [["x", "y0"], ["x", "y1"]]
    said = refused("prepare", tmp_path / "a.jsonl", *given, "--label-separator", ";", *LOCAL, code=3)
    assert "expected tags in one text" in said


def test_raw_documents_with_tags_are_judged_as_their_features_are(tmp_path, prints, refused):
    more = pa.table({"title": ["rain on the sea", "salt"], "tags": pa.array([["sea", "salt"], ["salt"]])})
    raw = pa.concat_tables([TABLE.select(["title", "tags"]), more.cast(TABLE.select(["title", "tags"]).schema)])
    texts = pa.table({"title": raw["title"], "tags": [";".join(row) for row in raw["tags"].to_pylist()]})
    pq.write_table(raw, tmp_path / "lists.parquet", row_group_size=25)
    texts.to_pandas().to_csv(tmp_path / "texts.csv", index=False)
    pq.write_table(TABLE, tmp_path / "a.parquet")
    # two of its tags are in every row, and the third in none
    pq.write_table(TABLE.filter([i % 3 == 1 for i in range(N)]), tmp_path / "some.parquet")
    given = ["--text", "title", "--label", "tags", "--min-df", "1", "--out", tmp_path / "p"]
    give("prepare", tmp_path / "a.parquet", "--test", tmp_path / "some.parquet", *given)
    learned = ["--loss", "multitask", "--penalty", "l1/l2", "--alpha", "0.01", "--out", tmp_path / "m"]
    give("train", tmp_path / "p", *learned)
    give("evaluate", tmp_path / "m", tmp_path / "p")
    model = dboost.load_pipeline(tmp_path / "m")
    expected = model[-1].judge(model[0].transform(raw["title"]), raw["tags"])
    for name, how in (("lists.parquet", []), ("texts.csv", ["--label-separator", ";"])):
        said = prints("evaluate", tmp_path / "m", tmp_path / name, *how, "--out", tmp_path / f"{name}-e")
        assert "tags that the model does not know count for no figure: 'salt' (2)" in said
        found = figures(tmp_path / f"{name}-e")
        assert [found["micro_f1"], found["macro_f1"]] == [expected.micro_f1, expected.macro_f1]
        assert found["precision_at"] == expected.precision_at.tolist() and found["unknown_classes"] == {"salt": 2}
        np.testing.assert_array_equal(found["task_f1"], expected.task_f1)
        give("report", tmp_path / "m", "--data", tmp_path / name, *how, "--out", tmp_path / "r.html", "--force")
        assert f"{found['micro_f1']:.4f}"[:5] in (tmp_path / "r.html").read_text()
    said = refused("evaluate", tmp_path / "m", tmp_path / "texts.csv", *LOCAL, code=3)
    assert "expected a list of tags in each row; label_separator= says" not in said
    assert "--label-separator says what stands between the tags of one text" in said


def test_several_label_columns_of_a_raw_table_are_judged(tmp_path, refused):
    table = pa.table({
        "price": [i % 11 * 0.5 for i in range(N)], "colour": [["red", "blue"][i % 2] for i in range(N)],
        "dear": [float(i % 11 > 5) for i in range(N)], "red": [float(i % 2 == 0) for i in range(N)],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=25)
    X, y = table.select(["price", "colour"]).to_pandas(), table.select(["dear", "red"]).to_pandas()
    for estimator, name in (
        (dboost.MultiTaskBoostedClassifier(alpha=0.01), "c"), (dboost.MultiTaskBoostedRegressor(alpha=0.1), "r"),
    ):  # fmt: skip
        pipeline = make_pipeline(dboost.Features(), estimator).fit(X, y)
        dboost.save_model(pipeline, tmp_path / name)
        words = ("evaluate", tmp_path / name, tmp_path / "a.parquet", "--out", tmp_path / f"{name}-e")
        # columns are matched by the names of the tasks, in whatever order they are named
        give(*words, "--label", "red,dear")
        found = figures(tmp_path / f"{name}-e")
        if name == "c":
            judged = pipeline[-1].judge(pipeline[0].transform(X), y)
            assert found["task_errors"] == judged.task_errors.tolist() and found["micro_f1"] == judged.micro_f1
        else:
            off = pipeline.predict(X) - y.to_numpy()
            assert found["rmse"] == pytest.approx(np.sqrt((off**2).sum() / off.size))
        said = refused(*words, "--force", "--label", "dear", *LOCAL)
        assert "label names 1 columns, and the model has 2; name 2: 'dear', 'red'" in said
