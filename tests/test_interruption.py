"""A request to stop is found wherever a fit can end, and by nobody else.

Covers: engines, rounds and cross-validation that look for it; threads.
Does not cover: signals (tests/pipelines/test_signals.py).
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import dboost
from dboost import interruption
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.interruption import Interruption, heeded
from dboost.partition import Partition, Sums


class Enough(KeyboardInterrupt):
    """What is asked for here."""


def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    return X, (X[:, 0] + 0.5 * rng.standard_normal(60) > 0).astype(int)


def asked() -> Interruption:
    found = Interruption()
    found.request(Enough)
    return found


def same(item: int) -> int:
    return item


def one(partition: Partition, memo: Any) -> Sums:
    return Sums(add={"one": np.ones(1)})


def step(partition: Partition, state: int) -> int:
    return state + 1


def partition(number: int) -> Partition:
    rows = np.zeros(1, np.int32)
    return Partition(np.array([0, 1]), rows, np.ones(1, np.float32), np.ones((1, 1)), np.ones(1), f"part-{number}")


@pytest.fixture
def client(one_worker: Any) -> Any:
    return one_worker


@pytest.mark.parametrize("kind", ["threads", "cluster"])
def test_no_pass_begins_after_a_request(kind: str, request: pytest.FixtureRequest) -> None:
    engine: Any = LocalEngine(2) if kind == "threads" else DaskEngine(request.getfixturevalue("client"))
    with engine:
        engine.set_plan([partition(i) for i in range(3)], [1, 1, 1], "run")
        passes = [
            lambda: engine.map_reduce(one, name="one"),
            lambda: engine.scan(step, 0, name="step"),
            lambda: engine.map(same, [1, 2, 3], name="same"),
        ]
        for run in passes:
            with heeded(asked()), pytest.raises(Enough):
                run()
        assert [float(passes[0]().add["one"][0]), passes[1](), passes[2]()] == [3.0, 3, [1, 2, 3]]


def test_threads_end_a_pass_between_its_partitions() -> None:
    found = Interruption()
    seen: list[str] = []

    def leaf(partition: Partition, memo: Any) -> Sums:
        seen.append(partition.key)
        found.request(Enough)
        return Sums(add={"one": np.ones(1)})

    with LocalEngine(2) as engine, heeded(found):
        engine.set_plan([partition(i) for i in range(50)], [1] * 50, "run")
        with pytest.raises(Enough):
            engine.map_reduce(leaf, name="leaf")
    assert len(seen) <= 4 and found.answered


@pytest.mark.parametrize(
    "estimator",
    [
        dboost.BoostedClassifier(penalty="none", update="gradboost", tol=0.0, max_rounds=10**6),
        dboost.BoostedClassifierCV(cv=3, n_alphas=30),
        dboost.ShareBoostClassifier(),
        dboost.LeveragingClassifier(hypotheses=dboost.Columns(), max_rounds=10**6, tol=0.0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_fit_ends_in_the_middle(estimator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data()
    found, passes = Interruption(), [0]
    whole = LocalEngine.map_reduce

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        passes[0] += 1
        if passes[0] == 12:
            found.request(Enough)
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(LocalEngine, "map_reduce", counted)
    with heeded(found), pytest.raises(Enough):
        estimator.fit(X, y)
    assert passes[0] <= 12 + 3


def test_folds_that_are_fitted_in_threads_find_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the main thread does nothing but wait for them."""
    X, y = data()
    found = Interruption()
    whole, asking = LocalEngine.map_reduce, set()

    def late(self: Any, *args: Any, **kwargs: Any) -> Any:
        thread = threading.current_thread()
        if thread is not threading.main_thread():
            asking.add(thread.name)
            found.request(Enough)
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(LocalEngine, "map_reduce", late)
    with heeded(found), pytest.raises(Enough):
        dboost.BoostedClassifierCV(cv=3, n_alphas=5).fit(X, y)
    assert asking and all(name.startswith("dboost-fold") for name in asking)


def test_a_request_is_that_of_its_thread_and_ends_with_its_block() -> None:
    X, y = data()
    elsewhere: list[Any] = []

    def fit() -> None:
        elsewhere.append(interruption.current())
        elsewhere.append(dboost.BoostedClassifier(alpha="quick").fit(X, y).stop_reason_)

    with heeded(asked()):
        with pytest.raises(Enough):
            interruption.check()
        with heeded(None):
            assert dboost.BoostedClassifier(alpha="quick").fit(X, y).stop_reason_ == "tol"
        other = threading.Thread(target=fit)
        other.start()
        other.join()
    assert elsewhere == [None, "tol"]
    assert interruption.current() is None
    interruption.check()


def test_an_interrupt_that_hit_compiled_code_is_raised_as_what_it_was() -> None:
    with pytest.raises(Enough, match="by hand"), interruption.as_raised():
        try:
            raise Enough("by hand")
        except Enough as inner:
            raise SystemError("a compiled loop returned a result with an exception set") from inner
