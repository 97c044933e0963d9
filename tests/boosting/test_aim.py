"""What a Newton step aims at, from the gaps so far."""

from __future__ import annotations

import pytest

from dboost.solvers.newton.accuracy import Aim


def test_accuracy_follows_the_gap_and_stops_at_the_goal():
    far = Aim.at(1e-4, 0.2, 0.2, 0.5)
    near = Aim.at(1e-4, 2e-4, 1e-2, 0.5)
    assert far.whole > near.whole > 0.0
    assert far.sampled > far.whole and near.sampled >= near.whole
    # the rows need not be better than what is asked of the gap that they cost
    assert near.whole * 0.5 <= 1e-4
    assert Aim.at(1e-4, 1e-9, 1e-2, 0.5).whole == Aim.at(1e-4, 1e-4, 1e-2, 0.5).whole


def test_a_cheap_penalty_allows_larger_misses():
    assert Aim.at(1e-4, 1e-2, 1e-2, 0.1).whole == pytest.approx(5 * Aim.at(1e-4, 1e-2, 1e-2, 0.5).whole)
    # without weights there is no penalty to measure by
    assert Aim.at(1e-4, 1e-2, 1e-2, 0.0).whole < 1.0


@pytest.mark.parametrize(
    "target,rest,before,near",
    [
        (1e-4, 1e-3, 1e-2, True),
        (1e-6, 1e-3, 1e-2, False),
        (1e-6, 1e-3, 1.0, True),
        (1e-4, 1e-2, 1e-2, False),
        (1e-4, 1e-2, 1e-3, False),
        (1e-4, 1e-5, 1e-3, False),
    ],
)
def test_descent_alone_is_near_when_its_rate_gets_there_in_a_few_steps(target, rest, before, near):
    aim = Aim.at(target, rest, before, 0.5)
    assert aim.near(whole=True) is near
    assert near or not aim.near(whole=False)


def test_on_a_sample_fewer_descents_are_expected_to_get_there():
    aim = Aim.at(1e-4, 1e-2, 1e-1, 0.5)
    assert aim.descents == pytest.approx(2.0) and aim.near(whole=True) and not aim.near(whole=False)


def test_a_solve_is_as_exact_as_the_goal_asks_for_where_that_costs_little():
    usual = Aim.at(1e-4, 1.0, 1.0, 0.5).residual
    assert Aim.at(1e-4, 5e-4, 5e-4, 0.5).residual == usual
    assert 0.0 < Aim.at(1e-4, 3e-3, 3e-3, 0.5).residual < 0.5 * usual
    # out of reach of one solve, or reached
    assert Aim.at(1e-4, 1e-1, 1e-1, 0.5).residual == usual
    assert Aim.at(1e-4, 1e-5, 1e-3, 0.5).residual == usual
