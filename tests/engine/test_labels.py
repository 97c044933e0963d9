"""What the dashboard of a cluster says of a fit: rounds in the keys of tasks, and in spans."""

from __future__ import annotations

import dask
import numpy as np
from dask.utils import key_split
from distributed import span

from dboost import BoostedClassifier
from dboost.engine.dask.engine import DaskEngine
from tests.engine import leaves


def spans(client):
    """(name, prefixes of its tasks) of every span that the scheduler knows, in order."""

    def read(dask_scheduler):
        found = dask_scheduler.extensions["spans"].spans.values()
        return [(one.name, sorted({group.name for group in one.groups})) for one in found]

    return client.run_on_scheduler(read)


def test_a_fit_is_a_span_inside_that_of_its_caller_with_one_inside_for_each_round(one_worker):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=200) > 0, "up", "down")
    with span("the caller"):
        model = BoostedClassifier(alpha=0.01, client=one_worker).fit(X, y)
    found = [(name, groups) for name, groups in spans(one_worker) if name[0] == "the caller"]
    names = [name for name, _ in found]
    assert len(names) == len(set(names))
    assert names[:2] == [("the caller",), ("the caller", "dboost")]
    rounds = [name for name in names if len(name) == 4]
    assert rounds and {name[2] for name in rounds} == {"alpha 0.01"}
    numbers = [int(name[3].removeprefix("round ")) for name in rounds]
    assert numbers == sorted(numbers) and numbers[0] == 1 and numbers[-1] <= model.n_iter_
    groups = {group for _, groups in found for group in groups}
    assert "dboost-score" in groups and all(group.startswith("dboost-") for group in groups)
    assert dask.get_annotations() == {}


def keys_of_a_pass(engine, client):
    """Keys of the tasks of one pass, as the scheduler has seen them."""

    def read(dask_scheduler):
        return {str(key) for key, *_ in dask_scheduler.transition_log}

    before = client.run_on_scheduler(read)
    engine.map_reduce(leaves.plain, 1.0, name="labelled")
    engine.map_reduce(leaves.sharded, 1.0, name="labelled", shards=[(0, 3), (3, 6)])
    return {key for key in client.run_on_scheduler(read) - before if "labelled" in key}


def test_the_round_stands_in_the_keys_and_not_in_the_prefix_by_which_the_dashboard_groups_them(two_processes):
    specs, rows = leaves.make_specs([3, 4, 5, 6])
    with DaskEngine(two_processes) as engine:
        engine.set_plan(specs, rows, "labelled")
        assert not any("round" in key for key in keys_of_a_pass(engine, two_processes))
        engine.label("without fold 2", "alpha 0.5", "round 12")
        keys = keys_of_a_pass(engine, two_processes)
        assert keys and all("-round12-" in key for key in keys)
        roles = ("labelled", "reduce-labelled", "pick-labelled")
        assert {key_split(key) for key in keys} >= {f"dboost-{role}" for role in roles}
