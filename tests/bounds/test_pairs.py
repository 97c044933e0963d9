"""Every loss, penalty and bound of the registries: random problems, and one fit to its end."""

from __future__ import annotations

import pytest

from dboost.losses import LOSSES
from tests.bounds import pairs

PAIRS = list(pairs.pairs())


@pytest.mark.full
@pytest.mark.parametrize("loss,penalty,bound", PAIRS)
def test_bound_score_zero_test_and_gap(loss, penalty, bound):
    got = pairs.measure(loss, penalty, bound, trials=10, seed=1)
    assert got.steps >= 120
    assert pairs.holds(loss, penalty, bound, got), got


def test_every_loss_is_tried_and_a_wrong_constant_would_be_seen(monkeypatch):
    assert {pair[0] for pair in PAIRS} == set(LOSSES)
    original = pairs.quadratic.one_row
    monkeypatch.setattr(pairs.quadratic, "one_row", lambda square, kappa: original(square, 0.5 * kappa))
    got = pairs.tried("squared", "l1", "quadratic", trials=2)
    assert got.below > pairs.ROUNDING
    assert not pairs.holds("squared", "l1", "quadratic", got)
