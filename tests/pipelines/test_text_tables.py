"""Files of text as users have them: separators, encodings and compression, and tables of numbers in them."""

import gzip

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import dboost
import pipelines
from dboost.data.meaning import separator_of
from tests.pipelines.conftest import LOCAL, figures, give


def table(rows=150, seed=0):
    rng = np.random.default_rng(seed)
    found = pd.DataFrame({"a": rng.normal(size=rows), "b": rng.normal(size=rows)})
    return found.assign(y=(found.a + 0.3 * rng.normal(size=rows) > 0).astype(int))


def test_numbers_in_csv_give_the_model_of_the_same_numbers_in_parquet(tmp_path, capsys):
    frame = table()
    frame.to_csv(tmp_path / "n.csv", index=False)
    frame.to_json(tmp_path / "n.jsonl", orient="records", lines=True, double_precision=15)
    frame.to_csv(tmp_path / "n.csv.gz", index=False, sep=";")
    frame.to_parquet(tmp_path / "n.parquet")
    weights = {}
    for name in ("n.parquet", "n.csv", "n.csv.gz", "n.jsonl"):
        data = tmp_path / name
        model, judged, labels, page = (tmp_path / f"{one}-{name}" for one in ("m", "e", "o", "r"))
        give("train", data, "--label", "y", "--alpha", "0.01", "--out", model)
        weights[name] = dboost.load_model(model).coef_
        assert not list(tmp_path.glob("*.unfinished"))
        give("evaluate", model, data, "--label", "y", "--out", judged)
        said = dboost.load_model(model).predict(frame[["a", "b"]])
        assert figures(judged)["error"] == pytest.approx(np.mean(said != frame.y))
        give("predict", model, data, "--keep", "y", "--out", labels)
        rows = pq.read_table(labels).to_pandas()
        assert set(rows.file) == {name} and rows.row.tolist() == list(range(150))
        assert rows.y.tolist() == frame.y.tolist() and rows.prediction.tolist() == said.tolist()
        give("explain", model, "--data", data, "--row", "3")
        give("report", model, data, "--label", "y", "--out", page)
        assert f"{name}, row" in page.read_text()
    np.testing.assert_array_equal(weights["n.csv"], weights["n.parquet"])
    np.testing.assert_array_equal(weights["n.csv.gz"], weights["n.parquet"])
    np.testing.assert_allclose(weights["n.jsonl"], weights["n.parquet"], rtol=1e-9)
    tables = {"data": {"data": str(tmp_path / "n.csv"), "test": str(tmp_path / "n.csv.gz"), "label": "y"},
              "model": {"alpha": 0.01}, "predict": {}, "cluster": {"workers": 0}}  # fmt: skip
    run = pipelines.run(tables, out=tmp_path / "run")
    np.testing.assert_array_equal(run.model.coef_, weights["n.csv"])
    assert run.evaluation["examples"] == 150 and not (tmp_path / "run" / "tables.partial").exists()


def test_text_among_numbers_names_what_reads_it(tmp_path, refused):
    table().assign(colour="red").to_csv(tmp_path / "n.csv", index=False)
    arguments = ["train", tmp_path / "n.csv", "--label", "y", "--out", tmp_path / "m"]
    said = refused(*arguments, *LOCAL, code=3)
    assert "column 'colour'" in said and "dboost.Features" in said and "--features" in said
    give(*arguments, "--features", "a,b", "--alpha", "0.01")
    (tmp_path / "d").mkdir()
    table().to_csv(tmp_path / "d" / "1.csv", index=False)
    table().assign(c=1).to_csv(tmp_path / "d" / "2.csv", index=False)
    several = ["train", tmp_path / "d", "--label", "y", "--out", tmp_path / "m2", *LOCAL]
    assert "column 'c'" in refused(*several, code=3)


def documents():
    texts = ["wellen, sand und küste", "wolken, wind und schöner regen"]
    return pd.DataFrame({"text": texts * 20, "topic": ["meer", "himmel"] * 20, "note": ["a; b", "c, d"] * 20})


def test_the_row_numbers_that_pandas_writes_into_csv_are_no_feature(tmp_path, capsys):
    frame = table().sort_values("y", ignore_index=True)
    data, model, made = (tmp_path / name for name in ("n.csv", "m", "p"))
    frame.to_csv(data)
    give("train", data, "--label", "y", "--alpha", "0.01", "--out", model)
    assert dboost.load_model(model).feature_names_in_.tolist() == ["a", "b"]
    assert "the first, which has no name. To use one, give it a name" in capsys.readouterr().err
    give("prepare", data, "--column", "find", "--label", "y", "--out", made)
    assert "which has no name" in capsys.readouterr().err
    assert dboost.ParquetData(made).resolve()[1].feature_names() == ("a", "b")


def test_an_error_in_a_table_names_the_file_and_the_column_of_the_user(tmp_path, refused):
    folder, model, out = tmp_path / "rows", tmp_path / "m", tmp_path / "o"
    folder.mkdir()
    table().to_csv(folder / "a.csv", index=False)
    give("train", folder, "--label", "y", "--alpha", "0.01", "--out", model)
    (folder / "b.csv").write_text("a,b,y\n1.0,2.5,0\n1.0,,1\n")
    for command in (
        ["train", folder, "--label", "y", "--alpha", "0.01", "--out", out],
        ["predict", model, folder, "--out", out],
        ["evaluate", model, folder, "--label", "y"],
    ):
        assert f"file {folder / 'b.csv'}; column 'b'; " in refused(*command, *LOCAL, code=3)
    tables = {"data": {"data": str(folder), "label": "y"}, "model": {"alpha": 0.01}, "cluster": {"workers": 0}}
    with pytest.raises(dboost.DataError, match="b.csv; column 'b'"):
        pipelines.run(tables, out=tmp_path / "run")
    table().assign(b=np.inf).to_parquet(tmp_path / "n.parquet", write_page_checksum=True)
    said = refused("predict", model, tmp_path / "n.parquet", "--out", out, *LOCAL, code=3)
    assert "n.parquet; column 'b'; " in said


def test_documents_are_read_as_they_are_written(tmp_path, refused):
    frame, found = documents(), {}
    plain = frame.to_csv(index=False)
    semicolons, tabs = frame.to_csv(index=False, sep=";"), frame.to_csv(index=False, sep="\t")
    lines = frame.to_json(orient="records", lines=True, force_ascii=False)
    files = {
        "plain.csv": plain.encode(),
        "semicolons.csv": semicolons.encode(),
        "tabs.csv": tabs.encode(),
        "tabs.csv.gz": gzip.compress(tabs.encode()),
        "marked.csv": b"\xef\xbb\xbf" + semicolons.encode(),
        "utf16.csv": plain.encode("utf-16"),
        "utf16be.csv": b"\xfe\xff" + tabs.encode("utf-16-be"),
        "utf16.csv.gz": gzip.compress(semicolons.encode("utf-16")),
        "utf16.jsonl": lines.encode("utf-16"),
        "lines.jsonl": lines.encode(),
        "latin.csv": semicolons.encode("latin-1"),
        "latin.jsonl": lines.encode("latin-1"),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        out = tmp_path / f"p-{name}"
        given = ["prepare", tmp_path / name, "--label", "topic", "--keep", "note", "--out", out]
        if name.startswith("latin"):
            said = refused(*given, *LOCAL, code=3)
            assert "no UTF-8" in said and "--encoding latin-1" in said
            given += ["--encoding", "latin-1"]
        give(*given)
        table = pq.read_table(next((out / "train").glob("*.parquet")))
        found[name] = table.to_pydict()
        assert found[name] == found["plain.csv"], name
    assert len(found["plain.csv"]["topic"]) == 40 and found["plain.csv"]["note"] == frame.note.tolist()
    # a byte late in a file is told too
    rows = "waves and sand,sea\n" * 6000
    (tmp_path / "d.csv").write_bytes(f"text,topic\n{rows}".encode() + "Küste,sea\n".encode("latin-1"))
    late = ["prepare", tmp_path / "d.csv", "--label", "topic", "--out", tmp_path / "p", *LOCAL]
    assert "no UTF-8" in refused(*late, code=3)


def test_what_does_not_tell_its_separator_is_asked_for(tmp_path, refused):
    assert separator_of("a.csv", "text\nwaves, and sand\nwind\n") == ","
    assert separator_of("a.csv", "text;topic\nwaves, sand;sea\nwind;sky\n") == ";"
    assert separator_of("a.csv", 'text,topic\n"a;b",sea\n"c;d",sky\n') == ","
    assert separator_of("a.csv", 'text;topic\n"a;b\nc";sea\n') == ";"
    assert separator_of("a.tsv", "a;b\nc;d\n") == "\t"
    # the last row of many bytes is cut
    assert separator_of("a.csv", "a;b\n" + "c;d\n" * 30_000 + "e") == ";"
    (tmp_path / "d.csv").write_text("text;a\ttopic\nwaves;1\tsea\nwind;2\tsky\n")
    arguments = ["prepare", tmp_path / "d.csv", "--out", tmp_path / "p", "--min-df", "1"]
    assert "--separator ';'" in refused(*arguments, "--label", "a\ttopic", *LOCAL, code=3)
    give(*arguments, "--label", "a\ttopic", "--separator", ";")
    (tmp_path / "d.csv").write_text("text|topic\nwaves|sea\nwind|sky\n")
    said = refused(*arguments, "--label", "topic", "--force", *LOCAL, code=3)
    assert "there are 'text|topic'; say what stands between the fields: --separator '|'" in said
    give(*arguments, "--label", "topic", "--separator", "|", "--force")
    refused(*arguments, "--separator", "||", "--force", *LOCAL)
    for encoding in ("klingon", "zip", "undefined"):
        refused(*arguments, "--encoding", encoding, "--force", *LOCAL)
    table().to_parquet(tmp_path / "n.parquet")
    given = ["train", tmp_path / "n.parquet", "--label", "y", "--out", tmp_path / "m", *LOCAL]
    assert "--separator is of CSV, and no file is" in refused(*given, "--separator", ";")
