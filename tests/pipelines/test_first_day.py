"""The first day of a user: one kind of folder, raw documents judged and labelled, what is said of what is left out."""

import csv
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import dboost
import pipelines
from dboost.errors import UsageError
from pipelines.cli import main
from tests.pipelines.conftest import LOCAL, figures, give, labelled

WORDS = ("waves and sand and salt", "clouds and wind and rain")
LABELS = ("sea", "sky")


def write_csv(path, rows, *, wrong=0, columns=("id", "text", "topic")):
    """Documents about the sea and the sky, whose first `wrong` labels are those of the other kind."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for i in range(rows):
            row = {"id": 1000 + i, "text": f"{WORDS[i % 2]} w{i % 7}", "topic": LABELS[(i + (i < wrong)) % 2]}
            writer.writerow([row[name] for name in columns])
    return path


@pytest.fixture(scope="module")
def day(tmp_path_factory):
    """A model by itself, in a saved pipeline, in a run and in a retraining, with the documents that they read."""
    folder = tmp_path_factory.mktemp("day")
    train, test = write_csv(folder / "docs.csv", 200), write_csv(folder / "test.csv", 60, wrong=3)
    (folder / "r.toml").write_text(
        f'[data]\ndata = "{train}"\ntest = "{test}"\nlabel = "topic"\n[prepare]\n[model]\nalpha = 0.01\n'
        '[predict]\nkeep = ["id"]\n[cluster]\nworkers = 0\n'
    )
    pipelines.run(folder / "r.toml", out=folder / "run")
    (folder / "n.toml").write_text('[retrain]\nrun = "r.toml"\nhome = "home"\n')
    pipelines.retrain(folder / "n.toml")
    texts = pd.read_csv(train)
    model = make_pipeline(dboost.TextFeatures(), dboost.BoostedClassifier(alpha=0.01))
    dboost.save_model(model.fit(texts.text, texts.topic), folder / "saved")
    return folder


FOLDERS = ("run/model", "run", "home", "home/versions/v0001", "saved")


def rows_are_those_of_the_user(folder, expected):
    """The predictions, each beside the place of its row and its id."""
    found = [(row["prediction"], row["file"], row["row"], row["id"]) for row in labelled(folder)]
    assert found == [(label, "test.csv", r, 1000 + r) for r, label in enumerate(expected)]


def test_every_command_finds_the_model_in_every_kind_of_folder(day, tmp_path, prints):
    expected = [LABELS[i % 2] for i in range(60)]
    rows_are_those_of_the_user(day / "run" / "predictions", expected)
    page = (day / "run" / "report.html").read_text()
    assert "test.csv, row 0" in page and "id: 1000" in page and "waves and sand and salt w0" in page
    for i, name in enumerate(FOLDERS):
        given, data = str(day / name), str(day / "test.csv")
        give("predict", given, data, "--keep", "id", "--out", tmp_path / f"o{i}")
        rows_are_those_of_the_user(tmp_path / f"o{i}", expected)
        label = ["--label", "topic"] if name == "saved" else []
        give("evaluate", given, data, *label, "--out", tmp_path / f"e{i}")
        found = figures(tmp_path / f"e{i}")
        assert found["error"] == pytest.approx(3 / 60) and found["confusion"] == [[28, 1], [2, 29]], name
        page = tmp_path / f"r{i}.html"
        give("report", given, data, *label, "--out", page)
        assert "test.csv, row 0" in page.read_text() and "waves and sand and salt w0" in page.read_text()
        give("inspect", given)
        assert "waves" in prints("explain", given, "waves")
        assert dboost.load_pipeline(given).predict(["salt and waves"]).tolist() == ["sea"]
        assert dboost.load_model(given) is not None


def test_folders_without_a_model_are_told_apart(tmp_path, refused, monkeypatch):
    empty, run, home = tmp_path / "empty", tmp_path / "run", tmp_path / "home"
    for folder in (empty, run, home):
        folder.mkdir()
    (run / "run.toml").write_text("")
    monkeypatch.chdir(empty)
    absent = f"there is no model.json; file {empty}; name the folder of a model, a saved pipeline"
    assert absent in refused("inspect", ".", code=3)
    assert "the run has no model yet" in refused("inspect", run, code=3)
    for content, words in ((b"{", "does not say which"), (b'{"version": null}', "no version is the champion yet"),
                           (b'{"version": "../../x"}', "which is no version")):  # fmt: skip
        (home / "champion.json").write_bytes(content)
        assert words in refused("inspect", home, code=3)


def test_documents_without_labels_are_labelled_and_not_judged(day, tmp_path, prints, refused):
    new = write_csv(tmp_path / "new.csv", 50, columns=("id", "text"))
    run = '[data]\ndata = "{}"\n{}label = "topic"\n[prepare]\n[model]\nalpha = 0.01\n{}[cluster]\nworkers=0\n'
    for name, test, tables in (
        ("a", f'test = "{new}"\n', "[evaluate]\n[predict]\n"),
        ("b", "", f'[predict]\ndata = "{new}"\n'),
    ):
        file = tmp_path / f"{name}.toml"
        file.write_text(run.format(day / "docs.csv", test, tables))
        said = prints("run", file)
        assert ("evaluate: left out, since the held-out rows have no labels: there is no column 'topic'" in said) == (
            name == "a"
        )
        rows = labelled(tmp_path / "runs" / name / "predictions")
        assert [row["prediction"] for row in rows] == [LABELS[i % 2] for i in range(50)]
        assert {row["file"] for row in rows} == {"new.csv"}
    # named for the judging itself, such documents are an error
    assert "column 'topic'" in refused("evaluate", day / "run", new, *LOCAL, code=3)


def test_judging_documents_equals_judging_their_features(day, tmp_path):
    """The same figures from [evaluate] data = documents as from the rows that were prepared of them."""
    extra = write_csv(tmp_path / "extra.csv", 40, wrong=2)
    with open(extra, "a") as file:
        file.write("7,a text of its own,land\n")
    tables = {
        "data": {"data": str(day / "docs.csv"), "test": str(extra), "label": "topic"},
        "prepare": {},
        "model": {"alpha": 0.01},
    }
    prepared = pipelines.run(tables, out=tmp_path / "a").evaluation
    documents = pipelines.run({**tables, "evaluate": {"data": str(extra)}}, out=tmp_path / "b").evaluation
    assert prepared["unknown_classes"] == {"land": 1} and prepared["error"] == pytest.approx(3 / 41)
    assert prepared == documents


def test_a_regression_on_documents_is_judged(tmp_path, refused):
    frame = pd.DataFrame({"text": [f"{WORDS[i % 2]} w{i % 7}" for i in range(120)]})
    frame["price"] = np.where(frame.index % 2 == 0, 2.5, 7.25)
    frame.to_csv(tmp_path / "d.csv", index=False)
    data, made, model = tmp_path / "d.csv", tmp_path / "p", tmp_path / "m"
    give("prepare", data, "--label", "price", "--out", made)
    give("train", made, "--loss", "squared", "--alpha", "0.001", "--out", model)
    give("evaluate", model, data, "--out", tmp_path / "e")
    predicted = dboost.load_pipeline(model).predict(frame.text)
    r2 = 1 - np.sum((predicted - frame.price) ** 2) / np.sum((frame.price - frame.price.mean()) ** 2)
    assert figures(tmp_path / "e")["r2"] == pytest.approx(r2) and 0.9 < r2 < 1.0
    said = refused("evaluate", model, data, "--label", "text", *LOCAL, code=3)
    assert "targets of a regression are not numbers but of type text" in said


def test_text_of_a_model_that_python_fitted_is_named(day, tmp_path, refused):
    (tmp_path / "other.csv").write_text("id,body\n1,waves and salt\n2,rain\n")
    given = ["predict", day / "saved", tmp_path / "other.csv", "--out", tmp_path / "o"]
    assert "--text names the column of the documents" in refused(*given, *LOCAL, code=3)
    give(*given, "--text", "body")
    assert [row["prediction"] for row in labelled(tmp_path / "o")] == ["sea", "sky"]


def test_a_table_that_python_fitted_is_read_by_its_columns(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(size=80).round(3), "colour": rng.choice(["red", "blue"], 80)})
    label = np.where((table.colour == "red") ^ (table["size"] > 1.5), "a", "b")
    model = make_pipeline(dboost.TableFeatures(), dboost.BoostedClassifier(alpha=0.01)).fit(table, label)
    dboost.save_model(model, tmp_path / "m")
    table.assign(right=label).to_csv(tmp_path / "t.csv", index=False)
    table.assign(right=label).to_parquet(tmp_path / "t.parquet")
    expected = model.predict(table)
    for name in ("t.csv", "t.parquet"):
        out, shown = tmp_path / f"o-{name}", tmp_path / f"e-{name}"
        give("predict", tmp_path / "m", tmp_path / name, "--out", out)
        assert [row["prediction"] for row in labelled(out)] == expected.tolist()
        give("evaluate", tmp_path / "m", tmp_path / name, "--label", "right", "--out", shown)
        assert figures(shown)["error"] == pytest.approx(float(np.mean(expected != label)))


def test_a_table_is_judged_by_the_labels_of_the_training_and_told_by_the_name_of_its_file(tmp_path, refused):
    table = pd.DataFrame({"size": np.arange(40.0) % 9, "colour": ["red", "blue"] * 20})
    table = table.assign(right=np.where(table["size"] > 4, "a", "b"))
    (tmp_path / "new").mkdir()
    for name in ("t.csv", "new/1.csv", "new/2.csv"):
        table.to_csv(tmp_path / name, index=False)
    numbers = table[["size", "right"]].assign(other=table["size"] ** 2)
    numbers.to_csv(tmp_path / "n.csv", index=False)
    give("train", tmp_path / "n.csv", "--label", "right", "--alpha", "0.01", "--out", tmp_path / "n")
    give("evaluate", tmp_path / "n", tmp_path / "n.csv", "--out", tmp_path / "e")
    assert figures(tmp_path / "e")["error"] < 0.2
    give("prepare", tmp_path / "t.csv", "--column", "find", "--label", "right", "--out", tmp_path / "p")
    give("train", tmp_path / "p", "--alpha", "0.01", "--out", tmp_path / "m")
    said = refused("explain", tmp_path / "m", "red and large", code=3)
    assert "the model reads the columns of a table, 'colour', 'size', and no single text" in said
    (tmp_path / "new" / "2.csv").write_text("size,colour\n1,red\nabc,red\n")
    said = refused("predict", tmp_path / "m", tmp_path / "new", "--out", tmp_path / "o", *LOCAL, code=3)
    assert "'abc'" in said and str(tmp_path / "new" / "2.csv") in said and "unfinished" not in said
    with pytest.raises(UsageError, match="data: found a DataFrame, expected a text that is not empty$"):
        pipelines.predict(tmp_path / "m", table, out=tmp_path / "x")


# ---- what is said ----------------------------------------------------------------------------------------------------


def test_small_data_takes_no_cluster_unless_one_is_asked_for(day, tmp_path, capsys, monkeypatch):
    made = []
    monkeypatch.setattr("dboost.engine.dask.cluster.embedded_cluster", lambda *a, **k: made.append(a) or 1 / 0)
    data = str(day / "docs.csv")
    assert main(["prepare", data, "--label", "topic", "--out", str(tmp_path / "p"), "--log-format", "plain"]) == 0
    said = capsys.readouterr().out
    assert "in this process, since the data is small" in said and "--workers N makes a cluster" in said and not made
    # what asks for one makes one, and so does data that is not small
    for more in (["--workers", "1"], ["--memory-limit", "1GiB"]):
        assert main(["prepare", data, "--label", "topic", "--out", str(tmp_path / "q"), *more]) == 1
    assert len(made) == 2
    monkeypatch.setattr("pipelines.cluster.SMALL_BYTES", 100)
    assert main(["prepare", data, "--label", "topic", "--out", str(tmp_path / "q")]) == 1 and len(made) == 3


def test_a_model_without_a_feature_and_folds_without_a_row_are_said(day, tmp_path, prints, refused):
    give("prepare", day / "docs.csv", "--label", "topic", "--out", tmp_path / "p")
    said = prints("train", tmp_path / "p", "--alpha", "5", "--out", tmp_path / "m")
    assert "the model uses no feature and says the same of every row: alpha 5 is not below" in said
    pd.DataFrame({"size": [1.0] * 20, "colour": ["red"] * 20, "right": ["a", "b"] * 10}).to_csv(tmp_path / "c.csv")
    kinds = ["--column", "size=number,colour=category"]
    give("prepare", tmp_path / "c.csv", *kinds, "--label", "right", "--out", tmp_path / "q")
    said = prints("train", tmp_path / "q", "--alpha", "0.1", "--out", tmp_path / "e")
    assert "no feature says anything of the labels; check" in said
    said = refused("train", tmp_path / "p", "--cv", "1000", "--out", tmp_path / "n", *LOCAL)
    assert "--cv 1000, but there are 200 rows" in said


def test_retrain_says_by_its_exit_code_what_was_decided_where_that_is_asked_for(day, monkeypatch):
    nightly = str(day / "n.toml")
    assert main(["retrain", nightly]) == 0 and main(["retrain", nightly, "--exit-code"]) == 11
    for outcome, code in (("promoted", 0), ("declined", 10)):
        decision = pipelines.Decision(outcome, "", "", [], {})
        monkeypatch.setattr("pipelines.commands.retrain.retrain", lambda *a, found=decision, **k: found)
        assert main(["retrain", nightly, "--exit-code"]) == code and main(["retrain", nightly]) == 0
        assert main(["retrain", nightly, "--fail-declined"]) == code
    monkeypatch.undo()
    assert main(["retrain", nightly, "--fail-declined"]) == 0
    assert main(["retrain", nightly, "--fail-declined", "--exit-code"]) == 2


# ---- what is shown ---------------------------------------------------------------------------------------------------


def test_the_page_names_classes_whole_and_says_how_well_each_is_told(tmp_path):
    """Words that tell classes apart come before those with large weights; colours have one meaning each."""
    rng = np.random.default_rng(0)
    names = ["a class with a rather long name of forty-eight letters"[: 30 + 9 * r] for r in range(3)]
    right = rng.integers(0, 3, 240)
    texts = [f"of the {['wave', 'cloud', 'stone'][r] if rng.random() < 0.8 else 'dust'} of" for r in right]
    right = np.where(rng.random(240) < 0.15, rng.integers(0, 3, 240), right)
    pd.DataFrame({"text": texts, "topic": [names[r] for r in right]}).to_csv(tmp_path / "d.csv", index=False)
    tables = {
        "data": {"data": str(tmp_path / "d.csv"), "test": str(tmp_path / "t.csv"), "label": "topic"},
        "prepare": {"max_df": 1.0},
        "model": {"penalty": "l1/l2", "cv": 3, "n_alphas": 5, "eps": 1e-4},
        "cluster": {"workers": 0},
    }
    pd.DataFrame({"text": texts[:60], "topic": [names[r] for r in right[:60]]}).to_csv(tmp_path / "t.csv", index=False)
    run = pipelines.run(tables, out=tmp_path / "run")
    found, page = run.evaluation, (tmp_path / "run" / "report.html").read_text()
    counts = np.array(found["confusion"])
    assert found["precision"] == pytest.approx((np.diag(counts) / counts.sum(axis=0)).tolist())
    assert found["recall"] == pytest.approx((np.diag(counts) / counts.sum(axis=1)).tolist())
    for name, recall in zip(run.model.classes_, found["recall"], strict=True):
        assert page.count(name) >= 4 and f"{100 * recall:.1f} %" in page
    words = page.split("What speaks for each class")[1]
    assert all(words.index(word) < words.find("<h2>") for word in ("wave", "cloud", "stone"))
    # the table of the folds, with the chosen strength in bold, and its curve
    folds = page.split("How the strength was chosen")[1].split("<h2>")[0]
    assert folds.count("<tr") == 1 + 5 and folds.count('<tr class="hit">') == 1 and "<svg" in folds.split("<table")[0]
    assert "share of rows whose class was said wrongly" in page and "no feature" in page
    cells = re.findall(r'<td class="c"[^>]*--(for|against)\)[^>]*>(.)', page)
    assert {(kind, sign) for kind, sign in cells} == {("for", "+"), ("against", "−")}


def test_common_words_come_after_those_that_tell_apart(tmp_path):
    """The order of the map is that of weights times the rarity of a term, less what all classes share."""
    from pipelines.report_page.page import html

    texts = ["of of wave", "of cloud", "of of stone", "of dust"] * 20
    labels = ["sea", "sky", "land", "sky"] * 20
    model = make_pipeline(
        dboost.TextFeatures(), dboost.BoostedClassifier(penalty="l2_squared", alpha=1e-3)
    ).fit(texts, labels)  # fmt: skip
    dboost.save_model(model, tmp_path / "m")
    page = html(model[-1].model_, str(tmp_path / "m"), title="t")
    rows = page.split('<table class="map">')[1].split("</table>")[0]
    order = [row.split('class="word">')[1].split("<")[0] for row in rows.split("<tr>")[2:]]
    assert set(order) == {"of", "wave", "cloud", "stone", "dust"} and order[-1] == "of"


def test_explain_names_classes_and_is_a_picture_in_a_notebook(day):
    model = dboost.load_pipeline(day / "run")
    found = dboost.explain(model, ["waves and rain"])
    assert found.labels == ("sea", "sky") and set(found.words) <= {"waves", "rain"}
    np.testing.assert_array_equal(found.of_class("sky"), found.parts[:, 0])
    np.testing.assert_array_equal(found.of_class("sea"), -found.parts[:, 0])
    with pytest.raises(dboost.errors.UsageError, match="no class 'lake'; there are sea, sky"):
        found.of_class("lake")
    shown = found._repr_html_()
    assert "sky" in shown and "rgba(0,114,178" in shown + "" and shown.count("linear-gradient") == len(found.words)
    assert all(word in shown for word in found.words) and "intercept" in shown and "score" in shown
    head, *rows = repr(found).splitlines()
    assert head.split() == ["feature", "value", "sky"] and len({len(row) for row in (head, *rows)}) == 1
    assert float(rows[-1].split()[-1]) == pytest.approx(found.scores[0], abs=1e-3)


def test_a_table_without_a_column_of_texts_is_told_how_it_is_taken(tmp_path, refused):
    table = pd.DataFrame({"title": ["sea", "sky"] * 4, "label": ["a", "b"] * 4})
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        prepare = ["prepare", tmp_path / name, "--label", "label", "--out", tmp_path / f"out-{name}"]
        assert "--column find takes each column by its kind" in refused(*prepare, *LOCAL, code=3)
        give(*prepare, "--column", "find", "--min-df", "1")
