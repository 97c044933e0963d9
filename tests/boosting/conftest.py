"""Problems and their optima, solved once by the plain solver."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dboost.losses import LOSSES
from tests.boosting import plain

# strengths at which penalties matter that leave no feature out
STRENGTHS = {"l2": 0.05, "l2_squared": 0.02, "smooth_l1": 0.05, "none": 0.0}


@cache
def solved(loss, penalty, share, intercept=True, **shape):
    """(data, alpha, optimum in the sum form), alpha a share of the largest; ``shape`` as for ``plain.make``."""
    data = plain.make(loss, **shape)
    # numbers that float32 holds, so that the optimum is that of either type
    data = replace(data, X=data.X.astype(np.float32).astype(float))
    alpha = STRENGTHS.get(penalty)
    alpha = share * plain.alpha_max(data, penalty, intercept) if alpha is None else alpha
    return data, alpha, plain.optimum(data, penalty, alpha * data.s.sum(), intercept)


@pytest.fixture(scope="session")
def solve():
    """``solved``: a problem with its optimum, remembered."""
    return solved


@pytest.fixture(params=list(LOSSES))
def loss(request):
    return request.param


@pytest.fixture(params=plain.PULLING)
def penalty(request):
    """Every penalty that pulls rows to zero."""
    return request.param
