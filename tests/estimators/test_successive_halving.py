"""Successive halving: rungs, the winner of a full cross-validation, data in memory, on disk and on Dask, refusals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import dboost
from dboost import DataError, ParquetData, UsageError, successive_halving
from dboost.boosting.cross_validation import kept, rungs

RNG = np.random.default_rng(4)
M, N, K = 1500, 20, 3
X = RNG.normal(size=(M, N)).astype(np.float32).astype(np.float64)
W = np.zeros((N, K))
W[:4] = 2.0 * RNG.normal(size=(4, K))
Y = np.argmax(X @ W + RNG.gumbel(size=(M, K)), axis=1)
ROWS = dboost.BoostedClassifier(alpha="quick", penalty="l1/l2", tol=1e-4)
ALPHAS = [0.3, 0.1, 0.03, 0.01, 0.003]
GRID = {"penalty": ["l1/l2", "l1"], "alpha": ALPHAS}


def halved(X=X, y=Y, estimator=ROWS, grid=GRID, **given):
    return successive_halving(X, y, estimator=estimator, param_grid=grid, **({"min_rows": 150} | given))


def test_rungs_have_factor_times_as_many_rows_and_as_many_times_fewer_candidates():
    assert [(round(r.share * 81), r.candidates) for r in rungs(81, 3.0, 10**6, 1000)] == [
        (1, 81), (3, 27), (9, 9), (27, 3), (81, 1),
    ]  # fmt: skip
    # too few rows for the first of these: it has more of them
    assert [(r.share, r.candidates) for r in rungs(16, 2.0, 4000, 1000)] == [(0.25, 16), (0.5, 8), (1.0, 4)]
    assert [(r.share, r.candidates) for r in rungs(16, 2.0, 100, 1000)] == [(1.0, 16)]
    assert [(r.share, r.candidates) for r in rungs(1, 3.0, 10**6, 1000)] == [(1.0, 1)]
    assert [kept(n, 3.0) for n in (1, 2, 3, 4, 9, 10)] == [1, 1, 1, 2, 3, 4]


@pytest.mark.full
def test_the_best_of_all_is_found_and_fitted_to_all_rows():
    model = halved()
    losses = {
        (penalty, alpha): dboost.cross_validated(
            X, Y, estimator=clone(ROWS).set_params(penalty=penalty), alphas=[alpha], cv=3
        ).fold_losses_.mean()
        for penalty in GRID["penalty"]
        for alpha in ALPHAS
    }
    best = model.best_params_
    assert losses[best["penalty"], best["alpha"]] <= 1.01 * min(losses.values())
    plain = clone(ROWS).set_params(**best).fit(X, Y)
    assert plain.coef_.tobytes() == model.coef_.tobytes() and model.duality_gap_ <= 1e-4
    last = [row for row in model.halving_results_ if row["kept"]][-1]
    assert last["params"] == best and last["mean"] == model.best_score_ and last["rows"] == M


@pytest.mark.full
def test_what_is_said_of_every_rung():
    model = halved(factor=2.0)
    table = model.halving_results_
    numbers = sorted({row["rung"] for row in table})
    assert numbers == [0, 1, 2, 3]
    left = 10
    for number in numbers:
        mine = [row for row in table if row["rung"] == number]
        assert len(mine) == left
        assert len({row["rows"] for row in mine}) == 1
        assert abs(mine[0]["rows"] - M / 2 ** (3 - number)) < 50
        survivors = [row for row in mine if row["kept"]]
        assert max(row["mean"] for row in survivors) <= min([row["mean"] for row in mine if not row["kept"]] + [np.inf])
        assert all(0.0 <= row["gap"] <= 1e-3 and row["sd"] >= 0.0 for row in mine)
        left = 1 if number == 3 else kept(left, 2.0)
        assert len(survivors) == left
        if number < 3:
            after = [row["params"] for row in table if row["rung"] == number + 1]
            assert after == [row["params"] for row in survivors]


@pytest.mark.full
def test_candidates_that_differ_in_their_strength_alone_are_one_path(monkeypatch):
    from dboost.estimators import cv as halving

    asked = []
    usual = halving.judged

    def counted(plan, engine, settings, alphas, some, cv, tol):
        asked.append((some.share, len(alphas)))
        return usual(plan, engine, settings, alphas, some, cv, tol)

    monkeypatch.setattr(halving, "judged", counted)
    halved(factor=3.0)
    assert asked[:2] == [(1 / 9, 5), (1 / 9, 5)]
    assert sum(share * count for share, count in asked) < 0.5 * len(ALPHAS) * len(GRID["penalty"])


def same(one, other):
    assert one.halving_results_ == other.halving_results_
    assert one.coef_.tobytes() == other.coef_.tobytes()


@pytest.mark.full
@pytest.mark.parametrize("workers", ["client", "two_processes"])
def test_files_have_the_same_bits_in_this_process_and_on_workers(workers, request, tmp_path):
    table = pa.table({f"f{j}": X[:, j].astype(np.float32) for j in range(N)} | {"label": Y})
    for number, start in enumerate(range(0, M, 350)):
        pq.write_table(table.slice(start, 350), tmp_path / f"part-{number}.parquet")
    data = ParquetData(str(tmp_path), label="label")
    here = halved(data, None)
    same(halved(data, None, client=request.getfixturevalue(workers)), here)
    assert here.best_params_ == halved().best_params_


def test_regression_tasks_and_errors():
    y = X @ W[:, 0] + RNG.normal(size=M)
    model = halved(
        X,
        y,
        dboost.BoostedRegressor(),
        {"penalty": ["l1"], "alpha": [1.0, 0.1, 0.01], "loss": ["squared"]},
    )
    assert model.best_params_["alpha"] < 1.0
    tasks = np.sign(X[:, :2] + 0.1 * RNG.normal(size=(M, 2))).astype(int)
    model = halved(X, tasks, dboost.MultiTaskBoostedClassifier(), {"alpha": [0.2, 0.02]})
    assert model.best_params_["alpha"] == 0.02
    by_error = halved(scoring="error", grid={"loss": ["multinomial", "margin_softmax"], "alpha": [0.03]})
    assert 0.0 < by_error.best_score_ < 0.5


def test_every_rung_has_two_rows_of_each_class():
    y = Y.copy()
    y[:3] = 7
    model = halved(X, y, min_rows=50, factor=4.0)
    assert 7 in model.classes_.tolist() and model.best_params_["alpha"] in ALPHAS
    first = rungs(2 * len(ALPHAS), 4.0, M, 50)[0]
    assert first.share < 0.3 and model.halving_results_[0]["rows"] == np.sum(
        np.where(np.bincount(y) == 3, 2, np.ceil(first.share * np.bincount(y)))
    )
    # the rarer of two classes has one row in thirty: no fold of a rung leaves the other alone
    rare = (np.arange(M) % 30 == 0) & (np.arange(M) < 200)
    assert halved(X, rare, grid={"alpha": [0.1, 0.03, 0.01]}, min_rows=40, factor=4.0).best_params_["alpha"] in ALPHAS


@pytest.mark.parametrize(
    "given,said",
    [
        ({"grid": {"alhpa": [1.0]}}, "alhpa.*no parameter of BoostedClassifier"),
        ({"grid": {"tol": [1e-3]}}, "tol.*the same for all"),
        ({"grid": {"alpha": 3.0}}, "param_grid"),
        ({"grid": {"penalty": ["l1"]}}, "alpha='auto'"),
        ({"grid": {"alpha": [-1.0]}}, "alpha"),
        ({"grid": {"loss": ["multinomial", "log"], "alpha": [0.1]}}, "task"),
        ({"grid": {"loss": ["multinomial", "margin_softmax"], "alpha": [0.1]}}, "do not compare"),
        ({"factor": 1.0}, "factor=1.0"),
        ({"factor": "3"}, "factor='3'"),
        ({"cv": 1}, "cv=1"),
        ({"min_rows": True}, "min_rows=True"),
        ({"scoring": "roc_auc"}, "HalvingGridSearchCV"),
    ],
)
def test_what_has_no_meaning_is_refused_before_anything_is_fitted(given, said):
    with pytest.raises(UsageError, match=said):
        halved(**given)


def test_a_regression_has_no_error_and_few_rows_no_folds():
    with pytest.raises(UsageError, match="wrong labels"):
        halved(X, X[:, 0], dboost.BoostedRegressor(), {"alpha": [0.1]}, scoring="error")
    with pytest.raises(DataError, match="folds have rows"):
        halved(np.ones((1, 2)), np.ones(1), dboost.BoostedRegressor(), {"alpha": [0.1]})
