"""One policy for every path: local files, file URLs and the home folder; what is no store is refused before work."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dboost import BoostedClassifier, OneVsRestBoostedClassifier, ParquetData, UsageError, load_model
from dboost.data import prepare_text
from dboost.files.paths import local_path
from dboost.files.storage import read_plain_file, write_file, write_folder
from tests.model.models import make

X = np.random.default_rng(0).normal(size=(40, 3))
Y = X[:, 0] > 0
URLS = ["memory://x", "hdfs:///x", "simplecache::s3://b/x", "HTTP://host/x", Path("memory://b/x"), "sftp:/b/x"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def fitted():
    return BoostedClassifier(alpha=0.05).fit(X, Y)


def test_other_schemes_are_refused_everywhere_and_nothing_is_written(here, fitted):
    both = OneVsRestBoostedClassifier(BoostedClassifier(alpha=0.05)).fit(X, Y)

    def folder(url):
        with write_folder(url, marker="m"):
            pytest.fail("entered")

    calls = {
        "save": fitted.save,
        "save of several": both.save,
        "load_model": load_model,
        "checkpoint": lambda url: BoostedClassifier(alpha="quick", checkpoint=url).fit(X, Y),
        "Parquet": lambda url: BoostedClassifier(alpha="quick").fit(ParquetData(url)),
        "Parquet files": lambda url: ParquetData([url]).files(),
        "documents": lambda url: prepare_text(url, here / "out", text="text"),
        "prepared": lambda url: prepare_text(here / "in", url, text="text"),
        "file": lambda url: write_file(url, b""),
        "folder": folder,
        "read": lambda url: read_plain_file(url, "x", max_bytes=1),
    }
    for url in URLS:
        scheme = str(url).split(":")[0]
        for name, call in calls.items():
            with pytest.raises(UsageError, match=f"scheme '{scheme}', which is not supported"):
                call(url)
            assert os.listdir(here) == [], (name, url)


def test_a_secret_in_a_refused_path_is_not_told(here):
    for call in (load_model, lambda url: ParquetData(url).files(), make().save):
        with pytest.raises(UsageError) as caught:
            call("s3://user:hunter22X@b/x")
        assert "hunter22X" not in str(caught.value) and "s3://***@b/x" in str(caught.value)
    for path in ("s3://user:hunter22X@b/x", Path("s3://user:hunter22X@b/x"), ["s3://user:hunter22X@b/x"]):
        assert "hunter22X" not in repr(ParquetData(path))
    model = BoostedClassifier(alpha="quick", checkpoint="s3://user:hunter22X@b/x")
    assert "hunter22X" not in repr(model) + model._repr_html_() + str(model._repr_mimebundle_())
    assert "***@b/x" in repr(model)
    several = OneVsRestBoostedClassifier(model)
    assert "hunter22X" not in repr(several) + several._repr_html_() + str(several._repr_mimebundle_())


def test_file_urls_are_served(here, fitted):
    folder = here / "with blank and ü#"
    fitted.save(folder.as_uri())
    for path in (folder.as_uri(), f"file:{folder}", f"file://localhost{folder}", Path(f"FILE://{folder}")):
        assert load_model(path).coef_.tobytes() == fitted.coef_.tobytes()
    assert sorted(os.listdir(here)) == ["with blank and ü#"]
    BoostedClassifier(alpha=0.05, checkpoint=(here / "state").as_uri()).fit(X, Y)
    assert (here / "state").is_file()


def test_the_home_folder_is_meant_everywhere(here, fitted, monkeypatch):
    home = here / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    work = here / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    fitted.save("~/m")
    BoostedClassifier(alpha=0.05, checkpoint=Path("~/state")).fit(X, Y)
    write_file("~/f", b"x")
    assert load_model("~/m").coef_.tobytes() == fitted.coef_.tobytes()
    assert sorted(os.listdir(home))[:3] == ["f", "m", "state"]
    assert os.listdir(work) == []
    assert local_path("./~/x") == Path("./~/x")


def test_without_a_home_folder_no_folder_called_tilde_is_made(here, monkeypatch):
    def nobody(number):
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", nobody)
    for path in ("~", "~/x", Path("~/x")):
        with pytest.raises(UsageError, match="no home folder"):
            write_file(path, b"")
    assert os.listdir(here) == []


ORDINARY = [
    "C:/x",
    r"C:\x",
    "a:b",
    "data/s3:/x",
    "./s3:/x",
    "12:/x",
    "s3:",
    "x y://z",
    "-x",
    "~nobody-of-this/x",
    "ü:/x",
]


def test_ordinary_names_are_paths_and_what_is_no_path_is_refused():
    for path in (*ORDINARY, "file:x/"):
        assert local_path(path) == Path(path)
    for path in ("", "a\0b", "file:///a%00b", "file://host/x", "file::x", b"x", 3, None):
        with pytest.raises(UsageError):
            local_path(path)
