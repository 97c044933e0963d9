"""Every command against an S3 server: the bits of local files, nothing of a half-written folder, no secret anywhere."""

import os
from pathlib import Path

import numpy as np
import pytest

import dboost
from dboost.errors import DataError, StorageError, UsageError
from dboost.files import store_folders
from dboost.files.stores import StorePath, any_path
from pipelines.runs.fingerprints import of_model
from tests.pipelines.conftest import give, write_documents

server = pytest.importorskip("moto.server")
SECRET = "CANARY-9f2c41e7"
BUCKET = "s3://texts"


@pytest.fixture(scope="module")
def address():
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture(scope="module")
def bucket(address):
    """A bucket of the server, with the environment that finds it."""
    given = {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    from pyarrow.fs import S3FileSystem

    where = address.partition("://")[2]
    S3FileSystem(endpoint_override=where, scheme="http", allow_bucket_creation=True).create_dir("texts")
    yield BUCKET
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


@pytest.fixture(scope="module")
def both(bucket, tmp_path_factory):
    """The same documents here and there, and everything that the commands make of them."""
    here = tmp_path_factory.mktemp("local")
    write_documents(here / "documents.parquet", rows=400)
    (any_path(bucket) / "documents.parquet").write_bytes((here / "documents.parquet").read_bytes())
    for root in (str(here), bucket):
        for command in (
            f"prepare {root}/documents.parquet --text text --label label --split split --out {root}/prepared",
            f"train {root}/prepared --tol 1e-3 --alpha 0.01 --out {root}/model",
            f"evaluate {root}/model {root}/prepared --out {root}/evaluation",
            f"predict {root}/model {root}/prepared --out {root}/of-features",
            f"predict {root}/model {root}/documents.parquet --keep label --out {root}/of-documents",
            f"path {root}/prepared --n-alphas 3 --eps 0.3 --out {root}/path",
        ):
            give(*command.split(), "--log-format", "json")
        give(*f"report {root}/model --data {root}/prepared --out {root}/report.html".split())
    return str(here), bucket


def content(root, name):
    folder = store_folders.current(any_path(f"{root}/{name}"))
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*.parquet")}


@pytest.mark.full
@pytest.mark.parametrize("name", ["prepared", "of-features", "of-documents"])
def test_files_are_those_of_a_local_folder(both, name):
    here, there = both
    assert content(here, name) == content(there, name) != {}


def test_models_are_those_of_a_local_folder(both):
    here, there = both
    assert of_model(f"{here}/model") == of_model(f"{there}/model")
    assert of_model(f"{here}/path") == of_model(f"{there}/path")
    evaluation = "evaluation/evaluation.json"
    assert (Path(here) / evaluation).read_bytes() == (
        store_folders.current(any_path(f"{there}/evaluation")) / "evaluation.json"
    ).read_bytes()
    assert "<svg" in any_path(f"{there}/report.html").read_text()


def test_a_run_file_reads_a_store(both, tmp_path, tells):
    digests = []
    for at, root in enumerate(both):
        file = tmp_path / f"run{at}.toml"
        data = f'[data]\ndata = "{root}/documents.parquet"\nlabel = "label"\n'
        data += '[prepare]\ntext = "text"\nsplit = "split"\n'
        file.write_text(data + "[model]\nalpha = 0.01\n[cluster]\nworkers = 0\n")
        give("run", file)
        assert "stage_start" not in {event["event"] for event in tells("run", file)}
        digests.append(of_model(str(tmp_path / "runs" / f"run{at}" / "model")))
    assert digests[0] == digests[1]


def test_a_pattern_means_files_of_a_store(both):
    for root in both:
        found = dboost.ParquetData(f"{root}/docu*.parquet").files()
        assert [name for _, name in found] == ["documents.parquet"]
    with pytest.raises(DataError, match="no file fits"):
        dboost.ParquetData(f"{both[1]}/nothing-*.parquet").files()


def test_python_reads_and_writes_a_store(both, bucket):
    here, there = both
    fits = {}
    for root in both:
        data = dboost.ParquetData(f"{root}/prepared", split="train")
        model = dboost.BoostedClassifier(alpha=0.01, checkpoint=f"{root}/state", tol=1e-6)
        fits[root] = model.fit(data)
        again = dboost.BoostedClassifier(alpha=0.01, checkpoint=f"{root}/state", tol=1e-6).fit(data)
        assert np.array_equal(again.coef_, fits[root].coef_)
    assert np.array_equal(fits[here].coef_, fits[there].coef_)
    fits[there].save(f"{bucket}/saved")
    assert np.array_equal(dboost.load_model(f"{bucket}/saved").coef_, fits[here].coef_)
    with pytest.raises(UsageError, match="exists"):
        fits[there].save(f"{bucket}/saved")
    fits[there].save(f"{bucket}/saved", force=True)
    names = {one.name for one in any_path(f"{bucket}/saved").iterdir()}
    assert len(names) == 2 and store_folders.POINTER in names, "the folder before is gone"
    documents = ["a document about nothing in particular"]
    here_said, there_said = (dboost.load_pipeline(f"{root}/model").predict(documents) for root in both)
    assert here_said.tolist() == there_said.tolist()


@pytest.mark.parametrize("after", range(4))
def test_a_writer_that_is_killed_between_two_objects_leaves_the_model_before(both, bucket, after, monkeypatch):
    model = dboost.load_model(f"{both[1]}/model")
    target = f"{bucket}/kept-{after}"
    model.save(target)
    other = dboost.BoostedClassifier(alpha=0.5).fit(np.eye(4), [0, 0, 1, 1])
    put, written = StorePath.write_bytes, []

    def killed(self, data):
        if len(written) == after:
            raise SystemExit("killed")
        written.append(self)
        put(self, data)

    with monkeypatch.context() as patched:
        patched.setattr(StorePath, "write_bytes", killed)
        try:
            other.save(target, force=True)
        except SystemExit:
            assert len(written) == after
    found = dboost.load_model(target)
    assert np.array_equal(found.coef_, model.coef_ if after < 3 else other.coef_)


def test_what_a_store_refuses_is_one_line(both, bucket, refused):
    for command, code, said in (
        (f"train {bucket}/nothing-here --label y --out m", 3, "no such"),
        (f"train s3://no-such-bucket/x --label y --out {bucket}/m", 3, "no such"),
        (f"train {bucket}/prepared --out s3://no-such-bucket/m", 5, "the store refuses"),
        (f"train s3://me:{SECRET}@texts/prepared --out m", 2, "environment"),
        (f"train {bucket}/prepared?secret_key={SECRET} --out m", 2, ""),
        ("train memory://texts/prepared --out m", 2, "not supported"),
        (f"evaluate {bucket}/absent {bucket}/prepared", 3, "no such model folder"),
    ):
        line = refused(*command.split(), "--workers", "0", code=code)
        assert said in line and SECRET not in line, command
    assert "not supported" in refused("run", f"{bucket}/run.toml")


def test_a_store_that_does_not_answer_is_given_up(monkeypatch):
    with pytest.raises(StorageError, match="the store refuses"):
        any_path("s3://texts/x?endpoint_override=127.0.0.1:9&scheme=http").exists()


def test_no_secret_is_written(both, bucket):
    for file in Path(both[0]).rglob("*"):
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes(), file
    found = list(any_path(bucket).rglob("*"))
    assert len(found) > 20
    for one in found:
        assert SECRET.encode() not in one.read_bytes(), one


def test_columns_that_no_model_reads_are_not_fetched(both, prints):
    line = "predict {0}/model {0}/documents.parquet --out {0}/once-more"
    here, there = (prints(*line.format(root).split()).split("read ")[1] for root in both)
    assert here == there


def test_paths_of_stores_are_paths():
    one = any_path("s3://bucket/a/b.csv?region=eu-west-1")
    assert isinstance(one, StorePath)
    assert (one.name, str(one.parent)) == ("b.csv", "s3://bucket/a?region=eu-west-1")
    assert str(one.parent / "c") == "s3://bucket/a/c?region=eu-west-1"
    assert any_path("abfs://container@account.dfs.core.windows.net/x").name == "x"
    assert isinstance(any_path("file:///x"), Path) and isinstance(any_path("x"), Path)
    with pytest.raises(UsageError, match="user or a password"):
        any_path("gs://me:secret@bucket/x")
