"""The campaign of faults: a small share of each fast part passes, and what is wrong is counted as wrong.

Does not cover: drivers that are killed, of which tests/pipelines/test_rejoin.py runs some trials.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.campaign import addresses, attacks, bit_flips, cluster_faults, command, mutants, torn_writes
from lab.campaign.cluster_faults import LIMIT, SCENARIOS, UNDISTURBED, Outcome, Scenario, attempt, judged, passed
from lab.campaign.command import SHOWN, Part, Tally
from lab.campaign.watch import watched


def sound(module, count: int, folder: Path) -> Tally:
    said: list[str] = []
    tally = Tally(said.append)
    module.run(count, folder.resolve(), tally)
    assert tally.failed == 0 and tally.tried >= count, said
    return tally


@pytest.mark.full
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


def test_other_data_that_are_taken_are_counted(tmp_path: Path) -> None:
    tally = Tally(lambda line: None)
    path = tmp_path / "columns.parquet"
    tables = (bit_flips.table("columns", bit_flips.np.random.default_rng(seed)) for seed in (0, 1))
    first, second = tables
    bit_flips.pq.write_table(first, path, write_page_checksum=True)
    expected = bit_flips.content(bit_flips.planned(path, "columns"))
    bit_flips.pq.write_table(second, path, write_page_checksum=True)
    bit_flips.before_reading(bit_flips.planned, path, "columns", expected, "here", tally)
    assert tally.failed == 1


def test_a_mutant_that_says_something_else_is_counted() -> None:
    tally = Tally(lambda line: None)
    for read in (lambda: 2, lambda: 1 / 0, lambda: os.system("true")):
        mutants.judge("it", mutants.Subject(Path("x"), read), 1, tally)
    mutants.judge("it", mutants.Subject(Path("x"), lambda: 2, free=True), 1, tally)
    assert (tally.tried, tally.failed) == (4, 3)


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


def test_only_some_failures_are_printed_and_all_are_counted() -> None:
    said: list[str] = []
    tally = Tally(said.append)
    for number in range(SHOWN + 5):
        tally.broke(str(number))
    tally.passed("fine", 3)
    assert (len(said), tally.tried, tally.failed) == (SHOWN, SHOWN + 8, SHOWN + 5)
    assert tally.words == "fine 3"


def test_a_part_that_fails_dies_or_is_left_out_fails_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "PARTS", {"a-part": Part("lab.campaign.a_part", 100, "nothing")})
    monkeypatch.setattr(command, "PROCESSES", multiprocessing.get_context("fork"))
    out = tmp_path / "page.md"
    for ends, code, words in (
        (lambda count, folder, tally: tally.passed("fine", count), 0, "fine 10"),
        (lambda count, folder, tally: tally.broke("bad"), 1, "0 of 1 passed"),
        (lambda count, folder, tally: os._exit(3), 1, "its process ended with 3"),
        (lambda count, folder, tally: setattr(tally, "left_out", "no compiler"), 1, "left out: no compiler"),
    ):
        monkeypatch.setitem(sys.modules, "lab.campaign.a_part", SimpleNamespace(run=ends))
        assert command.main(["--share", "0.1", "--out", str(out)]) == code
        assert words in capfd.readouterr().out and "a-part" in out.read_text()


def test_what_waits_runs_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    mark = tmp_path / "mark"

    def waits(count: int, folder: Path, tally: Tally) -> None:
        end = time.monotonic() + 20.0
        while not mark.exists() and time.monotonic() < end:
            time.sleep(0.01)
        tally.check(mark.exists(), "seen", "the other part has not run")

    monkeypatch.setitem(sys.modules, "lab.campaign.slow", SimpleNamespace(run=waits))
    monkeypatch.setitem(
        sys.modules, "lab.campaign.busy", SimpleNamespace(run=lambda count, folder, tally: mark.touch())
    )
    parts = {"slow": Part("lab.campaign.slow", 1, "", waits=True), "busy": Part("lab.campaign.busy", 1, "")}
    monkeypatch.setattr(command, "PARTS", parts)
    monkeypatch.setattr(command, "PROCESSES", multiprocessing.get_context("fork"))
    assert command.main(["--out", str(tmp_path / "page.md")]) == 0
    assert "2 of 2 parts passed" in capfd.readouterr().out
    rows = (tmp_path / "page.md").read_text()
    assert rows.index("slow") < rows.index("busy")


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


def test_a_trial_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_faults, "HANGS_AFTER", 0.5)
    start = time.monotonic()
    assert attempt(UNDISTURBED, 0.0, tmp_path, "abc").outcome == "hung"
    assert time.monotonic() - start < 20


@pytest.mark.full
@pytest.mark.timeout(600)
def test_workers_that_are_killed_leave_the_bits(tmp_path: Path) -> None:
    cluster_faults.write(tmp_path / cluster_faults.DATA)
    expected = cluster_faults.fit(tmp_path / cluster_faults.DATA, None, threading.Event())
    name = "workers killed again and again"
    outcome = attempt(name, 0.2, tmp_path, expected)
    assert passed(outcome, SCENARIOS[name]), outcome
