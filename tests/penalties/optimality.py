"""How far rows are from the optimum of a penalised problem, from the definitions."""

from __future__ import annotations

import numpy as np

from dboost.penalties import L1, L2, ElasticNet
from dboost.penalties.mixed import RidgedPenalty


def missed(penalty, W, G, lam):
    """Distance of each row from optimality (rows,), zero iff the row is optimal; G = -grad of the loss (rows, k).

    For the norms of a row max([||G_j||_* - lam_j]_+, lam_j - <G_j, W_j> / omega(W_j)), the second only where W_j != 0
    (docs/math.md 6); ``test_dual_norm_is_the_dual`` holds the dual norm. For the others the net gradient, where the
    penalty has one.
    """
    lam = np.broadcast_to(np.asarray(lam, dtype=np.float64), (len(W),))
    if penalty.name == "none":
        return np.abs(G).max(axis=1)
    if penalty.name == "l2_squared":
        return np.abs(G - lam[:, None] * W).max(axis=1)
    if penalty.name == "smooth_l1":
        return np.abs(G - lam[:, None] * np.tanh(penalty.sharpness * W / 2)).max(axis=1)
    if penalty.name == "l2":
        total = np.linalg.norm(lam[:, None] * W)
        if total > 0:
            return np.linalg.norm(G - (lam**2)[:, None] * W / total, axis=1)
        # the subgradients at zero are lam_j V_j with ||V||_F <= 1; the part of G beyond that ball is missing
        norms = np.linalg.norm(G, axis=1)
        beyond = np.linalg.norm(np.divide(norms, lam, out=np.zeros_like(norms), where=lam > 0))
        return np.where(lam > 0, norms * (1 - 1 / max(beyond, 1)), norms)
    if isinstance(penalty, RidgedPenalty):
        norm = L1() if isinstance(penalty, ElasticNet) else L2()
        rest = G - (lam * (1 - penalty.l1_ratio))[:, None] * W
        return missed(norm, W, rest, lam * penalty.l1_ratio)
    assert penalty.degree == 1 and penalty.threshold, penalty
    off = np.maximum(penalty.dual_norm(G) - lam, 0.0)
    size = penalty.value(W)
    alive = size > 0
    slack = lam[alive] - (G[alive] * W[alive]).sum(axis=1) / size[alive]
    off[alive] = np.maximum(off[alive], slack)
    return off
