"""One label against all others: labels of many classes become True and False where they are read.

For classifiers of one class against the rest on data that is not in memory, whose labels nobody can compare beforehand.
Covers: the report of a scan and the encoding. Does not cover: which label (``estimators.one_vs_rest``).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.data.labels.factorise import Factorised, factorise, mixed_kinds
from dboost.data.labels.labels import LabelCoder, LabelStats


@dataclass(frozen=True)
class OneLabelCoder(LabelCoder):
    """A binary encoding in which one label is the second class, and every other label the first."""

    one: Any = None
    one_kind: str = "none"  # Kind of the labels in the data; that of the classes is "bool".

    def codes(self, labels: Any) -> NDArray[np.int64]:
        """1 for the one label and 0 for the others, int64 (m,); labels of another type are a DataError."""
        kind, distinct, codes = labels if isinstance(labels, Factorised) else factorise(labels)
        if kind == "none":
            return codes
        if kind != self.one_kind:
            raise mixed_kinds([kind, f"{self.one_kind} (the classes)"])
        table = np.array([label == self.one for label in distinct.tolist()], dtype=np.int64)
        return table[codes]


def coder_of_one(coder: LabelCoder, one: Any, kind: str) -> OneLabelCoder:
    """The encoding of False and True, `coder`, for the labels that they were made from."""
    mine = {item.name: getattr(coder, item.name) for item in fields(LabelCoder)}
    return OneLabelCoder(**mine, one=one, one_kind=kind)


def stats_of_one(stats: LabelStats, one: Any) -> LabelStats:
    """The report of a scan as if its labels had been compared with one of them."""
    weight, count = {False: 0.0, True: 0.0}, {False: 0, True: 0}
    for label, value in stats.weight.items():
        weight[label == one] += value
        count[label == one] += stats.count[label]
    seen = [is_one for is_one in (False, True) if count[is_one]]
    return replace(
        stats,
        kind="bool",
        dtype="|b1",
        weight={is_one: weight[is_one] for is_one in seen},
        count={is_one: count[is_one] for is_one in seen},
        where={},
    )
