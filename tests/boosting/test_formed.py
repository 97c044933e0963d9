"""Newton steps on a formed model: few rows of dense columns that pull on one another."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from dboost.problem.accelerators import Accelerators
from dboost.problem.sample import Sample
from dboost.solvers.newton import formed_curvature
from dboost.solvers.newton import step as newton
from dboost.solvers.newton.formed_curvature import FormedModel
from tests.boosting import plain
from tests.penalties.optimality import missed

PENALTIES = ["l1", "l1/l2", "l1/linf", "l1/l2+l1"]
M, N, K = 900, 12, 4


def measured(seed=2):
    """Four classes told by twelve measurements of the same three things."""
    rng = np.random.default_rng(seed)
    things = rng.normal(size=(M, 3))
    X = things @ rng.normal(size=(3, N)) + 0.05 * rng.normal(size=(M, N)) + 2.0
    code = (things @ rng.normal(size=(3, K))).argmax(axis=1).astype(np.int32)
    return plain.Data("multinomial", X, code, np.ones(M), K)


@pytest.fixture(scope="module")
def data():
    return measured()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_optimum_is_that_of_the_usual_steps_in_fewer_passes(data, penalty, intercept):
    settings = {"penalty": penalty, "tol": 1e-8, "fit_intercept": intercept, "max_rounds": 300}
    mine = plain.fitting(data, **settings).fit(2e-3)
    assert mine.gap <= 1e-8 and "newton" in {r["step"] for r in mine.history}
    theirs = plain.fitting(data, **settings, accelerators=plain.without("formed_curvature")).fit(2e-3)
    assert theirs.gap <= 1e-8 and "newton" not in {r["step"] for r in theirs.history}
    assert mine.objective == pytest.approx(theirs.objective, rel=2e-8)
    assert mine.passes < theirs.passes


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_bits_do_not_depend_on_threads(data, penalty):
    found = [plain.fitting(data, threads=threads, penalty=penalty, tol=1e-6).fit(2e-3) for threads in (1, 3)]
    assert found[0].W.tobytes() == found[1].W.tobytes() and found[0].passes == found[1].passes


def steps_at(data, **settings):
    """Steps on all rows of the null model of a problem, and the model with its sums."""
    fitting = plain.fitting(data, **settings)
    problem = fitting.problem
    active = np.arange(problem.n)
    at = problem.evaluate(active, np.zeros((problem.n, problem.k)), np.zeros(problem.k))
    return problem, newton.NewtonSteps(problem, active, M, 1.0, 0, newton.Memory(), Accelerators()), at


@pytest.mark.parametrize("intercept", [False, True])
def test_the_table_is_the_hessian(data, intercept):
    problem, steps, at = steps_at(data, penalty="l1", fit_intercept=intercept)
    h, rank_one, _ = steps.sample.curvature(problem, at)
    model = FormedModel.of(problem, steps.sample, h, rank_one, N)
    X = np.column_stack([data.X, np.ones(M)])[:, : N + intercept].astype(np.float32).astype(float)
    expected = np.zeros_like(model.H)
    for i in range(M):
        q = h[i, :K].astype(float)
        expected += np.kron(np.outer(X[i], X[i]), np.diag(q) - rank_one[i] * np.outer(q, q))
    np.testing.assert_allclose(model.H, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    assert model.moved(h) == 0.0 and model.moved(2.0 * h) == pytest.approx(1.0)


@pytest.mark.parametrize("penalty, intercept", list(itertools.product(PENALTIES, [False, True])))
def test_the_step_is_the_minimum_of_the_model(data, penalty, intercept):
    problem, steps, at = steps_at(data, penalty=penalty, fit_intercept=intercept)
    h, rank_one, diagonal = steps.sample.curvature(problem, at)
    model = FormedModel.of(problem, steps.sample, h, rank_one, N)
    lam = 2e-3 * M
    D, d = model.minimiser(problem, at, lam, diagonal, np.zeros_like(diagonal), turns=200, solved=0.0)
    step = np.vstack([D, d]) if intercept else D
    pull = (model.H @ step.reshape(-1)).reshape(step.shape)
    rest, W = at.G - pull[:N], at.W + D
    assert missed(problem.penalty, W, rest, lam).max() < 1e-4 * lam
    if intercept:
        np.testing.assert_allclose(at.bias - pull[N], 0.0, atol=1e-4 * lam)


def test_only_few_entries_of_whole_data_are_formed(data):
    problem, steps, _ = steps_at(data, penalty="l1")
    sample = steps.sample
    assert formed_curvature.pays(problem, sample, N)
    assert not formed_curvature.pays(problem, sample, 200), "too many entries"
    assert not formed_curvature.pays(problem, sample, 40), "not much smaller than the data"
    part = Sample(sample.by_row, sample.by_column, sample.parts, sample.weight, whole=False)
    assert not formed_curvature.pays(problem, part, N), "a sample"
    separable = SimpleNamespace(k=K, fit_intercept=True, loss=SimpleNamespace(separable=True))
    assert not formed_curvature.pays(separable, sample, N), "outputs that share no curvature"
    # an example with so many values asks for more products than some steps take
    pointer = np.arange(M + 1) * 4000
    long = Sample((pointer, *sample.by_row[1:]), sample.by_column, sample.parts, sample.weight, whole=True)
    assert not formed_curvature.pays(problem, long, N), "too many products"


def test_where_the_model_misleads_usual_steps_go_on():
    """One class weighs ten million times what others do: the minimum of a model is far outside of where it holds."""
    rng = np.random.default_rng(0)
    code = np.arange(60) % 3
    X = 10.0 * rng.normal(size=(3, 2))[code] + 20.0 * rng.normal(size=(60, 2))
    weight = np.where(code == 0, 1e3, 1e-4)
    misleading = plain.Data("multinomial", X, code.astype(np.int32), weight, 3)
    fitting = plain.fitting(misleading, penalty="l1/l2", tol=1e-3, max_rounds=100)
    result = fitting.fit(0.01 * fitting.alpha_max())
    assert result.gap <= 1e-3 and len(result.history) < 100
