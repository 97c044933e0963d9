"""Compiled functions where there is no folder to keep them in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from dboost.compiled.jit import njit

ROOT = Path(__file__).resolve().parents[2]

# What a user runs; numba asks the class below, in the same file, for a place to keep machine code in.
SCRIPT = """
import warnings
import numpy as np

class Nowhere:
    @classmethod
    def from_function(cls, function, file):
        return None

if __name__ == "__main__":
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        from dboost.data.csr import any_repeats  # the line that the warning names
        from dboost.compiled.order import shuffle
        order = np.arange(5)
        shuffle(order, 0)
    print(sorted(order.tolist()))
    for warning in seen:
        print(warning.category.__name__, warning.filename, warning.lineno, warning.message)
"""


def test_without_a_folder_functions_are_compiled_in_memory_and_that_is_said_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    environment["NUMBA_CACHE_LOCATOR_CLASSES"] = "script.Nowhere"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=110, env=environment)
    assert done.returncode == 0, done.stderr
    order, said = done.stdout.splitlines()
    assert order == "[0, 1, 2, 3, 4]"
    line = 1 + SCRIPT.splitlines().index(next(line for line in SCRIPT.splitlines() if "# the line" in line))
    assert said.startswith(f"DboostWarning {script} {line} there is no folder in which compiled code can be kept")
    assert "NUMBA_CACHE_DIR" in said


def test_other_errors_of_numba_are_not_hidden(monkeypatch):
    def refused(**options):
        raise RuntimeError("of another kind")

    monkeypatch.setattr(numba, "njit", refused)
    with pytest.raises(RuntimeError, match="of another kind"):
        njit(nogil=True, cache=True)(len)


def test_every_compiled_function_goes_through_it():
    for path in (ROOT / "dboost").rglob("*.py"):
        if path.name != "jit.py":
            assert not re.search(r"^\s*from numba import .*\bn?jit\b|numba\.n?jit", path.read_text(), flags=re.M), path
