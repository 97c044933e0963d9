"""Random and degenerate cases, and slow references, shared by the tests of penalties."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.penalties import (
    L1,
    L2,
    PENALTIES,
    ElasticNet,
    ExponentialSolves,
    GroupElasticNet,
    SmoothL1,
    SparseGroup,
    get_penalty,
)
from dboost.penalties.mixed import RidgedPenalty
from tests.penalties.optimality import missed

# what has solves of single rows under every bound; test_penalty_smooth_linf has the other
INSTANCES = {name: get_penalty(name) for name in PENALTIES if isinstance(get_penalty(name), ExponentialSolves)}
INSTANCES["sparse group 0.1"] = SparseGroup(l1_ratio=0.1)
INSTANCES["sparse group 0.9"] = SparseGroup(l1_ratio=0.9)
for ratio in (0.1, 0.9, 1.0):
    INSTANCES[f"elastic net {ratio}"] = ElasticNet(l1_ratio=ratio)
    INSTANCES[f"group elastic net {ratio}"] = GroupElasticNet(l1_ratio=ratio)
INSTANCES["smooth l1, sharp"] = SmoothL1(sharpness=20.0)
ANY = tuple(INSTANCES.values())
"""Every registered penalty, two more mixes of the sparse group, and a sharper smooth l1."""
SEPARABLE = tuple(one for one in ANY if one.separable)
"""Of these, every sum over rows; the others have test_penalty_joint."""
EXACT = tuple(one for one in SEPARABLE if not isinstance(one, SmoothL1))
"""Of these, those whose exponential solve is exact; smooth l1 has its own bound (test_penalty_smooth)."""
NORMS = tuple(one for one in SEPARABLE if one.degree == 1)
"""Of these, the norms of a row, and none."""
PULLING = tuple(one for one in SEPARABLE if one.threshold)
"""Of these, those that pull rows to zero."""


@pytest.fixture
def rng():
    return np.random.default_rng(20090614)


class Cases:
    """Makers of random problems; every call draws from one generator."""

    def __init__(self, rng):
        self.rng = rng

    def rows(self, rows, k, ties=0.2):
        """(rows, k) of mixed scales, with zeros, ties and zero rows."""
        rng = self.rng
        Z = rng.normal(size=(rows, k)) * 10.0 ** rng.uniform(-2, 2, size=(rows, 1))
        Z[rng.random((rows, k)) < ties] = 0.0
        tied = rng.random(rows) < ties
        Z[tied] = np.sign(Z[tied]) * np.abs(Z[tied, :1])
        Z[rng.random(rows) < 0.05] = 0.0
        return Z

    def exponential(self, rows, k, tilt=3.0):
        """W, mu_plus, mu_minus, a, lam with zeros in every place where section 4 of the notes allows them."""
        rng = self.rng
        mu_plus = 10.0 ** rng.uniform(-3, 2, size=(rows, k))
        mu_minus = mu_plus * 10.0 ** rng.uniform(-1, 1, size=(rows, k))
        mu_plus[rng.random((rows, k)) < 0.15] = 0.0
        mu_minus[rng.random((rows, k)) < 0.15] = 0.0
        a = 10.0 ** rng.uniform(-3, 0, size=rows)
        W = rng.normal(size=(rows, k)) * (a * tilt)[:, None]
        W[rng.random(rows) < 0.3] = 0.0
        W[rng.random((rows, k)) < 0.2] = 0.0
        lam = 10.0 ** rng.uniform(-3, 1.5, size=rows)
        return W, mu_plus, mu_minus, a, lam


@pytest.fixture
def cases(rng):
    return Cases(rng)


def distance(penalty, w, g, lam):
    """How far g is from lam * (subdifferential of omega at w), largest entry; written from the definitions."""
    if isinstance(penalty, RidgedPenalty):
        # the ridge has a gradient, and the norm is one of those below
        norm = L1() if isinstance(penalty, ElasticNet) else L2()
        rest = g - lam * (1 - penalty.l1_ratio) * w
        return distance(norm, w, rest, lam * penalty.l1_ratio)
    if lam == 0.0:
        return np.abs(g).max()
    if penalty.degree != 1 or not penalty.threshold:
        return missed(penalty, w[None], g[None], lam)[0]
    code, group, entry, _ = penalty.compiled
    if not w.any():
        if code == 1:
            return max(np.abs(g).sum() - lam, 0.0)
        rest = np.maximum(np.abs(g) - lam * entry, 0.0)
        return max(np.sqrt((rest**2).sum()) - lam * group, 0.0) if group else rest.max()
    if code == 1:
        tied = np.abs(w) >= np.abs(w).max() * (1 - 1e-12)
        pull = g[tied] * np.sign(w[tied])
        return max(np.abs(g[~tied]).max(initial=0.0), max(-pull.min(), 0.0), abs(pull.sum() - lam))
    wanted = lam * (entry * np.sign(w) + group * w / np.sqrt((w**2).sum()))
    off = np.where(w != 0, np.abs(g - wanted), np.maximum(np.abs(g) - lam * entry, 0.0))
    return off.max()
