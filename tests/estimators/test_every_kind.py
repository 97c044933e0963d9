"""Every kind of estimator and option: one model from every input on both engines, from its folder, after a kill.

Covers: what all estimators do alike. Does not cover: the optima they have (tests/boosting), damaged folders and
checkpoints (test_persistence.py, test_checkpoints.py), predictions of every type of input (test_big_input.py).
"""

from __future__ import annotations

import functools
import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import dboost
from dboost import (
    AdaBoostL1Classifier,
    AdaBoostL1Regressor,
    BoostedClassifier,
    BoostedRegressor,
    Columns,
    JointBoostClassifier,
    Kernels,
    LeveragingClassifier,
    LeveragingRegressor,
    MultiTaskBoostedClassifier,
    MultiTaskBoostedRegressor,
    Patches,
    PiecewiseLinear,
    Products,
    ShareBoostClassifier,
    Stumps,
    UsageError,
)
from dboost.losses import EpsilonInsensitive, Huber, Quantile
from dboost.penalties import ElasticNet, GroupElasticNet, SmoothL1, SmoothLinf, SparseGroup
from tests.estimators.conftest import Killed, after

pytestmark = pytest.mark.filterwarnings("ignore::dboost.errors.DboostWarning")

NAMES = ["lstat", "rm", "age", "tax", "dis"]
RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(150, 5)) * (RNG.random((150, 5)) < 0.8), 2)
FRAME = pd.DataFrame(X, columns=NAMES)
SCORES = 2.0 * np.stack([X[:, 0] * X[:, 1] + X[:, 0], X[:, 2] ** 2 - 1.0, X[:, 3]], axis=1)
SCORES += 0.5 * RNG.normal(size=SCORES.shape)
LABELS = {
    "binary": np.where(SCORES[:, 0] + SCORES[:, 1] > 0, "yes", "no"),
    "classes": np.array(["a", "b", "c"])[SCORES.argmax(axis=1)],
    "tasks": (SCORES > 0).astype(float),
    "number": SCORES.sum(axis=1) + 3.0,
    "count": RNG.poisson(np.exp(0.3 * X[:, 0])).astype(float),
    "numbers": np.where(RNG.random(SCORES.shape) < 0.1, np.nan, SCORES),
    "mixed": np.column_stack([SCORES[:, 0], SCORES[:, 1] > 0, RNG.poisson(np.exp(0.3 * X[:, 0]))]),
}
PAIRS = Columns() | Products(min_degree=2, max_degree=2)
PATCHES = Patches(templates=9, size=1, masks=2, shape=(1, 5), sample=200)
CLOSE = {"alpha": 0.01, "tol": 1e-8}
GREEDY = {"hypotheses": Columns(), "max_rounds": 8}

KINDS = {
    "two classes": (BoostedClassifier(**CLOSE), "binary"),
    "classes": (BoostedClassifier(**CLOSE), "classes"),
    "row updates": (
        BoostedClassifier(alpha=0.1, tol=1e-8, update="gradboost", features_per_round=2, max_rounds=6),
        "classes",
    ),
    "regression": (BoostedRegressor(**CLOSE), "number"),
    "tube": (BoostedRegressor(loss=EpsilonInsensitive(0.5), **CLOSE), "number"),
    "quantile": (BoostedRegressor(loss=Quantile(0.8, 0.5), **CLOSE), "number"),
    "counts": (BoostedRegressor(loss="poisson", **CLOSE), "count"),
    "tasks": (MultiTaskBoostedClassifier(**CLOSE), "tasks"),
    "several numbers": (MultiTaskBoostedRegressor(**CLOSE), "numbers"),
    "a loss for each": (MultiTaskBoostedRegressor(loss="squared,log,poisson", **CLOSE), "mixed"),
    "products of numbers": (BoostedRegressor(hypotheses=PAIRS, **CLOSE), "number"),
    "products of tasks": (MultiTaskBoostedClassifier(hypotheses=PAIRS, **CLOSE), "tasks"),
    "endless products": (BoostedClassifier(hypotheses=Products(), **CLOSE), "binary"),
    "bins of stumps": (BoostedRegressor(hypotheses=Stumps(bins=4, max_listed=0), **CLOSE | {"alpha": 0.1}), "number"),
    "adaboost_l1": (AdaBoostL1Classifier(nu=0.7, **GREEDY | {"hypotheses": PAIRS}), "binary"),
    "keep_zeros": (AdaBoostL1Classifier(keep_zeros=True, **GREEDY), "binary"),
    "logistic": (AdaBoostL1Classifier(loss="log", **GREEDY), "binary"),
    "lasso of a budget": (AdaBoostL1Regressor(**GREEDY), "number"),
    "adaboost": (LeveragingClassifier(**GREEDY), "binary"),
    "epsilon": (LeveragingClassifier(step=0.05, **GREEDY), "binary"),
    "steepest": (LeveragingClassifier(norm="l2", **GREEDY), "binary"),
    "box": (LeveragingClassifier(bounds=(0.0, 0.5), **GREEDY), "binary"),
    "penalised": (LeveragingClassifier(loss="log", alpha="auto", **GREEDY | {"hypotheses": PAIRS}), "binary"),
    "ls-boost": (LeveragingRegressor(learner="nearest", **GREEDY), "number"),
    "shareboost": (ShareBoostClassifier(max_rounds=4, rule="row"), "classes"),
    "jointboost": (JointBoostClassifier(max_rounds=6), "classes"),
    "forward": (BoostedClassifier(penalty="none", alpha=0.0, update="forward", max_rounds=7), "binary"),
    "groups": (BoostedClassifier(penalty="l1/l2", column_groups=[0, 1, 0, 2, 2], **CLOSE), "classes"),
    "factors": (BoostedClassifier(penalty_factors=[0.5, np.inf, 0.0, 1.0, 2.0], **CLOSE), "classes"),
    "signs": (BoostedRegressor(lower=[0.0, *[-np.inf] * 4], upper=[np.inf] * 3 + [0.0, np.inf], **CLOSE), "number"),
    "offset": (BoostedRegressor(loss="poisson", offset=4, **CLOSE), "count"),
    "jointboost of all sets": (JointBoostClassifier(max_rounds=6, search="exhaustive"), "classes"),
}
SAVED = {
    "sparse group": (BoostedClassifier(penalty=SparseGroup(l1_ratio=0.25), alpha=0.01), "classes"),
    "elastic net": (BoostedClassifier(penalty=ElasticNet(0.3), alpha=0.01), "classes"),
    "group elastic net": (BoostedClassifier(penalty=GroupElasticNet(0.3), alpha=0.01), "classes"),
    "smooth l1": (BoostedClassifier(penalty=SmoothL1(sharpness=4.0), alpha=0.01), "classes"),
    "norm of all": (BoostedClassifier(penalty="l2", alpha=0.01), "classes"),
    "exponential": (BoostedClassifier(loss="exp", alpha=0.03), "binary"),
    "huber": (BoostedRegressor(loss=Huber(0.7), alpha=0.03), "number"),
    "a loss for each, one with a width": (
        MultiTaskBoostedRegressor(loss=["squared", "log", Huber(0.7)], **CLOSE),
        "mixed",
    ),
    "declared tasks": (MultiTaskBoostedClassifier(alpha=0.03, classes=["p", "q", "r"]), "tasks"),
    "weights of classes": (BoostedClassifier(alpha=0.03, class_weight={"a": 2.0, "b": 1.0, "c": 1.0}), "classes"),
    "named groups": (BoostedClassifier(penalty="l1/l2", alpha=0.01, column_groups={"g": ["rm", "dis"]}), "classes"),
    "factors in an array": (BoostedClassifier(alpha=0.01, penalty_factors=np.array([0.5, np.inf, 0, 1, 2])), "classes"),
    "factors by name": (BoostedClassifier(alpha=0.01, penalty_factors={"rm": np.inf, "age": 0.0}), "classes"),
    "factors in a series": (
        BoostedClassifier(alpha=0.01, penalty_factors=pd.Series([np.inf, 0.5], index=["rm", "age"])),
        "classes",
    ),
    "signs by name": (BoostedRegressor(alpha=0.01, lower={"rm": 0.0}, upper={"tax": 0.0}), "number"),
    "offset by name": (BoostedRegressor(alpha=0.01, loss="poisson", offset="dis"), "count"),
    "limits": (BoostedClassifier(alpha=0.001, update="gradboost", sweeps=3, max_passes=9, max_seconds=50), "binary"),
    "the way back": (
        ShareBoostClassifier(max_rounds=4, keep=2, shortlist=None, corrective="nesterov", penalty=SmoothLinf(2.0)),
        "classes",
    ),
    "stumps of jointboost": (JointBoostClassifier(max_rounds=4, hypotheses=Stumps(bins=16)), "classes"),
    "kernels": (BoostedClassifier(hypotheses=Columns() | Kernels(support=20), alpha=0.03), "binary"),
    "patches": (BoostedClassifier(hypotheses=PATCHES, alpha=0.03), "binary"),
    "pieces": (BoostedClassifier(hypotheses=PiecewiseLinear(centres=8, radii=3), alpha=0.03), "binary"),
    "stumps": (BoostedClassifier(hypotheses=Stumps(), alpha=0.03), "binary"),
    "box of each": (LeveragingClassifier(bounds=([0.0] * 5, [0.3] * 5), **GREEDY), "binary"),
}


# Kinds whose inputs and engines go the way of another kind: an option or a formula differs, which other tests look at.
ALIKE = {
    "row updates", "tube", "quantile", "counts", "products of numbers", "keep_zeros", "logistic", "lasso of a budget",
    "epsilon", "steepest", "box", "ls-boost", "factors", "signs", "jointboost of all sets",
}  # fmt: skip
INPUTS = [pytest.param(name, marks=pytest.mark.full) if name in ALIKE else name for name in KINDS]


def shown(model, rows):
    return np.asarray((model.decision_function if hasattr(model, "decision_function") else model.predict)(rows))


def bits(model):
    return model.model_.W.tobytes(), model.intercept_.tobytes(), list(model.active_features_), model.n_iter_


@functools.cache
def fitted(name):
    """The fit to rows in memory, which three tests read."""
    estimator, y = (KINDS | SAVED)[name]
    return clone(estimator).fit(FRAME, LABELS[y])


@pytest.mark.parametrize("name", INPUTS)
def test_every_input_on_both_engines_gives_one_model(name, client, tmp_path):
    estimator, y, expected = KINDS[name][0], LABELS[KINDS[name][1]], fitted(name)
    both = da.from_array(X, chunks=(60, 5)), da.from_array(y, chunks=(60, *y.shape[1:]))
    here, there = (clone(estimator).set_params(client=one).fit(*both) for one in (None, client))
    assert bits(here) == bits(there)
    targets = [f"y{r}" for r in range(y.shape[1])] if y.ndim == 2 else ["label"]
    whole = FRAME.assign(**dict(zip(targets, y.reshape(150, -1).T, strict=True)))
    whole[:80].to_parquet(tmp_path / "a.parquet", index=False)
    whole[80:].to_parquet(tmp_path / "b.parquet", index=False)
    stored = dboost.ParquetData(tmp_path, features=NAMES, label=targets if y.ndim == 2 else "label")
    filed = clone(estimator).set_params(client=client).fit(stored)
    tables = [FRAME, stored, dd.from_pandas(whole, npartitions=3)]
    for model, inputs in ((there, [X, both[0], sp.csr_array(X)]), (filed, tables)):
        assert model.objective_ == pytest.approx(expected.objective_, rel=5e-8)
        found = [shown(model, given) for given in inputs]
        assert all(other.tobytes() == found[0].tobytes() for other in found)
        np.testing.assert_allclose(found[0], shown(expected, FRAME), atol=2e-3)


@pytest.mark.parametrize("name", [*KINDS, *SAVED])
def test_what_is_saved_comes_back(name, tmp_path):
    model, y = fitted(name), LABELS[(KINDS | SAVED)[name][1]]
    model.save(tmp_path / "model")
    loaded = dboost.load_model(tmp_path / "model")
    for again in (loaded, pickle.loads(pickle.dumps(model)), model.to_local()):
        assert type(again) is type(model) and bits(again) == bits(model)
        assert shown(again, FRAME).tobytes() == shown(model, FRAME).tobytes()
        assert again.history_ == model.history_ and again.stop_reason_ == model.stop_reason_
    for param, value in model.get_params().items():
        if not isinstance(value, (np.ndarray, pd.Series)):
            assert loaded.get_params()[param] == value, param
    assert loaded.model_.manifest["data"]["rows"] == 150
    assert set(loaded.model_.manifest["versions"]) >= {"dboost", "numpy", "python"}
    assert bits(loaded.fit(FRAME, y)) == bits(model)


@pytest.mark.parametrize("name", KINDS)
def test_a_weight_is_so_many_rows_and_a_callback_ends_the_fit(name):
    estimator, y = KINDS[name][0], LABELS[KINDS[name][1]]
    counts = np.random.default_rng(2).integers(0, 3, 150)
    weighted = clone(estimator).fit(X, y, counts.astype(float))
    repeated = clone(estimator).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts, axis=0))
    np.testing.assert_allclose(shown(weighted, X), shown(repeated, X), rtol=2e-3, atol=2e-3)
    ended = clone(estimator).set_params(callbacks=[lambda record: True]).fit(X, y)
    assert (ended.n_iter_, len(ended.history_)) == (1, 1)
    # what the first round solved is certified, whoever ends the fit
    assert ended.stop_reason_ in ("callback", "tol")


@pytest.mark.parametrize("name", KINDS)
def test_a_killed_fit_goes_on_with_the_same_bits(name, tmp_path):
    estimator, y, whole = KINDS[name][0], LABELS[KINDS[name][1]], fitted(name)
    assert whole.n_iter_ > 1
    kept = clone(estimator).set_params(checkpoint=tmp_path / "state")
    with pytest.raises(Killed):
        clone(kept).set_params(callbacks=[after(done := whole.n_iter_ // 2)]).fit(FRAME, y)
    rounds = []
    resumed = clone(kept).set_params(callbacks=[lambda record: rounds.append(record["round"])]).fit(FRAME, y)
    assert rounds[0] == done + 1 and bits(resumed) == bits(whole)
    assert resumed.duality_gap_ == pytest.approx(whole.duality_gap_, rel=0.0, abs=0.0, nan_ok=True)
    # a fit that has ended ends again where it ended
    assert bits(clone(kept).fit(FRAME, y)) == bits(whole)


# What another fit asks for, and the settings that the refusal names.
OTHERS = {
    "two classes": [
        ({"alpha": 0.02}, "alpha"), ({"penalty": "l1/l2"}, "penalty"), ({"random_state": 1}, "random_state"),
        ({"fit_intercept": False}, "fit_intercept"), ({"hypotheses": PAIRS}, "hypotheses"),
    ],
    "regression": [({"loss": "huber"}, "loss"), ({"penalty_factors": [1.0, 2.0, 1.0, 1.0, 1.0]}, "penalty_factors")],
    "tasks": [({"positive": True}, "signs"), ({"offset": [0, 1, 2]}, "offset")],
    "classes": [({"penalty": "l1/l2", "column_groups": [0, 0, 1, 1, 2]}, "column_groups")],
    "adaboost_l1": [({"nu": 0.5}, "system"), ({"keep_zeros": True}, "system")],
    "adaboost": [({"bounds": (0.0, 1.0)}, "system"), ({"step": 0.1}, "system"), ({"norm": "l2"}, "system")],
    "shareboost": [({"rule": "norm"}, "system")],
    "jointboost": [({"search": "exhaustive"}, "system"), ({"hypotheses": Stumps(bins=4)}, "hypotheses")],
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_a_checkpoint_of_another_fit_is_refused(name, tmp_path):
    kept, y = clone(KINDS[name][0]).set_params(checkpoint=tmp_path / "state"), LABELS[KINDS[name][1]]
    kept.fit(X, y)
    before = (tmp_path / "state").read_bytes()
    for change, said in OTHERS[name]:
        with pytest.raises(UsageError, match=f"other settings of .*{said}"):
            clone(kept).set_params(**change).fit(X, y)
    with pytest.raises(UsageError, match="other data"):
        clone(kept).fit(X + np.arange(5), y)
    assert (tmp_path / "state").read_bytes() == before
