"""Files of text as users have them: separators, encodings and compression, and tables of numbers in them."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import dboost
import pipelines
from dboost.data.meaning import separator_of
from pipelines.cli import main

END = ["--workers", "0", "--log-format", "plain"]


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
        data, out = str(tmp_path / name), {one: str(tmp_path / f"{one}-{name}") for one in ("m", "e", "o")}
        assert main(["train", data, "--label", "y", "--alpha", "0.01", "--out", out["m"], *END]) == 0
        weights[name] = dboost.load_model(out["m"]).coef_
        assert not list(tmp_path.glob("*.unfinished"))
        assert main(["evaluate", out["m"], data, "--label", "y", "--out", out["e"], *END]) == 0
        figures = json.loads((Path(out["e"]) / "evaluation.json").read_text())
        said = dboost.load_model(out["m"]).predict(frame[["a", "b"]])
        assert figures["error"] == pytest.approx(np.mean(said != frame.y))
        assert main(["predict", out["m"], data, "--keep", "y", "--out", out["o"], *END]) == 0
        rows = pq.read_table(next(Path(out["o"]).glob("part-*"))).to_pandas()
        assert set(rows.file) == {name} and rows.row.tolist() == list(range(150))
        assert rows.y.tolist() == frame.y.tolist() and rows.prediction.tolist() == said.tolist()
        assert main(["explain", out["m"], "--data", data, "--row", "3", "--log-format", "plain"]) == 0
        page = tmp_path / f"r-{name}.html"
        assert main(["report", out["m"], data, "--label", "y", "--out", str(page), "--log-format", "plain"]) == 0
        assert f"{name}, row" in page.read_text()
    np.testing.assert_array_equal(weights["n.csv"], weights["n.parquet"])
    np.testing.assert_array_equal(weights["n.csv.gz"], weights["n.parquet"])
    np.testing.assert_allclose(weights["n.jsonl"], weights["n.parquet"], rtol=1e-9)
    tables = {"data": {"data": str(tmp_path / "n.csv"), "test": str(tmp_path / "n.csv.gz"), "label": "y"},
              "model": {"alpha": 0.01}, "predict": {}, "cluster": {"workers": 0}}  # fmt: skip
    run = pipelines.run(tables, out=tmp_path / "run")
    np.testing.assert_array_equal(run.model.coef_, weights["n.csv"])
    assert run.evaluation["examples"] == 150 and not (tmp_path / "run" / "tables.partial").exists()


def test_text_among_numbers_names_what_reads_it(tmp_path, capsys):
    table().assign(colour="red").to_csv(tmp_path / "n.csv", index=False)
    arguments = ["train", str(tmp_path / "n.csv"), "--label", "y", "--out", str(tmp_path / "m"), *END]
    assert main(arguments) == 3
    said = capsys.readouterr().err
    assert "column 'colour'" in said and "dboost.Features" in said and "--features" in said
    assert main([*arguments, "--features", "a,b", "--alpha", "0.01"]) == 0
    (tmp_path / "d").mkdir()
    table().to_csv(tmp_path / "d" / "1.csv", index=False)
    table().assign(c=1).to_csv(tmp_path / "d" / "2.csv", index=False)
    assert main(["train", str(tmp_path / "d"), "--label", "y", "--out", str(tmp_path / "m2"), *END]) == 3
    assert "column 'c'" in capsys.readouterr().err


def documents():
    texts = ["wellen, sand und küste", "wolken, wind und schöner regen"]
    return pd.DataFrame({"text": texts * 20, "topic": ["meer", "himmel"] * 20, "note": ["a; b", "c, d"] * 20})


def test_the_row_numbers_that_pandas_writes_into_csv_are_no_feature(tmp_path, capsys):
    frame = table().sort_values("y", ignore_index=True)
    data, out = str(tmp_path / "n.csv"), [str(tmp_path / name) for name in ("train", "prepare")]
    frame.to_csv(data)
    assert main(["train", data, "--label", "y", "--alpha", "0.01", "--out", out[0], *END]) == 0
    assert dboost.load_model(out[0]).feature_names_in_.tolist() == ["a", "b"]
    assert "the first, which has no name. To use one, give it a name" in capsys.readouterr().err
    assert main(["prepare", data, "--column", "find", "--label", "y", "--out", out[1], *END]) == 0
    assert "which has no name" in capsys.readouterr().err
    assert dboost.ParquetData(out[1]).resolve()[1].feature_names() == ("a", "b")


def test_an_error_in_a_table_names_the_file_and_the_column_of_the_user(tmp_path, capsys):
    folder, model, out = tmp_path / "rows", str(tmp_path / "m"), str(tmp_path / "o")
    folder.mkdir()
    table().to_csv(folder / "a.csv", index=False)
    assert main(["train", str(folder), "--label", "y", "--alpha", "0.01", "--out", model, *END]) == 0
    (folder / "b.csv").write_text("a,b,y\n1.0,2.5,0\n1.0,,1\n")
    for command in (
        ["train", str(folder), "--label", "y", "--alpha", "0.01", "--out", out, *END],
        ["predict", model, str(folder), "--out", out, *END],
        ["evaluate", model, str(folder), "--label", "y", *END],
    ):
        assert main(command) == 3
        assert f"file {folder / 'b.csv'}; column 'b'; " in capsys.readouterr().err
    tables = {"data": {"data": str(folder), "label": "y"}, "model": {"alpha": 0.01}, "cluster": {"workers": 0}}
    with pytest.raises(dboost.DataError, match="b.csv; column 'b'"):
        pipelines.run(tables, out=tmp_path / "run")
    table().assign(b=np.inf).to_parquet(tmp_path / "n.parquet")
    assert main(["predict", model, str(tmp_path / "n.parquet"), "--out", out, *END]) == 3
    assert "n.parquet; column 'b'; " in capsys.readouterr().err


def test_documents_are_read_as_they_are_written(tmp_path, capsys):
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
        given = ["prepare", str(tmp_path / name), "--label", "topic", "--keep", "note", "--out", str(out)]
        if name.startswith("latin"):
            assert main([*given, *END]) == 3, name
            said = capsys.readouterr().err
            assert "no UTF-8" in said and "--encoding latin-1" in said
            given += ["--encoding", "latin-1"]
        assert main([*given, *END]) == 0, name
        table = pq.read_table(next((out / "train").glob("*.parquet")))
        found[name] = table.to_pydict()
        assert found[name] == found["plain.csv"], name
    assert len(found["plain.csv"]["topic"]) == 40 and found["plain.csv"]["note"] == frame.note.tolist()


def test_a_byte_late_in_a_file_that_is_no_utf8_is_told_too(tmp_path, capsys):
    rows = "waves and sand,sea\n" * 6000
    (tmp_path / "d.csv").write_bytes(f"text,topic\n{rows}".encode() + "Küste,sea\n".encode("latin-1"))
    arguments = ["prepare", str(tmp_path / "d.csv"), "--label", "topic", "--out", str(tmp_path / "p"), *END]
    assert main(arguments) == 3 and "no UTF-8" in capsys.readouterr().err


def test_what_does_not_tell_its_separator_is_asked_for(tmp_path, capsys):
    assert separator_of("a.csv", "text\nwaves, and sand\nwind\n") == ","
    assert separator_of("a.csv", "text;topic\nwaves, sand;sea\nwind;sky\n") == ";"
    assert separator_of("a.csv", 'text,topic\n"a;b",sea\n"c;d",sky\n') == ","
    assert separator_of("a.csv", 'text;topic\n"a;b\nc";sea\n') == ";"
    assert separator_of("a.tsv", "a;b\nc;d\n") == "\t"
    # the last row of many bytes is cut
    assert separator_of("a.csv", "a;b\n" + "c;d\n" * 30_000 + "e") == ";"
    (tmp_path / "d.csv").write_text("text;a\ttopic\nwaves;1\tsea\nwind;2\tsky\n")
    arguments = ["prepare", str(tmp_path / "d.csv"), "--out", str(tmp_path / "p"), "--min-df", "1", *END]
    assert main([*arguments, "--label", "a\ttopic"]) == 3
    assert "--separator ';'" in capsys.readouterr().err
    assert main([*arguments, "--label", "a\ttopic", "--separator", ";"]) == 0
    (tmp_path / "d.csv").write_text("text|topic\nwaves|sea\nwind|sky\n")
    capsys.readouterr()
    assert main([*arguments, "--label", "topic", "--force"]) == 3
    assert "there are 'text|topic'; say what stands between the fields: --separator '|'" in capsys.readouterr().err
    assert main([*arguments, "--label", "topic", "--separator", "|", "--force"]) == 0
    assert main([*arguments, "--separator", "||", "--force"]) == 2
    for encoding in ("klingon", "zip", "undefined"):
        assert main([*arguments, "--encoding", encoding, "--force"]) == 2
    table().to_parquet(tmp_path / "n.parquet")
    given = ["train", str(tmp_path / "n.parquet"), "--label", "y", "--out", str(tmp_path / "m"), *END]
    assert main([*given, "--separator", ";"]) == 2
    assert "--separator is of CSV, and no file is" in capsys.readouterr().err
