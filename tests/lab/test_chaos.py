"""The campaign of faults: what it lets pass, and that a trial that hangs is ended."""

from __future__ import annotations

import time

import pytest

from lab.chaos import campaign, strikes
from lab.chaos.campaign import LIMIT, Outcome, attempt, judged, passed
from lab.chaos.scenarios import SCENARIOS, UNDISTURBED, Scenario

FOUND = {"struck": 1.0, "bits": "abc", "error": None, "after": 3.0, "rounds": 5.0, "warnings": ["again"]}
ERROR = "ClusterError: no running worker for 30 s"


@pytest.mark.parametrize(
    ("ends", "outcome", "good"),
    [
        ("bits", Outcome("fit", 5.0, True), True),
        ("bits", Outcome("fit", 5.0, False), False),
        ("bits", Outcome("fit", LIMIT + 1, True), False),
        ("bits", Outcome("error", 5.0, False, ERROR), False),
        ("bits", Outcome("too late", 5.0, True), False),
        ("bits", Outcome("hung", 5.0, False), False),
        ("error", Outcome("error", 5.0, False, ERROR), True),
        ("error", Outcome("error", 5.0, False, "SchedulerLostError: lost the scheduler"), True),
        ("error", Outcome("error", LIMIT + 1, False, ERROR), False),
        ("error", Outcome("error", 5.0, False, "KilledWorker: ('x', 1)"), False),
        ("error", Outcome("error", 5.0, False, ERROR + "\nand more"), False),
        ("error", Outcome("fit", 5.0, True), False),
        ("either", Outcome("error", 5.0, False, ERROR), True),
        ("either", Outcome("fit", 5.0, True), True),
        ("either", Outcome("fit", 5.0, False), False),
        ("either", Outcome("broken", 5.0, False), False),
    ],
)
def test_a_trial_passes_with_the_undisturbed_bits_or_one_clear_error_in_time(ends, outcome, good):
    assert passed(outcome, Scenario(1, 1, strikes.nothing, ends=ends)) is good


def test_outcomes_are_told_apart():
    assert judged(FOUND, "abc") == Outcome("fit", 3.0, True, "again", 5.0)
    assert not judged(FOUND, "abd").same
    assert judged(FOUND | {"struck": None}, "abc").outcome == "too late"
    assert judged(FOUND | {"error": ERROR, "bits": None}, "abc") == Outcome("error", 3.0, False, ERROR)


def test_a_trial_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "HANGS_AFTER", 0.5)
    start = time.monotonic()
    assert attempt(UNDISTURBED, 0.0, tmp_path, "abc").outcome == "hung"
    assert time.monotonic() - start < 20


def test_the_campaign_has_the_trials_that_it_promises():
    trials = {name: scenario.trials for name, scenario in SCENARIOS.items()}
    assert trials["the only worker killed"] >= 10
    assert trials["three workers killed at once"] >= 5
    assert trials["one of two workers stopped"] >= 3
    assert sum(count for name, count in trials.items() if "memory" in name) >= 3
    assert trials["adaptive from no worker"] >= 1
