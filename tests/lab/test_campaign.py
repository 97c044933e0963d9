"""The campaign of faults: a small share of each fast part passes, and what is run or written is seen.

Does not cover: drivers that are killed, of which tests/pipelines/test_kills.py runs some trials.
"""

from __future__ import annotations

import os
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from lab.campaign import addresses, attacks, bit_flips, cluster_faults, mutants, torn_writes
from lab.campaign.cluster_faults import LIMIT, SCENARIOS, Outcome, Scenario, attempt, judged, passed
from lab.campaign.command import Tally
from lab.campaign.watch import watched


def sound(module, count: int, folder: Path) -> Tally:
    said: list[str] = []
    tally = Tally(said.append)
    module.run(count, folder.resolve(), tally)
    assert tally.failed == 0 and tally.tried >= count, said
    return tally


def test_a_share_of_flipped_bits(tmp_path: Path) -> None:
    assert sound(bit_flips, 96, tmp_path).outcomes["noticed between passes"] == 48


def test_a_share_of_mutants(tmp_path: Path) -> None:
    outcomes = sound(mutants, 260, tmp_path).outcomes
    assert outcomes["refused"] > 200 and outcomes["equal"] > 0


def test_all_attacks(tmp_path: Path) -> None:
    assert sound(attacks, 40, tmp_path).outcomes["refused"] >= 38


@pytest.mark.full
def test_a_share_of_torn_writes(tmp_path: Path) -> None:
    tally = Tally(print)
    torn_writes.run(6, tmp_path.resolve(), tally)
    if tally.left_out:
        pytest.skip(tally.left_out)
    assert (tally.tried, tally.failed) == (6, 0) and tally.outcomes["killed: killed"] == 2


def test_an_address_of_each_kind_is_refused_in_time(tmp_path: Path) -> None:
    kinds = [*addresses.LISTENERS, *addresses.ADDRESSES]
    assert sound(addresses, len(kinds), tmp_path).outcomes == {"refused in time": len(kinds)}


def test_what_is_run_or_written_is_seen(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("x")
    with watched() as done:
        (tmp_path / "there").read_text()
    assert done == []
    for deed in (
        lambda: (tmp_path / "new").write_text("x"),
        lambda: os.system("true"),
        lambda: subprocess.run(["true"], check=True),
        lambda: exec("1"),
        lambda: os.remove(tmp_path / "new"),
    ):
        with watched() as done:
            deed()
        assert done, deed
    with watched() as done:
        pass
    (tmp_path / "after").write_text("x")
    assert done == []


# ---- faults of a cluster ---------------------------------------------------------------------------------------------

FOUND = {"struck": 1.0, "bits": "abc", "error": None, "after": 3.0, "rounds": 5.0, "warnings": ["again"]}
ERROR = "ClusterError: no running worker for 30 s"


def test_a_trial_passes_with_the_undisturbed_bits_or_one_clear_error_in_time() -> None:
    fit, other, error = Outcome("fit", 5.0, True), Outcome("fit", 5.0, False), Outcome("error", 5.0, False, ERROR)
    lost = replace(error, words="SchedulerLostError: lost the scheduler")
    foreign, long = replace(error, words="KilledWorker: ('x', 1)"), replace(error, words=ERROR + "\nand more")
    late, slow = replace(fit, outcome="too late"), replace(fit, seconds=LIMIT + 1)
    hung, broken = replace(other, outcome="hung"), replace(other, outcome="broken")
    good = {"bits": [fit], "error": [error, lost], "either": [fit, error, lost]}
    for ends, these in good.items():
        scenario = Scenario(1, 1, cluster_faults.nothing, ends=ends)
        for outcome in (fit, other, error, lost, foreign, long, late, slow, hung, broken):
            assert passed(outcome, scenario) is (outcome in these), (ends, outcome)
        assert not passed(replace(error, seconds=LIMIT + 1), scenario)
    assert judged(FOUND, "abc") == Outcome("fit", 3.0, True, "again", 5.0) and not judged(FOUND, "abd").same
    assert judged(FOUND | {"struck": None}, "abc").outcome == "too late"
    assert judged(FOUND | {"error": ERROR, "bits": None}, "abc") == Outcome("error", 3.0, False, ERROR)
    assert sum(scenario.share for scenario in SCENARIOS.values()) == 150


@pytest.mark.full
@pytest.mark.timeout(600)
def test_workers_that_are_killed_leave_the_bits(tmp_path: Path) -> None:
    cluster_faults.write(tmp_path / cluster_faults.DATA)
    expected = cluster_faults.fit(tmp_path / cluster_faults.DATA, None, threading.Event())
    name = "workers killed again and again"
    outcome = attempt(name, 0.2, tmp_path, expected)
    assert passed(outcome, SCENARIOS[name]), outcome
