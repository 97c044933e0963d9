"""Fits that begin at a model of a sample: when they do, where that leads, and the bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dboost.boosting.fit import FitSettings, Fitting
from dboost.boosting.starts import from_sample
from dboost.data.plan import build_plan
from dboost.data.streamed import StreamedPartition
from dboost.engine.local import LocalEngine
from dboost.partition import Partition
from dboost.passes import examples
from dboost.problem.accelerators import Accelerators
from dboost.problem.driver_columns import DriverColumns
from dboost.problem.tuning import SampledStart, Tuning
from tests.boosting import plain

TASKS = {"log": "binary", "squared": "regression", "epsilon_insensitive": "regression"}
M, N = 6_000, 12


@pytest.fixture(params=TASKS)
def problem(request):
    """Many examples for each of a few columns: arguments of `build_plan`, and the loss."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(M, N)) * (rng.random((M, N)) < 0.6)
    score = X[:, :4] @ np.array([2.0, -1.0, 0.5, 0.2]) + rng.normal(size=M)
    return X, score > 0.5 if request.param == "log" else score, request.param


FEW = SampledStart(least=600)


def fitting(problem, engine, weight=None, **settings):
    X, y, loss = problem
    plan = build_plan(X, y, weight, task=TASKS[loss], engine=engine)
    usual = FitSettings(loss, "l1", alpha=0.01, tol=1e-9, tuning=Tuning(start=FEW))
    return Fitting(plan, engine, replace(usual, **settings))


class Away(LocalEngine):
    """Partitions that are not at hand."""

    def resident_partitions(self):
        return None


def fitted(problem, engine=None, weight=None, **settings):
    with LocalEngine(1) if engine is None else engine as engine:
        one = fitting(problem, engine, weight, **settings)
        return one.fit(one.settings.alpha)


@pytest.mark.parametrize("settings", [{}, {"fit_intercept": False}, {"penalty": "l1/linf"}, {"standardize": True}])
def test_the_optimum_is_that_of_the_whole_way(problem, settings):
    begun = fitted(problem, **settings)
    assert begun.gap <= 1e-9 and begun.history[0]["alpha"] == pytest.approx(0.01)
    walked = fitted(problem, **settings, accelerators=plain.without("sampled_start"))
    assert walked.history[0]["alpha"] > 0.02
    assert np.array_equal(begun.active, walked.active)
    np.testing.assert_allclose(begun.W, walked.W, atol=1e-4)
    assert begun.objective == pytest.approx(walked.objective, rel=3e-9)


def test_the_first_model_is_a_good_one(problem):
    found = fitted(problem)
    assert found.history[0]["objective"] <= 1.02 * found.objective


def test_weights_of_the_sample_sum_to_those_of_all(problem):
    weight = np.random.default_rng(0).random(M) * 3.0
    with LocalEngine(1) as engine:
        one = fitting(problem, engine, weight, tol=1e-3).problem
        null = one.score(one.null(), None, 1.0, 0)
        lam_max = float(one.penalty.dual_norm(null.iterate.G).max(initial=0.0)) or float(null.norms.max())
        rows, W, b, _ = from_sample.solved(one, 0.05 * lam_max, lam_max, 0.2, 0, Accelerators())
        at = one.score(replace(one.null(), active=rows, W=W, intercept=b), None, 1.0, 0).iterate
        value = one.objective(at, 0.05 * lam_max)
        best = fitted(problem, weight=weight, alpha=0.05 * lam_max / weight.sum())
    # a sample without its weights would be solved at five times the strength
    assert value <= 1.02 * best.objective * weight.sum()


def test_the_sample_is_the_same_wherever_the_partitions_lie(problem, monkeypatch):
    from dboost.data.memory import in_memory

    monkeypatch.setattr(in_memory, "BLOCK_COST", M * N // 3)
    found = [fitted(problem, engine) for engine in (LocalEngine(1), LocalEngine(3), Away(1))]
    assert len({(f.active.tobytes(), f.W.tobytes(), f.gap, f.passes) for f in found}) == 1
    other = fitted(problem, random_state=1)
    assert other.history[0]["objective"] != found[0].history[0]["objective"]


def test_columns_of_a_sample_are_rows_of_the_data(problem):
    X, y, _ = problem
    with LocalEngine(1) as engine:
        one = fitting(problem, engine).problem
        drawn = DriverColumns(engine, 0.1, 7)
        places = drawn.places(np.array([2, 5]), one.columns_of)
        dense = np.zeros((drawn.weight.shape[0], 2))
        for c, j in enumerate(places):
            inside = slice(drawn.indptr[j], drawn.indptr[j + 1])
            dense[drawn.rows[inside], c] = drawn.values[inside]
    assert 0.05 * M < dense.shape[0] < 0.2 * M and drawn.labels.shape[0] == dense.shape[0]
    rows = {tuple(row) for row in X[:, [2, 5]]}
    assert all(tuple(row) in rows for row in dense)


def test_a_fit_begins_so_only_where_examples_are_many(problem):
    with LocalEngine(1) as engine:
        one = fitting(problem, engine).problem
    assert from_sample.share_of_one(one, M, FEW) == pytest.approx(600 / M)
    assert from_sample.share_of_one(one, 2_000, FEW) is None
    assert from_sample.share_of_one(one, M, replace(FEW, per_column=100)) == pytest.approx(0.2)
    assert from_sample.share_of_one(one, M, replace(FEW, per_column=100, most_columns=N - 1)) is None


def test_a_rare_label_needs_all_examples():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(M, N)), np.arange(M) % 20 == 0
    with LocalEngine(1) as engine:
        one = fitting((X, y, "log"), engine).problem
        # 30 examples of it are likely to be in a sample of 600
        assert from_sample.share_of_one(one, M, FEW) is None


@pytest.mark.parametrize("settings", [{"sample": 1.0}, {"rows_per_round": 3}, {"max_active_rows": 5}])
def test_who_asks_for_another_way_gets_it(problem, settings):
    found = fitted(problem, **settings, max_rounds=1, tol=0.5)
    assert found.history[0]["objective"] == pytest.approx(fitted(problem, sample=1.0, tol=0.5).history[0]["objective"])


def test_any_round_is_resumed_with_the_same_bits(problem):
    states = []
    with LocalEngine(1) as engine:
        one = fitting(problem, engine)
        whole = one.fit(0.01, callback=lambda _, state: states.append(state))
        assert len(states) > 1
        for state in states[:-1]:
            again = fitting(problem, engine).fit(0.01, resume=state)
            assert again.W.tobytes() == whole.W.tobytes() and again.passes == whole.passes


# ---- several outputs -----------------------------------------------------------------------------------------------


# begins with a sample of the smallest problems too
OFTEN = SampledStart(fewest=50, per_output=10, sure=0.0)


def several(loss, engine=None, sizes=OFTEN, **settings):
    data = plain.make(loss, m=600, n=30, k=4, weights=True)
    task, y = ("multitask", np.where(data.y == 0, np.nan, data.y)) if loss == "multitask" else ("multiclass", data.y)
    with LocalEngine(1) if engine is None else engine as engine:
        plan = build_plan(data.X, y, data.s, task=task, engine=engine)
        given = replace(FitSettings(loss, "l1/l2", tol=1e-8, tuning=Tuning(start=sizes)), **settings)
        one = Fitting(plan, engine, given)
        alpha = 0.03 * one.alpha_max()
        return one.fit(alpha), alpha


@pytest.mark.parametrize(
    "loss,penalty,intercept",
    plain.covering(("multinomial", "margin_softmax", "multitask"), plain.PULLING, [True, False]),
)
def test_the_way_on_a_sample_leads_to_the_optimum(loss, penalty, intercept):
    begun, alpha = several(loss, penalty=penalty, fit_intercept=intercept)
    assert begun.gap <= 1e-8 and begun.history[0]["alpha"] == pytest.approx(alpha)
    usual = plain.without("sampled_start")
    walked, _ = several(loss, penalty=penalty, fit_intercept=intercept, accelerators=usual)
    assert walked.history[0]["alpha"] > 10 * alpha
    assert begun.objective == pytest.approx(walked.objective, rel=3e-8)
    # the way there is that of a sample, and no other
    assert begun.n_iter < walked.n_iter


def test_the_way_on_a_sample_ends_where_its_rows_are_many():
    found, alpha = several("multinomial", sizes=replace(OFTEN, sure=1.0))
    # 150 examples are not enough for the first rows already
    assert found.history[0]["alpha"] > 1.5 * alpha and found.gap <= 1e-8


def test_partitions_of_a_sample_are_the_same_wherever_they_lie(monkeypatch):
    from dboost.data.memory import in_memory

    monkeypatch.setattr(in_memory, "BLOCK_COST", 2_000)
    found = [several("multinomial", engine)[0] for engine in (LocalEngine(1), LocalEngine(3), Away(2))]
    assert len({(f.W.tobytes(), f.intercept.tobytes(), f.gap, f.passes) for f in found}) == 1
    assert several("multinomial", random_state=1)[0].W.tobytes() != found[0].W.tobytes()


def test_a_rare_class_is_drawn_whole_and_weights_stand_for_all():
    rng = np.random.default_rng(1)
    y = rng.choice(4, size=4_000, p=[0.6, 0.3, 0.097, 0.003]).astype(np.int32)
    X = rng.normal(size=(4_000, 5)) * (rng.random((4_000, 5)) < 0.5)
    with LocalEngine(1) as engine:
        plan = build_plan(X, y, task="multiclass", engine=engine)
        problem = Fitting(plan, engine, FitSettings("multinomial", "l1")).problem
        share = from_sample.share_of_several(problem, 4_000, plan.nbytes_estimate, OFTEN)
        (part,) = from_sample.sampled_partitions(problem, share, 0)
    counts = np.bincount(y)
    assert counts[3] < 30 and share[3] == 1.0
    np.testing.assert_allclose(share[:3], np.maximum(0.25, 30 / counts[:3]))
    drawn = np.bincount(part.y, minlength=4)
    assert drawn[3] == counts[3]
    np.testing.assert_allclose(np.bincount(part.y, weights=part.weight), counts, rtol=0.15)
    assert part.n_features == 5 and part.indptr[-1] == part.rows.shape[0] == part.values.shape[0]
    rows = {tuple(row) for row in X}
    dense = sparse.csc_array((part.values, part.rows, part.indptr), shape=(part.n_rows, 5)).toarray()
    assert all(tuple(row) in rows for row in dense)


def test_a_sample_of_rows_is_that_of_columns():
    rng = np.random.default_rng(2)
    X = sparse.random_array((300, 20), density=0.3, format="csr", rng=rng, dtype=np.float32)
    columns = X.tocsc()
    columns.sort_indices()
    y, s = rng.integers(0, 3, 300).astype(np.int32), rng.random(300)
    whole = Partition(columns.indptr.astype(np.int64), columns.indices, columns.data, y, s, "a")
    by_row = StreamedPartition(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, 20, y, s, "a")
    share = np.array([0.3, 0.5, 1.0])
    one, other = (examples.sampled_partition(p, None, share, 4).parts["found"][0] for p in (whole, by_row))
    for name in ("indptr", "rows", "values", "y", "weight"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_the_sample_is_small_where_data_are_large():
    data = plain.make("multinomial", m=400, n=10, k=3)
    with LocalEngine(1) as engine:
        plan = build_plan(data.X, data.y, task="multiclass", engine=engine)
        problem = Fitting(plan, engine, FitSettings("multinomial", "l1/l2")).problem

    def least(n_rows, stored):
        share = from_sample.share_of_several(problem, n_rows, stored)
        return None if share is None else share.min()

    assert np.bincount(data.y).min() > 4 * 30 / 3
    assert least(400, 1_000) is None and least(10_000, 640_000_000) is None
    assert least(10_000, 1_000) == pytest.approx(0.25)
    # no less than enough of the rarest class
    enough = 30 / np.bincount(data.y).max()
    assert least(40_000, 640_000_000) == pytest.approx(max(0.1, enough))
    assert least(40_000_000, 1_000) == pytest.approx(max(0.1, enough))


def test_rare_tasks_need_all_examples():
    data = plain.make("multitask", m=400, n=10, k=3)
    y = np.where(data.y > 0, 1, -1)
    y[:, 1] = np.where(np.arange(400) < 100, 1, -1)
    with LocalEngine(1) as engine:
        plan = build_plan(data.X, y, task="multitask", engine=engine)
        problem = Fitting(plan, engine, FitSettings("multitask", "l1/l2")).problem
    # a quarter of 100 is not enough
    assert from_sample.share_of_several(problem, 10_000, 1_000) is None


@pytest.mark.parametrize("sizes,per_column,counts", [
    ([40, 0, 30, 50, 10, 70], 4, [1, 1, 1, 1, 1, 1]),
    ([40, 0, 30, 50, 10, 70], 40, [120, 80]),
    ([40, 0, 30, 50, 10, 70], 4000, [200]),
    ([25], 4000, [25]),
])  # fmt: skip
def test_a_sample_with_few_values_a_column_is_stacked(sizes, per_column, counts):
    rng = np.random.default_rng(1)
    dense = [(rng.random((m, N)) < 0.5) * rng.normal(size=(m, N)) for m in sizes]
    parts = []
    for number, X in enumerate(dense):
        block = sparse.csc_array(X)
        y, weight = rng.integers(0, 3, len(X)).astype(np.int32), rng.random(len(X))
        arrays = (block.indptr.astype(np.int64), block.indices.astype(np.int32), block.data)
        parts.append(Partition(*arrays, y, weight, f"part-{number}"))
    y, weight = (np.concatenate([getattr(part, name) for part in parts]) for name in ("y", "weight"))
    found = from_sample.stacked(list(parts), per_column)
    if len(counts) == len(sizes):
        assert all(mine is given for mine, given in zip(found, parts, strict=True))
        return
    assert [part.n_rows for part in found] == counts and len({part.key for part in found}) == len(found)
    assert np.array_equal(np.concatenate([part.y for part in found]), y)
    assert np.array_equal(np.concatenate([part.weight for part in found]), weight)
    blocks = [sparse.csc_array((p.values, p.rows, p.indptr), shape=(p.n_rows, N)) for p in found]
    assert all(block.has_sorted_indices and p.indptr.dtype == np.int64 for block, p in zip(blocks, found, strict=True))
    np.testing.assert_array_equal(np.vstack([block.toarray() for block in blocks]), np.vstack(dense))
