"""What a fit asks of planned data.

Covers: the protocol ``Planned``, the places of its rows, and what settings say of its columns. Does not cover: how
input becomes such a plan (``dboost.data.plan``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dboost.columns.given import Features
from dboost.columns.table import ColumnTable
from dboost.engine.base import Engine
from dboost.errors import DataError
from dboost.passes.draws import Groups, Places, count_rows

if TYPE_CHECKING:
    from dboost.problem.state import FitSettings


class Planned(Protocol):
    """Planned data: partitions, their rows, and what the columns and the labels are."""

    # The partitions, in a form that the engine knows, and the rows of each.
    @property
    def items(self) -> tuple[Any, ...]: ...

    @property
    def rows(self) -> tuple[int, ...]: ...

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def n_outputs(self) -> int: ...

    @property
    def feature_names(self) -> tuple[str, ...] | None: ...

    @property
    def classes(self) -> NDArray[Any] | None: ...

    @property
    def task(self) -> str: ...

    # Bytes of all decoded partitions.
    @property
    def nbytes_estimate(self) -> int: ...

    # The weights of all items are 2**weight_exponent times those given.
    @property
    def weight_exponent(self) -> int: ...

    # Digest of the data; it may have to be waited for.
    @property
    def fingerprint(self) -> str: ...

    def of_classes(self, present: Sequence[int]) -> Self:
        """The plan of the same partitions with some of the classes only: those with examples, by number."""
        ...

    def of_columns(self, columns: NDArray[np.int64]) -> Self:
        """The plan of the same partitions with some of the columns only, ascending."""
        ...


def placed(plan: Planned, engine: Engine) -> Places | Groups:
    """The places of the rows by class, or their groups where rows belong together; one pass over the labels."""
    classes = {"multiclass": plan.n_outputs, "binary": 2}.get(plan.task, 1)
    found = engine.map_reduce(count_rows, classes, name="places").parts
    if "groups" not in found:
        return Places.of(found["rows"])
    groups = Groups.of(found["groups"])
    if len(groups.sizes) < 2:
        raise DataError(
            f"groups holds one value for all {int(groups.sizes.sum())} rows, expected two or more",
            hint="rows are held out by whole groups: leave groups out, or give what tells rows apart",
        )
    return groups


def columns_of(plan: Planned, settings: FitSettings) -> ColumnTable:
    """What settings ask of the columns of planned data; a UsageError where they name some that it does not have."""
    return ColumnTable.of(settings, Features(plan.n_features, plan.feature_names), plan.n_outputs)
