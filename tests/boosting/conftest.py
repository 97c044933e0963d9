"""Problems and their optima, solved once by the plain solver."""

from __future__ import annotations

from functools import cache

import pytest

from dboost.losses import LOSSES
from tests.boosting import plain


@cache
def solved(loss, penalty, share, intercept=True, **shape):
    """(data, alpha, optimum in the sum form) at alpha = share * alpha_max; ``shape`` as for ``plain.make``."""
    data = plain.make(loss, **shape)
    alpha = share * plain.alpha_max(data, penalty, intercept)
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
