"""What importing dboost costs: nothing heavy, and every public name resolves.

Covers: what each step of a short use loads, all of them in one process, in this order.
Does not cover: how long it takes.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import dboost

PARTS = ["hypotheses", "losses", "metrics", "penalties", "plots"]
# name of a step -> what is done in it
STEPS = {
    "import": "import dboost",
    "parts": f"assert [getattr(dboost, part).__name__ for part in {PARTS}] == {[f'dboost.{part}' for part in PARTS]}",
    "learned": "import dboost.hypotheses.learned",
    "plan": (
        "import numpy; from dboost.data.prepared.mapper import InProcess; from dboost.data import build_plan\n"
        "build_plan(numpy.eye(3), [0, 1, 0], task='binary', engine=InProcess())"
    ),
    "engine": (
        "from dboost.engine.select import open_engine\n"
        "with open_engine(distributed_input=True) as engine: assert engine.n_workers == 1"
    ),
    "fit": (
        "X = numpy.random.default_rng(0).normal(size=(60, 4)); y = X[:, 0] > 0\n"
        "dboost.BoostedClassifier().fit(X, y).predict(X)"
    ),
    "commands": "from dboost_pipelines.commands import evaluate, models, predict, train",
}


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """The packages that are loaded after each step."""
    after = "seen[{!r}] = sorted({{name.split('.')[0] for name in sys.modules}})"
    lines = [line for name, code in STEPS.items() for line in (code, after.format(name))]
    code = "\n".join(["import json, sys; seen = {}", *lines, "print(json.dumps(seen))"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return {name: set(names) for name, names in json.loads(done.stdout).items()}


HEAVY = {"dask", "distributed", "sklearn", "numba", "pandas", "pyarrow", "scipy", "numpy", "matplotlib", "IPython"}
# step -> packages that are not loaded by then
WITHOUT = {
    "import": HEAVY,
    "parts": {"matplotlib", "sklearn"},
    "learned": {"sklearn"},
    "plan": {"dask", "distributed", "pyarrow", "pandas"},
    "engine": {"dask", "distributed", "pandas"},
    "fit": {"dask", "distributed"},
    # commands load Dask where there is a cluster alone
    "commands": {"dask", "distributed"},
}


def test_each_step_loads_what_it_needs_and_no_more(loaded):
    assert not {step: found for step, packages in WITHOUT.items() if (found := packages & loaded[step])}
    assert "numpy" in loaded["plan"] and "sklearn" in loaded["fit"] and loaded.keys() == WITHOUT.keys()


def test_public_names_resolve():
    assert not [name for name in dboost.__all__ if getattr(dboost, name) is None or name not in dir(dboost)]


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'BoostedClasifier'"):
        dboost.BoostedClasifier  # noqa: B018


def test_parts_are_imported_as_the_documentation_names_them() -> None:
    """In both usual forms, where a page says `dboost.onnx.to_onnx`."""
    for part in ("hypotheses", "losses", "metrics", "mlflow", "onnx", "penalties", "plots"):
        names: dict[str, object] = {}
        exec(f"import dboost.{part}\nfrom dboost import {part} as other\nsame = dboost.{part} is other", names)
        assert names["same"], part
    exec("from dboost.onnx import to_onnx\nfrom dboost.mlflow import log_model, autolog", {})
