"""A step that solves bound plus penalty lowers the objective of the real loss by at least the score."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.bounds import exponential, quadratic
from dboost.penalties import PENALTIES, get_penalty
from dboost.penalties.capabilities import ExponentialSolves

SOLVED = [name for name in PENALTIES if isinstance(get_penalty(name), ExponentialSolves)]
SEPARABLE = [name for name in SOLVED if get_penalty(name).separable]


@pytest.mark.parametrize("name", SOLVED)
def test_template_steps_from_any_point_never_raise(problems, rng, name):
    penalty = get_penalty(name)
    lowered = 0
    for problem in problems[:60]:
        k, n = problem.F.shape[1], problem.X.shape[1]
        W = rng.normal(size=(n, k)) * (rng.random((n, 1)) < 0.7) / (1 + np.abs(problem.X).max(axis=0))[:, None]
        problem.F += problem.X @ W
        mu_plus, mu_minus = problem.sums()
        lam = 0.2 * np.abs(mu_plus - mu_minus).sum(axis=1).max()
        a = exponential.normalisation(np.full(n, problem.rho.max()), problem.c)
        D = quadratic.many_rows((problem.s * problem.rho) @ np.abs(problem.X), problem.kappa)
        before = penalty.total(W, lam)
        for new in (
            penalty.solve_exponential(W, mu_plus, mu_minus, a, lam)[0],
            penalty.solve_quadratic(W, mu_plus - mu_minus, D, lam),
        ):
            fall = before - penalty.total(new, lam) - problem.change(new - W)
            assert fall >= -1e-11 * (before + problem.loss(problem.F))
            lowered += fall > 0
    assert lowered > 60
