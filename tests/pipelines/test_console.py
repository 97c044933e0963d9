"""Plain lines and JSON lines."""

import builtins
import io
import json
import math
import warnings

import numpy as np
from rich.text import Text

from dboost.errors import DboostWarning
from pipelines.console import Console

RECORD = {
    "round": 3,
    "objective": 0.25,
    "gap": 1e-3,
    "features_in": 5,
    "features_out": 1,
    "features": 9,
    "entries": 20,
    "passes": 12,
    "seconds": 0.5,
    "lower_bound": -math.inf,
    "step": np.float64(1.0),
}


def run(log_format):
    out, err = io.StringIO(), io.StringIO()
    console = Console(log_format, out=out, err=err)
    with console.stage("reading"), console.rounds("penalty l1") as show:
        show(RECORD)
        show({**RECORD, "round": 4, "gap": math.nan})
    console.say("a sentence")
    console.page("result", [Text("for a person")], {"error": 0.5, "worst": math.inf, "counts": np.eye(2)})
    console.warning("two\nlines")
    return out.getvalue(), err.getvalue()


def test_json_lines_parse_one_by_one():
    out, err = run("json")
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["event"] for event in events] == [
        "stage_start", "round", "round", "stage", "message", "result", "warning",
    ]  # fmt: skip
    assert events[1]["round"] == 3 and events[1]["lower_bound"] is None
    assert events[5] == {"event": "result", "error": 0.5, "worst": None, "counts": [[1.0, 0.0], [0.0, 1.0]]}
    assert err == "dboost: warning: two lines\n"


def test_plain_lines_have_one_round_each_and_no_control_codes():
    out, _ = run("plain")
    assert "\x1b" not in out and "\r" not in out
    lines = out.splitlines()
    (third,) = [line for line in lines if line.split()[:1] == ["3"]]
    assert third.split() == ["3", "0.2500000", "1.00e-03", "+5", "-1", "9", "20", "12", "0.50"]
    (fourth,) = [line for line in lines if line.split()[:1] == ["4"]]
    assert "unknown" in fourth
    assert any(line.startswith("reading: ") for line in lines)
    assert all(line == line.rstrip() and len(line) <= 100 for line in lines)


def test_warnings_are_lines_and_not_repeated():
    err = io.StringIO()
    console = Console("plain", out=io.StringIO(), err=err)
    with console.warnings():
        for _ in range(3):
            warnings.warn("the gap is 0.1", DboostWarning, stacklevel=1)
    assert err.getvalue() == "dboost: warning: the gap is 0.1\n"


def test_in_a_notebook_it_writes_to_its_file_and_not_below_the_cell(monkeypatch):
    class ZMQInteractiveShell:
        """By this name rich knows a notebook."""

    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    out, _ = run("plain")
    assert "a sentence" in out and "for a person" in out
