"""Retraining: what is promoted, declined and left alone, what a kill leaves, going back, and schedules that work.

Covers: `dboost retrain` and `rollback` on documents in memory-sized files, the gates, drift, schedules.
Does not cover: how a run trains (test_runs.py).
"""

from __future__ import annotations

import ast
import configparser
import json
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import dboost
import pipelines
from dboost.errors import DataError, UsageError
from pipelines.cli import main
from pipelines.retraining import retrain as steps
from pipelines.retraining.config import Gates, checked
from pipelines.retraining.gates import Figures, verdicts
from pipelines.retraining.home import Home
from pipelines.retraining.judge import Comparison, Judged, label_drift, stability, term_drift
from pipelines.retraining.schedules import SCHEDULES
from pipelines.runs.lock import LOCK
from tests.pipelines.conftest import write_documents

RUN = """
[data]
data = "d.parquet"
test = "t.parquet"
label = "label"
[prepare]
min_df = 2
[model]
penalty = "l1/l2"
alpha = 0.003
tol = 1e-6
[cluster]
workers = 0
"""
FILE = """
[retrain]
run = "run.toml"
[gates]
class_rows = 20
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run.toml").write_text(RUN)
    (tmp_path / "nightly.toml").write_text(FILE)
    documents(tmp_path / "d.parquet", 300, 0)
    documents(tmp_path / "t.parquet", 200, 9)
    return tmp_path


def documents(path: Path, rows: int, seed: int, change=None) -> None:
    write_documents(path, rows, seed)
    if change is not None:
        pq.write_table(change(pq.read_table(path)), path)


def shuffled(table: pa.Table) -> pa.Table:
    """Labels that have nothing to do with the documents."""
    labels = np.random.default_rng(0).permutation(table["label"].to_pylist())
    return table.set_column(1, "label", pa.array(labels))


def mostly_apples(table: pa.Table) -> pa.Table:
    apples = np.array(table["label"].to_pylist()) == "apple"
    keep = apples | (np.random.default_rng(0).random(len(apples)) < 0.15)
    return table.filter(pa.array(keep))


def retrain(folder: Path):
    return pipelines.retrain(folder / "nightly.toml")


def test_first_better_unchanged_worse_and_back(folder: Path, capsys) -> None:
    first = retrain(folder)
    assert (first.outcome, first.version, first.champion) == ("promoted", "v0001", "v0001")
    again = retrain(folder)
    assert (again.outcome, again.version, again.champion) == ("nothing new", None, "v0001")

    documents(folder / "d.parquet", 600, 1)
    better = retrain(folder)
    assert (better.outcome, better.champion) == ("promoted", "v0002") and not better.reasons
    # it began with the champion, whose terms are at other places by now
    cold = pipelines.run(folder / "run.toml", out=folder / "cold")
    assert better.values["passes"] < cold.model.model_.certificate.passes

    documents(folder / "d.parquet", 600, 2, shuffled)
    assert main(["retrain", str(folder / "nightly.toml")]) == 0
    shown = capsys.readouterr().out
    assert "declined: v0003; the champion is v0002" in shown and "loss: challenger less champion +" in shown
    page = (folder / "retraining" / "versions" / "v0003" / "decision.html").read_text()
    assert "declined" in page and "not passed" in page and "<script" not in page
    assert retrain(folder).outcome == "nothing new"

    assert main(["rollback", str(folder / "retraining")]) == 0
    assert "the champion is v0001 again, and no longer v0002" in capsys.readouterr().out
    home = Home(folder / "retraining")
    assert home.champion == "v0001" and dboost.load_pipeline(home.model()).predict(["word_birch"]) == ["birch"]
    with pytest.raises(UsageError, match="no champion before"):
        pipelines.rollback(folder / "retraining")


def test_old_versions_are_deleted_where_that_is_asked_for(folder: Path, capsys) -> None:
    home = Home(folder / "retraining")
    (folder / "nightly.toml").write_text(FILE.replace("[gates]", "keep = 1\n[gates]"))
    for seed, change in ((0, None), (1, None), (2, shuffled), (3, shuffled), (4, shuffled)):
        documents(folder / "d.parquet", 300 + 200 * seed, seed, change)
        assert main(["retrain", str(folder / "nightly.toml")]) == 0
    # The champion, the one before it, and the latest, which was declined.
    assert home.champion == "v0002" and home.versions() == ["v0001", "v0002", "v0005"]
    assert "keep = 1: deleted v0004" in capsys.readouterr().out
    assert sorted(path.name for path in (home.path / "versions").iterdir()) == home.versions()
    assert pipelines.rollback(home.path) == ("v0002", "v0001")
    with pytest.raises(UsageError, match="no champion before"):
        pipelines.rollback(home.path)


def test_a_kill_while_versions_are_deleted_leaves_none_in_part(tmp_path: Path, monkeypatch) -> None:
    home = Home(tmp_path)
    for version in ("v0001", "v0002", "v0003", "v0004"):
        (home.folder(version) / "model").mkdir(parents=True)
        home.promote(version)

    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr("pipelines.retraining.home.clear_abandoned", interrupted)
        home.prune(1)
    assert home.versions() == ["v0003", "v0004"] and home.champion == "v0004" and home.former == ["v0003"]
    home.prune(1)
    assert sorted(path.name for path in (tmp_path / "versions").iterdir()) == ["v0003", "v0004"]


def test_a_folder_without_a_champion_cannot_go_back(tmp_path: Path, capsys) -> None:
    assert main(["rollback", str(tmp_path / "nothing")]) == 2
    assert "holds no champion" in capsys.readouterr().err and not (tmp_path / "nothing").exists()


def test_drifted_labels_are_declined_by_that_gate(folder: Path) -> None:
    retrain(folder)
    documents(folder / "d.parquet", 900, 3, mostly_apples)
    found = retrain(folder)
    assert found.outcome == "declined" and any(reason.startswith("label_drift") for reason in found.reasons)


@pytest.mark.parametrize("step", ["execute", "compare", "html", "write_file", "promote"])
def test_a_kill_leaves_one_champion_and_the_next_call_goes_on(folder: Path, monkeypatch, step: str) -> None:
    retrain(folder)
    documents(folder / "d.parquet", 600, 1)

    class Killed(BaseException):
        pass

    def killed(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Home if step == "promote" else steps, step, killed)
        with pytest.raises(Killed):
            retrain(folder)
    home = Home(folder / "retraining")
    assert home.champion == "v0001"
    dboost.load_pipeline(home.model())
    found = retrain(folder)
    assert home.champion == "v0002" and home.versions() == ["v0001", "v0002"]
    assert found.outcome in ("promoted", "nothing new")


def test_two_at_once_and_files_without_meaning(folder: Path) -> None:
    retrain(folder)
    (folder / "retraining" / LOCK).write_text(json.dumps({"host": "another", "pid": 7, "since": "now"}))
    with pytest.raises(UsageError, match="process 7 on host another"):
        retrain(folder)
    (folder / "retraining" / LOCK).write_text("")
    (folder / "retraining" / "champion.json").write_text('{"version": "v0009"}')
    with pytest.raises(DataError, match="names no version that is there"):
        retrain(folder)
    for tables, said in (
        ({}, "retrain.run is missing"),
        ({"retrain": {"run": "r", "hom": "x"}}, "did you mean 'home'"),
        ({"retrain": {"run": "r"}, "gates": {"loss": -1}}, "gates.loss: found -1"),
        ({"gate": {}}, "did you mean 'gates'"),
    ):
        with pytest.raises(UsageError, match=said):
            checked(tables, folder)
    (folder / "run.toml").write_text(RUN.replace('test = "t.parquet"\n', ""))
    (folder / "retraining" / "champion.json").unlink()
    with pytest.raises(UsageError, match="data.test to judge on"):
        retrain(folder)


# ---- gates and drift -------------------------------------------------------------------------------------------------


def judged(losses, wrong=None):
    found = Judged()
    found.losses.append(np.asarray(losses, float))
    found.wrong.append(np.zeros(len(losses)) if wrong is None else np.asarray(wrong, float))
    found.bins[9] = len(losses), 0.95 * len(losses), 0.95 * len(losses)
    return found


def test_each_gate_closes_for_its_own_reason() -> None:
    rng = np.random.default_rng(0)
    labels, base = np.repeat(["a", "b"], 100), rng.random(200)
    same = Comparison(labels, judged(base), judged(base))
    good = Figures(same, (100, 100), (10, 10), 0.0, 0.0)

    def closed(**changes):
        from dataclasses import replace

        return [one.gate for one in verdicts(replace(good, **changes), Gates()) if not one.passed]

    assert closed() == []
    assert closed(comparison=Comparison(labels, judged(base + 0.1 + 0.01 * rng.random(200)), judged(base))) == ["loss"]
    # a difference that chance explains closes nothing
    assert closed(comparison=Comparison(labels, judged(base + rng.normal(size=200)), judged(base))) == []
    wrong = (labels == "b").astype(float)
    assert closed(comparison=Comparison(labels, judged(base, wrong), judged(base))) == ["class_error"]
    off = judged(base)
    off.bins[9] = 200, 190, 100
    assert closed(comparison=Comparison(labels, off, judged(base))) == ["calibration"]
    assert closed(rows=(10, 100)) == ["rows"] and closed(features=(50, 10)) == ["size"]
    assert closed(label_drift=1.0) == ["label_drift"] and closed(feature_drift=1.0) == ["feature_drift"]


def test_drift_of_samples_of_one_population_alarms_next_to_never() -> None:
    """At the limit of 0.25: 0 of 200 alarms, for labels and for terms; a shift of a third of the labels is seen."""
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.ones(20))
    terms = rng.dirichlet(np.full(2000, 0.3))
    alarms = [0, 0]
    for _ in range(200):
        before, now = (rng.multinomial(1000, share).astype(float) for _ in range(2))
        alarms[0] += stability(before, now) > 0.25
        counts = [dict(zip(map(str, range(2000)), rng.multinomial(40_000, terms).tolist())) for _ in range(2)]
        alarms[1] += term_drift(*counts)[0] > 0.25
    assert alarms == [0, 0]
    assert label_drift({"a": 600.0, "b": 400.0}, {"a": 270.0, "b": 730.0}) > 0.25
    assert label_drift({"a": 500.0}, {"b": 500.0}) > 5.0
    drift, moved = term_drift({"x": 50.0, "y": 10.0, "w": 40.0}, {"x": 50.0, "y": 90.0, "w": 40.0, "z": 3.0})
    assert drift > 0.25 and moved[0]["term"] == "y"


# ---- schedules -------------------------------------------------------------------------------------------------------


def test_the_cron_line_works_as_it_stands(folder: Path) -> None:
    line = SCHEDULES["cron"](str(folder / "nightly.toml"))
    assert line.startswith("17 2 * * * ")
    command = line.split(" ", 5)[5].replace(r"\%", "%").replace("-m dboost_pipelines", "-m pipelines")
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(["sh", "-c", command], cwd=root, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["text"].startswith("promoted: v0001")


def test_the_other_schedules_are_read_by_what_reads_them(folder: Path, capsys) -> None:
    file = str(folder / "nightly.toml")
    for name in SCHEDULES:
        assert main(["retrain", file, "--emit", name]) == 0
        assert "nightly" in capsys.readouterr().out
    assert not (folder / "retraining").exists()
    service, timer = SCHEDULES["systemd"](file).split("# nightly.timer\n")
    units = []
    for text in (service.split("\n", 1)[1], timer):
        unit = configparser.ConfigParser(interpolation=None)
        unit.optionxform = str
        unit.read_string(text)
        units.append(unit)
    assert "retrain" in units[0]["Service"]["ExecStart"] and units[1]["Timer"]["Persistent"] == "true"
    job = yaml.safe_load(SCHEDULES["cronjob"](file))
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    for name in ("prefect", "airflow"):
        ast.parse(SCHEDULES[name](file))
