"""LightGBM's rounds with two leaves on the arrays of ``stumps``, in the peers' interpreter.

Run as a script with the folder of ``X.npy`` and ``y.npy``, the number of rounds and of threads; prints one line of JSON
with seconds. Covers: building its data set, every round by itself, the peak of its memory. Imports nothing of dboost.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np


def measure(folder: Path, rounds: int, threads: int) -> dict[str, object]:
    """Seconds of the data set and of each round."""
    lightgbm = importlib.import_module("lightgbm")
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    parameters = {
        "objective": "binary", "num_leaves": 2, "max_bin": 255, "min_data_in_leaf": 1, "num_threads": threads,
        "learning_rate": 1.0, "verbose": -1,
    }  # fmt: skip
    began = time.perf_counter()
    data = lightgbm.Dataset(X, label=(y > 0).astype(np.int32), params=parameters).construct()
    built = time.perf_counter() - began
    booster = lightgbm.Booster(parameters, data)
    seconds, processor = [], []
    for _ in range(rounds):
        began, spent = time.perf_counter(), time.process_time()
        booster.update()
        seconds.append(time.perf_counter() - began)
        processor.append(time.process_time() - spent)
    margin = booster.predict(X, raw_score=True)
    loss = float(np.logaddexp(0.0, -np.where(y > 0, 1.0, -1.0) * margin).mean())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found = {"version": lightgbm.__version__, "build": built, "rounds": seconds, "processor": processor}
    return found | {"loss": loss, "peak": peak}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
