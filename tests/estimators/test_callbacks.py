"""Plain functions of a record, and scikit-learn's callback protocol."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from dboost import BoostedClassifier, UsageError
from dboost.estimators.rounds import HAS_PROTOCOL

needs_protocol = pytest.mark.skipif(not HAS_PROTOCOL, reason="sklearn.callback came with scikit-learn 1.9")


def test_functions_see_every_round_and_may_stop(multiclass):
    X, y = multiclass
    seen = []
    whole = BoostedClassifier(alpha=0.02, callbacks=[seen.append]).fit(X, y)
    assert [record["round"] for record in seen] == list(range(1, whole.n_iter_ + 1))
    assert seen[-1]["gap"] == whole.duality_gap_
    seen[0]["objective"] = math.nan
    assert not math.isnan(whole.history_[0]["objective"])
    slowly = {"alpha": 0.02, "features_per_round": 3}
    early = BoostedClassifier(**slowly, callbacks=[lambda record: record["round"] == 2]).fit(X, y)
    assert early.stop_reason_ == "callback"
    assert early.n_iter_ == 2
    assert early.coef_.shape == (3, 12) and BoostedClassifier(**slowly).fit(X, y).n_iter_ > 2


class Hooks:
    """Notes every hook, and stops after a given round."""

    def __init__(self, stop_after=None):
        self.calls, self.models, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.calls.append(("setup", context.task_name))

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.calls.append(("begin", context.task_name))
        self.shape = (X.shape, len(y))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.calls.append(("end", context.task_name))
        self.models.append(fitted_estimator)
        return self.stop_after is not None and context.task_name == "round" and context.task_id + 1 == self.stop_after

    def teardown(self, estimator, context):
        self.calls.append(("teardown", context.task_name))


@needs_protocol
@pytest.mark.parametrize("way", ["parameter", "set_callbacks"])
def test_the_protocol_is_followed(multiclass, way):
    X, y = multiclass
    hooks = Hooks()
    model = BoostedClassifier(alpha=0.02)
    model = model.set_params(callbacks=[hooks]) if way == "parameter" else model.set_callbacks(hooks)
    model.fit(X, y)
    rounds = [("begin", "round"), ("end", "round")] * model.n_iter_
    assert hooks.calls == [("setup", "fit"), ("begin", "fit"), *rounds, ("end", "fit"), ("teardown", "fit")]
    assert hooks.shape == ((150, 12), 150)
    assert hooks.models[-1].coef_.tobytes() == model.coef_.tobytes()
    assert len(hooks.models[0].predict(X)) == 150
    assert hooks.models[0].stop_reason_ == "running"
    assert ("_skl_callbacks" in model.__dict__) == (way == "set_callbacks")


@needs_protocol
def test_a_hook_may_stop_the_fit(multiclass):
    model = BoostedClassifier(alpha=0.02, features_per_round=3, callbacks=[Hooks(stop_after=2)]).fit(*multiclass)
    assert (model.stop_reason_, model.n_iter_) == ("callback", 2)


@needs_protocol
def test_teardown_follows_an_error(multiclass):
    hooks = Hooks()

    def fail(record):
        raise RuntimeError("stop here")

    with pytest.raises(RuntimeError, match="stop here"):
        BoostedClassifier(alpha=0.02, callbacks=[hooks, fail]).fit(*multiclass)
    assert hooks.calls[-1] == ("teardown", "fit")


@needs_protocol
def test_scikit_learns_own_callbacks_work(multiclass):
    from sklearn.callback import ProgressBar, ScoringMonitor

    X, y = multiclass
    monitor = ScoringMonitor(scoring="accuracy")
    model = BoostedClassifier(alpha=0.02, callbacks=[ProgressBar(), monitor]).fit(X, y)
    assert model.stop_reason_ == "tol"
    scores = [entry["accuracy"] for entry in monitor.get_logs().data if entry["task_name"] == "round"]
    assert len(scores) == model.n_iter_
    assert scores[-1] == model.score(X, y)


def test_without_the_protocol_functions_work_and_hooks_are_refused():
    """In a process that has no sklearn.callback, as with scikit-learn before 1.9."""
    code = """
import sys
sys.modules["sklearn.callback"] = None
import numpy as np, dboost
class Hooks:
    def setup(self, estimator, context): pass
    def on_fit_task_begin(self, estimator, context): pass
    def on_fit_task_end(self, estimator, context): pass
    def teardown(self, estimator, context): pass
X = np.random.default_rng(0).normal(size=(60, 4))
rounds = []
dboost.BoostedClassifier(alpha=0.1, callbacks=[rounds.append]).fit(X, X[:, 0] > 0)
assert rounds
try:
    dboost.BoostedClassifier(alpha=0.1, callbacks=[Hooks()]).fit(X, X[:, 0] > 0)
except dboost.UsageError as error:
    print("refused:", error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.startswith("refused:") and "scikit-learn >= 1.9" in found


def test_other_callbacks_are_refused(multiclass):
    class Half:
        def on_fit_task_end(self, estimator, context):
            return False

    for callback in (Half(), "print", BoostedClassifier):
        with pytest.raises(UsageError, match="callback"):
            BoostedClassifier(alpha="quick", callbacks=[callback]).fit(*multiclass)
