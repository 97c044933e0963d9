"""The toy family is summed, fitted, certified, saved and read as those of dboost."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

import dboost
from dboost.boosting.fit import FitSettings, Fitting
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.errors import ModelFormatError, UsageError
from dboost.files.documents import Document
from dboost.hypotheses import FAMILIES, family_from_json, restore_chosen
from dboost.hypotheses.base import Family
from dboost.hypotheses.columns import Columns
from dboost.hypotheses.listed import FORMED_VALUES
from tests.boosting import plain
from tests.boosting.test_resume import bits
from tests.extending import toy_family
from tests.extending.toy_family import Largest
from tests.hypotheses.conftest import check_sums, dense, sparse_rows  # noqa: F401


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(FAMILIES, "largest", ("tests.extending.toy_family", "Largest"))


def explicit(X):
    n = X.shape[1]
    pairs = [np.maximum(X[:, i], X[:, j]) for i in range(n) for j in range(i + 1, n)]
    return np.column_stack([*np.abs(X).T, *pairs])


def test_its_examples_run():
    assert doctest.testmod(toy_family).failed == 0 and doctest.testmod(toy_family).attempted > 0


def test_sums_are_those_of_the_explicit_columns(sparse_rows):  # noqa: F811
    raw = sparse_rows
    pool = raw.prepare(Largest())
    assert isinstance(Largest(), Family) and pool.size == 6 + 15 and not pool.searched
    assert check_sums(raw, pool) == list(Largest().keys(6))
    np.testing.assert_array_equal(dense(pool.columns(raw.block(), list(pool.listed))), explicit(raw.X))


def test_a_fit_is_certified_and_has_the_same_bits_on_threads_and_on_a_cluster(two_processes):
    data = plain.make("multinomial", m=150, n=4, weights=True, seed=61)
    settings = FitSettings("multinomial", "l1/l2", tol=1e-6, hypotheses=Columns() | Largest())
    plan = plain.plan(data, [10, 40, 41, 41, 90, 150])
    results = []
    for engine in (LocalEngine(1), LocalEngine(3), DaskEngine(two_processes)):
        with engine:
            fitting = Fitting(plan, engine, settings)
            results.append(fitting.fit(0.1 * fitting.alpha_max()))
    assert all(result.gap <= 1e-6 and result.stop_reason == "tol" for result in results)
    assert bits(results[0]) == bits(results[1]) == bits(results[2])
    assert len(results[0].active) > 2


def test_it_finds_the_shape_and_a_saved_model_predicts_alike(two_classes, tmp_path):
    X, y = two_classes
    fitted = dboost.BoostedClassifier(penalty="l1", alpha=0.02, hypotheses=Largest(), tol=1e-7).fit(X, y)
    by_hand = dboost.BoostedClassifier(standardize=False, penalty="l1", alpha=0.02, tol=1e-7).fit(
        explicit(X.astype(float)), y
    )
    assert fitted.objective_ == pytest.approx(by_hand.objective_, rel=1e-6)
    assert "|x5|" in list(fitted.active_features_)
    fitted.save(tmp_path / "model")
    read = dboost.load_model(tmp_path / "model")
    assert read.decision_function(X).tobytes() == fitted.decision_function(X).tobytes()


def test_json_is_undone_and_what_the_family_does_not_have_is_refused(sparse_rows):  # noqa: F811
    assert family_from_json(Largest(pairs=False).to_json()) == Largest(pairs=False)
    chosen = sparse_rows.prepare(Largest()).chosen([(2,), (1, 4)], None)
    assert restore_chosen(Document(chosen.to_json(), "model.json"), {}, 6) == chosen
    assert chosen.words() == ["|x2|", "max(x1, x4)"] and chosen.inputs.tolist() == [1, 2, 4]
    for change in ({"keys": [[2], [4, 1]]}, {"keys": [[2], [1, 6]]}, {"keys": [[2], [2]]}, {"names": ["one"]}):
        with pytest.raises(ModelFormatError):
            restore_chosen(Document({**chosen.to_json(), **change}, "model.json"), {}, 6)
    with pytest.raises(UsageError, match="no hypothesis over 0 columns"):
        Largest().prepare(type("Context", (), {"n_features": 0}))


def test_hypotheses_that_are_formed_in_turns_have_the_same_sums(sparse_rows, monkeypatch):  # noqa: F811
    pool = sparse_rows.prepare(Largest())
    whole = sparse_rows.sums(pool, (0, 21))
    monkeypatch.setattr("dboost.hypotheses.listed.FORMED_VALUES", 50)
    assert FORMED_VALUES > 21 * 60
    for name, value in sparse_rows.sums(pool, (0, 21)).items():
        assert value.tobytes() == whole[name].tobytes()
