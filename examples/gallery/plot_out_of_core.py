"""
Data beyond memory
==================

Data that does not fit the memory of the workers is read again in every pass. That costs time and nothing else: rounds,
weights and certificate are the same, bit for bit. Passes that look at the columns of the model alone need no reading,
since these columns are cut out once and stay.
"""

import tempfile
import warnings
from pathlib import Path

import dask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client

import dboost
from dboost import plots

# %%
# Five million stored values: 42 MB once they are decoded.

rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
columns, stored, rows = 5000, 50, 5000
width = columns // stored
weights = rng.normal(size=columns) * (rng.random(columns) < 0.03)
for part in range(20):
    indices = rng.integers(0, width, (rows, stored)) + np.arange(stored) * width
    table = {
        "indices": pa.array(list(indices.astype(np.int32))),
        "values": pa.array(list(np.ones(indices.shape, dtype=np.float32))),
        "label": weights[indices].sum(axis=1) + rng.logistic(size=rows) > 0,
    }
    pq.write_table(pa.table(table), folder / f"part-{part:02}.parquet", write_page_checksum=True)

# %%
# Once on a worker that holds them, and once on one that says it has 100 MB, of which decoded data may take 40. (It is a
# thread of this process, whose libraries alone are larger, so that Dask must not pause it for what they take.)

data = dboost.ParquetData(folder, label="label", n_features=columns)
fits = {}
settings = {f"distributed.worker.memory.{at}": False for at in ("target", "spill", "pause")}
one = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": None}
for name, memory in {"held in memory": "4GB", "read again": "100MB"}.items():
    with (
        dask.config.set(settings),
        Client(**one, memory_limit=memory) as client,
        warnings.catch_warnings(record=True) as said,
    ):
        warnings.simplefilter("always")
        model = dboost.BoostedClassifier(alpha=2e-3, tol=1e-6, client=client)
        # The first fit loads compiled loops.
        fits[name] = model.fit(data).fit(data)
        seconds = sum(record["seconds"] for record in model.history_)
        print(f"{name}: {seconds:.2f} s", *{str(warning.message) for warning in said})

same = np.array_equal(fits["held in memory"].model_.W, fits["read again"].model_.W)
print("the same bits:", same)

# %%
# The same rounds, later.

ax = plots.plot_progress(fits)
