"""What a problem is made of: the objective, what runs its passes, the null model, and which rows W may have."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from dboost.engine.local import LocalEngine
from dboost.errors import UsageError
from dboost.hypotheses.products.family import Products
from dboost.partition import Sums
from dboost.penalties import get_penalty
from dboost.problem.null_model import NullModel
from dboost.problem.pass_runner import PassRunner
from dboost.problem.problem import ProblemSettings
from dboost.problem.stored import StoredProblem
from tests.boosting import plain

B = np.array([0.5, -0.25])


@pytest.mark.parametrize("loss, penalty", [("log", "l1"), ("multinomial", "l1/linf"), ("squared", "l2_squared")])
def test_an_objective_is_called_with_a_model_and_a_strength(loss, penalty):
    data = plain.make(loss, m=60, n=6, weights=True)
    problem = plain.fitting(data, penalty=penalty).problem
    rng = np.random.default_rng(0)
    W, b = rng.normal(size=(6, data.k)), rng.normal(size=data.k)
    iterate = problem.evaluate(np.arange(6), W, b)
    expected = plain.objective(data, penalty, 3.0, W, b)
    assert problem.objective(iterate, 3.0) == pytest.approx(expected, rel=1e-12)


def test_an_objective_never_changes():
    fitting = plain.fitting(plain.make("log", m=60, n=4), penalty="l1", hypotheses=Products(max_degree=2))
    before = fitting.problem.objective
    with pytest.raises(FrozenInstanceError):
        before.fit_intercept = False
    fitting.problem.register([(0,), (1, 2)])
    assert before.columns.weight.shape == (0,) and fitting.problem.objective.columns.weight.shape == (2,)
    # hypotheses that are known cost no pass
    done = fitting.problem.passes
    assert fitting.problem.register([(1, 2), (0,)]).tolist() == [1, 0] and fitting.problem.passes == done


def test_a_runner_counts_and_names():
    data = plain.make("log", m=20, n=3)
    engine = LocalEngine(1)
    planned = plain.plan(data)
    engine.set_plan(planned.items, planned.rows, "run")
    runner = PassRunner(engine, "run", 7)
    assert len({runner.token() for _ in range(5)}) == 5 and runner.count == 7
    total = runner.run(lambda partition, memo: Sums(add={"rows": partition.n_rows}), name="count")
    assert total.add["rows"] == 20 and runner.count == 8
    runner.count_on_driver()
    assert runner.count == 9
    assert all(second >= 0.0 for second in runner.seconds()) and runner.seconds() == (0.0, 0.0, 0.0)


def test_passes_done_before_are_counted_once():
    data = plain.make("log", m=20, n=3)
    planned, counts = plain.plan(data), []
    for done in (0, 5):
        engine = LocalEngine(1)
        engine.set_plan(planned.items, planned.rows, "run")
        asked = ProblemSettings("log", get_penalty("l1"), 3, 1)
        counts.append(StoredProblem(engine, asked, "run", passes_before=done).passes)
    assert counts[1] == counts[0] + 5


def test_sums_of_the_null_model_are_kept_as_often_as_they_are_asked_for():
    sums = Sums(add={"loss": 1.0})
    null = NullModel(keeps=True)
    null.keep(B, sums, 2)
    assert [null.sums(B), null.sums(B), null.sums(B)] == [sums, sums, None]
    null.keep(B, sums, 2)
    assert null.sums(B + 1.0) is None and null.sums(B) is None
    null.keep(B, sums, 2)
    null.forget()
    assert null.sums(B) is None
    keeps_none = NullModel(keeps=False)
    keeps_none.keep(B, sums, 2)
    assert keeps_none.sums(B) is None


def test_the_intercept_of_the_null_model_is_found_once():
    problem = plain.fitting(plain.make("epsilon_insensitive", m=60, n=4), penalty="l1").problem
    before = problem.passes
    first = problem.null()
    assert problem.passes > before
    first.intercept[:] = 9.0
    done = problem.passes
    assert problem.null().intercept[0] != 9.0 and problem.passes == done


def test_stored_columns_take_no_hypotheses():
    data = plain.make("log", m=60, n=4)
    problem = plain.fitting(data, penalty="l1").problem
    assert problem.register([]).shape == (0,) and problem.rows_of(np.array([1, 3]), ()).tolist() == [1, 3]
    induced = plain.fitting(data, penalty="l1", hypotheses=Products(max_degree=2))
    state = induced.fit(0.2 * induced.alpha_max()).state
    with pytest.raises(UsageError, match="rows of W are stored columns.*hypotheses="):
        plain.fitting(data, penalty="l1").fit(0.01, resume=state)
