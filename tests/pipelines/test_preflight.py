"""What is said before a training: the estimates against what is measured, the advice, what is refused and how."""

import dataclasses
import gzip
import json
import os
import re
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dboost
import pipelines
from dboost.errors import ClusterError, DataError, StorageError
from lab import preflight as measuring
from pipelines import before_training
from pipelines.before_preparing import preparation_of
from pipelines.before_training import LIBRARIES, MIB, Room, Shape, Worker, judged, needs_of, shape_of
from pipelines.commands.prepare import PrepareSettings
from tests.pipelines.conftest import LOCAL

GIB = 2**30
SCALE = 0.05
"""Of the data of ``lab.preflight``: half a million stored values, so that a training takes seconds."""


def block(nbytes=8_000_000, rows=10_000, stored=1_000_000):
    ref = SimpleNamespace(path="rows.parquet")
    return SimpleNamespace(nbytes_estimate=nbytes, n_rows=rows, stored=stored, spans=((ref, (3,)),))


def shape(count=8, *, features=1000, classes=2, **of_block):
    blocks = tuple(block(**of_block) for _ in range(count))
    rows, values = sum(one.n_rows for one in blocks), sum(one.stored for one in blocks)
    return Shape(rows, values, features, classes, 1, True, False, blocks)


def cluster(*memory, threads=1, limited=True, driver=64 * GIB):
    places = tuple(Worker(f"tcp://10.0.0.{i}:1", size, limited, threads) for i, size in enumerate(memory))
    return Room(places, True, driver, 0)


def here(memory, threads=1):
    return Room((Worker("this process", memory, False, threads),), False, memory, 0)


@pytest.mark.full
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", measuring.KINDS[:1], ids=lambda kind: kind.name)
def test_an_estimate_of_memory_is_between_the_peak_and_two_and_a_half_times_it(kind, workers, tmp_path):
    kind.write(tmp_path / "rows.parquet", SCALE)
    found = measuring.measured(tmp_path / "rows.parquet", workers, tmp_path / "model")
    rows = measuring.rows_of(kind.name, str(workers), found)
    assert {row["process"] for row in rows} == ({"driver", "worker"} if workers else {"driver"})
    for row in rows:
        assert 1.0 <= row["times the peak"] <= measuring.MOST, row


def test_the_event_and_the_line_of_a_training(prepared, tmp_path, prints, tells):
    events = tells("train", prepared, "--alpha", "0.01", "--out", tmp_path / "one")
    names = [event["event"] for event in events]
    assert names.count("preflight") == 1 and names.index("preflight") < names.index("round")
    said = events[names.index("preflight")]
    found = shape_of(dboost.ParquetData(prepared, split="train"))
    assert said["rows"] == found.rows and said["features"] == found.features and said["outputs"] == 4
    assert said["places"][0]["needed"] == said["driver_needed"] > LIBRARIES
    assert said["cluster"] is False and said["bytes_per_pass"] == 0 and said["seconds_per_pass"] > 0
    lines = prints("train", prepared, "--alpha", "0.01", "--out", tmp_path / "two").splitlines()
    (first,) = [i for i, line in enumerate(lines) if line.startswith("pre-flight: ")]
    assert f"{found.rows:,} rows" in lines[first] and lines[first + 1].startswith("  memory ")
    assert max(len(line) for line in lines[first : first + 2]) <= 100


def test_the_event_of_a_path_and_of_a_run(prepared, tmp_path, prints, tells):
    told = tells("path", prepared, "--path", "2", "--out", tmp_path / "path")
    assert [event["event"] for event in told].count("preflight") == 1
    text = f'[data]\ndata = "{prepared}"\n[model]\nalpha = 0.01\n[cluster]\nworkers = 0\n'
    (tmp_path / "topics.toml").write_text(text)
    said = prints("run", tmp_path / "topics.toml", "--out", tmp_path / "run")
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events].count("preflight") == 1
    assert said.count("pre-flight: ") == 1


def test_a_training_that_cannot_work_is_refused_in_one_line_and_leaves_nothing(
    prepared, tmp_path, refused, prints, monkeypatch
):
    monkeypatch.setattr(before_training, "available_memory", lambda: 10_000)
    out = tmp_path / "model"
    line = refused("train", prepared, "--out", out, *LOCAL, code=3)
    assert line.startswith("dboost: error[data]: ") and "row group 0" in line and "smaller row groups" in line
    assert list(tmp_path.iterdir()) == []
    # what is there stays as it is, with --force too
    out.mkdir()
    (out / "model.json").write_text("{}")
    refused("train", prepared, "--out", out, "--force", *LOCAL, code=3)
    assert [path.name for path in tmp_path.rglob("*")] == ["model", "model.json"]
    assert "a training cannot work" in prints("doctor", prepared, code=4)


def test_what_no_process_could_hold_once_is_refused():
    for given, room, words in (
        (shape(nbytes=GIB), cluster(2 * GIB, 2 * GIB), "the row group decodes to about"),
        (shape(classes=5000, rows=1_000_000), cluster(8 * GIB, 16 * GIB), "1,000,000 rows"),
        (shape(classes=5000, rows=1_000_000), here(8 * GIB), "this process has less"),
    ):
        with pytest.raises(DataError, match=words) as refused:
            judged(given, room)
        assert refused.value.file == "rows.parquet" and refused.value.row_group == 3 and refused.value.hint


# A shape, where it is trained, and a pattern of the advice: "." is any advice, and "^$" is none.
ADVISED = [
    # All of it is many times the memory of all workers: it is read again in every pass.
    (shape(count=1000, nbytes=100_000_000), cluster(2 * GIB, 2 * GIB), "."),
    (shape(count=1000, nbytes=100_000_000), here(4 * GIB), "."),
    # One worker alone is large enough.
    (shape(classes=1000, rows=500_000), cluster(1 * GIB, 16 * GIB), "."),
    # Nobody ends workers without a limit.
    (shape(classes=5000, rows=1_000_000), cluster(8 * GIB, limited=False), "."),
    (shape(), cluster(2 * GIB, 2 * GIB), "^$"),
    (shape(), here(2 * GIB), "^$"),
    (shape(), cluster(300 * MIB), "libraries alone"),
    (shape(nbytes=300_000_000), cluster(GIB, GIB, threads=4), "memory may run out"),
    (shape(count=100, nbytes=100_000_000), cluster(4 * GIB, 4 * GIB), "6 workers like these would hold it"),
    (shape(count=100, nbytes=100_000_000), here(4 * GIB), "prepare with fewer columns"),
    (shape(features=10**9), cluster(2 * GIB, driver=2 * GIB), "the memory of the driver"),
    (shape(features=10**7, stored=1000), cluster(*[4 * GIB] * 8), "fewer workers"),
    (shape(count=1, stored=10**7), cluster(4 * GIB, threads=4), "1 block keeps 1 of 4 threads busy"),
]


def test_advice():
    for number, (given, room, words) in enumerate(ADVISED):
        found = judged(given, room)
        assert re.search(words, found.advice), (number, found.advice)
        assert "\n" not in found.line and found.line.endswith(found.advice)


def test_more_workers_share_what_is_held_and_more_threads_have_more_in_work():
    one, two = needs_of(shape(), 1, cluster(8 * GIB)), needs_of(shape(), 1, cluster(8 * GIB, 8 * GIB))
    assert two.places[0].held == pytest.approx(one.places[0].held / 2)
    assert two.seconds < one.seconds
    many = needs_of(shape(), 1, cluster(8 * GIB, threads=4))
    assert many.places[0].in_work == pytest.approx(4 * one.places[0].in_work)
    assert needs_of(shape(), 10, cluster(8 * GIB)).places[0].held > one.places[0].held


def test_a_cluster_without_workers_is_told():
    with pytest.raises(ClusterError, match="no worker"):
        judged(shape(), cluster())


def written(path, labels, indices=None):
    rows = len(labels)
    indices = [[i % 7, 9] for i in range(rows)] if indices is None else indices
    values = pa.array([[1.0] * len(one) for one in indices], pa.list_(pa.float32()))
    columns = {"indices": pa.array(indices, pa.list_(pa.int32())), "values": values, "y": labels}
    pq.write_table(pa.table(columns), path, row_group_size=50)
    return dboost.ParquetData(path, label="y")


def test_the_width_of_sparse_rows_is_that_of_the_statistics_of_footers(tmp_path):
    found = shape_of(written(tmp_path / "rows.parquet", ["a", "b"] * 100))
    assert (found.features, found.rows, found.values, found.classes) == (10, 200, 400, 2)
    table = pq.read_table(tmp_path / "rows.parquet")
    pq.write_table(table, tmp_path / "bare.parquet", write_statistics=False)
    bare = shape_of(dboost.ParquetData(tmp_path / "bare.parquet", label="y"))
    assert bare.features is None and bare.values == 400
    assert "columns unknown" in judged(bare, here(8 * GIB)).line


def test_classes_tell_the_outputs(tmp_path, monkeypatch):
    three = shape_of(written(tmp_path / "three.parquet", ["a", "b", "c", None] * 50))
    assert three.classes == 3 and three.outputs() == 3 and three.outputs("BoostedRegressor") == 1
    assert shape_of(written(tmp_path / "numbers.parquet", np.linspace(0, 1, 200))).outputs() == 1
    monkeypatch.setattr("pipelines.before_training.MOST_LABELS", 100)
    late = shape_of(written(tmp_path / "late.parquet", ["a"] * 50 + ["b"] * 100 + ["c"] * 50))
    assert late.classes == 2 and not late.all_labels
    assert "at least" in judged(late, here(8 * GIB)).line


def test_it_is_offered_in_python(prepared):
    found = pipelines.preflight(dboost.ParquetData(prepared, split="train"))
    assert found.outputs == 4 and found.line.startswith("pre-flight: ") and found.values()["text"] == found.line


def settings_of(path, **more):
    return PrepareSettings(**{"data": str(path), "out": str(path.with_name("made")), "label": "y"} | more)


def test_what_a_preparation_takes_is_said_and_refused_where_it_could_never_do(tmp_path, tells):
    texts = [f"word{i % 7} " * 50 for i in range(1000)]
    pq.write_table(pa.table({"text": texts, "y": ["a", "b"] * 500}), tmp_path / "d.parquet", use_dictionary=False)
    size = sum(map(len, texts))
    found = preparation_of(settings_of(tmp_path / "d.parquet"), cluster(GIB, GIB))
    assert found.documents == 1000 and 0.9 * size < found.text < 1.2 * size and found.largest == found.text
    assert found.lines[0].startswith("pre-flight: ") and "of 1 GiB on the fullest of 2 workers; disk" in found.lines[1]
    assert max(map(len, found.lines)) <= 98
    twice = preparation_of(settings_of(tmp_path / "d.parquet", ngrams=2), cluster(GIB, GIB))
    assert twice.disk == pytest.approx(3 * found.disk) and twice.seconds == pytest.approx(3 * found.seconds)
    # The documents of the larger case (10^8 terms in 5,000,000 documents) on two workers of 1 GiB: 246 MiB and 479 MiB
    # were measured, and 3.8 GiB of disk.
    large = dataclasses.replace(found, text=1.95e9, largest=15.7e6)
    assert 479 * MIB < large.memory < 2 * 479 * MIB and 4.1e9 < large.disk < 8.2e9
    assert large.advice == "" and dataclasses.replace(large, largest=60e6).advice.startswith("memory may run out")
    with pytest.raises(DataError, match="a piece of .* takes at least .*, and no worker has as much"):
        dataclasses.replace(large, largest=400e6).refuse("made")
    assert "disk may run out" in dataclasses.replace(large, free=2 * GIB).advice
    with pytest.raises(StorageError, match="the disk has 100 MiB free, and preparing 1.82 GiB of text writes about"):
        dataclasses.replace(large, free=100 * MIB).refuse("made")
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"text,y\n" + os.urandom(3000)))
    packed = preparation_of(settings_of(tmp_path / "d.csv.gz"), here(GIB))
    assert packed.documents is None and packed.text == packed.copied > 10_000
    told = tells("prepare", tmp_path / "d.parquet", "--label", "y", "--max-df", "1.0", "--out", tmp_path / "o")
    (event,) = [one for one in told if one["event"] == "preflight"]
    assert event["documents"] == 1000 and event["memory_needed"] > 220 * MIB and event["disk_free"] > 0
