"""The roofline: ceilings are positive, a loop's share is its bound over its time, the page is written."""

from __future__ import annotations

import json

import pytest

from lab.benchmarks import kernels


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
