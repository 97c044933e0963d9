"""A penalty with nothing but value, dual norm and prox: fitted, screened and certified, here and on two processes."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

from dboost import BoostedClassifier
from dboost.errors import UsageError
from dboost.penalties import PENALTIES
from tests.boosting import plain
from tests.extending.toy_penalty import Rising


@pytest.fixture
def named(monkeypatch):
    """The line of the registry."""
    monkeypatch.setitem(PENALTIES, "rising", Rising)
    return "rising"


@pytest.mark.full
@pytest.mark.parametrize("loss", ["multinomial", "multitask", "log"])
def test_the_fit_is_the_optimum_and_certified(loss):
    data = plain.make(loss, m=120, n=15, seed=2)
    fitting = plain.fitting(data, penalty=Rising(), update="gradboost", select="template", tol=1e-6, max_rounds=300)
    alpha = 0.15 * fitting.alpha_max()
    assert np.isclose(fitting.alpha_max(), plain.alpha_max(data, Rising()), rtol=1e-6)
    found, total = fitting.fit(alpha), data.s.sum()
    best = plain.optimum(data, Rising(), alpha * total, steps=20_000)
    assert found.stop_reason == "tol" and found.gap <= 1e-6 and 0 < len(found.active) < 15
    assert found.lower_bound * total <= best.value * (1 + 1e-12)
    assert abs(found.objective * total - best.value) <= 1e-6 * best.value


def small():
    data = plain.make("multinomial", m=90, n=8, seed=4)
    return data.X, data.y


@pytest.mark.full
def test_two_processes_give_the_bits_of_one(two_processes, named):
    X, y = small()
    settings = {"penalty": named, "update": "gradboost", "select": "template", "alpha": 0.02, "tol": 1e-4}
    lazy = da.from_array(X, chunks=(45, -1)), da.from_array(y, chunks=45)
    here = BoostedClassifier(**settings).fit(*lazy)
    there = BoostedClassifier(client=two_processes, **settings).fit(*lazy)
    assert there.duality_gap_ <= 1e-4 and there.model_.penalty == "rising"
    np.testing.assert_array_equal(there.coef_, here.coef_)


@pytest.mark.parametrize(
    "settings, who",
    [({"update": "newton"}, "update='newton'"), ({"update": "adaboost"}, "update='adaboost'"),
     ({"loss": "exp", "update": "newton"}, "loss 'exp'")],
)  # fmt: skip
def test_solvers_that_need_more_refuse_it_by_name(settings, who):
    loss = settings.pop("loss", "multinomial")
    with pytest.raises(UsageError, match="needs .* which penalty 'rising' does not have") as caught:
        plain.fitting(plain.make(loss, m=30, n=4), penalty=Rising(), **settings)
    assert who in str(caught.value) and "use " in str(caught.value)
