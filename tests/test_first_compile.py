"""The first fit of an installation: one line says that loops are compiled, and a second process shares the work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# A small fit in a process that has no compiled loops: which of them it compiles itself, after the other process.
FIRST = """
import sys
from numba.core import event
from dboost import first_compile
from dboost.compiled.solves import descent

class Own(event.Listener):
    names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

event.register("numba:compile", Own())
first_compile.announce()
first_compile.announce()
first_compile.beside.start(2)
first_compile.beside.wait_for(descent._newton_descent)
other = first_compile.beside._process
if other is not None:
    other.wait()
first_compile.compile_several()
print(Own.names)
"""


def process(code, kept):
    """What a process of Python says that finds no compiled loops but those in a folder."""
    environment = dict(os.environ, NUMBA_CACHE_DIR=str(kept), PYTHONPATH=str(ROOT))
    command = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)


@pytest.mark.full
def test_the_other_process_compiles_what_this_one_will_run_and_nothing_is_said(tmp_path):
    for _ in range(2):
        done = process(FIRST, tmp_path)
        assert (done.stdout, done.stderr) == ("[]\n", "")


# A default fit of two classes comes to the loops of its Newton steps after those of its sums.
STEPS = """
import numpy as np, dboost
from numba.core import event
from dboost import first_compile

class Own(event.Listener):
    names = set()
    def on_start(self, event):
        self.names.add(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

first_compile.beside.start(1, "float64")
assert first_compile.beside._process.wait() == 0
event.register("numba:compile", Own())
X = np.random.default_rng(0).normal(size=(600, 20))
dboost.BoostedClassifier().fit(X, X[:, 0] + X[:, 1] > 0.5)
print(len(Own.names) > 10, sorted(Own.names & {"descend", "_gram", "minimise", "padded_hessian_product"}))
"""


@pytest.mark.full
def test_the_steps_of_a_default_fit_are_compiled_beside_its_sums(tmp_path):
    done = process(STEPS, tmp_path)
    assert done.stdout.split("\n")[0] == "True []", done.stderr


def test_a_process_that_compiles_says_so_once_and_where_and_one_that_does_not_says_nothing(tmp_path):
    line = (
        "from dboost import first_compile; first_compile.announce(); first_compile.SILENT = 0.0\n"
        "from dboost.compiled.vectors.shuffled import *\nimport dboost.compiled.vectors.norms as norms, numpy as np\n"
        "norms.sums_of_entries(np.ones((2, 2))); norms.largest_entries(np.ones((2, 2)))"
    )
    said = f"compiling the loops that this kind of fit runs, once: later processes find them in {tmp_path}\n"
    assert [process(line, tmp_path).stderr for _ in range(2)] == [said, ""]


class Compiling:
    """What numba says of a function that it compiles."""

    def __init__(self, module):
        function = type("Function", (), {"__module__": module})
        self.data = {"dispatcher": type("Dispatcher", (), {"py_func": function})}


def test_two_seconds_of_compiling_are_silent(monkeypatch, caplog):
    from dboost import first_compile

    now = 0.0
    monkeypatch.setattr(first_compile, "monotonic", lambda: now)
    announcer, ours, others = first_compile.Announcer(), Compiling("dboost.losses"), Compiling("elsewhere")

    def compiled(what, seconds, inner=None):
        nonlocal now
        announcer.on_start(what)
        if inner is not None:
            compiled(*inner)
        now += seconds
        announcer.on_end(what)

    compiled(others, 60.0)
    # what is compiled for a loop counts with it, and only once
    compiled(ours, 0.5, (others, 0.9))
    compiled(ours, 0.5)
    assert not announcer.said and caplog.messages == []
    now += 60.0
    compiled(ours, 0.2)
    compiled(ours, 0.1, (ours, 0.1))
    assert announcer.said and len(caplog.messages) == 1


def test_a_second_process_is_started_only_where_there_is_a_second_core(monkeypatch):
    from dboost import first_compile

    started = []
    monkeypatch.setattr(first_compile, "kept", lambda dispatcher: False)
    monkeypatch.setattr(first_compile, "lasting", lambda: True)
    monkeypatch.setattr(first_compile.subprocess, "Popen", lambda *_, **__: started.append(1) or object())
    monkeypatch.setattr(first_compile, "loaded", lambda dispatcher: False)
    # as many processors as the machine may have: what counts is those that this process may use
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(first_compile, "available_cores", lambda: 1)
    first_compile.Beside().start(2)
    assert started == []
    monkeypatch.setattr(first_compile, "available_cores", lambda: 2)
    first_compile.Beside().start(2)
    assert started == [1]
    monkeypatch.setattr(first_compile, "loaded", lambda dispatcher: True)
    first_compile.Beside().start(2)
    assert started == [1], "this process has the loops"


def test_the_loops_compiled_beside_are_those_of_a_fit():
    """Types that a fit does not have would be compiled in vain."""
    from sklearn.datasets import load_iris

    from dboost import BoostedClassifier
    from dboost.compiled.solves import descent, one_output, positive, quadratic
    from dboost.first_compile import compile_one, compile_several

    X, y = load_iris(return_X_y=True)
    BoostedClassifier(alpha=1e-3).fit(X, y)
    BoostedClassifier().fit(X, y > 0)
    loops = descent._newton_descent, positive.factor_blocks, one_output.descend, quadratic._gram, quadratic.minimise
    before = [set(one.signatures) for one in loops]
    compile_several()
    compile_one("float64")
    assert all(before) and [set(one.signatures) for one in loops] == before
