"""The measuring runs: same bits, memory.

Covers: the data they write and the figures they take, on small examples. Does not cover: the full runs
(``python -m lab same-bits`` and its neighbours).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import dboost
from lab import same_bits
from lab.memory import PeakMemory
from tests.engine.conftest import wait_until


def test_the_cut_changes_row_groups_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, sizes in (("a", (30, 30, 40)), ("b", (1, 90, 2, 7))):
        same_bits.write_rows(tmp_path / f"{name}.parquet", sizes)
    a, b = (pq.ParquetFile(tmp_path / f"{name}.parquet") for name in "ab")
    assert a.read().equals(b.read())
    assert [a.metadata.row_group(i).num_rows for i in range(3)] == [30, 30, 40]
    assert [b.metadata.row_group(i).num_rows for i in range(4)] == [1, 90, 2, 7]
    indices = np.stack(a.read().column("indices").to_numpy())
    assert (np.diff(indices, axis=1) > 0).all() and indices.max() < same_bits.N_FEATURES


def test_the_digest_sees_one_bit() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = (X[:, 0] > 0).astype(int)
    model = dboost.BoostedClassifier(alpha="quick", penalty="l1").fit(X, y)
    before = same_bits.digest(model)
    assert before == same_bits.digest(dboost.BoostedClassifier(alpha="quick", penalty="l1").fit(X, y))
    model.model_.W[0, 0] = np.nextafter(model.model_.W[0, 0], np.inf)
    assert same_bits.digest(model) != before


def test_peak_memory_sees_a_child_that_is_gone() -> None:
    code = "held = bytearray(60_000_000); input()"
    with PeakMemory(every=0.01) as peak, subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as child:
        wait_until(lambda: peak.children.get(child.pid, 0) > 60_000_000)
        child.communicate(b"\n")
    assert peak.children[child.pid] > 60_000_000
    assert peak.driver > 10_000_000
