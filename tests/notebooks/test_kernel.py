"""Fits in a real kernel of Jupyter: the line that tells how far they are, and the model that an interrupt leaves."""

from __future__ import annotations

import inspect
import json
import threading
import time

import pytest

import dboost
from dboost.estimators.base import BoostedEstimator
from tests.notebooks.kernels import kernel

BEGIN = """
import json, os, warnings
import numpy as np
import dboost
from dboost.estimators import rounds as live_line
warnings.simplefilter("ignore")
live_line.DELAY, live_line.EVERY = 0.0, 0.01
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 40))
scores = X[:, :4] + rng.normal(size=(3000, 4))
two, four, real = scores[:, 0] > 0, scores.argmax(axis=1), scores.sum(axis=1)
"""
# Each goes on for much longer than a test waits; of these rows it has few, and very many features to choose from.
WIDE = "hypotheses=dboost.Products(max_degree=3), alpha=1e-5, tol=0.0).fit(X[:400]"
FITS = {
    "BoostedClassifier": f"BoostedClassifier({WIDE}, four[:400])",
    "BoostedRegressor": f"BoostedRegressor({WIDE}, real[:400])",
    "MultiTaskBoostedClassifier": f"MultiTaskBoostedClassifier({WIDE}, scores[:400] > 0)",
    "ShareBoostClassifier": "ShareBoostClassifier(max_rounds=10**6, tol=0.0).fit(rng.normal(size=(3000, 4000)), four)",
    "JointBoostClassifier": "JointBoostClassifier(max_rounds=10**6).fit(X, four)",
    "AdaBoostL1Classifier": "AdaBoostL1Classifier(max_rounds=10**6, tol=0.0).fit(X, two)",
    "AdaBoostL1Regressor": "AdaBoostL1Regressor(max_rounds=10**6, tol=0.0).fit(X, real)",
    "LeveragingClassifier": "LeveragingClassifier(max_rounds=10**6, tol=0.0).fit(X, two)",
    "LeveragingRegressor": "LeveragingRegressor(max_rounds=10**6, tol=0.0).fit(X, real)",
    "BoostedClassifierCV": "BoostedClassifierCV(cv=2, n_alphas=2000, eps=1e-6).fit(X, four)",
    "BoostedRegressorCV": "BoostedRegressorCV(cv=2, n_alphas=2000, eps=1e-6).fit(X, real)",
    "MultiTaskBoostedRegressor": f"MultiTaskBoostedRegressor({WIDE}, scores[:400])",
    "MultiTaskBoostedRegressorCV": "MultiTaskBoostedRegressorCV(cv=2, n_alphas=2000, eps=1e-6).fit(X, scores)",
    "MultiTaskBoostedClassifierCV": "MultiTaskBoostedClassifierCV(cv=2, n_alphas=2000, eps=1e-6).fit(X, scores > 0)",
}


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    with kernel(tmp_path_factory.mktemp("kernel")) as found:
        assert found.run(BEGIN) == ""
        yield found


def test_every_estimator_is_interrupted_here():
    every = [getattr(dboost, name) for name in dir(dboost)]
    kinds = {kind.__name__ for kind in every if inspect.isclass(kind) and issubclass(kind, BoostedEstimator)}
    assert kinds == set(FITS)


# Each takes a second or two, and all of them end in one way of saying so: one fit and one cross-validation are enough.
SHORT = ("BoostedClassifier", "BoostedClassifierCV")
NAMES = [pytest.param(name, marks=[] if name in SHORT else pytest.mark.full) for name in FITS]


@pytest.mark.parametrize("name", NAMES)
def test_an_interrupted_cell_keeps_the_model_of_the_last_round(cells, name):
    params, data = FITS[name].split(".fit(")
    assert cells.run(f"model = dboost.{params}\ndata = ({data}") == ""
    pressed: list[float] = []

    def press_after_a_few_rounds(kind, content):
        # Python may drop the exception of a signal (``dboost.interruption``): who sees rounds go on presses again
        if kind == "update_display_data" and (not pressed or time.monotonic() - pressed[-1] > 3.0):
            pressed.append(time.monotonic())
            threading.Timer(0.1, cells.interrupt).start()

    assert cells.run("model.fit(*data)", press_after_a_few_rounds) == "KeyboardInterrupt"
    assert len(pressed) <= 3
    assert cells.texts("update_display_data")[-1].endswith(" · interrupted")
    notes = [line for kind, content in cells.shown if kind == "error" for line in content["traceback"]]
    assert any("keeps the" in line for line in notes), notes
    if name.endswith("CV"):
        assert cells.run("print(len(model.path_), hasattr(model, 'model_'))") == ""
        strengths, chosen = cells.texts("stream")[0].split()
        assert int(strengths) > 0 and chosen == "False"
        return
    look = "print(json.dumps([model.stop_reason_, model.n_iter_, len(model.predict(data[0])), len(model.history_)]))"
    assert cells.run(look) == ""
    reason, rounds, rows, records = json.loads(cells.texts("stream")[0])
    assert reason == "interrupted" and rows >= 400 and rounds >= 1 and records >= 1


def test_the_line_is_one_and_is_redrawn_in_place(cells):
    assert cells.run("dboost.BoostedClassifier(alpha=1e-3).fit(X, four)\ndboost.BoostedClassifier().fit(X, two)") == ""
    assert len(cells.texts("display_data")) == 1
    lines = cells.texts("update_display_data")
    assert lines[0].startswith("round ") and "features" in lines[0] and " s" in lines[0]
    ids = {content["transient"]["display_id"] for kind, content in cells.shown if "display_data" in kind}
    assert len(ids) == 1 and lines[-1].endswith("s · done") and "gap" in lines[-1] and "(to 0.0001)" in lines[-1]


@pytest.mark.parametrize(
    "code",
    [
        "dboost.BoostedClassifier(callbacks=[]).fit(X, two)",
        "os.environ[name := 'DBOOST_LIVE_LINE'] = '0'; dboost.BoostedClassifier().fit(X, two); del os.environ[name]",
        "live_line.DELAY = 9.0; dboost.BoostedClassifier().fit(X, two); live_line.DELAY = 0.0",
    ],
    ids=["callbacks", "environment", "quick"],
)  # fmt: skip
def test_there_is_no_line_where_none_is_wanted_or_needed(cells, code):
    assert cells.run(code) == ""
    assert cells.texts("display_data", "update_display_data", "stream") == []


@pytest.mark.full
def test_an_asynchronous_client_is_refused_in_one_line_and_its_hint_works(cells):
    begin = """
from distributed import Client, LocalCluster
cluster = LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0", memory_limit=0)
client = await Client(cluster.scheduler_address, asynchronous=True, set_as_default=False)
dboost.BoostedClassifier(client=client).fit(X, two)
"""
    assert cells.run(begin) == "UsageError"
    said = next(content["evalue"] for kind, content in cells.shown if kind == "error")
    assert "asynchronous" in said and "\n" not in said
    follow = """
import asyncio
await client.close()
model = dboost.BoostedClassifier(client=Client(cluster, set_as_default=False))
await asyncio.to_thread(model.fit, X, two)
print(model.stop_reason_)
model.client.close(); cluster.close()
"""
    assert cells.run(follow) == ""
    assert cells.texts("stream") == ["tol\n"]
