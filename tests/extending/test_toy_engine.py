"""The toy engine fits as those of dboost do, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from dboost import BoostedClassifier
from dboost.data.plan import build_plan
from dboost.engine.select import ENGINES, open_engine
from tests.extending.toy_engine import OneByOne, OneByOneEngine


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(
        ENGINES, "tests.extending.toy_engine.OneByOne", ("tests.extending.toy_engine", "OneByOneEngine")
    )


def test_a_client_of_that_class_opens_the_engine(in_pieces):
    with open_engine(OneByOne()) as engine:
        assert type(engine) is OneByOneEngine
        assert build_plan(*in_pieces, task="binary", engine=engine).rows == (700, 1, 599, 300, 400)


@pytest.mark.parametrize("memo_bytes", [0, 2**30])
@pytest.mark.parametrize("update", ["newton", "gradboost"])
def test_a_certified_fit_has_the_bits_of_the_engine_of_this_process(in_pieces, memo_bytes, update):
    settings = {"penalty": "l1", "alpha": 0.02, "update": update, "tol": 1e-6}
    mine = BoostedClassifier(client=OneByOne(memo_bytes), **settings).fit(*in_pieces)
    usual = BoostedClassifier(**settings).fit(*in_pieces)
    assert mine.stop_reason_ == "tol" and mine.duality_gap_ <= 1e-6
    assert mine.coef_.tobytes() == usual.coef_.tobytes()
    assert mine.intercept_.tobytes() == usual.intercept_.tobytes()
    assert 0 < np.count_nonzero(mine.coef_) < mine.coef_.size
