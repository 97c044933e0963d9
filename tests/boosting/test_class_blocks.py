"""The preconditioner of the corrective step: symmetric and positive, with one block and with several.

Conjugate gradients under an operator that is neither go astray: directions stop descending, the line search finds
nothing, and the step ends far from the optimum.
"""

from __future__ import annotations

import numpy as np
import pytest

from dboost.boosting.fit import Fitting
from dboost.problem.problem import Problem
from dboost.solvers.conjugate import class_blocks
from dboost.solvers.conjugate.class_blocks import ClassBlocks
from tests.boosting import plain


def problem_of(loss: str, n: int) -> tuple[Problem, int]:
    """A smooth problem over so many columns, and its examples."""
    data = plain.make(loss, m=400, n=n, seed=7)
    fitting: Fitting = plain.fitting(data, penalty="l2_squared")
    return fitting.problem, data.s.shape[0]


@pytest.mark.parametrize("loss", ["multinomial", "margin_softmax", "log"])
@pytest.mark.parametrize("width", [64, 16])
@pytest.mark.parametrize("intercept", [True, False])
def test_it_is_symmetric_and_positive(monkeypatch: pytest.MonkeyPatch, loss: str, width: int, intercept: bool) -> None:
    monkeypatch.setattr(class_blocks, "BLOCK", width)
    problem, n_rows = problem_of(loss, 40)
    rng = np.random.default_rng(0)
    active = np.arange(40)
    iterate = problem.evaluate(active, 0.1 * rng.normal(size=(40, problem.k)), np.zeros(problem.k))
    bend = np.full((40, problem.k), 0.3)
    inverse = ClassBlocks(problem, iterate, active, intercept, bend, n_rows)
    size = 40 * problem.k

    def times(v: np.ndarray) -> np.ndarray:
        rows, bias = inverse(v[:size].reshape(40, problem.k), v[size:])
        return np.concatenate([rows.ravel(), bias])

    M = np.stack([times(unit) for unit in np.eye(size + problem.k)])
    np.testing.assert_allclose(M, M.T, atol=1e-10 * np.abs(M).max())
    least = np.linalg.eigvalsh(M).min()
    assert least >= -1e-12 * np.abs(M).max()


