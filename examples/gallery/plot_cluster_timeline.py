"""
What a cluster does in a fit
============================

Two workers hold the partitions. In each round the driver asks them for sums, solves small problems for the rows of W
that move, and sends these back. Dask keeps when each task ran: a pass is one bar for each worker, and between two bars
is the driver's turn. Only a few passes look at all columns; the others look at those of the model, and are short.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, get_task_stream

import dboost

# %%
# A folder of Parquet files: 16 partitions of sparse rows, in five classes.

rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
columns, classes, stored = 2000, 5, 40
width = columns // stored
weights = rng.normal(size=(columns, classes)) * (rng.random((columns, 1)) < 0.05)
for part in range(16):
    indices = rng.integers(0, width, (2500, stored)) + np.arange(stored) * width
    scores = weights[indices].sum(axis=1) + rng.gumbel(size=(2500, classes))
    rows = {
        "indices": pa.array(list(indices.astype(np.int32))),
        "values": pa.array(list(np.ones(indices.shape, dtype=np.float32))),
        "label": scores.argmax(axis=1),
    }
    pq.write_table(pa.table(rows), folder / f"part-{part:02}.parquet", write_page_checksum=True)

# %%
# The fit, with Dask's record of its tasks. The workers of a real cluster are processes of other machines. The first fit
# of a process also loads compiled loops, so that the second one is drawn.

data = dboost.ParquetData(folder, label="label", n_features=columns)
model = dboost.BoostedClassifier(penalty="l1/l2", alpha=1e-3, tol=1e-5)
with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    model.set_params(client=client).fit(data)
    with get_task_stream(client) as stream:
        model.fit(data)

# %%
# The name of a task says what its pass is for.

kinds = {
    "reading": ("footers", "labels", "statistics"),
    "all columns": ("score",),
    "columns of the model": ("sample", "gradient", "intercept"),
    "certificate": ("dual",),
}
fig, ax = plt.subplots(figsize=(8, 2.4), layout="constrained")
begin = min(span["start"] for task in stream.data for span in task["startstops"])
workers = sorted({task["worker"] for task in stream.data})
for (kind, words), color in zip(kinds.items(), ("0.6", "#0072B2", "#E69F00", "#009E73"), strict=True):
    spans = [
        (workers.index(task["worker"]), span["start"] - begin, span["stop"] - span["start"])
        for task in stream.data
        for span in task["startstops"]
        if any(f"-{word}-" in task["key"] for word in words)
    ]
    places, starts, lengths = zip(*spans, strict=True)
    ax.barh(places, lengths, left=starts, height=0.6, color=color, label=kind)
ax.set(yticks=[0, 1], yticklabels=["worker 1", "worker 2"], ylim=(-0.5, 1.5), xlabel="seconds")
ax.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
print(f"{len(stream.data)} tasks, {model.n_iter_} rounds, gap {model.duality_gap_:.1e}")
