"""Runs that a file describes: what is refused, what is done, what is skipped and why, and what a break leaves."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import dboost
import pipelines
from dboost.errors import DataError, StorageError, UsageError
from dboost.model.fitted import read_model
from pipelines.cli import main
from pipelines.console import Console
from pipelines.runs import lock
from pipelines.runs.lock import hold_lock, holder_of
from pipelines.runs.run_file import TABLES, checked, keys_of, read_run_file
from tests.pipelines.conftest import FILE, ROOT, give, write_documents, write_trees


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The run of the file, done."""
    folder = tmp_path_factory.mktemp("finished")
    pipelines.run(write_trees(folder))
    return folder


@pytest.fixture
def ran(finished, tmp_path):
    """A copy of the file whose run is done, beside its run folder."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path / "trees.toml"


def states(result):
    return {name: one.state for name, one in result.stages.items()}


ALL = ("prepare", "train", "evaluate", "predict", "report")


def done(*names):
    return {name: "done" if name in names else "skipped" for name in ALL}


def test_a_run_does_all_stages_once_and_a_second_call_does_none(file, monkeypatch):
    reads: Counter[str] = Counter()

    def counting(name):
        read = getattr(Path, name)

        def counted(path, *how, **more):
            reads[f"{name} {path.name}"] += 1
            return read(path, *how, **more)

        monkeypatch.setattr(Path, name, counted)

    counting("read_text")
    counting("read_bytes")
    result = pipelines.run(file)
    # what a stage has written is opened once there, and once under the name that it has when it is done
    assert reads["read_text _dboost.json"] == 2
    # and the vocabulary twice more, for its own digest and for that of what was written
    assert reads["read_bytes _vocabulary.parquet"] == 4
    assert states(result) == done(*ALL) and result.converged
    assert result.folder == file.parent / "runs" / "trees"
    names = {"run.toml", "events.jsonl", "stages.json", "lock", "prepared", "model", "evaluation", "predictions"}
    assert {path.name for path in result.folder.iterdir()} == names | {"report.json", "report.html"}
    assert result.evaluation is not None and result.evaluation["error"] < 0.2
    # the model is that of the estimator itself
    data = dboost.ParquetData(result.folder / "prepared", split="train")
    peer = dboost.BoostedClassifier(penalty="l1/l2", alpha=0.005).fit(data)
    np.testing.assert_array_equal(result.model.coef_, peer.coef_)
    before = {path: path.stat().st_mtime_ns for path in result.folder.rglob("*.parquet")}
    again = pipelines.run(file)
    assert states(again) == done() and again.evaluation == result.evaluation
    assert before == {path: path.stat().st_mtime_ns for path in result.folder.rglob("*.parquet")}
    assert states(pipelines.resume(result.folder)) == done()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("model.alpha=0.01", done("train", "evaluate", "predict", "report")),
        ("prepare.min_df=50", done(*ALL)),
        # What is kept beside the features is read by no stage here.
        ("prepare.keep=text", done("prepare")),
        ("predict.probabilities=true", done("predict")),
        ("report.top=3", done("report")),
        ("cluster.workers=0", done()),
    ],
)
def test_a_change_does_the_stages_that_depend_on_it(ran, change, expected):
    changed = pipelines.run(ran, overrides=[change])
    assert states(changed) == expected
    table = change.partition("=")[0].replace(".", " ")
    whys = [one.why for one in changed.stages.values() if one.state == "done"]
    assert not whys or whys[0] == f"changed: settings {table.split()[1]}"


def test_other_data_is_noticed_and_copied_data_is_not(ran, tmp_path):
    file, folder = ran, ran.parent / "runs" / "trees"
    documents = tmp_path / "documents.parquet"
    os.utime(documents)
    assert states(pipelines.run(file)) == done()
    write_documents(documents, seed=1)
    changed = pipelines.run(file)
    assert states(changed) == done(*ALL)
    assert changed.stages["prepare"].why == "changed: data documents.parquet"
    # what was deleted or damaged is made again, and nothing before it
    shutil.rmtree(folder / "model")
    missing = pipelines.run(file)
    assert states(missing) == done("train") and missing.stages["train"].why == "model is not what it wrote"
    part = next((folder / "predictions").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-1])
    assert states(pipelines.run(file)) == done("predict")


def test_a_stage_whose_outputs_a_kill_left_without_their_names_is_done(ran):
    folder = ran.parent / "runs" / "trees"
    (folder / "model").rename(folder / ".model.next")
    assert states(pipelines.run(ran)) == done()
    assert read_model(folder / "model").certificate.gap <= 1e-4


def test_stages_without_a_table_or_data_are_left_out_with_the_reason(ran, tmp_path):
    folder = ran.parent / "runs" / "trees" / "prepared"
    tables = {
        "data": {"data": str(folder), "split": "train"},
        "model": {"alpha": 0.01},
        "cluster": {"workers": 0},
    }
    result = pipelines.run(tables, out=tmp_path / "one")
    assert states(result) == {
        "prepare": "left out", "train": "done", "evaluate": "done", "predict": "left out", "report": "done",
    }  # fmt: skip
    assert result.stages["predict"].why == "there is no table [predict]"
    tables["data"]["split"] = "test"
    alone = pipelines.run(tables, out=tmp_path / "two")
    assert "no data is held out: set data.test" in alone.stages["evaluate"].why and alone.evaluation is None


REFUSED = [
    ("[modle]\n", "unknown table 'modle'; did you mean 'model'?"),
    ("[model]\nalhpa = 1\n", "unknown key 'alhpa' in [model]; did you mean 'alpha'?"),
    ("[model]\nworkers = 1\n", "unknown key 'workers' in [model]; it belongs to [cluster]"),
    ("[model]\nalpha = -1\n", "model.alpha: found -1, expected a finite number"),
    ("[model]\nestimator = 'shareboots'\n", "did you mean 'shareboost'?"),
    ("[model]\nnu = 0.5\n", "nu has no meaning for estimator 'boosted'; it belongs to estimator adaboost_l1"),
    ("[model]\nestimator = 'jointboost'\npenalty = 'l1'\n", "penalty has no meaning for estimator 'jointboost'"),
    ("[model]\ncv = 5\npath = 5\n", "cv=5 beside path=5"),
    ("[model]\npath = 5\nalpha = 0.1\n", "a path goes through strengths, and alpha=0.1 was given"),
    ("[model]\nestimator = 'shareboost'\npath = 5\n", "has no path of strengths"),
    ("[model]\nalphas = [0.1]\neps = 0.1\n", "eps=0.1 beside alphas="),
    ("[model]\nhypotheses = 'product'\n", "product"),
    ("model = 3\n", "expected a table [model]"),
    ("[model\n", "not valid TOML"),
    ("[model]\n", "data.data is missing"),
]


def test_a_file_without_meaning_is_refused_in_one_line_and_nothing_is_written(tmp_path, refused):
    run = tmp_path / "run.toml"
    for text, said in REFUSED:
        run.write_text(text if said.startswith("data") else f"{text}[data]\ndata='x'\n")
        assert said in refused("run", run), text
    run.write_text(FILE)
    for text in ("model.alpha", "alpha=1", "modle.alpha=1", "model.alhpa=1", "model.alpha=-1"):
        refused("run", run, "--set", text)
    assert [path.name for path in tmp_path.iterdir()] == ["run.toml"]


def test_the_printed_file_says_where_values_come_from_and_means_the_same(file, prints, tmp_path):
    overrides = ["model.alpha=1e-4", "model.hypotheses=products"]
    text = prints("run", file, "--set", overrides[0], "--set", overrides[1], "--print")
    assert 'penalty = "l1/l2"  # trees.toml' in text and "alpha = 0.0001  # --set" in text
    assert "# min_df = 5  # default" in text and "# tol: default 0.0001" in text
    assert set(tomllib.loads(text)) == {"data", "prepare", "model", "evaluate", "predict", "report", "cluster"}
    (tmp_path / "printed.toml").write_text(text)
    assert read_run_file(str(tmp_path / "printed.toml")).values == read_run_file(str(file), overrides).values
    assert not (file.parent / "runs").exists()


def test_every_key_of_every_table_is_printed_and_read_again():
    for table in TABLES:
        assert keys_of(table), table
    values = {
        "data": {"data": "/x", "label": ["a", 'b"\\\x7f\n'], "n_features": 3},
        "model": {
            "classes": ["a", 1],
            "class_weight": {"spam mail": 2.0},
            "penalty_factors": {"a b": 0.5, "id": float("inf")},
            "alphas": [1.0, 1e-9],
            "hypotheses": [{"family": "products", "max_degree": 2}, {"family": "columns"}],
            "fit_intercept": False,
        },
    }
    found = checked(values)
    assert checked(tomllib.loads(found.to_toml())).values == found.values


def test_a_folder_in_use_is_refused_and_a_dead_lock_is_taken_over(ran, tells, refused):
    file, folder = ran, ran.parent / "runs" / "trees"
    code = (
        "import sys, pathlib; from pipelines.runs.lock import hold_lock\n"
        "with hold_lock(pathlib.Path(sys.argv[1])):\n print('held', flush=True); sys.stdin.read()"
    )
    line = [sys.executable, "-c", code, str(folder)]
    with subprocess.Popen(line, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "held\n"
            error = refused("run", file)
            assert f"process {process.pid} on host {socket.gethostname()} works in this folder since" in error
            assert holder_of(folder) is not None
            assert tells("runs", folder.parent)[-1]["runs"][0]["state"] == "running"
        finally:
            process.send_signal(signal.SIGKILL)
    assert json.loads((folder / "lock").read_text())["pid"] == process.pid
    assert holder_of(folder) is None
    # a container has another host name every night, and one kernel lifts the locks of them all
    (folder / "lock").write_text(json.dumps({"host": "pod-one", "pid": 1, "since": "then"}))
    assert holder_of(folder) is None
    assert states(pipelines.run(file)) == done()


def elsewhere(folder, key, beat=0):
    record = {"host": "elsewhere", "pid": 1, "since": "then", "kernel": "another", "process": key, "key": key}
    descriptor = os.open(folder / "lock", os.O_WRONLY | os.O_CREAT)
    os.pwrite(descriptor, json.dumps({**record, "beat": beat}).ljust(512).encode(), 0)
    os.close(descriptor)


def test_a_lease_on_a_shared_folder_is_believed_for_as_long_as_it_is_renewed(tmp_path, monkeypatch):
    """Whatever the clocks say, and with the lock of the system unseen, not to be had, or left by a lost machine."""
    monkeypatch.setattr(lock, "LOCAL", frozenset())
    for name, value in (("BEAT", 0.02), ("LEASE", 0.15), ("LOOK", 0.01), ("SETTLE", 0.01)):
        monkeypatch.setattr(lock, name, value)
    heard: list[str] = []
    for case, locked in enumerate((True, None, False)):
        folder = tmp_path / str(case)
        folder.mkdir()
        with monkeypatch.context() as patch:
            if locked is not True:
                answers = iter([locked, True])
                patch.setattr(lock, "lock_of_system", lambda _, a=answers: next(a))
            elsewhere(folder, f"dead-{case}")
            os.utime(folder / "lock", (2e9, 2e9))  # the clock of that host is ahead by years
            with hold_lock(folder, say=heard.append) as lease:
                lease.check()
                assert json.loads((folder / "lock").read_text())["pid"] == os.getpid()
                time.sleep(0.1)
                assert json.loads((folder / "lock").read_text())["beat"] > 0
        assert (folder / "lock").read_text() == ""
    assert len(heard) == 3 and "waiting up to 0.15 s for a sign of life" in heard[0]
    # another lock that the same dead process has left is not waited for
    monkeypatch.setattr(lock, "LEASE", 60.0)
    elsewhere(tmp_path, "dead-0")
    with hold_lock(tmp_path, say=heard.append):
        assert len(heard) == 3
    elsewhere(tmp_path, "alive")
    ends = threading.Event()

    def lives():
        beat = 0
        while not ends.wait(0.02):
            beat += 1
            elsewhere(tmp_path, "alive", beat)

    beats = threading.Thread(target=lives)
    beats.start()
    said = r"process 1 on host elsewhere works in this folder since then.*expires 60 s after the last sign of life"
    with pytest.raises(UsageError, match=said), hold_lock(tmp_path):
        pass
    ends.set()
    beats.join()
    assert holder_of(tmp_path) is not None
    os.utime(tmp_path / "lock", (1e9, 1e9))
    assert holder_of(tmp_path) is None


def test_a_process_that_was_taken_for_dead_gives_way(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "BEAT", 0.01)
    with hold_lock(tmp_path) as lease:
        elsewhere(tmp_path, "later")
        time.sleep(0.1)
        with pytest.raises(StorageError, match="process 1 on host elsewhere has taken this folder over"):
            lease.check()
    assert json.loads((tmp_path / "lock").read_text())["host"] == "elsewhere"


def test_a_file_from_a_stranger_reaches_no_host_and_writes_nowhere_else(file, refused):
    folder, text = file.parent, file.read_text().replace("workers = 0\n", "")
    for table, line, does in (
        ("cluster", 'scheduler = "tcp://198.51.100.1:8786"', "names a host, whose answers run as code"),
        ("cluster", 'to = "slurm"\nworkers = 1', "starts programs"),
        ("cluster", 'hosts = ["a", "b"]', "names machines"),
        ("cluster", 'options = {address = "http://198.51.100.1"}', "may name hosts"),
        ("cluster", 'tls = "certificates"', "says which hosts are believed"),
        ("prepare", 'write_contract = "../contract.json"', "writes outside of"),
        ("data", 'test = "s3://b/k?endpoint_override=198.51.100.1"', "names a host in the address"),
    ):
        key = line.split(" ")[0]
        file.write_text(text.replace(f"[{table}]", f"[{table}]\n{line}"))
        for command in ("run", "submit"):
            assert f"the key {table}.{key} of a file {does}" in refused(command, file, "--out", folder / "o"), line
        assert not (folder / "o").exists() and not (folder.parent / "contract.json").exists()
        with pytest.raises(UsageError, match=f"the key {table}.{key} of a file"):
            pipelines.run(file)
        give("run", file, "--print")
    # what the user says is meant, and a file that was consented to is taken as it stands
    file.write_text(text.replace("[cluster]", '[cluster]\nscheduler = "tcp://198.51.100.1:8786"'))
    for found in (pipelines.runs.run_file.read_run_file(str(file), ["cluster.scheduler=tcp://127.0.0.1:1"]),
                  pipelines.runs.run_file.checked({"cluster": {"scheduler": "tcp://127.0.0.1:1"}})):  # fmt: skip
        found.refuse_reaching()
    file.write_text(text.replace("[cluster]", '[cluster]\nscheduler = "tcp://127.0.0.1:1"\nconnect_timeout = 0.1'))
    said = refused("run", file, "--trust", code=4)
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in said and "/runs/trees --trust` goes on" in said
    assert "cluster.scheduler" in refused("resume", folder / "runs" / "trees")
    give("resume", folder / "runs" / "trees")
    # the same for the settings of a command
    (folder / "c.toml").write_text('scheduler = "tcp://198.51.100.1:8786"\ndata = "documents.parquet"\nout = "x"\n')
    assert "the key scheduler of a file names a host" in refused("prepare", "--config", folder / "c.toml")
    (folder / "c.toml").write_text("trust = true\n")
    assert "a file cannot say that it is trusted" in refused("prepare", "--config", folder / "c.toml")


def test_what_is_left_out_is_said(file, prints):
    # nothing is held out: what has a table is named, and what has none is not missed
    file.write_text(FILE.replace('split = "split"', "").replace("[predict]", "[evaluate]"))
    shown = prints("run", file)
    assert "evaluate: left out, since no data is held out" in shown and "predict: left out" not in shown


def test_a_stage_that_cannot_work_is_refused_before_the_first_one(file, tmp_path):
    table = pq.read_table(tmp_path / "documents.parquet")
    test = table.filter(pc.equal(table["split"], "test")).drop_columns("split")
    pq.write_table(test.drop_columns("label"), tmp_path / "unlabelled.parquet")
    numbers = pa.array(range(test.num_rows))
    pq.write_table(test.set_column(test.column_names.index("label"), "label", numbers), tmp_path / "other.parquet")
    (tmp_path / "new.csv").write_text("words,label\nroot and leaf,a\n")
    refused = {
        "prepare.keep=txet": "prepare.keep names a column that is not there.*column 'txet'; did you mean 'text'",
        "data.label=topic": "data.label names a column that is not there",
        "data.weight=w": "data.weight names a column",
        "prepare.split=part": "prepare.split names a column",
        "prepare.where=year > 3": "prepare.where names a column",
        "prepare.text=label,nothing": "prepare.text names a column",
        "data.features=label": "data.features has no effect on documents",
        "prepare.expect=contract.toml": "contract.toml",
        "evaluate.data=new.csv": "evaluate, which reads prepare.text, names a column that is not there",
        "evaluate.data=gone.parquet": "gone.parquet",
        "predict.data=new.csv": "predict, which reads prepare.text, names a column that is not there",
        "predict.keep=text": "predict.keep names 'text', which the prepared rows will not have",
        "predict.keep=file": "predict.keep names 'file'",
        "model.start=nothing": "no such model folder",
        "model.estimator=regressor": "data.label, of a regression, is of type str, expected numbers",
        "data.test=new.csv": "prepare.split and data.test both say what is held out",
    }
    for change, said in refused.items():
        if change == "predict.keep=file":
            changes = ["prepare.keep=file"]
            pq.write_table(table.append_column("file", table["label"]), tmp_path / "documents.parquet")
        else:
            changes = []
        with pytest.raises((UsageError, DataError)) as found:
            pipelines.run(file, overrides=[*changes, change.replace("=new", f"={tmp_path}/new")])
        assert re.search(said, str(found.value)), (change, str(found.value))
    file.write_text(file.read_text().replace('split = "split"', "").replace("[model]", "[evaluate]\n[model]"))
    for change, said in {
        "data.test=other.parquet": "the label is of type int, and of type str in the data",
        "evaluate.split=dev": "no such split.*there are train",
        "data.split=dev": "no such split",
    }.items():
        with pytest.raises((UsageError, DataError), match=said):
            pipelines.run(file, overrides=[change.replace("test=", f"test={tmp_path}/")])
    assert not (file.parent / "runs").exists()
    # New documents without labels are labelled, and not judged; those of the table [evaluate] itself must have them.
    with pytest.raises(DataError, match="evaluate: these rows have no labels to be judged by"):
        pipelines.run(file, overrides=[f"evaluate.data={tmp_path}/unlabelled.parquet"])
    labelled = pipelines.run(file, overrides=[f"data.test={tmp_path}/unlabelled.parquet"])
    assert labelled.stages["evaluate"].why.startswith("the held-out rows have no labels")
    assert labelled.stages["predict"].state == labelled.stages["report"].state == "done"


def test_a_folder_of_something_else_is_refused(file, tmp_path, refused):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("x")
    assert "is no run folder" in refused("run", file, "--out", tmp_path / "other")
    with pytest.raises(DataError, match=r"holds no run\.toml"):
        pipelines.resume(tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["mine.txt"]


def test_runs_are_listed_with_their_state(ran, prints):
    runs = ran.parent / "runs"
    with pytest.raises(UsageError):
        pipelines.run(ran, out=runs / "bad", overrides=["prepare.min_df=9999"])
    found = {one.name: one for one in pipelines.list_runs(runs)}
    assert (found["trees"].state, found["trees"].stage) == ("done", "report")
    assert found["trees"].rounds is not None and found["trees"].gap is not None and found["trees"].gap <= 1e-4
    assert found["bad"].state == "failed"
    page = prints("runs", runs)
    assert "trees" in page and "done" in page and "failed" in page
    assert "no runs in" in prints("runs", ran.parent / "nothing")


def test_force_goes_on_with_the_same_training_and_discards_another(prepared, tmp_path, monkeypatch, refused):
    line = ["train", str(prepared), "--workers", "0", "--out", str(tmp_path / "out"), "--log-format", "json"]
    line += ["--tol", "1e-300", "--update", "gradboost", "--sweeps", "1", "--max-rounds", "10000000", "--alpha"]

    def first_round_of(*more):
        rounds = []

        def breaks(self, name, **fields):
            rounds.extend([fields["round"]] if name == "round" else [])
            if len(rounds) == 3:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Console, "event", breaks)
            main([*line, *more])
        assert (tmp_path / "out.unfinished" / "fit").is_file()
        return rounds[0]

    assert first_round_of("0.01", "--force") == 1 and first_round_of("0.01", "--force") > 1
    assert first_round_of("0.02", "--force") == 1
    # without it, the progress of another training is kept
    refused(*line, "0.03")
    assert (tmp_path / "out.unfinished" / "fit").is_file()


def test_columns_by_their_kind_are_checked_before_the_first_stage(tmp_path):
    count = 60
    columns = {"title": ["sea wave", "sky cloud"] * (count // 2), "price": np.arange(count) % 7 * 1.0}
    pq.write_table(pa.table(columns | {"topic": ["sea", "sky"] * (count // 2)}), tmp_path / "d.parquet")
    tables = {
        "data": {"data": str(tmp_path / "d.parquet"), "label": "topic"},
        "prepare": {"column": ["title=text", "price=number"], "min_df": 1, "max_df": 1.0},
        "model": {"alpha": 0.01},
        "cluster": {"workers": 0},
    }
    for given, said in ((["titel=text"], "prepare.column names a column"), (["price=text"], "expected text")):
        with pytest.raises(DataError, match=said):
            pipelines.run(tables | {"prepare": {"column": given}}, out=tmp_path / "o")
    assert not (tmp_path / "o").exists()
    assert pipelines.run(tables, out=tmp_path / "o").converged


def test_documents_of_a_pattern_and_a_contract_are_inputs(tmp_path, prints, tells, refused):
    def month(number):
        (tmp_path / f"month={number}").mkdir()
        write_documents(tmp_path / f"month={number}" / "documents.parquet", rows=120, seed=number)

    def stages():
        """How many stages a call does."""
        return [event["event"] for event in tells("run", file)].count("stage_start")

    pattern, contract, file = "month=*/documents.parquet", tmp_path / "contract.toml", tmp_path / "trees.toml"
    text = FILE.replace("documents.parquet", pattern).replace('split = "split"', 'expect = "contract.toml"')
    file.write_text(text.replace("[predict]\n", ""))
    contract.write_text("rows = [100, 1000]\n")
    month(1)
    month(2)
    assert stages() > 1 and stages() == 0
    # raw documents of a pattern are labelled too
    said = prints("predict", tmp_path / "runs" / "trees", tmp_path / pattern, "--out", tmp_path / "labelled")
    assert "240 predictions" in said
    contract.write_text("rows = [100, 999]\n")
    assert stages() > 0 and stages() == 0
    month(3)
    assert stages() > 1
    contract.write_text("rows = [1, 2]\n")
    assert "360 rows, expected 1 to 2" in refused("run", file, code=3)
