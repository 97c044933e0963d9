"""The page of a model: whole in one file, true to the figures, safe whatever words and labels are; `dboost explain`."""

import io
import json
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.pipeline import make_pipeline

import dboost
import pipelines
from dboost.data.parquet.plan import blocks_of
from dboost.errors import UsageError
from pipelines.commands import evaluate
from pipelines.config import DataSettings
from pipelines.console import Console
from pipelines.inputs import read_model
from pipelines.report_page.held_out import look_at
from pipelines.report_page.page import html
from tests.pipelines.conftest import give, write_documents

EVIL = '<script>alert("x")</script>'


class Reader(HTMLParser):
    """The tags and the texts of a page."""

    def __init__(self):
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    return reader


def test_the_page_of_a_run_is_whole_and_true(tmp_path):
    write_documents(tmp_path / "d.parquet")
    tables = {
        "data": {"data": str(tmp_path / "d.parquet"), "label": "label"},
        "prepare": {"split": "split"},
        "model": {"alpha": 0.003, "penalty": "l1/l2"},
        "cluster": {"workers": 0},
    }
    result = pipelines.run(tables, out=tmp_path / "trees")
    found = read((result.folder / "report.html").read_text(encoding="utf-8"))
    text = " ".join(" ".join(found.text).split())
    assert not found.links and not {"script", "img", "link", "iframe"} & set(found.tags)
    assert found.tags.count("svg") == 4
    assert result.evaluation is not None
    assert f"{100 * result.evaluation['error']:.1f} %" in text
    for name in result.model.active_features_[:3]:
        assert name in text
    for words in ("Can its probabilities be believed?", "birch", "dogwood", "numpy"):
        assert words in text
    again = pipelines.run(tables, out=tmp_path / "trees")
    assert again.stages["report"].state == "skipped"


def test_labels_and_words_are_text_and_nothing_else(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=[EVIL, "b", '"><img src=x>'])
    y = np.where(X.iloc[:, 0] > 0, EVIL, "plain")
    model = dboost.BoostedClassifier(alpha=0.01).fit(X, y).model_
    made = {"parameters": {EVIL: EVIL, "password": "CANARY", "data": "s3://me:CANARY@b/x"}}
    (tmp_path / "run.json").write_text(json.dumps(made))
    page = html(model, str(tmp_path), title=EVIL)
    found = read(page)
    assert not {"script", "img"} & set(found.tags) and "CANARY" not in page
    assert page.count("&lt;script&gt;") > 4


def test_calibration_and_mistakes_are_those_of_the_rows(trained, prepared):
    model = read_model(str(trained))
    data = dboost.ParquetData(prepared, split="test")
    found = look_at(model, DataSettings(data=str(prepared), split="test"), str(trained))
    estimator = dboost.load_model(trained)
    chances = estimator.predict_proba(data)
    labels = np.concatenate([block.read(label=True).label_array() for block in blocks_of(data, labels=True)])
    said = estimator.classes_[chances.argmax(axis=1)]
    assert found is not None and found.rows == len(labels) == sum(one["rows"] for one in found.calibration)
    wrong = np.flatnonzero(said != labels)
    assert len(found.mistakes) == min(len(wrong), 12)
    best = sorted(chances.max(axis=1)[wrong], reverse=True)[: len(found.mistakes)]
    assert [one["probability"] for one in found.mistakes] == pytest.approx(best)
    assert sum(one["rows"] * one["right"] for one in found.calibration) == pytest.approx(np.sum(said == labels))
    assert 0.0 <= found.off < 0.5


def test_mistakes_in_a_table_show_its_texts(tmp_path):
    table = pa.table(
        {"title": ["sea and salt", "sky and wind"] * 20, "note": ["old map", None] * 20, "size": range(40)}
    )
    labels = ["sea", "sky"] * 19 + ["sky", "sea"]
    kinds = {"title": "text", "note": "text", "size": "number"}
    features = dboost.Features(kinds, missing="indicator", text=dboost.TextFeatures(min_df=1))
    model = make_pipeline(features, dboost.BoostedClassifier(alpha=0.01)).fit(table, labels)
    dboost.save_model(model, tmp_path / "model")
    pq.write_table(table.append_column("topic", pa.array(labels)), tmp_path / "d.parquet")
    settings = DataSettings(data=str(tmp_path / "d.parquet"), label=("topic",))
    found = look_at(read_model(str(tmp_path / "model")), settings, str(tmp_path / "model"))
    assert found is not None
    assert {one["row"]: one["text"] for one in found.mistakes} == {38: "sea and salt\nold map", 39: "sky and wind"}


def test_the_command_judges_data_and_keeps_what_is_there(trained, prepared, tmp_path, refused):
    out = tmp_path / "page.html"
    arguments = ["report", trained, "--data", prepared, "--out", out, "--title", "Trees"]
    give(*arguments)
    assert "<h1>Trees</h1>" in out.read_text() and "Mistakes worth reading" in out.read_text()
    assert "the file exists" in refused(*arguments)
    give(*arguments, "--force")


def test_the_page_of_a_regression_and_of_features_that_were_chosen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    for loss in ("squared", "poisson"):
        model = dboost.BoostedRegressor(loss=loss, alpha=0.01).fit(X, rng.poisson(np.exp(X[:, 0]))).model_
        page = html(model, title="counts")
        assert "x0" in page and "How its features were chosen" not in page
    fitted = dboost.BoostedClassifier().fit(X, X[:, 0] > 0)
    page = html(fitted.model_, title="chosen")
    (taken,) = [row for row in fitted.frontier_ if row["chosen"]]
    bold = page.split("How its features were chosen")[1].split('<tr class="hit">')[1].split("</tr>")[0]
    assert bold.startswith(f'<td class="n">{taken["features"]:,.6g}</td><td class="n">{taken["score"]:.4g}</td>')


# ---- explain ---------------------------------------------------------------------------------------------------------


def test_parts_add_up_to_the_scores(trained, prepared):
    model = dboost.load_model(trained)
    block = blocks_of(dboost.ParquetData(prepared, split="test"))[0]
    rows = block.read().csr(block.layout.n_features)
    row = rows[[5]]
    found = dboost.explain(model, row)
    np.testing.assert_allclose(found.scores, model.model_.decision_function(row)[0], rtol=1e-12)
    assert set(found.words) <= set(model.active_features_) and found.parts.shape == (len(found.words), 4)
    with pytest.raises(UsageError, match="2 rows; expected one"):
        dboost.explain(model, rows[[5, 6]])


def test_documents_and_rows_are_explained(trained, prepared, prints, tells, refused, monkeypatch):
    shown = prints("explain", trained, "an orchard and word_birch")
    assert shown.startswith("birch") and "word_birch" in shown
    monkeypatch.setattr("sys.stdin", io.StringIO("an orchard and word_birch"))
    (values,) = tells("explain", trained, "-")
    assert values["classes"][0] == "birch" and values["features"][0]["name"] == "word_birch"
    assert "speaks for" in prints("explain", trained, "--data", prepared, "--row", "3")
    assert "but the data has" in refused("explain", trained, "--data", prepared, "--row", "3000")
    refused("explain", trained)
    assert "that of the intercept" in prints("explain", trained, "nothing known")


def test_figures_are_saved_before_they_are_shown(trained, prepared, tmp_path, monkeypatch):
    def leaves(*arguments):
        raise BrokenPipeError

    monkeypatch.setattr(Console, "page", leaves)
    settings = evaluate.EvaluateSettings(
        model=str(trained), data=str(prepared), split="train", out=str(tmp_path / "e"), workers=0
    )
    with pytest.raises(BrokenPipeError):
        evaluate.done(settings, Console("plain"))
    assert json.loads((tmp_path / "e" / "evaluation.json").read_text())["error"] < 1.0
