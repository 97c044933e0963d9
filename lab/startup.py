"""How soon a fit starts: seconds from ``import dboost`` to the first round, in a process of its own.

Run with ``python -m lab startup``. The first process may have to compile kernels; the second finds them in the
cache and is the one that is judged (limit: 2 seconds). Also checks that ``import dboost`` loads no Dask.

Covers: import and first fit on arrays in memory. Does not cover: starting a cluster.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab import tables

LIMIT = 2.0
COLUMNS = ("process", "import s", "to first round s", "to end of fit s", "Dask loaded by import", "Dask loaded by fit")

CHILD = """
import json, sys, time
began = time.perf_counter()
import dboost
imported = time.perf_counter() - began
heavy = sorted(name for name in ("dask", "distributed", "pandas", "matplotlib") if name in sys.modules)
rounds = []
import numpy as np
from scipy.sparse import random as sparse
rng = np.random.default_rng(0)
X = sparse(2000, 300, density=0.05, format="csr", random_state=0)
y = np.argmax(X[:, :5].toarray() + 0.1 * rng.standard_normal((2000, 5)), axis=1)
dboost.BoostedClassifier(callbacks=[lambda record: rounds.append(time.perf_counter() - began)]).fit(X, y)
print(json.dumps({
    "imported": imported, "first": rounds[0], "end": time.perf_counter() - began, "heavy": heavy,
    "dask_after": "dask" in sys.modules,
}))
"""


def measure() -> dict[str, Any]:
    """Run the child once and return its figures."""
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"the child process failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Measure twice; returns 1 when the second process is too slow or the import loads Dask."""
    parser = argparse.ArgumentParser(prog="python -m lab startup", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/startup.md"))
    asked = parser.parse_args(argv)
    records, bad = [], False
    for process in ("first", "second", "third"):
        found = measure()
        late = process != "first" and found["first"] > LIMIT
        bad = bad or late or bool(found["heavy"])
        records.append(
            {
                "process": process,
                "import s": f"{found['imported']:.2f}",
                "to first round s": f"{found['first']:.2f}" + (" LATE" if late else ""),
                "to end of fit s": f"{found['end']:.2f}",
                "Dask loaded by import": ", ".join(found["heavy"]) or "no",
                "Dask loaded by fit": "yes" if found["dask_after"] else "no",
            }
        )
    text = tables.markdown(records, COLUMNS)
    print(text)
    tables.write(asked.out, "From import to the first round", [f"Limit: {LIMIT:g} s from the second process on.", text])
    return 1 if bad else 0
