"""Groups of hypotheses: pools without them, and unions that pass on what their members say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.hypotheses.base import Key
from dboost.hypotheses.capabilities import Grouped, group_of, groups_of
from dboost.hypotheses.columns import ColumnsPool
from dboost.hypotheses.union import UnionPool


@dataclass(frozen=True)
class Pairs(ColumnsPool):
    """Columns 0 and 1 together, 2 and 3 together, and so on."""

    def groups(self, shard: tuple[int, int]) -> NDArray[np.int64]:
        return np.arange(0, shard[1] - shard[0], 2)

    def group(self, key: Key) -> list[Key]:
        first = key[0] - key[0] % 2
        return [(first,), (first + 1,)]


def test_a_pool_without_groups_has_one_hypothesis_in_each() -> None:
    pool: Any = ColumnsPool(5)
    assert not isinstance(pool, Grouped)
    assert groups_of(pool, (1, 4), 3).tolist() == [0, 1, 2]
    assert group_of(pool, (3,)) == [(3,)]


def test_a_union_asks_its_members() -> None:
    pool = UnionPool((ColumnsPool(3), Pairs(4)))
    assert [groups_of(pool, shard, len(pool.keys(shard))).tolist() for shard in ((0, (0, 3)), (1, (0, 4)))] == [
        [0, 1, 2],
        [0, 2],
    ]
    assert group_of(pool, (0, 2)) == [(0, 2)]
    assert group_of(pool, (1, 2)) == [(1, 2), (1, 3)]
