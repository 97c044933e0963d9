"""The places of the rows of a data set, by which rows are drawn (``dboost.passes.draws``)."""

from __future__ import annotations

from dboost.boosting.planned import Planned
from dboost.engine.base import Engine
from dboost.passes.draws import Places, count_rows


def placed(plan: Planned, engine: Engine) -> Places:
    """The places of the rows that an engine sees, by class where the labels are classes; one pass over the labels."""
    classes = {"multiclass": plan.n_outputs, "binary": 2}.get(plan.task, 1)
    return Places.of(engine.map_reduce(count_rows, classes, name="places").parts["rows"])
