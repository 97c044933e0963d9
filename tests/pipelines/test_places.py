"""Where a command reads and writes: other schemes are refused, places are tried before work, secrets stay unsaid."""

import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dboost
from pipelines.cli import main
from tests.pipelines.conftest import write_documents

LOCAL = ["--workers", "0"]
SECRET = "hunter22X"
URL = f"s3://user:{SECRET}@bucket/x"

PLACES = [
    ["prepare", "URL", "--out", "o"],
    ["prepare", "documents.parquet", "--test", "URL", "--out", "o"],
    ["prepare", "documents.parquet", "--out", "URL"],
    ["train", "URL", "--out", "o"],
    ["train", "PREPARED", "--out", "URL"],
    ["train", "PREPARED", "--out", "o", "--config", "URL"],
    ["evaluate", "URL", "PREPARED"],
    ["evaluate", "MODEL", "URL"],
    ["evaluate", "MODEL", "PREPARED", "--out", "URL"],
    ["predict", "URL", "PREPARED", "--out", "o"],
    ["predict", "MODEL", "URL", "--out", "o"],
    ["predict", "MODEL", "PREPARED", "--out", "URL"],
    ["inspect", "URL"],
    ["demo", "--out", "URL"],
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_documents(tmp_path / "documents.parquet", rows=40)
    return tmp_path


def test_other_schemes_are_refused_everywhere_without_their_secret(here, prepared, trained, capfd):
    urls = ((URL, "json"), (URL.replace("//", "/"), "plain"), (f"https://bucket/x?X-Amz-Signature={SECRET}", "plain"))
    for number, place in enumerate(PLACES):
        # every place with the first, and each of the others at a place that reads and one that writes
        for url, log_format in urls if number in (0, 4) else urls[:1]:
            known = {"URL": url, "PREPARED": str(prepared), "MODEL": str(trained)}
            words = [known.get(word, word) for word in place]
            assert main([*words, "--log-format", log_format, "--debug"]) == 2, words
            out, err = capfd.readouterr()
            told = f"has the scheme {url.split(':')[0]!r}, which is not supported"
            assert told in err or (url.startswith("s3:") and "holds a user or a password" in err), words
            assert SECRET not in out + err
            assert os.listdir(here) == ["documents.parquet"]


def test_an_address_with_a_secret_is_not_told(prepared, here, capfd, monkeypatch):
    for address in (f"tcp://user:{SECRET}@127.0.0.1:9", f"user:{SECRET}@127.0.0.1:9"):
        for arguments in (["--scheduler", address], []):
            monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", address)
            assert main(["train", str(prepared), "--out", "m", *arguments, "--debug"]) == 2
            out, err = capfd.readouterr()
            assert SECRET not in out + err and "names a user: tcp://***@127.0.0.1:9" in err


def test_file_urls_and_the_home_folder_are_served(here, prepared, monkeypatch, capsys):
    home, work = here / "home", here / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(work)
    shutil.copytree(prepared, home / "data")
    (home / "run.toml").write_text('out = "~/m"\nalpha = 0.02\n')
    train = ["train", "~/data", "--config", "~/run.toml", *LOCAL, "--log-format", "json"]
    assert main(train) == 0
    assert main([*train, "--out", (home / "by url").as_uri()]) == 0
    assert main(["evaluate", "~/m", (home / "data").as_uri(), "--out", "~/e", *LOCAL]) == 0
    assert main(["predict", (home / "m").as_uri(), "~/data", "--out", "~/p", *LOCAL]) == 0
    assert main(["inspect", "~/m"]) == 0
    assert main(["prepare", (here / "documents.parquet").as_uri(), "--out", "~/prepared", "--min-df", "1", *LOCAL]) == 0
    assert {"m", "by url", "e", "p", "prepared"} <= set(os.listdir(home))
    assert json.loads((home / "m" / "run.json").read_text())["settings"]["out"] == "~/m"
    assert os.listdir(work) == []
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", ["train", "evaluate", "predict", "prepare", "demo"])
def test_an_output_that_cannot_be_written_is_found_before_the_work(command, here, prepared, trained, capsys):
    (here / "file").write_text("x")
    arguments = {
        "train": [str(prepared)],
        "evaluate": [str(trained), str(prepared)],
        "predict": [str(trained), str(prepared)],
        "prepare": ["documents.parquet"],
        "demo": [],
    }[command]
    for out in ("/proc/nowhere/out", "file/out", "deep/folders/file/" + "x" * 300):
        assert main([command, *arguments, "--out", out, *LOCAL]) == 5
        captured = capsys.readouterr()
        assert captured.out == "" and len(captured.err.splitlines()) == 1
        assert "cannot write" in captured.err and out in captured.err
    assert sorted(os.listdir(here)) == ["documents.parquet", "file"]


def test_words_that_only_sound_like_secrets_are_printed(here, capsys):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 3))
    X[np.arange(200), codes] += 3.0
    labels = np.array(["pass", "password", "token"])[codes]
    columns = {"secret": X[:, 0], "token=red": X[:, 1], "words": X[:, 2], "label": labels}
    pq.write_table(pa.table(columns), here / "words.parquet")
    words = ["train", "words.parquet", "--label", "label", "--alpha", "0.01", *LOCAL]
    words += ["--class-weight", '{"pass": 2, "password": 1, "token": 1}']
    assert main([*words, "--out", "token=words-prep"]) == 0
    out = capsys.readouterr().out
    assert "token=words-prep" in out and "***" not in out
    assert main([*words, "--out", "m", "--log-format", "json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(isinstance(record["passes"], int) for record in records if record["event"] == "round")
    assert main(["inspect", "m", "--log-format", "json"]) == 0
    features = json.loads(capsys.readouterr().out)["features"]
    assert {feature["name"] for feature in features} == {"secret", "token=red", "words"}
    weights = {label: weight for feature in features for label, weight in feature["weights"].items()}
    assert set(weights) == {"pass", "password", "token"} and all(type(w) is float for w in weights.values())
    assert json.loads((here / "m" / "run.json").read_text())["settings"]["class_weight"]["password"] == 1
    for arguments in (["evaluate", "m"], ["predict", "m"]):
        assert main([*arguments, "words.parquet", "--label", "label", "--out", arguments[0], *LOCAL]) == 0
    assert "***" not in capsys.readouterr().out
    for path in here.rglob("*.json"):
        assert "***" not in path.read_text(), path


def test_labels_that_are_bytes_are_saved_and_predicted(here, capsys):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 3))
    X[np.arange(200), codes] += 3.0
    labels = [[b"ant", b"b\xff\0", b""][code] for code in codes.tolist()]
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "label": labels}), here / "d.parquet")
    assert main(["train", "d.parquet", "--label", "label", "--alpha", "0.01", "--out", "m", *LOCAL]) == 0
    data = ["d.parquet", "--label", "label", *LOCAL]
    assert main(["predict", "m", *data, "--out", "p"]) == 0
    assert main(["evaluate", "m", *data, "--out", "e"]) == 0
    assert main(["inspect", "m"]) == 0
    found = pq.read_table(here / "p").column("prediction").to_pylist()
    assert set(found) == set(labels) and np.mean([a == b for a, b in zip(found, labels, strict=True)]) > 0.8
    read = dboost.load_model("m")
    assert read.classes_.tolist() == [b"", b"ant", b"b\xff\0"]
    assert read.predict(dboost.ParquetData("d.parquet", label="label")).tolist() == found
    capsys.readouterr()
