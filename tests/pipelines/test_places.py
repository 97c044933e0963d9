"""Where a command reads and writes: other schemes are refused, places are tried before work, secrets stay unsaid."""

import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import LocalCluster

import dboost
from pipelines.cli import main
from tests.pipelines.conftest import give, labelled, write_documents

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
    train = ["train", "~/data", "--config", "~/run.toml", "--log-format", "json"]
    give(*train)
    give(*train, "--out", (home / "by url").as_uri())
    give("evaluate", "~/m", (home / "data").as_uri(), "--out", "~/e")
    give("predict", (home / "m").as_uri(), "~/data", "--out", "~/p")
    give("inspect", "~/m")
    give("prepare", (here / "documents.parquet").as_uri(), "--out", "~/prepared", "--min-df", "1")
    assert {"m", "by url", "e", "p", "prepared"} <= set(os.listdir(home))
    assert json.loads((home / "m" / "run.json").read_text())["settings"]["out"] == "~/m"
    assert os.listdir(work) == []
    assert capsys.readouterr().err == ""


def write_classes(path, names, labels):
    """Three columns, each of which is large in the rows of a label."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 3))
    X[np.arange(200), codes] += 3.0
    found = [labels[code] for code in codes.tolist()]
    pq.write_table(pa.table({**dict(zip(names, X.T)), "label": found}), path)
    return found


def test_words_that_only_sound_like_secrets_are_printed(here, capsys, prints, tells):
    write_classes(here / "words.parquet", ("secret", "token=red", "words"), ("pass", "password", "token"))
    words = ["train", "words.parquet", "--label", "label", "--alpha", "0.01"]
    words += ["--class-weight", '{"pass": 2, "password": 1, "token": 1}']
    out = prints(*words, "--out", "token=words-prep")
    assert "token=words-prep" in out and "***" not in out
    records = tells(*words, "--out", "m")
    assert all(isinstance(record["passes"], int) for record in records if record["event"] == "round")
    (features,) = (event["features"] for event in tells("inspect", "m"))
    assert {feature["name"] for feature in features} == {"secret", "token=red", "words"}
    weights = {label: weight for feature in features for label, weight in feature["weights"].items()}
    assert set(weights) == {"pass", "password", "token"} and all(type(w) is float for w in weights.values())
    assert json.loads((here / "m" / "run.json").read_text())["settings"]["class_weight"]["password"] == 1
    for command in ("evaluate", "predict"):
        give(command, "m", "words.parquet", "--label", "label", "--out", command)
    assert "***" not in capsys.readouterr().out
    for path in here.rglob("*.json"):
        assert "***" not in path.read_text(), path


def test_labels_that_are_bytes_are_saved_and_predicted(here):
    labels = write_classes(here / "d.parquet", "abc", [b"ant", b"b\xff\0", b""])
    data = ["d.parquet", "--label", "label"]
    give("train", *data, "--alpha", "0.01", "--out", "m")
    give("predict", "m", *data, "--out", "p")
    give("evaluate", "m", *data, "--out", "e")
    give("inspect", "m")
    found = [row["prediction"] for row in labelled(here / "p")]
    assert set(found) == set(labels) and np.mean([a == b for a, b in zip(found, labels, strict=True)]) > 0.8
    read = dboost.load_model("m")
    assert read.classes_.tolist() == [b"", b"ant", b"b\xff\0"]
    assert read.predict(dboost.ParquetData("d.parquet", label="label")).tolist() == found


def test_workers_that_stand_elsewhere_read_and_write_what_was_meant(here, monkeypatch, capsys):
    """Paths are those of the process that was given them."""
    (here / "theirs").mkdir()
    monkeypatch.chdir(here / "theirs")
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", cluster.scheduler_address)
        monkeypatch.chdir(here)
        for command in (
            "prepare documents.parquet --text text --label label --out prepared --min-df 1",
            "train prepared --alpha 0.01 --out model",
            "evaluate model prepared --split train",
            "predict model prepared --out of-features --split train",
            "predict model documents.parquet --keep label --out of-documents",
        ):
            assert main(command.split()) == 0, capsys.readouterr().err
        capsys.readouterr()
        assert main(["doctor", "--data", "prepared"]) == 0
        shown = capsys.readouterr().out
    assert "all workers see it" in shown and "the same on 1 workers" in shown and "loopback" in shown
    assert not list((here / "theirs").iterdir())
    assert list((here / "of-documents").glob("*.parquet"))
