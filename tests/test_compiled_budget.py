"""How many functions a first fit compiles: no more than ``budgets.toml`` says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BUDGET = tomllib.loads((ROOT / "tests" / "budgets.toml").read_text("utf-8"))["compiled"]
FIT = """
import json, os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # so that all is compiled in this process
from numba.core import event

class Compiled(event.Listener):
    found = []
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        self.found.append(f"{function.__module__}.{function.__qualname__}")
    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())
import numpy as np, scipy.sparse, dboost
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 20))
scores = X[:, :10] + 0.5 * rng.normal(size=(400, 10))
data, labels, estimator = {
    "two_classes": (X, scores[:, 0] > 0, dboost.BoostedClassifier(alpha=0.01)),
    "text": (scipy.sparse.csr_array(X * (X > 0.5)), scores[:, 0] > 0, dboost.BoostedClassifier(alpha=0.01)),
    "regression": (X, scores[:, 0], dboost.BoostedRegressor(alpha=0.01)),
    "ten_classes": (X, scores.argmax(axis=1), dboost.BoostedClassifier(alpha=0.01)),
    "two_classes_by_default": (X, scores[:, 0] > 0, dboost.BoostedClassifier()),
    "regression_by_default": (X, scores[:, 0], dboost.BoostedRegressor()),
}[sys.argv[1]]
estimator.fit(data, labels).predict(data[:2])
print(json.dumps(Compiled.found))
"""


def compiled(kind: str, kept: Path, **more: str) -> list[str]:
    """What a fit compiles in a process of its own, whose loops are kept in a folder."""
    environment = dict(os.environ, NUMBA_CACHE_DIR=str(kept), PYTHONPATH=str(ROOT), **more)
    command = [sys.executable, "-c", FIT, kind]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=110, check=True)
    found: list[str] = json.loads(done.stdout)
    return found


# One kind is enough to see that a loop of a fit brings functions of numba's with it, as the sum of an array does.
KINDS = [pytest.param(kind, marks=[] if kind == "two_classes" else pytest.mark.full) for kind in sorted(BUDGET)]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no calls for processors")
@pytest.mark.parametrize("kind", KINDS)
def test_a_first_fit_compiles_no_more_than_its_budget(kind: str, tmp_path: Path) -> None:
    # fast code, which takes most of the time, is not asked for: the number is the same
    found = compiled(kind, tmp_path, NUMBA_OPT="0")
    assert len(found) <= BUDGET[kind], f"{len(found)} functions are compiled for {kind}: {sorted(found)}"


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no calls for processors")
@pytest.mark.parametrize("kind", ["two_classes", "regression"])
def test_what_a_first_fit_compiles_is_found_by_the_next_process(kind: str, tmp_path: Path) -> None:
    assert compiled(kind, tmp_path)
    assert compiled(kind, tmp_path) == []


def test_the_budget_of_a_fit_of_one_strength_is_what_a_first_fit_may_take() -> None:
    assert max(BUDGET[kind] for kind in ("two_classes", "text")) <= 35
