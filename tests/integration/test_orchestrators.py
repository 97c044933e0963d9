"""The examples for Prefect, Airflow and Dagster, run by these themselves where they are installed.

Covers: one night each, from nothing to a first champion. Does not cover: their servers and workers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.run_kills import RETRAIN, RETRAIN_RUN, write_documents

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "orchestrators"

PREFECT = """
import sys
sys.path.insert(0, sys.argv[3])
from prefect.testing.utilities import prefect_test_harness
from prefect_flow import nightly
with prefect_test_harness():
    found = nightly(sys.argv[1], sys.argv[2], ("word_birch",))
    again = nightly(sys.argv[1])
import json
print("FOUND " + json.dumps([found["outcome"], found["champion"], found["labels"], again["outcome"]]))
"""
DAGSTER = """
import sys, json
sys.path.insert(0, sys.argv[3])
import dagster
from dagster_job import champion, defs, Night
config = {"ops": {"champion": {"config": {"file": sys.argv[1]}}}}
told = []
for _ in range(2):
    done = dagster.materialize([champion], run_config=config)
    told.append(done.asset_materializations_for_node("champion")[0].metadata["outcome"].value)
print("FOUND " + json.dumps([*told, [job.name for job in defs.schedules]]))
"""
AIRFLOW = """
import sys, json
sys.path.insert(0, sys.argv[3])
from airflow_dag import nightly
dag = nightly()
challenge = dag.task_dict["challenge"].python_callable
print("FOUND " + json.dumps([dag.dag_id, sorted(dag.task_ids), dag.max_active_runs, challenge()]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run.toml").write_text(RETRAIN_RUN)
    (tmp_path / "nightly.toml").write_text(RETRAIN)
    write_documents(tmp_path / "documents.parquet", 400)
    write_documents(tmp_path / "test.parquet", 300, 9)
    return tmp_path


def found(code: str, folder: Path) -> list:
    arguments = [str(folder / "nightly.toml"), str(folder / "retraining"), str(EXAMPLES)]
    environment = {
        **os.environ,
        "HOME": str(folder),
        "DBOOST_RETRAIN": arguments[0],
        "DO_NOT_TRACK": "1",
        "AIRFLOW_HOME": str(folder / "airflow"),
        "DAGSTER_HOME": "",
    }
    environment.pop("DAGSTER_HOME")
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert done.returncode == 0 and lines, done.stdout + done.stderr
    return json.loads(lines[-1].removeprefix("FOUND "))


@pytest.mark.timeout(300)
def test_prefect_lives_through_two_nights(folder: Path) -> None:
    pytest.importorskip("prefect")
    assert found(PREFECT, folder) == ["promoted", "v0001", ["birch"], "nothing new"]


@pytest.mark.timeout(300)
def test_dagster_materialises_the_champion(folder: Path) -> None:
    pytest.importorskip("dagster")
    assert found(DAGSTER, folder)[:2] == ["promoted", "nothing new"]


@pytest.mark.timeout(300)
def test_airflow_reads_the_dag_and_its_task_runs(folder: Path) -> None:
    pytest.importorskip("airflow.sdk")
    said = found(AIRFLOW, folder)
    assert said[:3] == ["retraining", ["challenge", "tell"], 1] and said[3]["outcome"] == "promoted"
