"""Retraining over years of arXiv: windows that slide, warm against cold, and what is decided.

Run with ``python -m lab retrain-years``; needs ``DBOOST_DATA_HOME``. Abstracts of five years train a model of their
archives, those of the next year judge it; then the window moves on by half a year, twelve times. Each challenger starts
from the champion, whose words have other places by then; the same run from nothing is made beside it. At the end come
data that is unchanged, that has wrong labels, and that has lost most of its classes. Writes ``runs/retrain-years.md``.

Covers: passes, seconds and decisions. Does not cover: kills (tests/pipelines/test_retrain.py).
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import pipelines
from lab import tables

TIMES, YEARS, STEP = 12, 5.0, 0.5
COLUMNS = ("window", "rows", "outcome", "loss", "warm passes", "cold passes", "warm s", "cold s", "why")
_RUN = """
[data]
data = "train.parquet"
test = "next.parquet"
label = "archive"
[prepare]
text = ["title", "abstract"]
[model]
penalty = "l1/l2"
alpha = 2e-4
tol = 1e-4
[cluster]
workers = 0
"""


def documents(home: Path) -> tuple[pa.Table, Any]:
    """Abstracts with their archives, and the year of each with its fraction."""
    table = pq.read_table(home / "arxiv" / "arxiv_abstracts_60k.parquet", columns=["created", "primary_cat", "title",
                                                                                 "abstract"])  # fmt: skip
    archive = pc.list_element(pc.split_pattern(table["primary_cat"], ".", max_splits=1), 0)
    days = pc.cast(pc.strptime(table["created"], format="%Y-%m-%d", unit="s"), pa.date32())
    years = 1970.0 + np.array(pc.cast(days, pa.int32()).to_numpy()) / 365.25
    return table.append_column("archive", archive).drop_columns(["created", "primary_cat"]), years


def window(table: pa.Table, years: Any, first: float, folder: Path, change: Any = None) -> int:
    """Write a window and the year after it; returns the number of rows that train."""
    train = table.filter(pa.array((years >= first) & (years < first + YEARS)))
    after = table.filter(pa.array((years >= first + YEARS) & (years < first + YEARS + 1.0)))
    train = train if change is None else change(train)
    pq.write_table(train, folder / "train.parquet", row_group_size=5000)
    pq.write_table(after, folder / "next.parquet", row_group_size=5000)
    return int(train.num_rows)


def shuffled(table: pa.Table) -> pa.Table:
    """Labels that have nothing to do with the documents."""
    labels = np.random.default_rng(0).permutation(np.array(table["archive"].to_pylist(), dtype=object))
    return table.set_column(table.column_names.index("archive"), "archive", pa.array(labels.tolist()))


def few_classes(table: pa.Table) -> pa.Table:
    """Mathematics, and a tenth of everything else."""
    math = np.array(table["archive"].to_pylist()) == "math"
    return table.filter(pa.array(math | (np.random.default_rng(0).random(len(math)) < 0.1)))


def run(home: Path, folder: Path, times: int) -> list[dict[str, Any]]:
    """All retrainings; one record for each."""
    (folder / "run.toml").write_text(_RUN)
    (folder / "nightly.toml").write_text('[retrain]\nrun = "run.toml"\n')
    table, years = documents(home)
    last = float(years.max()) - YEARS - 1.0
    found: list[dict[str, Any]] = []

    def decide(name: str, first: float, change: Any = None, cold: bool = True) -> None:
        # a file that is written again is new by its time, whatever is in it
        rows = window(table, years, first, folder, change) if name != "unchanged" else found[-1]["rows"]
        began = time.perf_counter()
        decision = pipelines.retrain(folder / "nightly.toml")
        seconds = time.perf_counter() - began
        why = "; ".join(reason.partition(":")[0] for reason in decision.reasons)
        record: dict[str, Any] = {"window": name, "rows": rows, "outcome": decision.outcome, "warm s": seconds}
        record["why"] = why
        if decision.version is not None:
            record["loss"] = decision.values["difference"]["mean"]
            record["warm passes"] = decision.values["passes"]
        if cold and decision.version is not None:
            began = time.perf_counter()
            fresh = pipelines.run(folder / "run.toml", out=folder / "cold" / name)
            record["cold s"] = time.perf_counter() - began
            record["cold passes"] = fresh.model.model_.certificate.passes
        found.append(record)
        shown = {key: round(value, 4) if isinstance(value, float) else value for key, value in record.items()}
        print(shown, flush=True)

    for number in range(times):
        first = last - STEP * (times - 1 - number)
        decide(f"{first:.1f} to {first + YEARS:.1f}", first)
    decide("unchanged", last, cold=False)
    decide("wrong labels", last, shuffled, cold=False)
    decide("most classes gone", last, few_classes, cold=False)
    return found


def main(arguments: Sequence[str] = ()) -> int:
    """Run the program; 1 where a decision is not the one that is to be expected."""
    parser = argparse.ArgumentParser(prog="python -m lab retrain-years", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=TIMES)
    parser.add_argument("--out", type=Path, default=Path("runs/retrain-years.md"))
    given = parser.parse_args(list(arguments))
    home = Path(os.environ["DBOOST_DATA_HOME"])
    with tempfile.TemporaryDirectory() as folder:
        found = run(home, Path(folder), given.times)
    both = [one for one in found[1:] if "cold passes" in one]
    ratios = [one["warm passes"] / one["cold passes"] for one in both]
    said = (
        f"{len(both)} retrainings from the champion: {statistics.median(ratios):.2f} of the passes of a fit from "
        f"nothing (median; {min(ratios):.2f} to {max(ratios):.2f}), {sum(one['warm s'] for one in both):.1f} s beside "
        f"{sum(one['cold s'] for one in both):.1f} s, judging included."
    )
    given.out.parent.mkdir(parents=True, exist_ok=True)
    tables.write(given.out, "Retraining over years of arXiv", [said, tables.markdown(found, COLUMNS)])
    print(said)
    expected = ["nothing new", "declined", "declined"]
    return 0 if [one["outcome"] for one in found[-3:]] == expected else 1
