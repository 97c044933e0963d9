"""``sweeps``, ``max_passes`` and ``max_seconds`` as parameters of the estimators, on both engines.

Covers: each estimator, the path and cross-validation, checkpoints after a limit, the literal loop of the paper.
Does not cover: the rounds themselves (tests/boosting/test_limits.py).
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dboost
from dboost.errors import UsageError

LOOPS = [
    dboost.BoostedClassifier,
    dboost.BoostedRegressor,
    dboost.MultiTaskBoostedClassifier,
    dboost.BoostedClassifierCV,
]
# What ends by a limit says so.
pytestmark = pytest.mark.filterwarnings("ignore::dboost.errors.ConvergenceWarning")

ALL = [
    *LOOPS,
    dboost.AdaBoostL1Classifier,
    dboost.AdaBoostL1Regressor,
    dboost.JointBoostClassifier,
    dboost.LeveragingClassifier,
    dboost.LeveragingRegressor,
    dboost.ShareBoostClassifier,
]


def data(m: int = 60, n: int = 5) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, n))
    return X, (X[:, 0] + 0.5 * rng.standard_normal(m) > 0).astype(int)


def labels_of(cls: type[Any], y: Any) -> Any:
    return np.column_stack([y, 1 - y]) if cls is dboost.MultiTaskBoostedClassifier else y


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_every_estimator_has_limits_and_one_at_the_very_beginning_leaves_a_model_that_says_so(
    cls: type[Any],
) -> None:
    known = set(inspect.signature(cls.__init__).parameters)
    assert {"max_passes", "max_seconds"} <= known and ("sweeps" in known) == (cls in LOOPS)
    X, y = data()
    one_fit = {"alpha": "quick"} if cls.__name__.endswith(("BoostedClassifier", "BoostedRegressor")) else {}
    for limit, least in (("max_passes", 1), ("max_seconds", 1e-9)):
        with pytest.raises(UsageError, match=limit):
            cls(**{limit: 0}).fit(X, labels_of(cls, y))
        if cls is not dboost.BoostedClassifierCV:
            model = cls(**one_fit, **{limit: least}).fit(X, labels_of(cls, y))
            assert model.stop_reason_ == limit and model.n_iter_ <= 1
            assert model.predict(X).shape[0] == len(X) and "0" in repr(model)


@pytest.mark.full
def test_callbacks_and_checkpoints_come_within_what_was_one_round(tmp_path: Path) -> None:
    X, _ = data()
    path = tmp_path / "state"
    seen: list[tuple[int, bool]] = []

    def look(record: dict[str, Any]) -> bool:
        seen.append((record["passes"], path.exists()))
        return len(seen) == 2

    model = dboost.BoostedClassifier(penalty="none", update="gradboost", callbacks=[look], checkpoint=path)
    model.fit(X, X[:, 0] > 0)
    assert model.stop_reason_ == "callback" and len(seen) == 2 and all(there for _, there in seen)
    assert np.diff([0, *[passes for passes, _ in seen]]).max() <= 1020


def test_each_strength_of_a_path_and_of_cross_validation_is_limited() -> None:
    X, y = data()
    parameters = {"penalty": "l1", "update": "gradboost", "tol": 1e-12, "max_passes": 40}
    path = dboost.regularization_path(X, y, n_alphas=4, **parameters)
    assert list(path.table.column("stop_reason"))[1:] == ["max_passes"] * 3
    assert max(path.table.column("passes")) <= 60
    cv = dboost.BoostedClassifierCV(cv=3, n_alphas=4, **parameters).fit(X, y)
    assert list(cv.path_.table.column("stop_reason"))[1:] == ["max_passes"] * 3
    assert cv.fold_gaps_.max() > 1e-12
    timed = dboost.BoostedClassifierCV(cv=3, n_alphas=4, max_seconds=1e-9).fit(X, y)
    # the first strength is the one whose certificate the null model meets
    assert set(timed.path_.table.column("stop_reason")) == {"max_seconds", "tol"}


@pytest.mark.full
@pytest.mark.parametrize("update", ["gradboost", "adaboost"])
def test_one_sweep_a_round_is_the_loop_of_the_paper(update: str) -> None:
    X, y = data()
    parameters = {"penalty": "l1", "alpha": 0.02, "update": update, "tol": 1e-5}
    literal = dboost.BoostedClassifier(**parameters, sweeps=1, max_rounds=20_000).fit(X, y)
    solved = dboost.BoostedClassifier(**parameters).fit(X, y)
    assert literal.stop_reason_ == solved.stop_reason_ == "tol"
    assert literal.objective_ == pytest.approx(solved.objective_, rel=2e-5)
    assert literal.n_iter_ > 3 * solved.n_iter_


def test_sweeps_without_updates_to_count_are_refused() -> None:
    with pytest.raises(UsageError, match="sweeps=1 bounds the one-row updates of a round, which update 'newton'"):
        dboost.BoostedClassifier(sweeps=1).fit(*data())
