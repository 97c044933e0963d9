"""Groups of hypotheses: pools without them, and unions that pass on what their members say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.hypotheses.base import Key
from dboost.hypotheses.columns import ColumnsPool
from dboost.hypotheses.union import UnionPool


@dataclass(frozen=True)
class Pairs(ColumnsPool):
    """Columns 0 and 1 together, 2 and 3 together, and so on."""

    def groups(self, shard: tuple[int, int], count: int) -> NDArray[np.int64]:
        return np.arange(0, count, 2)

    def group(self, key: Key) -> list[Key]:
        first = key[0] - key[0] % 2
        return [(first,), (first + 1,)]


def test_a_pool_without_groups_has_one_hypothesis_in_each() -> None:
    pool: Any = ColumnsPool(5)
    assert pool.groups((1, 4), 3).tolist() == [0, 1, 2]
    assert pool.group((3,)) == [(3,)]


def test_groups_of_a_pool() -> None:
    pool: Any = Pairs(6)
    assert pool.groups((0, 6), 6).tolist() == [0, 2, 4]
    assert pool.group((3,)) == [(2,), (3,)]
    assert np.add.reduceat(np.arange(6.0), pool.groups((0, 6), 6)).tolist() == [1.0, 5.0, 9.0]


def test_a_union_asks_its_members() -> None:
    pool = UnionPool((ColumnsPool(3), Pairs(4)))
    assert [pool.groups(shard, len(pool.keys(shard))).tolist() for shard in ((0, (0, 3)), (1, (0, 4)))] == [
        [0, 1, 2],
        [0, 2],
    ]
    assert pool.group((0, 2)) == [(0, 2)]
    assert pool.group((1, 2)) == [(1, 2), (1, 3)]
