"""A fit ends by its limits, and every round of it ends soon: by a count of passes, never by the clock.

Covers: the size of a round, ``max_passes`` and ``max_seconds`` for every loop of rounds, and what is resumed after.
Does not cover: the estimators' parameters (tests/estimators/test_limits.py) or the command line.
"""

from __future__ import annotations

import math
import pickle
import time

import numpy as np
import pytest

from dboost.boosting import checks
from dboost.boosting.adaboost_l1 import AdaBoostL1
from dboost.boosting.leveraging import Leveraging
from dboost.boosting.shareboost import ShareBoost
from dboost.boosting.systems import NormalisedEdges, RankedL1
from dboost.problem import limits
from dboost.problem.limits import MOST_PASSES
from tests.boosting import plain
from tests.boosting.test_resume import bits

# Passes of a round beside its updates: the scoring pass, its certificate, an intercept that is solved again.
BESIDE = 12
SEPARABLE = {"penalty": "none", "tol": 1e-9}
UPDATES = [
    {"update": update, "select": select}
    for update, select in (
        ("gradboost", "greedy"),
        ("gradboost", "cyclic"),
        ("adaboost", "template"),
        ("adaboost", "random"),
    )
]


def separable(m=60, n=4):
    """Two classes that a column tells apart: without a penalty no weights are the best."""
    data = plain.make("log", m=m, n=n, seed=3)
    return plain.replace(data, y=np.where(data.X[:, :1] > 0.0, 1.0, -1.0))


def passes_of_rounds(result):
    counts = [record["passes"] for record in result.history]
    return np.diff([0, *counts])


@pytest.mark.full
@pytest.mark.parametrize("settings", UPDATES, ids=str)
def test_a_round_of_updates_that_never_end_is_bounded(settings):
    seen = []
    fitting = plain.fitting(separable(), **SEPARABLE, **settings, max_rounds=2)
    result = fitting.fit("auto", callback=lambda record, state: seen.append(state.passes))
    assert (result.stop_reason, result.n_iter, len(seen)) == ("max_rounds", 2, 2)
    assert passes_of_rounds(result).max() <= MOST_PASSES + BESIDE + 5


@pytest.mark.parametrize("select", ["greedy", "template"])
@pytest.mark.parametrize("penalty", ["none", "l1"])
def test_where_rounds_are_split_changes_no_bit(select, penalty, monkeypatch):
    """All rows are in from the first round on: a scoring pass between two updates then changes nothing."""
    alpha = "auto" if penalty == "none" else 1e-9

    def run(rounds, sweeps):
        settings = {"penalty": penalty, "tol": 1e-12, "update": "gradboost", "select": select}
        return plain.fitting(separable(), **settings, max_rounds=rounds, sweeps=sweeps).fit(alpha)

    whole, split, ones = run(1, 24), run(4, 6), run(24, 1)
    assert [r.n_iter for r in (whole, split, ones)] == [1, 4, 24]
    for other in (split, ones):
        assert other.W.tobytes() == whole.W.tobytes() and other.intercept.tobytes() == whole.intercept.tobytes()


@pytest.mark.parametrize(
    ("update", "most"), [("newton", 1), ("newton", 7), ("gradboost", 1), ("adaboost", 7), ("adaboost", 40)]
)
def test_passes_are_bounded(update, most):
    """Newton's steps are at the optimum after ten passes, where rounding says when they end."""
    result = plain.fitting(separable(), penalty="l1", tol=1e-13, update=update, max_passes=most).fit(1e-6)
    assert result.stop_reason == "max_passes"
    # a step of Newton's, once begun, is ended
    assert result.passes <= most + (40 if update == "newton" else BESIDE)
    assert math.isfinite(result.gap) and result.gap > 0.0


@pytest.mark.parametrize("select", ["cyclic", "random"])
def test_a_sweep_over_many_rows_ends_at_the_limit(select):
    data = plain.make("log", m=60, n=300, seed=5)
    result = plain.fitting(data, penalty="none", update="gradboost", select=select, max_passes=50).fit("auto")
    assert result.stop_reason == "max_passes" and result.passes <= 50 + BESIDE


def test_a_limit_that_is_not_reached_changes_nothing():
    data = plain.make("multinomial", m=60, n=6, seed=4)

    def run(**settings):
        return bits(plain.fitting(data, penalty="l1/l2", update="gradboost", tol=1e-5, **settings).fit(0.02))

    assert run() == run(max_passes=10**6, max_seconds=1e6)


def test_seconds_are_bounded_within_a_round(monkeypatch):
    monkeypatch.setattr(limits, "MOST_PASSES", 10**9)
    started = time.monotonic()
    result = plain.fitting(separable(), **SEPARABLE, update="gradboost", max_seconds=0.5).fit("auto")
    assert result.stop_reason == "max_seconds" and result.n_iter == 1
    assert 0.4 < time.monotonic() - started < 10.0


# settings of a fit, its loss and its strength
SYSTEMS = {
    "forward": ({"update": "forward", "penalty": "none", "tol": 0.0}, "log", "auto"),
    "leveraging": ({"system": Leveraging(), "penalty": RankedL1("edge"), "tol": 1e-12}, "log", 0.0),
    "budgeted": (
        {"system": AdaBoostL1(), "penalty": NormalisedEdges(), "fit_intercept": False, "tol": 1e-12}, "exp", "auto"
    ),
    "shareboost": ({"system": ShareBoost("scaled"), "penalty": "l2_squared"}, "log", 1e-6),
    "back": ({"system": ShareBoost("scaled", keep=1), "penalty": "l2_squared"}, "log", 1e-6),
}  # fmt: skip
LOOPS = {update: ({"update": update, "penalty": "l1", "tol": 1e-4}, "log", 1e-2) for update in checks.UPDATES}


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_other_loops_end_by_passes_and_seconds_too(name):
    settings, loss, alpha = SYSTEMS[name]
    data = plain.make(loss, m=80, n=12, seed=7)

    def run(**more):
        return plain.fitting(data, **settings, max_rounds=8, **more).fit(alpha)

    whole = run()
    assert whole.stop_reason not in ("max_passes", "max_seconds") and whole.n_iter > 3
    counts = [record["passes"] for record in whole.history]
    short, at_once = run(max_passes=counts[1]), run(max_seconds=1e-9)
    assert (short.stop_reason, short.n_iter) == ("max_passes", 2)
    assert (at_once.stop_reason, at_once.n_iter) == ("max_seconds", 0)
    if name == "back":
        short = run(max_passes=counts[9])
        assert (short.stop_reason, short.n_iter) == ("max_passes", 10) and len(short.active) <= 7


# rounds before the one that is cut: the sixth is the first of the way back
PLACES = {**dict.fromkeys(LOOPS, 1), "budgeted": 2, "shareboost": 2, "back": 5}


@pytest.mark.full
@pytest.mark.parametrize("name,place", PLACES.items())
def test_a_round_that_a_limit_cut_short_is_made_again_without_the_limit(name, place):
    settings, loss, alpha = (LOOPS | SYSTEMS)[name]
    settings = settings if name in LOOPS else settings | {"max_rounds": 5}
    data = plain.make(loss, m=80, n=12, seed=7)

    def run(resume=None, **more):
        states = []
        fitting = plain.fitting(data, **settings, **more)
        result = fitting.fit(alpha, resume=resume, callback=lambda r, state: states.append(pickle.dumps(state)))
        return result, [pickle.loads(state) for state in states]

    whole, states = run()
    limit = states[place - 1].passes + 2
    short, found = run(max_passes=limit)
    assert (short.stop_reason, short.n_iter) == ("max_passes", place + 1) and whole.n_iter > place + 1
    assert [state.cut for state in found] == [False] * place + [True]
    complete = found[place - 1]
    assert complete.W.tobytes() == states[place - 1].W.tobytes()
    assert bits(run(resume=complete)[0]) == bits(whole)
    # the same limit: the same end, from whichever round
    assert bits(run(resume=complete, max_passes=limit)[0]) == bits(short)
