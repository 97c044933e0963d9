"""A path and a cross-validation go on from where they were, with the same bits; what an interrupt leaves of a fit.

Covers: breaking off at any round, damage, other data or parameters, callbacks, the model of an interrupted fit.
Does not cover: the checkpoint of one fit (test_checkpoints.py), kills of the command line (tests/pipelines).
"""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import dboost
from dboost import BoostedClassifier, BoostedClassifierCV, BoostedRegressor, regularization_path
from dboost.errors import ModelFormatError, StorageError, UsageError
from tests.boosting.test_resume import VOLATILE
from tests.estimators.conftest import Killed, after

GRID = {"n_alphas": 6, "eps": 0.05}


def bits(model):
    history = [{key: value for key, value in record.items() if key not in VOLATILE} for record in model.history]
    cert = model.certificate
    numbers = cert.objective, cert.gap, cert.lower_bound, cert.stop_reason, cert.alpha, cert.n_iter, cert.passes
    return model.W.tobytes(), model.intercept.tobytes(), model.hypotheses.words(), numbers, json.dumps(history)


CASES = {
    "several classes": {"penalty": "l1/l2"},
    "row updates": {"penalty": "l1/linf", "update": "gradboost", "tol": 1e-3, "standardize": True},
    "products": {"penalty": "l1/linf", "hypotheses": dboost.Products(max_degree=2), "tol": 1e-3},
    "stumps": {"penalty": "l1", "hypotheses": dboost.Stumps(), "tol": 1e-3, "loss": "log"},
    "few rounds": {"penalty": "l1/linf", "max_rounds": 2, "tol": 1e-10},
}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::dboost.errors.DboostWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_path_that_is_broken_off_again_and_again_ends_with_the_same_bits(name, multiclass, binary, tmp_path):
    params = CASES[name]
    X, y = binary if params.get("loss") == "log" else multiclass
    records = []
    whole = regularization_path(X, y, **GRID, **params, callbacks=[records.append])
    # every attempt does two rounds and is broken off in the third
    done, attempts = None, 0
    while done is None:
        attempts += 1
        assert attempts <= len(records) + 5
        try:
            done = regularization_path(X, y, **GRID, **params, checkpoint=tmp_path / "c", callbacks=[after(3)])
        except Killed:
            assert (tmp_path / "c" / "progress").is_file()
    assert attempts >= 3
    assert [bits(model) for model in done.models] == [bits(model) for model in whole.models]
    assert done.template.checkpoint is None and done.template.callbacks is None


def test_fits_that_have_ended_are_not_made_again(multiclass, tmp_path):
    params = {**GRID, "checkpoint": tmp_path / "c", "penalty": "l1/l2"}
    first, again = [], []
    regularization_path(*multiclass, **params, callbacks=[first.append])
    regularization_path(*multiclass, **params, callbacks=[again.append])
    assert {record["strength"] for record in first} == set(range(6)) and not again
    assert sorted(os.listdir(tmp_path / "c"))[0] == "progress"


def test_a_path_of_other_data_or_parameters_is_refused(multiclass, tmp_path):
    X, y = multiclass
    params = {**GRID, "checkpoint": tmp_path / "c"}
    regularization_path(X, y, **params)
    with pytest.raises(UsageError, match="other settings of tol"):
        regularization_path(X, y, **params, tol=1e-3)
    with pytest.raises(UsageError, match="other data"):
        regularization_path(X * 2, y, **params)
    with pytest.raises(UsageError, match="other settings of alphas"):
        regularization_path(X, y, checkpoint=tmp_path / "c", n_alphas=5)


def test_a_damaged_fit_of_a_path_is_refused_and_a_file_is_no_folder(multiclass, tmp_path):
    params = {**GRID, "checkpoint": tmp_path / "c"}
    regularization_path(*multiclass, **params)
    (tmp_path / "c" / "strength-00002").write_bytes(b"\0" * 100)
    with pytest.raises(ModelFormatError, match="delete the folder to start again"):
        regularization_path(*multiclass, **params)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="is a folder, but a file has this name"):
        regularization_path(*multiclass, checkpoint=tmp_path / "file")


CV = {"cv": 3, "n_alphas": 5, "eps": 0.05, "penalty": "l1/l2"}


def same_cv(one, other):
    assert bits(one.model_) == bits(other.model_)
    for name in ("alphas_", "fold_losses_", "fold_errors_", "fold_gaps_", "fold_weights_", "fold_n_features_"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name


@pytest.mark.filterwarnings("ignore::dboost.errors.DboostWarning")
def test_a_cross_validation_that_is_broken_off_again_and_again_ends_with_the_same_bits(multiclass, tmp_path):
    whole = BoostedClassifierCV(**CV).fit(*multiclass)
    done, attempts, folds = None, 0, set()
    while done is None:
        attempts += 1
        finished = {name for name in os.listdir(tmp_path / "c") if name.endswith(".scores")} if attempts > 1 else set()
        assert folds <= finished
        folds = finished
        try:
            done = BoostedClassifierCV(**CV, checkpoint=tmp_path / "c", callbacks=[after(8)]).fit(*multiclass)
        except Killed:
            assert attempts < 60
    assert attempts >= 3
    same_cv(done, whole)
    seen = []
    same_cv(BoostedClassifierCV(**CV, checkpoint=tmp_path / "c", callbacks=[seen.append]).fit(*multiclass), whole)
    assert not seen


def test_callbacks_of_a_cross_validation_are_told_the_fold_and_the_strength(multiclass):
    seen = []
    BoostedClassifierCV(**CV, callbacks=[seen.append]).fit(*multiclass)
    assert {(record["fold"], record["strength"]) for record in seen} == {
        (fold, t) for fold in (None, 0, 1, 2) for t in range(5)
    }


def test_hooks_of_a_single_fit_are_refused(multiclass):
    pytest.importorskip("sklearn.callback")
    from sklearn.callback import ProgressBar

    with pytest.raises(UsageError, match="one of a single fit"):
        BoostedClassifierCV(**CV, callbacks=[ProgressBar()]).fit(*multiclass)


@pytest.mark.parametrize("kind", [BoostedClassifier, BoostedRegressor])
def test_an_interrupted_fit_keeps_the_model_so_far(kind, multiclass):
    params = {"alpha": 0.002, "tol": 1e-9}
    X, y = multiclass
    y = y if kind is BoostedClassifier else X[:, 0] + X[:, 1] ** 2
    seen = []

    def on_certificate(record):
        seen.append(record)
        if np.isfinite(record["gap"]):
            raise KeyboardInterrupt

    model = kind(**params, callbacks=[on_certificate])
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(X, y)
    assert f"keeps the model of round {len(seen)}, at a certified" in caught.value.__notes__[0]
    assert (model.stop_reason_, model.n_iter_) == ("interrupted", len(seen))
    assert model.duality_gap_ > 1e-9
    assert model.predict(X).shape == (len(y),)
    # its gap is certified: the optimum is no lower than it says
    best = kind(**params).fit(X, y)
    assert best.objective_ >= model.objective_ * (1.0 - model.duality_gap_) - 1e-12
    model.set_params(warm_start=True, callbacks=None).fit(X, y)
    assert model.duality_gap_ <= 1e-9


def test_an_interrupt_that_compiled_code_turned_into_another_error_is_one(multiclass):
    def as_compiled_code_does(record):
        if record["round"] == 2 and record.get("fold", 0) is not None:
            inner = SystemError("_numba_unpickle returned a result with an exception set")
            inner.__cause__ = KeyboardInterrupt()
            raise SystemError("a compiled loop returned a result with an exception set") from inner

    told = {"callbacks": [as_compiled_code_does]}
    model = BoostedClassifier(alpha=0.002, **told)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*multiclass)
    assert (model.stop_reason_, model.n_iter_) == ("interrupted", 2)
    with pytest.raises(KeyboardInterrupt):
        regularization_path(*multiclass, **GRID, **told)
    several = BoostedClassifierCV(**CV, **told)
    with pytest.raises(KeyboardInterrupt):
        several.fit(*multiclass)
    assert len(several.path_) == 5

    def as_nobody_does(record):
        raise SystemError("something else")

    with pytest.raises(SystemError, match="something else"):
        BoostedClassifier(alpha="quick", callbacks=[as_nobody_does]).fit(*multiclass)


def test_an_interrupt_before_the_first_round_leaves_the_estimator_as_it_was(multiclass):
    model = BoostedClassifier(alpha=0.01).fit(*multiclass)
    before = model.model_
    model.set_params(callbacks=[after(1, KeyboardInterrupt)], alpha="auto")
    X = np.array(multiclass[0])
    X[0, 0] = np.nan
    with pytest.raises(ValueError):
        model.fit(X, multiclass[1])
    assert model.model_ is before


def test_an_interrupted_cross_validation_keeps_its_path(multiclass):
    def in_a_fold(record):
        if record["fold"] is not None:
            raise KeyboardInterrupt

    model = BoostedClassifierCV(**CV, callbacks=[in_a_fold])
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(*multiclass)
    assert "keeps the 5 strengths" in caught.value.__notes__[0]
    assert len(model.path_) == 5 and not model.__sklearn_is_fitted__()
    assert model.path_.gaps.max() <= 1e-4


def test_each_model_of_a_path_is_told_once_it_is_there(multiclass):
    told = []
    path = regularization_path(*multiclass, **GRID, on_model=told.append)
    assert [bits(model) for model in told] == [bits(model) for model in path.models]
