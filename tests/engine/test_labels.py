"""What the dashboard of a cluster says of a fit: rounds in spans."""

from __future__ import annotations

import dask
import numpy as np
from distributed import span

from dboost import BoostedClassifier


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
