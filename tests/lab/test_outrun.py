"""Which peers are left out: only those that lost everywhere, on three data sets, where time is short."""

from __future__ import annotations

from typing import Any

from lab.benchmarks.curve import TARGETS, named
from lab.benchmarks.outrun import left_out, said

ALL = ("fast", "slow", "odd")


def record(data: str, **solvers: list[float]) -> dict[str, Any]:
    """Seconds to each target; negative: not reached within so many."""

    def solver(seconds: list[float]) -> dict[str, Any]:
        times = zip(TARGETS, seconds, strict=True)
        return {
            "runs": [{}],
            "times": {named(target): {"seconds": abs(s), "bound": s < 0.0} for target, s in times},
        }

    return {"data": data, "solvers": {name: solver(seconds) for name, seconds in solvers.items()}}


def three(**solvers: list[float]) -> list[dict[str, Any]]:
    return [record(data, **solvers) for data in "abc"]


SHORT = {"fast": [1.0, 2.0, -5.0], "slow": [0.5, 3.0, -9.0]}


def test_who_lost_everywhere_is_left_out_and_told_why() -> None:
    assert left_out(three(**SHORT), ALL) == {"slow": "left out: fast has outrun it on all 3 problems like it before"}
    # one that was stopped before the time of the other's finest target may have been as fast
    assert left_out(three(fast=[1.0, 2.0, -5.0], slow=[0.5, -1.9, -1.9]), ALL) == {}
    # what nobody ran says nothing
    assert left_out([*three(**SHORT), record("d", fast=[1.0, 2.0, 3.0])], ALL) == {}


def test_two_data_sets_are_too_few_whatever_their_strengths() -> None:
    assert left_out([record(data, **SHORT) for data in "aabb"], ALL) == {}


def test_one_problem_won_is_enough_to_stay() -> None:
    won = record("d", fast=[1.0, 2.0, -5.0], slow=[0.5, 1.5, -5.0])
    assert left_out([*three(**SHORT), won], ALL) == {}


def test_nobody_is_left_out_where_there_was_time() -> None:
    assert left_out(three(fast=[1.0, 2.0, 3.0], slow=[0.5, 3.0, 9.0]), ALL) == {}
    # a third who did reach the last target
    assert left_out(three(**SHORT, odd=[1.0, 4.0, 6.0]), ALL) == {}


def test_two_that_never_got_anywhere_do_not_leave_each_other_out() -> None:
    nowhere = {"fast": [-1.0, -1.0, -1.0], "slow": [-2.0, -2.0, -2.0]}
    assert left_out(three(**nowhere), ALL) == {}


def test_the_page_says_who_was_left_out_and_where() -> None:
    why = left_out(three(**SHORT), ALL)["slow"]
    solvers = {"fast": {"note": "cut off"}, "slow": {"note": why}}
    records = [{"problem": f"d {ratio}", "solvers": solvers} for ratio in (0.3, 0.1)]
    assert said(records) == [f"**slow was {why}**: d 0.3, d 0.1"]
