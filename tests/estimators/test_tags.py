"""Labels that are lists of tags: a task for each tag, in every container; thresholds; lists back; the measures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import accuracy_score, coverage_error, f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

import dboost
from dboost import DataError, Features, MultiTaskBoostedClassifier, UsageError
from dboost.metrics import partial, summarise
from dboost.model.tasks import best_f1, least_with_precision

N = 120
rng = np.random.default_rng(0)
SEA, SKY, NOISE = (rng.random(N) < share for share in (0.5, 0.3, 0.1))
X = np.column_stack([SEA, SKY, rng.random(N)]) + 0.0
TAGS = [["sea"] * int(a) + ["sky"] * int(b != c) for a, b, c in zip(SEA, SKY, NOISE, strict=True)]
Y = MultiLabelBinarizer().fit_transform(TAGS)
LISTS = pa.array(TAGS, pa.list_(pa.string()))


def model(**given):
    return MultiTaskBoostedClassifier(alpha=0.01, standardize=False, penalty="l1/l2", **given)


@pytest.fixture(scope="module")
def fitted():
    return model().fit(X, TAGS)


def test_lists_are_columns_of_labels_and_come_back_as_lists(fitted, tmp_path):
    columns = model().fit(X, Y)
    assert np.array_equal(fitted.coef_, columns.coef_) and fitted.classes_.tolist() == ["sea", "sky"]
    predicted = fitted.predict(X)
    assert np.array_equal(MultiLabelBinarizer().fit_transform(predicted), columns.predict(X))
    assert fitted.score(X, TAGS) == columns.score(X, Y)
    fitted.save(tmp_path / "m")
    assert dboost.load_model(tmp_path / "m").predict(X).tolist() == predicted.tolist()
    for y in (LISTS, pa.chunked_array([LISTS[:7], LISTS[7:]]), pd.Series(TAGS), pl.Series(TAGS),
              pd.Series(LISTS.to_pandas(), dtype=pd.ArrowDtype(LISTS.type)), [set(tags) for tags in TAGS]):  # fmt: skip
        assert np.array_equal(model().fit(X, y).coef_, columns.coef_)


def test_files_and_dask_frames_have_the_same_tags(fitted, tmp_path):
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "tags": LISTS})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=50, write_page_checksum=True)
    data = dboost.ParquetData(tmp_path / "t.parquet", label="tags")
    on_files = model().fit(data)
    assert np.allclose(on_files.coef_, fitted.coef_, atol=1e-3) and on_files.classes_.tolist() == ["sea", "sky"]
    assert on_files.score(data) == on_files.score(pd.DataFrame(X, columns=["a", "b", "c"]), TAGS)
    dask = pytest.importorskip("dask")
    with dask.config.set({"dataframe.convert-string": False}):
        frame = pytest.importorskip("dask.dataframe").from_pandas(table.to_pandas(), npartitions=3)
    pipeline = make_pipeline(Features(), model()).fit(frame, "tags")
    assert np.allclose(pipeline[-1].coef_, fitted.coef_, atol=1e-3)
    found = pipeline.predict(frame)
    assert found.dtype == pd.ArrowDtype(pa.list_(pa.string())) == found.compute().dtype
    assert [*map(list, found.compute())] == fitted.predict(X).tolist()


def test_the_measures_are_those_of_scikit_learn(fitted):
    found, F = fitted.judge(X, TAGS), fitted.decision_function(X)
    predicted = (F > 0).astype(int)
    assert found.micro_f1 == pytest.approx(f1_score(Y, predicted, average="micro"), rel=1e-12)
    assert found.macro_f1 == pytest.approx(f1_score(Y, predicted, average="macro"), rel=1e-12)
    assert found.task_f1 == pytest.approx(f1_score(Y, predicted, average=None), rel=1e-12)
    assert found.error == pytest.approx(1 - accuracy_score(Y.ravel(), predicted.ravel()), rel=1e-12)
    tagged = Y.any(axis=1)
    assert found.depth == pytest.approx(coverage_error(Y[tagged], F[tagged]) - 1, rel=1e-12)
    first = np.take_along_axis(Y, np.argsort(-F, axis=1), axis=1)[:, 0]
    assert found.precision_at[0] == pytest.approx(first.mean(), rel=1e-12)
    y = 2 * Y.astype(np.int8) - 1
    both = partial(F[:50], y[:50]).merge(partial(F[50:], y[50:]))
    assert summarise(both).micro_f1 == pytest.approx(found.micro_f1, rel=1e-12)
    assert summarise(both).depth == pytest.approx(found.depth, rel=1e-12)


def test_thresholds_are_chosen_on_held_out_rows_and_saved(fitted, tmp_path):
    P = fitted.predict_proba(X)
    chosen = model().fit(X, TAGS).choose_thresholds(X, TAGS)
    for r in range(2):
        every = [f1_score(Y[:, r], P[:, r] >= t) for t in np.unique(P[:, r])]
        assert f1_score(Y[:, r], P[:, r] >= chosen.thresholds_[r]) == pytest.approx(max(every), abs=0.02)
    assert chosen.judge(X, TAGS).macro_f1 >= fitted.judge(X, TAGS).macro_f1
    for scale in (1.0, 1e-3):  # weights have no unit
        assert best_f1(P, Y > 0, np.full(len(P), scale)) == chosen.thresholds_.tolist()
    one = chosen.choose_thresholds(X, TAGS, by="micro_f1")
    every = [f1_score(Y, P >= t, average="micro") for t in np.unique(P)]
    assert one.judge(X, TAGS).micro_f1 == pytest.approx(max(every), abs=0.002) and len({*one.thresholds_}) == 1
    precise = chosen.choose_thresholds(X, TAGS, by="precision", at_least=0.9).judge(X, TAGS)
    assert np.all(precise.task_precision >= 0.9)
    chosen.choose_thresholds(X, TAGS, by="half", top=1, fewest=1).save(tmp_path / "m")
    back = dboost.load_model(tmp_path / "m")
    assert {len(tags) for tags in back.predict(X)} == {1} and back.thresholds_.tolist() == [0.5, 0.5]
    assert best_f1(P, np.zeros(P.shape, bool), np.ones(len(P))) == [0.5, 0.5]
    assert least_with_precision(1.0)(np.array([0.9, 0.5]), np.array([False, True]), np.ones(2)) == 1.0
    for given in ({"by": "f2"}, {"by": "precision"}, {"top": 0}, {"at_least": 0.5}):
        with pytest.raises(UsageError):
            fitted.choose_thresholds(X, TAGS, **given)
    with pytest.raises(UsageError, match="not on lists of tags"):
        model().fit(X, Y).choose_thresholds(X, Y)


def test_thresholds_of_rare_tags_are_of_use_for_other_rows():
    rng = np.random.default_rng(0)
    F = rng.normal(-4.5, 1.0, (20_000, 40))
    P = 1 / (1 + np.exp(-F))  # every tag is in about 2 of 100 rows, with these probabilities
    true = rng.random(F.shape) < P
    found = {name: best_f1(P[:500], true[:500], np.ones(500), of_all=name == "micro") for name in ("each", "micro")}
    alone = [best_f1(P[:500, [r]], true[:500, [r]], np.ones(500), of_all=True)[0] for r in range(40)]
    best = f1_score(true, P >= best_f1(P, true, np.ones(20_000), of_all=True), average="micro")
    chosen = (found["each"], found["micro"], alone)
    each, one, raw = (f1_score(true[500:], P[500:] >= thresholds, average="micro") for thresholds in chosen)
    assert raw < each < one <= best and best - one < 0.02


def test_rare_tags_are_left_out_by_name():
    tags = [[*row, *(["once"] if i == 3 else [])] for i, row in enumerate(TAGS)]
    often = dboost.frequent_tags(tags, 2)
    assert often == ["sea", "sky"]
    assert model(classes=often).fit(X, tags).classes_.tolist() == often
    assert model().fit(X, tags).classes_.tolist() == ["once", "sea", "sky"]


def test_what_tags_may_not_be_is_said_in_one_line():
    for tags, said in (
        ([["a"], None, []], "tags of 1 rows are missing, the first of row 1; .*an empty list"),
        ([["a"], ["b", None], []], r"tags of row 1 hold a missing one \(null\)"),
        ([["a"], ["a", "b"], ["a"]], "1 of 2 tags are in every row: 'a'"),
        ([["a"]] * 2, "2 rows|inconsistent"),
        (pa.array([[], [], []]), "no row has a tag"),
        (pd.Series([[], [], []]), "no row has a tag"),
        ([["a", 1], [], ["a", "b"]], "y holds lists of several lengths"),
    ):
        with pytest.raises(DataError, match=said) as error:
            model().fit(X[:3], tags)
        assert "\n" not in str(error.value)
    with pytest.raises(UsageError, match="classes names tags that no row has"):
        model(classes=["sea", "land"]).fit(X, TAGS)
    ids = [f"id-{i}" for i in range(2500)]
    with pytest.raises(DataError, match="2,500 different labels in 2,500 rows: .* seems to be an identif"):
        dboost.BoostedClassifier(alpha="quick").fit(np.ones((2500, 1)), ids)
    with pytest.raises(DataError, match="2,500 different tags in 2,400 rows, of at most 20,000"):
        model().fit(np.ones((2400, 1)), [[ids[i], ids[-1 - i]] for i in range(2400)])


def test_rows_without_tags_may_come_first_or_alone(fitted):
    tags = [[]] * 1000 + TAGS
    assert model().fit(np.vstack([np.zeros((1000, 3)), X]), tags).classes_.tolist() == ["sea", "sky"]
    assert fitted.judge(X[:2], [[], []]).error <= 1.0
    with pytest.raises(UsageError, match="fewest=2 is above top=1"):
        fitted.choose_thresholds(X, TAGS, by="half", top=1, fewest=2)
    assert set(map(len, model().fit(X, TAGS).choose_thresholds(X, TAGS, by="half", top=np.int64(1)).predict(X))) <= {
        0,
        1,
    }
