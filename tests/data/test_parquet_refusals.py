"""ParquetData: bad values, wrong uses and damaged files, refused by file, column and row group."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost.data import ParquetData
from dboost.data.parquet import plan as parquet_plan
from dboost.data.parquet.read import inspect_file
from dboost.data.prepared.mapper import InProcess
from dboost.errors import DataError, UsageError
from tests.data.conftest import listed, lists, plan, replace, write


def test_bad_weights_and_widths(tmp_path):
    base = {"x": pa.array([[1.0, 2.0]] * 4), "label": ["a", "b"] * 2}
    for name, weight, words in (
        ("n", [1.0, 1.0, -1.0, 1.0], "-1.0 in row 0"),
        ("z", [0.0] * 4, "weights are zero"),
        ("m", [1.0, 1.0, None, 1.0], "nulls"),
        ("t", ["1"] * 4, "string"),
    ):
        fixed = {**base, "x": pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float64(), 2))}
        write(tmp_path / name, pa.table({**fixed, "w": weight}), rows=2)
        with pytest.raises(DataError, match=words):
            plan(ParquetData(tmp_path / name, features="x", label="label", weight="w"))
    write(
        tmp_path / "width",
        pa.table({**base, "x": pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float64(), 2))}),
        pa.table({**base, "x": pa.array([[1.0, 2.0, 3.0]] * 4, pa.list_(pa.float64(), 3))}),
    )
    with pytest.raises(DataError, match=r"fixed\[3\].*fixed\[2\]") as caught:
        plan(ParquetData(tmp_path / "width", features="x", label="label"))
    assert caught.value.file == str(tmp_path / "width" / "f1.parquet")


def test_wrong_uses(tmp_path, small):
    write(tmp_path / "d", lists(small.X, small.y))
    cases = [
        ({"features": ("indices", "values")}, UsageError, "no label column"),
        ({"features": ["indices", "indices"], "label": "label"}, UsageError, "twice"),
        ({"features": ["label"], "label": "label"}, UsageError, "also the label"),
        ({"features": ["nothing"], "label": "label"}, DataError, "no such feature column"),
        ({"features": ["label"], "label": "indices"}, DataError, "type str, expected numbers"),
        ({"features": ("values", "indices"), "label": "label"}, DataError, "integer indices"),
        ({"features": ("indices", "values"), "label": "label", "n_features": 0}, UsageError, "n_features=0"),
        ({"features": ("indices", "values"), "label": "label", "split": "x"}, UsageError, "no manifest"),
    ]
    for options, error, words in cases:
        with pytest.raises(error, match=words):
            plan(ParquetData(tmp_path / "d", **options))
    with pytest.raises(DataError, match="expected 7 features|have 1 features"):
        write(tmp_path / "c", pa.table({"x": [1.0, 2.0], "label": ["a", "b"]}))
        plan(ParquetData(tmp_path / "c", features=["x"], label="label", n_features=7))
    with pytest.raises(UsageError, match="scheme 'memory', which is not supported"):
        plan(listed("memory://bucket/key"))
    with pytest.raises(DataError, match="no such file"):
        plan(listed(tmp_path / "absent"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no"):
        plan(listed(tmp_path / "empty"))
    with pytest.raises(UsageError, match="empty list"):
        plan(listed([]))
    with pytest.raises(UsageError, match="beside ParquetData"):
        plan(listed(tmp_path / "d"), small.y)


GOOD_I, GOOD_V = [[0], [1], [0, 1], []], [[1.0], [2.0], [1.0, 2.0], []]
LISTS = pa.table(
    {
        "indices": pa.array(GOOD_I, pa.list_(pa.int32())),
        "values": pa.array(GOOD_V, pa.list_(pa.float64())),
        "label": ["a", "b", "a", "b"],
    }
)
COLUMNS = pa.table({"x0": [1.0, 0.0, 2.0, 1.0], "x1": [0.5, 1.5, 0.0, 2.0], "label": ["a", "b", "a", "b"]})


def test_bad_values_name_file_column_and_row_group(tmp_path):
    """Of the last row of the second file, which is the second of its row group."""
    for number, (changes, column, words) in enumerate(
        [
            ({"indices": [2], "values": [np.nan]}, "values", "NaN for feature '2' in row 1"),
            ({"indices": [2], "values": [-np.inf]}, "values", "-infinity for feature '2'"),
            ({"indices": [3], "values": [1.0]}, "indices", "index 3 in row 1, expected 0 to 2"),
            ({"indices": [-1], "values": [1.0]}, "indices", "index -1 in row 1"),
            ({"indices": None}, "indices", "1 nulls"),
            ({"values": None}, "values", "1 nulls"),
            ({"indices": [0, None], "values": [1.0, 2.0]}, "indices", "1 nulls"),
            ({"indices": [0, 1], "values": [1.0, None]}, "values", "1 nulls"),
            ({"indices": [2]}, "values", "row 1 has 1 indices and 0 values"),
            ({"x1": np.nan}, "x1", "NaN in row 1"),
            ({"x1": None}, "x1", "1 nulls"),
            ({"label": None}, "label", "1 labels are missing"),
        ]
    ):
        in_lists, folder = bool({"indices", "values"} & set(changes)), tmp_path / str(number)
        good = bad = LISTS if in_lists else COLUMNS
        for name, value in changes.items():
            bad = replace(bad, name, pa.array([*bad[name].to_pylist()[:3], value], bad[name].type))
        write(folder, good, bad, good, rows=2)
        data = listed(folder, n_features=3) if in_lists else ParquetData(folder, features=["x0", "x1"], label="label")
        with pytest.raises(DataError, match=words) as caught:
            for item in plan(data).items:
                item.load()
        assert caught.value.file == str(folder / "f1.parquet"), changes
        assert (caught.value.column, caught.value.row_group) == (column, 1), changes
        assert pickle.loads(pickle.dumps(caught.value)).row_group == 1


def test_garbage_and_what_was_cut_off_are_refused_by_name(tmp_path, small):
    write(tmp_path, lists(small.X, small.y))
    whole, bad = (tmp_path / "f0.parquet").read_bytes(), tmp_path / "f1.parquet"
    cut = [whole[:-1], whole[: len(whole) // 2], whole[:5]]
    for content in [b"", b"a,b\n1,2\n", b"PAR1" + bytes(50), bytes(200), b"PAR1" * 10, *cut]:
        bad.write_bytes(content)
        with pytest.raises(DataError) as caught:
            plan(listed(tmp_path))
        assert caught.value.file == str(bad) and len(str(caught.value)) < 400


def test_names_that_are_not_text(tmp_path):
    write(tmp_path, pa.table({"qqqq": [1.0], "label": ["a"]}), checksum=False)
    path = tmp_path / "f0.parquet"
    path.write_bytes(path.read_bytes().replace(b"qqqq", b"q\xff\xfeq"))
    with pytest.raises(DataError) as caught:
        plan(ParquetData(tmp_path, features=["q"], label="label"))
    assert caught.value.file == str(path)


def change_content(path, whole):
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 40), path)


def change_keeping_the_time(path, whole):
    state = os.stat(path)
    change_content(path, whole)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


CHANGES = {
    "rewritten": (change_content, "changed since"),
    "rewritten, time kept": (change_keeping_the_time, "changed since"),
    "touched": (lambda path, whole: os.utime(path, ns=(1, 1)), "changed since"),
    "truncated": (lambda path, whole: os.truncate(path, len(whole) // 2), "truncated"),
    "deleted": (lambda path, whole: os.unlink(path), "gone"),
    "garbage": (lambda path, whole: path.write_bytes(b"x" * len(whole)), "no Parquet file"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_file_that_changes_after_planning_is_refused(tmp_path, small, kind):
    write(tmp_path, lists(small.X, small.y))
    path = tmp_path / "f0.parquet"
    found = plan(listed(tmp_path))
    change, words = CHANGES[kind]
    change(path, path.read_bytes())
    with pytest.raises(DataError, match=words) as caught:
        found.items[0].load()
    assert caught.value.file == str(path)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_flipped_bits_are_found_where_pages_carry_checksums(tmp_path, small, codec):
    write(tmp_path, lists(small.X, small.y), rows=60, compression=codec)
    path = tmp_path / "f0.parquet"
    whole = path.read_bytes()
    plain = plan(listed(tmp_path)).items[0].load()
    end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    rng = np.random.default_rng(5)
    refused = 0
    for position, bit in zip(rng.integers(4, end, 40), rng.integers(0, 8, 40)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << bit
        path.write_bytes(bytes(damaged))
        try:
            found = plan(listed(tmp_path)).items[0].load()
        except DataError as fault:
            assert fault.file == str(path)
            refused += 1
        else:
            # A flip in a part of a page header that is not used (statistics, say) changes nothing.
            np.testing.assert_array_equal(found.values, plain.values)
            np.testing.assert_array_equal(found.rows, plain.rows)
            np.testing.assert_array_equal(found.y, plain.y)
    assert refused >= 25


def test_files_without_checksums_are_mentioned_where_they_are_large(tmp_path, small, monkeypatch):
    table = lists(small.X, small.y)
    for folder, checksum in (("a", True), ("b", False)):
        write(tmp_path / folder, table, checksum=checksum)
        assert plan(listed(tmp_path / folder)).notes == ()
    monkeypatch.setattr("dboost.data.parquet.plan.WORTH_CHECKSUMS", 1000)
    assert len(plan(listed(tmp_path / "b")).notes) == 1
    for options in ({"use_dictionary": False}, {"use_dictionary": True}, {"data_page_version": "2.0"}):
        for checksum in (True, False):
            write(tmp_path / "c", table, checksum=checksum, **options)
            assert inspect_file((str(tmp_path / "c" / "f0.parquet"), "f0.parquet")).checksums == checksum


def test_memory_budget_decides_streaming_and_refuses_giants(tmp_path, small, monkeypatch):
    from dboost.data import build_plan

    class Small(InProcess):
        memory_budget = 2500

    monkeypatch.setattr(parquet_plan, "GROUP_ROWS", 1)
    monkeypatch.setattr("dboost.data.blocks.BLOCK_COST", 50)
    write(tmp_path / "d", lists(small.X, small.y), rows=10)
    data = listed(tmp_path / "d")
    assert build_plan(data, task="classification", engine=Small()).streams
    assert not build_plan(data, task="classification", engine=InProcess()).streams
    write(tmp_path / "e", lists(small.X, small.y), rows=60)
    with pytest.raises(DataError, match="memory budget") as caught:
        build_plan(listed(tmp_path / "e"), task="classification", engine=Small())
    assert caught.value.row_group == 0
