"""Every family on every engine: the same bits, and the sums of the explicit matrix."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.boosting.fit import FitSettings, Fitting
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.hypotheses.patches.family import Patches
from dboost.hypotheses.pieces.family import PiecewiseLinear
from dboost.hypotheses.products.family import Products
from dboost.hypotheses.stumps.family import Stumps
from tests.boosting import plain
from tests.boosting.test_resume import bits
from tests.hypotheses.test_product_blocks import in_blocks

FAMILIES = {
    "pairs": Products(max_degree=2),
    "scaled products": Products(scale="range", decay=0.8),
    "stumps": Stumps(),
    "binned stumps": Stumps(bins=4, max_listed=0),
    "ends of bins": Stumps(bins=4, exact=False),
    "patches": Patches(templates=6, size=2, masks=1, shape=(2, 2), sample=60),
    "pieces": PiecewiseLinear(centres=6, radii=4),
}


@pytest.mark.full
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_fit_has_the_same_bits_on_threads_and_on_a_cluster(family, one_worker, two_processes, monkeypatch):
    in_blocks(monkeypatch, 300)
    data = plain.make("multinomial", m=120, n=4, weights=True, seed=60)
    # the bits of every round count, not how many there are: each pass costs turns through two schedulers
    settings = FitSettings("multinomial", "l1/l2", tol=1e-2, hypotheses=family)
    plan = plain.plan(data, [10, 40, 41, 41, 90, 120])
    results = []
    for engine in (LocalEngine(1), LocalEngine(3), DaskEngine(one_worker), DaskEngine(two_processes)):
        with engine:
            fitting = Fitting(plan, engine, settings)
            results.append(bits(fitting.fit(0.2 * fitting.alpha_max())))
    assert all(result == results[0] for result in results[1:])
    assert np.isfinite(results[0][1][0])
