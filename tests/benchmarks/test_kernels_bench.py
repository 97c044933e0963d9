"""The roofline: ceilings are positive, a loop's share is its bound over its time, the page is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipelines.benchmarks import kernels


def test_the_largest_bound_binds(monkeypatch):
    machine = object.__new__(kernels.Ceilings)
    machine.fma = {"float32": 1e9}
    machine.dram = 1e9
    monkeypatch.setattr(machine, "rows", lambda nbytes, k, dtype: 1e9, raising=False)
    work = kernels.Work(flops=1e6, stored=3e6, row_bytes=2e6, table=8, dtype="float32")
    assert machine.judge(work, 6.0, 4) == pytest.approx(
        {"GF/s": 1e-6 * 1e6 / 6.0, "GB/s rows": 1e-6 * 2e6 / 6.0, "binds": "DRAM", "share": 0.5}
    )


def test_the_quick_run_writes_every_loop(tmp_path, capsys):
    assert kernels.run(tmp_path, True) == 0
    lines = json.loads((tmp_path / "kernels.json").read_text(encoding="utf-8"))
    assert {line["kernel"].split(",")[0] for line in lines} == set(kernels.KERNELS)
    assert all(line["ms"] > 0 and line["share"] > 0 for line in lines)
    assert "Each loop against what binds it" in (tmp_path / "kernels.md").read_text(encoding="utf-8")
    assert "binds" in capsys.readouterr().out


def test_loops_run_under_both_names_of_the_folder(tmp_path):
    """Installed, the folder is dboost_pipelines: what was compiled as pipelines must not be in its way."""
    (tmp_path / "dboost_pipelines").symlink_to(Path(kernels.__file__).parents[1])
    assert kernels._sum(np.ones(3)) == 3.0
    code = "import numpy; from dboost_pipelines.benchmarks import kernels; print(kernels._sum(numpy.ones(3)))"
    given = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=given, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split() == ["3.0"], done.stderr
