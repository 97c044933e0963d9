"""How a training on the command line ends early: by a limit, or by a signal."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dboost.model.fitted import read_model
from pipelines.cli import main

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ["--workers", "0"]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--max-passes", "30"], "max_passes"),
        (["--max-seconds", "0.001"], "max_seconds"),
        (["--max-rounds", "3", "--update", "gradboost", "--sweeps", "1"], "max_rounds"),
    ],
)
def test_a_limit_is_exit_code_6_and_the_model_says_which(flags, reason, prepared, tmp_path):
    out = tmp_path / "model"
    more = ["--workers", "0", "--penalty", "l1", "--alpha", "1e-6", "--tol", "1e-12"]
    assert main(["train", str(prepared), "--out", str(out), *more, *flags]) == 6
    assert read_model(out).certificate.stop_reason == reason


def test_an_interrupted_training_leaves_its_progress_and_no_output(prepared, tmp_path):
    out = tmp_path / "model"
    # So many rounds at so small a tolerance that the signal arrives long before the end.
    arguments = ["train", str(prepared), "--out", str(out), "--workers", "0", "--tol", "1e-300", "--penalty", "l1"]
    arguments += ["--max-rounds", "10000000", "--update", "adaboost", "--alpha", "1e-6", "--log-format", "json"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "pipelines", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            if json.loads(line)["event"] == "round":
                break
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert errors.startswith("dboost: error[") and len(errors.splitlines()) == 1, errors
    assert [path.name for path in tmp_path.iterdir()] == ["model.unfinished"]
    work = tmp_path / "model.unfinished"
    assert sorted(path.name for path in work.iterdir() if "previous" not in path.name) == [
        "fit", "lock", "model.partial", "train.toml",
    ]  # fmt: skip
    assert f"`dboost resume {out}`, goes on" in errors
    partial = read_model(work / "model.partial").certificate
    assert partial.stop_reason == "interrupted" and partial.n_iter >= 1
