"""The footer of a Parquet file, read by our own code: equal to PyArrow's where it is sound, refused where it is not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost.data.parquet.footer import FooterError, chunks_of
from dboost.data.parquet.read import chunks_in, inspect_file
from dboost.errors import DataError

KINDS = pa.table(
    {
        "number": [1, None, 3],
        "text": ["x", None, "yyy"],
        "list": [[1], None, [2, 3]],
        "lists of lists": [[["a"]], [[]], None],
        "struct": [{"p": 1, "q": {"r": "t"}}] * 3,
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
        "dictionary": pa.array(["a", "b", "a"]).dictionary_encode(),
        "fixed": pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float64(), 2)),
        "truth": [True, False, None],
        "decimal": pa.array([1, 2, 3]).cast(pa.decimal128(21, 2)),
    }
)


@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_the_facts_are_those_of_pyarrow_for_every_kind_of_column(tmp_path, version):
    path = tmp_path / "kinds.parquet"
    pq.write_table(KINDS, path, row_group_size=2, version=version)
    theirs = pq.read_metadata(path)
    expected = [
        [theirs.row_group(g).column(c) for c in range(theirs.num_columns)] for g in range(theirs.num_row_groups)
    ]
    assert [[(c.num_values, c.uncompressed) for c in group] for group in chunks_in(str(path))] == [
        [(c.num_values, c.total_uncompressed_size) for c in group] for group in expected
    ]


def test_a_damaged_footer_is_refused_and_never_ends_the_process(tmp_path):
    """Before, one wrong bit in the statistics of sizes ended the process within PyArrow."""
    path = tmp_path / "lists.parquet"
    table = pa.table({"indices": [[0], [1, 2], []], "text": ["a", "b", None], "label": [1, 2, 1]})
    pq.write_table(table, path, write_page_checksum=True)
    whole = path.read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    said = []
    for at in range(len(whole) - 8 - length, len(whole) - 8):
        for bit in (0, 1, 3):
            broken = bytearray(whole)
            broken[at] ^= 1 << bit
            path.write_bytes(broken)
            try:
                inspect_file((str(path), "lists"))
            except DataError as error:
                assert error.file == str(path)
                said.append(str(error))
    assert any("a histogram of levels" in text for text in said)
    assert any("bytes of text of a column that is none" in text for text in said)


def test_bytes_that_are_no_footer_are_refused():
    for footer, words in [
        (b"", "ends in the middle"),
        (b"\x00", "no schema"),
        (b"\x15\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "more than 64 bits"),
        (b"\x19\xf5\xff\xff\xff\xff\x0f", "promises"),
        (b"\x1c" * 100, "without end"),
        (b"\x19" * 100, "list"),
        (b"\x1d", "value of type 13"),
        (b"\x18\x7fabc", "ends in the middle"),
    ]:
        with pytest.raises(FooterError, match=words):
            chunks_of(footer)


def test_noise_is_refused_by_the_same_error():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        with pytest.raises(FooterError):
            chunks_of(rng.bytes(int(rng.integers(1, 200))))
