"""``Features`` and ``TableFeatures``: each kind of column beside scikit-learn and pandas, in every table; refusals."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer, OneHotEncoder

import dboost
from dboost import BoostedClassifier, DataError, Features, TableFeatures, TextFeatures, UsageError
from dboost.errors import DboostWarning
from dboost.files.documents import Document

N = 24
TEXTS = ["the sea and its waves", "a sky full of clouds", "rain falls on the sand"]
COLUMNS = {
    "title": [f"{TEXTS[i % 3]} {i % 4}{i % 4}" for i in range(N)],
    "size": [i % 7 - 2.5 for i in range(N)],
    "colour": [["red", "blue", "green"][i % 3] for i in range(N)],
    "new": [i % 2 == 0 for i in range(N)],
    "day": [datetime.datetime(2024, 1 + i % 12, 1 + i, i) for i in range(N)],
    "tags": [[["a", "b"], [], ["b", "b"]][i % 3] for i in range(N)],
    "vector": [[float(i), 1.0, 0.5] for i in range(N)],
    "topic": [["sea", "sky"][int(i % 3 == 0)] for i in range(N)],
}
TYPES = {"tags": pa.list_(pa.string()), "vector": pa.list_(pa.float64(), 3)}
WORDS = {"words": [[("wave", 2.0), ("salt", -1.0)], [], [("wave", 0.5)]] * 8}


def arrow(columns=COLUMNS):
    table = pa.table({name: pa.array(values, TYPES.get(name)) for name, values in columns.items()})
    return table.append_column("words", pa.array(WORDS["words"], pa.map_(pa.string(), pa.float64())))


def lazy(n=4):
    dask = pytest.importorskip("dask")
    with dask.config.set({"dataframe.convert-string": False}):
        return pytest.importorskip("dask.dataframe").from_pandas(pd.DataFrame(COLUMNS | WORDS), npartitions=n)


def in_memory():
    table = arrow()
    return [table, pd.DataFrame(COLUMNS | WORDS), pl.from_arrow(table.drop_columns("words")).with_columns(), [
        dict(zip(COLUMNS | WORDS, row, strict=True)) for row in zip(*(COLUMNS | WORDS).values(), strict=True)
    ]]  # fmt: skip


def test_every_kind_has_the_values_of_scikit_learn_and_pandas():
    frame = pd.DataFrame(COLUMNS)
    features = Features().fit(frame, "topic")
    rows = pd.DataFrame(features.transform(frame).toarray(), columns=features.get_feature_names_out())
    assert list(features.kinds_.values()) == ["text", "number", "category", "boolean", "date", "tags", "embedding"]
    assert "topic" not in features.kinds_
    terms = TfidfVectorizer().fit(frame["title"])
    ours = rows[[f"title:{term}" for term in terms.get_feature_names_out()]].to_numpy()
    assert np.allclose(ours, terms.transform(frame["title"]).toarray(), rtol=1e-15, atol=0)
    assert rows["size"].tolist() == COLUMNS["size"]
    dummies = pd.get_dummies(frame["colour"], prefix="colour", prefix_sep="=").astype(float)
    assert rows[dummies.columns].equals(dummies)
    assert rows["new=true"].tolist() == [float(one) for one in COLUMNS["new"]]
    day = frame["day"].dt
    assert rows["day.year"].eq(0).all()  # all are in the first year of the fit
    assert features.kinds_.why["day"].endswith("; day.year is 0 in 2024; day.age is 0 on 2024-12-24")
    for part, values in (("month", day.month), ("hour", day.hour), ("weekday", day.day_name().str.lower())):
        found = pd.get_dummies(values, prefix=f"day.{part}", prefix_sep="=").astype(float)
        assert rows[found.columns].equals(found)
    ages = (frame["day"].max() - frame["day"]).dt.total_seconds() / (365.25 * 86400)
    assert np.allclose(rows["day.age"], ages, rtol=1e-14, atol=0)
    scaled = Features({"day": {"kind": "date", "parts": ["year", "age"], "scale": "max"}}, others="drop")
    found = scaled.fit_transform(frame).toarray()
    assert np.array_equal(found, np.column_stack([np.zeros(N), rows["day.age"] / rows["day.age"].max()]))
    binary = MultiLabelBinarizer().fit(COLUMNS["tags"])
    tags = rows[[f"tags={one}" for one in binary.classes_]]
    assert tags.to_numpy().tolist() == binary.transform(COLUMNS["tags"]).tolist()
    assert rows[["vector[0]", "vector[1]", "vector[2]"]].to_numpy().tolist() == COLUMNS["vector"]
    words = Features({"words": "weights"}, others="drop").fit_transform(arrow())
    assert words.toarray().tolist() == [[-1.0, 2.0], [0.0, 0.0], [0.0, 0.5]] * 8


def test_every_kind_of_table_gives_the_same_bits_and_the_same_model(tmp_path):
    tables = in_memory()
    first = make_pipeline(Features({"size": {"kind": "number", "scale": "max"}}), BoostedClassifier(alpha=0.01))
    first.fit(tables[0].drop_columns("words"), "topic")
    names = first[0].get_feature_names_out().tolist()
    rows = first[0].transform(tables[0])
    assert "colour=red" in first[-1].active_features_
    dboost.save_model(first, tmp_path / "m")
    back = dboost.load_pipeline(tmp_path / "m")
    assert repr(back[0]) == repr(first[0]) and dict(back[0].kinds_) == dict(first[0].kinds_)
    chances = first.predict_proba(tables[0])
    for table in tables[1:]:
        features = Features({"size": {"kind": "number", "scale": "max"}, **({"words": "drop"} if "words" in table or
                             isinstance(table, list) else {})})  # fmt: skip
        found = features.fit_transform(table, "topic")
        assert features.get_feature_names_out().tolist() == names
        assert np.array_equal(found.toarray(), rows.toarray())
        assert np.array_equal(back.predict_proba(table), chances)
    for parts in (1, 5):
        frame = lazy(parts)
        features = Features({"size": {"kind": "number", "scale": "max"}, "words": "drop"})
        found = features.fit_transform(frame, "topic").compute()
        assert features.get_feature_names_out().tolist() == names
        assert np.array_equal(found.toarray(), rows.toarray())
        given = back.predict(frame)
        assert given.divisions == frame.divisions and given.dtype == given.compute().dtype
        assert given.compute().tolist() == first.predict(tables[0]).tolist()
        assert np.array_equal(back.predict_proba(frame).compute().to_numpy(), chances)


def test_a_pipeline_learns_a_dask_frame_by_the_name_of_its_label():
    frame = lazy()
    pipeline = make_pipeline(Features(), BoostedClassifier(alpha=0.01)).fit(frame, "topic")
    assert set(pipeline[-1].active_features_) <= set(pipeline[0].get_feature_names_out())
    assert pipeline.score(frame, "topic") == 1.0
    found = dboost.explain(pipeline, frame.partitions[1].loc[7:7])
    assert "vector[0]" in found.words and found.columns[found.words.index("vector[0]")] == "vector"
    by_series = make_pipeline(Features({"topic": "drop"}), BoostedClassifier(alpha=0.01)).fit(frame, frame["topic"])
    assert np.array_equal(by_series[-1].coef_, pipeline[-1].coef_)
    with pytest.raises(UsageError, match="y is in memory.*fit\\(X, 'topic'\\)"):
        pipeline.fit(frame, np.array(COLUMNS["topic"]))
    with pytest.raises(UsageError, match="y has 2 partitions.*divisions|y is cut at other rows.*divisions"):
        pipeline.fit(frame, frame["topic"].repartition(npartitions=2))
    words = make_pipeline(TextFeatures(column="title"), BoostedClassifier(alpha=0.01)).fit(frame, "topic")
    texts = pd.DataFrame(COLUMNS)
    same = make_pipeline(TextFeatures(column="title"), BoostedClassifier(alpha=0.01)).fit(texts, "topic")
    assert words[0].vocabulary_ == same[0].vocabulary_ and np.array_equal(words[0].idf_, same[0].idf_)
    assert words.predict(frame).compute().tolist() == same.predict(texts).tolist()
    series = TextFeatures(hashing=32).fit(frame["title"])
    assert (
        series.document_frequency_.tolist() == TextFeatures(hashing=32).fit(texts["title"]).document_frequency_.tolist()
    )


# Dask's reading of Parquet uses what pandas is about to remove.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_files_that_dask_reads_together_where_few_columns_are_used_stay_apart(tmp_path):
    frames = pytest.importorskip("dask.dataframe")
    rows = arrow().select(["title", "size", "colour", "new", "topic"])
    for number in range(4):
        pq.write_table(rows.slice(6 * number, 6), tmp_path / f"{number}.parquet")
    frame = frames.read_parquet(tmp_path)
    assert frame["topic"].optimize().npartitions < frame.npartitions == 4
    whole = make_pipeline(Features(), BoostedClassifier(alpha=0.01)).fit(rows, "topic")
    model = make_pipeline(Features(), BoostedClassifier(alpha=0.01)).fit(frame, "topic")
    assert np.array_equal(model[-1].coef_, whole[-1].coef_)
    assert model.predict(frame).compute().tolist() == whole.predict(rows).tolist()
    numbers, label = frame[["size", "new"]].astype(float), frame["topic"]
    of_files = BoostedClassifier(alpha=0.01).fit(numbers, label)
    in_memory_ones = BoostedClassifier(alpha=0.01).fit(numbers.compute(), label.compute())
    np.testing.assert_allclose(of_files.coef_, in_memory_ones.coef_, rtol=1e-9)


def test_what_is_rare_unseen_or_missing():
    table = pa.table({"c": ["x", "x", "y", "z"], "t": [["x"], ["x", "y"], ["x"], []]})
    features = Features(min_count=2).fit(table)
    assert features.get_feature_names_out().tolist() == ["c=x", "c is rare", "t=x", "t is rare"]
    assert features.transform(table).toarray().tolist() == [[1, 0, 1, 0], [1, 0, 1, 1], [0, 1, 1, 0], [0, 1, 0, 0]]
    assert features.column_groups_.tolist() == [0, 0, 1, 1]
    assert features.feature_columns_.tolist() == ["c", "c", "t", "t"]
    features.transform(pa.table({"c": ["new", "x"], "t": [["new", "other"], ["x"]]}))
    assert features.unseen_ == {"c": 1, "t": 2}
    gone = pa.table({
        "n": [1.0, None], "c": ["x", None], "t": pa.array([["x"], None]), "d": [datetime.date(2024, 1, 1), None],
        "v": pa.array([[1.0, 2.0], None]), "w": pa.array([[("k", 3.0)], None], pa.map_(pa.string(), pa.float64())),
        "text": ["one word and another", None],
    })  # fmt: skip
    told = {"d": {"kind": "date", "parts": ["year"]}}
    found = Features(told, missing="indicator").fit_transform(gone).toarray()
    assert found[:, :12].tolist() == [[1, 0, 1, 0, 1, 0, 0, 0, 1, 2, 0, 3], [0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0]]
    assert not found[1, 13:].any() and found[:, 12].tolist() == [0, 1]
    assert Features(told, missing="zero").fit(gone).transform(gone).toarray()[1].tolist() == [0.0] * 11
    for name in gone.column_names:
        with pytest.raises(DataError, match=f"1 of 2 .* missing.*the first in row 1; column '{name}'"):
            Features({name: "tags" if name == "t" else Features().look(gone)[name]}, others="drop").fit(gone)


def test_the_kinds_are_shown_before_they_are_used():
    table = arrow().append_column("id", pa.array([f"doc-{i}" for i in range(N)]))
    kinds = Features().look(table, "topic")
    assert dict(kinds)["id"] == "category" and kinds["words"] == "weights"
    assert "title   text       6 words a value, 12 different values" in repr(kinds)
    many = pa.table({"id": [f"doc-{i}" for i in range(3000)], "size": np.arange(3000.0)})
    with pytest.warns(DboostWarning, match=r"no features: id \(1 words a value, 3,000 different values: an identifier"):
        features = Features().fit(many)
    assert features.get_feature_names_out().tolist() == ["size"]
    dates = pa.table({"d": ["2024-02-01", "2024-03-01"], "p": ["Ada Lovelace", "Carl Gauss"]})
    assert dict(Features().look(dates)) == {"d": "date", "p": "category"}
    assert Features({"d": {"kind": "date", "parts": ["month"]}, "p": "drop"}).fit_transform(dates).indices.tolist() == [
        1,
        2,
    ]


def test_tags_in_one_text_and_numbers_in_texts():
    table = pa.table({"t": ["cs.LG stat.ML", "cs.LG", ""], "n": ["1.5", " 2", "0"]})
    features = Features({"t": {"kind": "tags", "separator": " "}, "n": "number"})
    assert features.fit_transform(table).toarray().tolist() == [[1, 1, 1.5], [1, 0, 2], [0, 0, 0]]
    assert features.get_feature_names_out().tolist() == ["t=cs.LG", "t=stat.ML", "n"]


def test_texts_that_a_person_reads_as_numbers_dates_or_tags_are_these_or_said_in_one_line():
    for texts, kind, said in [
        (["12.50", "3.10", " 4. ", "\u00a05"], "number", ""),
        (["1e-3", "NA", "-"], "number", ""),
        (["7", "n/a", "8"], "number", ""),
        (["2021-03-31", "null", "2020-01-01"], "date", ""),
        ([f"{i},{i:02}" for i in range(20)], "category", "numbers with a decimal comma"),
        (["1,200", "3,400,500"], "category", "separators of thousands"),
        (["1 200", "3 400,5"], "category", "separators of thousands"),
        (["$1.20", "12 €", "(3)"], "category", "with a unit or a sign"),
        (["12%", "30 kg", "-$5.00", "USD 1,200", "3.4M"], "category", "with a unit or a sign"),
        (["3,142", "2,5", "0,333", "7"], "category", "numbers with a decimal comma"),
        (["3/31/2021", "31.3.2021", "3/31/21", "31-Mar-2021", "2021/03/31"], "category", "look like dates"),
        (["31 March 2021", "Wed, Mar 3, 2021"], "text", "look like dates"),
        (["2021-03-31"] * 19 + ["unknown text"], "category", "19 of 20 texts look like dates"),
        (["12:30", "7:05:01"], "category", "times of the day"),
        (["\u0663\u0664", "\uff11"], "category", "in other digits"),
        (["\u22125", "\u22127.5"], "category", "with another sign"),
        ([f"{i}" for i in range(20)], "category", "20 of 20 texts look like whole numbers"),
        (["sea;sky", "sea"], "category", "1 of 2 texts look like tags"),
        (["red", "red "], "category", "1 of 2 texts begin or end with a blank"),
        ([20210331, 20210401], "number", "look like dates"),
        (list(range(1, 31)), "number", "count the rows"),
        (["yes", "no"], "category", ""),
        (["1", "2", "3"], "category", ""),
        (["NA", "DE"], "category", ""),
        (["0-9", "10-19", "1.2.3", "A12", "5G", "10.1.12.7"], "category", ""),
        ([3, 1, 2], "number", ""),
        (list(range(29)) + [40], "number", ""),
    ]:
        found = Features().look([{"a": text} for text in texts])
        assert found["a"] == kind, texts
        assert said in found.remarks.get("a", "") and bool(said) == bool(found.remarks), (texts, found.remarks)
    with pytest.warns(DboostWarning, match="column 'a', taken for 'category': 2 of 2 texts look like numbers with a"):
        Features().fit([{"a": "1,5", "b": 1.0}, {"a": "2,25", "b": 0.5}])
    marked = [{"a": "2.5"}, {"a": "NA"}, {"a": " .5 "}]
    with pytest.raises(DataError, match=r"1 of 3 values are missing \(null, or a mark such as NA\), .* row 1"):
        Features().fit(marked)
    features = Features(missing="indicator").fit(marked)
    assert features.transform(marked).toarray().tolist() == [[2.5, 0.0], [0.0, 1.0], [0.5, 0.0]]
    assert TableFeatures(missing="zero").fit_transform(marked).toarray().tolist() == [[2.5], [0.0], [0.5]]


def test_a_column_that_is_not_of_its_kind_is_refused_in_one_line():
    table = pa.table({
        "n": ["1.5", "2", "about 3"], "d": ["2024-01-31", "2024-02-30", "x"], "t": [["a"], ["b", None], []],
        "v": [[1.0, 2.0], [1.0], []], "w": ["a", "b", "c"], "x": [[[1]], [], []],
        "m": pa.array([[("k", float("nan"))], [], []], pa.map_(pa.string(), pa.float64())),
    })  # fmt: skip
    for told, said in (
        ({"n": "number"}, "row 2 holds 'about 3', which is no number; column 'n'; mend it"),
        ({"d": "date"}, "row 1 holds '2024-02-30', which is no date; column 'd'"),
        ({"t": "tags"}, r"the tags of row 1 hold a missing one \(null\); column 't'; take it out"),
        ({"v": "embedding"}, "row 1 holds an embedding of length 1, expected 2; column 'v'"),
        ({"w": "weights"}, "the values are string; expected a map or a list of pairs.*column 'w'"),
        ({"w": "boolean"}, "the values are string; expected true and false; column 'w'"),
        ({"m": "weights"}, "a weight of row 0 is missing or infinite; column 'm'"),
        ({"v": "text"}, "the values are list<.*expected text; column 'v'"),
        ({"w": "colour"}, "kind='colour'; column 'w'; use one of text, number, .*, drop"),
        ({"w": {"kind": "category", "min": 3}}, "kind 'category' has no option 'min'; column 'w'; use missing"),
        ({"n": {"kind": "number", "min_count": 3}}, "kind 'number' has no option 'min_count'; column 'n'; use miss"),
        ({"w": {"kind": "category", "parts": ["year"]}}, "kind 'category' has no option 'parts'"),
        ({"w": {"kind": "drop", "scale": "max"}}, "kind 'drop' has no option 'scale'; column 'w'; give the kind alone"),
        ({"d": {"kind": "date", "parts": ["year", "year"]}}, "parts=.* names one twice; column 'd'"),
        ({"ww": "category"}, "names a column that is not there; column 'ww'; did you mean 'w'"),
    ):
        with pytest.raises(ValueError, match=said) as error:
            Features(told, others="drop").fit(table)
        assert "\n" not in str(error.value)
    for name, said in (("v", "lists of 0 to 2 numbers, so no embedding"), ("x", "list<.*no kind of feature")):
        with pytest.raises(DataError, match=f"{said}.*column '{name}'.*drop"):
            Features().look(table.select([name]))
    with pytest.raises(DataError, match="two features would be named 'a=b'"):
        Features({"a": "category"}).fit(pa.table({"a": ["b"], "a=b": [1.0]}))
    with pytest.raises(DataError, match="3 different values in 3 rows, of at most 2; column 'w'; it may be an identif"):
        Features({"w": "category"}, others="drop", max_values=2).fit(table)
    with pytest.raises(DataError, match="texts of lists or dicts.*column 'v'.*convert-string"):
        Features().fit(pa.table({"v": ["[1.0, 2.0]", "[]"]}))
    fitted = Features({"w": "category"}, others="drop").fit(table)
    with pytest.raises(DataError, match="1 of the 1 columns of the transform are not there; column 'w'"):
        fitted.transform(table.drop_columns("w"))
    vectors = Features().fit(pa.table({"v": [[1.0, 2.0]]}))
    with pytest.raises(DataError, match="row 0 holds an embedding of length 3, expected 2"):
        vectors.transform(pa.table({"v": [[1.0, 2.0, 3.0]]}))


def test_columns_that_make_no_feature_are_said_in_one_line():
    rows = {
        "size": [0.5, 1.5],
        "tags": pa.array([[], []], pa.list_(pa.string())),
        "vector": pa.array([[], []], pa.list_(pa.float64())),
        "words": pa.array([{}, {}], pa.struct([])),
        "later": pa.array([{"wave": None}, {"wave": None}]),
        "told": pa.array([None, None], pa.string()),
    }
    told = {"told": {"kind": "category", "missing": "zero"}}
    said = (
        "no features: tags (no row has a value), vector (its lists are empty), words (no row has a value), "
        "later (no row has a value), told (no row has a value)"
    )
    with pytest.warns(DboostWarning, match=re.escape(said)):
        features = Features(told).fit(pa.table(rows))
    assert features.get_feature_names_out().tolist() == ["size"]
    assert list(features.kinds_.values())[1:5] == ["tags", "embedding", "weights", "weights"]
    with pytest.raises(DataError, match=r"no column makes a feature; column 'tags'"):
        Features().fit([{"tags": []}, {"tags": []}])


def test_a_field_of_weights_that_is_missing_in_all_rows_is_none():
    features = Features().fit([{"words": {"wave": None, "salt": 1.0}}, {"words": {"wave": None, "salt": None}}])
    assert features.get_feature_names_out().tolist() == ["words:salt"]
    assert features.transform([{"words": {"wave": 1.0, "salt": 2.0}}]).toarray().tolist() == [[2.0]]


@pytest.mark.parametrize("value", ["a\ud800", ["a\ud800"], {"a\ud800": 1.0}], ids=["text", "tags", "weights"])
def test_half_of_a_surrogate_pair_is_refused_by_its_column(value):
    with pytest.raises(DataError, match=r"half of a surrogate pair, which no text does; column 'x'; clean it"):
        Features().fit([{"x": value}, {"x": value}])
    with pytest.raises(DataError, match="half of a surrogate pair"):
        dboost.MultiTaskBoostedClassifier().fit(np.eye(2), [["a\ud800"], []])


def test_columns_that_are_no_features_may_hold_anything():
    rows = pd.DataFrame({"size": [0.5, 1.5], "other": [object(), {1}]})
    features = Features({"other": "drop"}).fit(rows)
    assert features.transform(rows).toarray().tolist() == [[0.5], [1.5]]
    assert features.transform(rows.to_dict("records")).toarray().tolist() == [[0.5], [1.5]]
    assert Features(others="drop", columns={"size": "number"}).fit(rows.to_dict("records")).n_features_in_ == 1


def test_tables_of_pandas_with_a_name_twice_or_of_few_values_that_are_not_zero():
    for table in (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), pa.table([[1.0], [2.0]], names=["a", "a"])):
        with pytest.raises(ValueError, match="the names of the columns are not distinct texts; rename"):
            Features().fit(table)
    few = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.5, 0.0])})
    assert Features().fit_transform(few).toarray().tolist() == [[0.0], [1.5], [0.0]]
    with pytest.raises(DataError, match="several types.*column 'a'; make all of them texts"):
        Features().fit(pd.DataFrame({"a": [1, "one"]}))
    with pytest.raises(UsageError, match="X is a dict; expected rows of a table; give a list of dicts"):
        Features().fit({"a": 1.0})


def test_what_is_wrong_in_a_part_is_said_with_its_number():
    frame = pytest.importorskip("dask.dataframe").from_pandas(
        pd.DataFrame({"n": ["1", "2", "3", "four"]}), npartitions=2
    )
    with pytest.raises(DataError, match=r"row 1 holds 'four', which is no number \(partition 1\); column 'n'"):
        TableFeatures({"n": "number"}).fit(frame)


def test_a_column_transformer_is_saved_with_the_names_of_its_features(tmp_path):
    frame = pd.DataFrame(COLUMNS)
    parts = (TextFeatures(), "title"), (TableFeatures(), ["colour", "size"]), (Features(), ["tags"])
    ours = make_pipeline(make_column_transformer(*parts), BoostedClassifier(alpha=0.01)).fit(frame, frame["topic"])
    dboost.save_model(ours, tmp_path / "m")
    back = dboost.load_pipeline(tmp_path / "m")
    assert back[0].get_feature_names_out().tolist() == ours[0].get_feature_names_out().tolist()
    assert np.array_equal(back.predict_proba(frame), ours.predict_proba(frame))
    assert set(dboost.explain(back, frame[:1]).words) <= set(back[-1].active_features_)
    assert {name.split("__")[0] for name in back[-1].active_features_} <= {"textfeatures", "tablefeatures", "features"}
    assert back.predict(lazy()).compute().tolist() == ours.predict(frame).tolist()
    encoded = make_pipeline(make_column_transformer((OneHotEncoder(), ["colour"])), BoostedClassifier(alpha=0.01))
    with pytest.raises(UsageError, match="with a OneHotEncoder cannot be saved; it takes Features"):
        dboost.save_model(encoded.fit(frame, frame["topic"]), tmp_path / "n")


def test_a_graph_of_a_table_predicts_the_same():
    onnxruntime = pytest.importorskip("onnxruntime")
    frame = pd.DataFrame(COLUMNS)[["title", "size", "colour", "new"]]
    features = Features({"size": {"kind": "number", "scale": "max"}, "colour": {"kind": "category", "min_count": 9}})
    ours = make_pipeline(features, BoostedClassifier(alpha=0.001)).fit(frame, COLUMNS["topic"])
    session = onnxruntime.InferenceSession(dboost.onnx.to_onnx(ours).SerializeToString())
    rows = {name: frame[[name]].to_numpy() for name in frame}
    label, chances = session.run(None, rows)
    assert np.allclose(chances, ours.predict_proba(frame), atol=1e-6) and label.tolist() == ours.predict(frame).tolist()
    dates = make_pipeline(Features(), BoostedClassifier(alpha=0.01)).fit(
        pd.DataFrame(COLUMNS)[["day"]], COLUMNS["topic"]
    )
    with pytest.raises(UsageError, match="a column of date has no operators in ONNX; column 'day'"):
        dboost.onnx.to_onnx(dates)


@pytest.mark.full
def test_workers_and_an_asynchronous_client_have_the_same_features():
    import asyncio

    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
        here = Features().fit(pd.DataFrame(COLUMNS | WORDS), "topic")
        with distributed.Client(cluster):
            frame = lazy()
            pipeline = make_pipeline(Features(), BoostedClassifier(alpha=0.01)).fit(frame, "topic")
            assert pipeline[0].get_feature_names_out().tolist() == here.get_feature_names_out().tolist()
            predicted = pipeline.predict(frame).compute().tolist()
            assert predicted == pipeline.predict(pd.DataFrame(COLUMNS | WORDS)).tolist()
            with pytest.raises(DataError, match=r"row . holds 'red', which is no number .partition "):
                Features({"colour": "number"}).fit(frame)

        async def wait() -> None:
            async with distributed.Client(cluster.scheduler_address, asynchronous=True):
                other = make_pipeline(Features(), BoostedClassifier(alpha=0.01))
                with pytest.raises(UsageError, match="asynchronous.*asyncio.to_thread"):
                    other.fit(frame, "topic")
                await asyncio.to_thread(other.fit, frame, "topic")
                assert np.array_equal(other[-1].coef_, pipeline[-1].coef_)

        asyncio.run(wait())


def test_years_are_counted_from_the_first_one_of_the_fit():
    days = [datetime.date(2019 + i % 5, 7, 1) for i in range(60)]
    frame = pd.DataFrame({"day": days, "topic": [["old", "new"][int(day.year > 2021)] for day in days]})
    told = {"day": {"kind": "date", "parts": ["year"]}}
    model = make_pipeline(Features(told), BoostedClassifier(alpha=1e-3, penalty="l1")).fit(frame, "topic")
    found = dboost.explain(model, frame[3:4])
    assert found.words == ["day.year"] and found.values.tolist() == [3.0]
    # a row of the first year has the score of the intercept, which is of the size of the scores
    assert dboost.explain(model, frame[:1]).scores[0] == found.intercept[0] and abs(found.intercept[0]) < 50
    assert found.notes == ("day.year is 0 in 2019",)
    assert repr(found).endswith("\nday.year is 0 in 2019") and "day.year is 0 in 2019" in found._repr_html_()
    # what was learned before years were counted so has them as they are
    document = model[0].to_document()
    del document["table"]["columns"][0]["earliest"]
    document["table"]["schema"] = 2
    earlier = Features.from_files(Document(document, "transform.json"), {})
    assert earlier.transform(frame[:5]).toarray().ravel().tolist() == [2019.0, 2020.0, 2021.0, 2022.0, 2023.0]
    document["table"]["schema"] = 4
    with pytest.raises(dboost.ModelFormatError, match="of another version than 3"):
        Features.from_files(Document(document, "transform.json"), {})


@pytest.mark.parametrize("limits", [{"min_df": 3}, {"max_df": 0.3}, {"max_features": 5}, {"hashing": 16}])
def test_terms_that_are_added_in_shards_are_those_of_memory(monkeypatch, limits):
    monkeypatch.setattr("dboost.estimators.counted_parts.AT_ONCE", 0)
    monkeypatch.setattr("dboost.estimators.counted_parts.TASK_BYTES", 200)
    frame = lazy(5).drop(columns="words")
    features = Features(text=TextFeatures(**limits))
    table = arrow().drop_columns("words")
    found, expected = (features.fit(each, "topic").transform(table) for each in (frame, table))
    assert found.data.tobytes() == expected.data.tobytes() and found.shape == expected.shape
    here, there = TextFeatures(**limits).fit(arrow()["title"]), TextFeatures(**limits).fit(frame["title"])
    assert here.get_feature_names_out().tolist() == there.get_feature_names_out().tolist()
    assert here.idf_.tobytes() == there.idf_.tobytes()
    for titles in (arrow()["title"], frame["title"]):
        with pytest.raises(DataError, match="none of the 17 terms is in 20 to 24 of the 24 documents"):
            TextFeatures(min_df=20).fit(titles)


# ---- TableFeatures: the same columns, where a text is a category -----------------------------------------------------

FEW = {"size": [1.5, 0.0, -2.0], "colour": ["red", "blue", "red"], "new": [True, False, True]}
FEW_NAMES = ["size", "colour=blue", "colour=red", "new=false", "new=true"]
FEW_ROWS = [[1.5, 0, 1, 0, 1], [0, 1, 0, 1, 0], [-2, 0, 1, 0, 1]]


def test_columns_are_found_by_name_in_any_order_among_others_and_by_place_in_arrays():
    features = TableFeatures(missing="zero")
    found = features.fit_transform(pa.table(FEW))
    assert found.format == "csr" and found.dtype == np.float64 and found.toarray().tolist() == FEW_ROWS
    assert features.get_feature_names_out().tolist() == FEW_NAMES
    assert features.feature_names_in_.tolist() == list(FEW) and clone(features).missing == "zero"
    other = {"id": [9, 8, 7], **dict(reversed(FEW.items()))}
    assert features.transform(pa.table(other)).toarray().tolist() == FEW_ROWS
    both = ColumnTransformer([("t", features, list(FEW))]).fit(pd.DataFrame(FEW))
    assert both.get_feature_names_out().tolist() == [f"t__{name}" for name in FEW_NAMES]
    with pytest.raises(DataError, match="string; expected numbers; column 'size'"):
        features.transform(pa.table({**FEW, "size": ["1", "2", "3"]}))
    by_place = TableFeatures().fit(np.array([[1.0, 2.0], [0.0, 3.0]]))
    assert by_place.get_feature_names_out().tolist() == ["x0", "x1"]
    assert not hasattr(by_place, "feature_names_in_")
    assert by_place.transform(np.array([[5.0, 0.0]])).toarray().tolist() == [[5.0, 0.0]]
    with pytest.raises(DataError, match="X has 3 features"):
        by_place.transform(np.ones((1, 3)))
    objects = TableFeatures().fit(np.array([[1.0, "a"], [0.0, "b"]], dtype=object))
    assert objects.get_feature_names_out().tolist() == ["x0", "x1=a", "x1=b"]


def test_categories_of_pandas_are_categories():
    frame = pd.DataFrame({"size": pd.Categorical([3, 1, 3])})
    features = TableFeatures()
    assert features.fit_transform(frame).toarray().tolist() == [[0, 1], [1, 0], [0, 1]]
    assert features.get_feature_names_out().tolist() == ["size=1", "size=3"]


def test_what_a_table_may_not_hold_is_refused_with_its_column():
    for table, said in (
        (pa.table({"u": [datetime.time(5, 0)]}), "time64.*no kind of feature.*column 'u'.*drop"),
        (pd.DataFrame({"u": pd.cut([1.0, 2.0, 3.0], 2)}), "interval.*no kind of feature.*as numbers or texts"),
        (pd.DataFrame({"u": [2**70, 1, 2]}), "beyond 64 bits.*column 'u'.*identifier"),
        (pl.DataFrame({"u": pl.Series([2**70, 1, 2], dtype=pl.Int128)}), "none that Arrow knows.*column 'u'"),
        (pa.table({"u": [np.inf]}), "infinity.*'u'"),
        (pd.DataFrame({"u": [2**53 + 1, 3]}), r"beyond 2\*\*53.*column 'u'|'u'.*beyond 2\*\*53"),
        (np.empty((0, 3)), r"no rows: Found array with 0 sample\(s\)"),
        (pd.DataFrame({"u": []}), r"no rows: Found array with 0 sample\(s\)"),
    ):
        with pytest.raises(DataError, match=said):
            TableFeatures().fit(table)
    with pytest.raises(UsageError, match="missing='drop'.*refuse, zero, indicator"):
        TableFeatures(missing="drop").fit(pa.table(FEW))


def test_day_and_hour_of_a_date_are_those_of_its_place_whatever_holds_it():
    zoned = pd.date_range("2024-01-01", periods=50, freq="7h", tz="Europe/Berlin")
    features = Features().fit(pd.DataFrame({"when": zoned}))
    assert features.kinds_.why["when"].endswith("when.year is 0 in 2024; when.age is 0 on 2024-01-15")
    rows = features.transform(pd.DataFrame({"when": zoned})).toarray()
    names = features.get_feature_names_out().tolist()
    assert rows[0, names.index("when.hour=0")] == rows[0, names.index("when.weekday=monday")] == 1.0
    for texts in (
        zoned.map(str),
        [t.isoformat() for t in zoned],
        zoned.strftime("%Y-%m-%d %H:%M:%SZ"),
        zoned.tz_localize(None),
    ):
        assert np.array_equal(features.transform(pd.DataFrame({"when": texts})).toarray(), rows)


def test_a_value_is_the_same_category_in_whatever_type_it_comes():
    codes = [4006381333931, 4006381333948]
    features = Features({"ean": "category"}, missing="zero").fit(pd.DataFrame({"ean": codes * 3}))
    for table in (pd.DataFrame({"ean": [codes[0], None]}), pl.DataFrame({"ean": [codes[0], None]})):
        assert features.transform(table).toarray().tolist() == [[1.0, 0.0], [0.0, 0.0]]
    halves = pa.table({"ean": pa.array(np.array([1.5, 2.0], np.float16))})
    features = Features({"ean": "category"}).fit(halves)
    assert features.get_feature_names_out().tolist() == ["ean=1.5", "ean=2"]
    days = pd.DataFrame({"day": pd.to_datetime(["2024-01-01", "2024-02-01"] * 3)})
    features = Features({"day": "category"}).fit(days)
    assert features.transform(pl.DataFrame(days)).sum() == 6.0
    flags = [True, False, True]
    for learned, kind in (([str(flag) for flag in flags], "category"), (flags, "category"), (flags, "boolean")):
        features = Features({"new": kind}).fit(pd.DataFrame({"new": learned}))
        expected = [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
        assert features.transform(pd.DataFrame({"new": flags})).toarray().tolist() == expected
        if kind == "boolean":
            texts = pd.DataFrame({"new": ["True", "false", " TRUE"]})
            assert features.transform(texts).toarray().tolist() == expected
            with pytest.raises(DataError, match="expected true and false"):
                features.transform(pd.DataFrame({"new": ["yes", "no"]}))


def test_weights_by_name_are_no_feature():
    table = pd.DataFrame({"price": np.arange(40.0), "wt": [1.0, 2.0] * 20, "y": ["a"] * 20 + ["b"] * 20})
    model = BoostedClassifier(alpha=0.02)
    with pytest.raises(
        UsageError, match="sample_weight='wt' is a column that the transform before has made features of"
    ):
        make_pipeline(Features(), model).fit(table, "y", boostedclassifier__sample_weight="wt")
    pipeline = make_pipeline(Features({"wt": "drop"}), model).fit(table, "y", boostedclassifier__sample_weight="wt")
    assert pipeline[-1].active_features_ == ["price"]


def test_whole_numbers_of_numpy_are_whole_numbers_and_rows_are_dicts(tmp_path):
    features = Features(min_count=np.int64(2), max_values=np.int32(9)).fit([{"a": "x"}, {"a": "x"}, {"a": "y"}])
    assert features.get_feature_names_out().tolist() == ["a=x", "a is rare"]
    model = make_pipeline(clone(features), BoostedClassifier(alpha=0.1))
    dboost.save_model(model.fit([{"a": "x"}, {"a": "y"}] * 5, ["u", "v"] * 5), tmp_path / "m")
    assert dboost.load_pipeline(tmp_path / "m").predict([{"a": "y"}]).tolist() == ["v"]
    for rows, bad in (([{"a": "x"}, None], 1), ([None, {"a": "x"}], 0)):
        with pytest.raises(DataError, match=f"row {bad} is a NoneType, expected a dict"):
            features.transform(rows)
