"""ShareBoost on every engine: the same bits, whatever is chosen from."""

from __future__ import annotations

import pytest

from dboost.boosting.fit import FitSettings, Fitting
from dboost.boosting.shareboost.rounds import ShareBoost
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.hypotheses.products.family import Products
from dboost.hypotheses.stumps.family import Stumps
from tests.boosting import plain
from tests.boosting.test_resume import bits

# (system, rounds asked for, rounds done); a pass on a cluster takes time, and Nesterov's step is many of them
NEWTON = ShareBoost("row", 2, keep=2), 3, 5
PAPERS = ShareBoost("row", None, corrective="nesterov"), 2, 2


@pytest.mark.parametrize(
    "family,case",
    [(None, NEWTON), (Products(max_degree=2), NEWTON), (Stumps(), NEWTON), (None, PAPERS)],
    ids=["columns", "products", "stumps", "no shortlist, nesterov"],
)
def test_a_fit_has_the_same_bits_on_threads_and_on_a_cluster(family, case, one_worker, two_processes):
    system, rounds, done = case
    data = plain.make("margin_softmax", m=120, n=6, weights=True, seed=61)
    settings = FitSettings(
        "margin_softmax", "l2_squared", tol=1e-2, max_rounds=rounds, hypotheses=family, system=system
    )
    plan = plain.plan(data, [10, 40, 41, 41, 90, 120])
    results = []
    for engine in (LocalEngine(1), LocalEngine(3), DaskEngine(one_worker), DaskEngine(two_processes)):
        with engine:
            result = Fitting(plan, engine, settings).fit(1e-4)
            results.append((bits(result), {name: value.tobytes() for name, value in result.state.carried.items()}))
    assert all(result == results[0] for result in results[1:])
    assert results[0][0][1][3] == done
