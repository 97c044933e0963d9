"""The bench of stumps: its data, the scan that judges the rounds, and its page."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from dboost.data.plan import build_plan
from dboost.engine.local import LocalEngine
from dboost.hypotheses.stumps.pool import threshold_keys
from lab.benchmarks.stumps import COLUMNS, Scan, block, boosted, page


def small() -> tuple[np.ndarray, np.ndarray]:
    X, y = block(0, 400)
    return X[:, [3, 90, 117, 160]], y


def test_blocks_are_made_again_with_the_same_bits() -> None:
    X, y = block(3, 50)
    again, _ = block(3, 50)
    assert X.shape == (50, COLUMNS) and X.dtype == np.float32 and set(np.unique(y)) == {-1, 1}
    assert X.tobytes() == again.tobytes() and not np.array_equal(X, block(4, 50)[0])


def test_the_scan_knows_the_best_of_all_stumps() -> None:
    X, y = small()
    scan = Scan(X, y)
    u = scan.pulls([], np.zeros(0), 0.3)
    np.testing.assert_allclose(u, y / (1 + np.exp(0.3 * y)))
    gains = []
    for j in range(4):
        values = np.unique(X[:, j].astype(float))
        for th in (values[1:] + values[:-1]) / 2:
            below = X[:, j] < th
            up, down = u[below & (u > 0)].sum(), -u[below & (u < 0)].sum()
            gains.append((np.sqrt(up) - np.sqrt(down)) ** 2)
            if len(gains) % 97 == 0:
                key = threshold_keys(np.array([j]), np.array([th]))[0]
                assert np.isclose(scan.gain(u, key), gains[-1])
    assert scan.thresholds == len(gains) and np.isclose(scan.best(u), max(gains))


def measured(rounds: int) -> dict[str, Any]:
    X, y = small()
    with LocalEngine(1) as engine:
        plan = build_plan(X, y, task="binary", engine=engine)
        return boosted(plan, engine, Scan(X, y), rounds, time.process_time)


def test_every_round_is_checked_and_shown() -> None:
    found = measured(4)
    assert found["exact"] == [True] * 4 and len(found["seconds"]) == len(found["processor"]) == 4
    everything = {"rows": 400, "columns": 4, "thresholds": 1234, "dask": found, "local": found, "worker peak": [2**20]}
    everything |= {"machine": {"cores used": "2"}, "lightgbm": {"missing": "No module named 'lightgbm'"}}
    text = "\n".join(page(everything))
    assert "the best of all in 8 of 8 rounds" in text and "No module named 'lightgbm'" in text
    peer = {"version": "1.0", "build": 1.0, "rounds": [0.1], "processor": [0.2], "peak": 2**20}
    assert "LightGBM 1.0" in "\n".join(page(everything | {"lightgbm": peer}))
