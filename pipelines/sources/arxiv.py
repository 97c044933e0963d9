"""arXiv titles as documents, the archive (``math``, ``cs``, ``hep-th``, ...) as the label.

The archive is the part of the primary category before the dot: 38 classes, from "math" to a few dozen papers.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dboost.errors import UsageError

DATA_VARIABLE = "DBOOST_DATA_HOME"
FILE = "arxiv/arxiv_titles.parquet"
# One title in five is held out.
HELD_OUT = 5


def load(home: str | None = None) -> pa.Table:
    """All titles: ``text``, ``label``, ``split``, ``source`` (the identifier)."""
    folder = home or os.environ.get(DATA_VARIABLE)
    if not folder:
        raise UsageError(f"{DATA_VARIABLE} is not set", hint=f"set it to the folder that holds {FILE}")
    path = Path(folder, FILE)
    if not path.is_file():
        raise UsageError(
            "there is no such file", file=str(path), hint=f"set {DATA_VARIABLE} to the folder above arxiv/"
        )
    table = pq.read_table(path, columns=["arxiv_id", "primary_cat", "title"])
    archive = pc.list_element(pc.split_pattern(table["primary_cat"].combine_chunks().cast(pa.string()), "."), 0)
    identifiers = table["arxiv_id"].combine_chunks()
    split = pa.array(["test" if held_out(name) else "train" for name in identifiers.to_pylist()])
    return pa.table({"text": table["title"].combine_chunks(), "label": archive, "split": split, "source": identifiers})


def held_out(identifier: str) -> bool:
    """Whether a paper is in the held-out part."""
    return int.from_bytes(hashlib.sha256(identifier.encode()).digest()[:4], "big") % HELD_OUT == 0
