"""The campaign of faults: a small share of each fast part passes, and what is wrong is counted as wrong.

Does not cover: the parts on clusters, of which test_chaos.py and tests/pipelines/test_kills.py run some trials.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.campaign import attacks, bad_inputs, bit_flips, command, drifts, hangs, mutants, torn_writes
from lab.campaign.parts import PARTS, Part
from lab.campaign.tally import SHOWN, Tally
from lab.campaign.watch import watched


def sound(module, count: int, folder: Path) -> Tally:
    said: list[str] = []
    tally = Tally(said.append)
    module.run(count, folder.resolve(), tally)
    assert tally.failed == 0 and tally.tried >= count, said
    return tally


def test_a_share_of_flipped_bits(tmp_path: Path) -> None:
    assert sound(bit_flips, 96, tmp_path).outcomes["noticed between passes"] == 48


@pytest.mark.full
def test_a_share_of_drifts(tmp_path: Path) -> None:
    assert sound(drifts, 3 * len(drifts.DRIFTS), tmp_path).tried == 102


def test_a_share_of_mutants(tmp_path: Path) -> None:
    outcomes = sound(mutants, 260, tmp_path).outcomes
    assert outcomes["refused"] > 200 and outcomes["equal"] > 0


def test_all_attacks(tmp_path: Path) -> None:
    assert sound(attacks, 40, tmp_path).outcomes["refused"] >= 38


def test_all_bad_inputs(tmp_path: Path) -> None:
    total = len(bad_inputs.COMMANDS) + len(bad_inputs.TABLES) + len(bad_inputs.CALLS)
    assert PARTS["bad-inputs"].count == total >= 100
    sound(bad_inputs, total, tmp_path)


@pytest.mark.full
def test_a_share_of_torn_writes(tmp_path: Path) -> None:
    tally = Tally(print)
    torn_writes.run(6, tmp_path.resolve(), tally)
    if tally.left_out:
        pytest.skip(tally.left_out)
    assert (tally.tried, tally.failed) == (6, 0) and tally.outcomes["killed: killed"] == 2


@pytest.mark.parametrize("kind", [*hangs.LISTENERS, *hangs.ADDRESSES])
def test_an_address_of_each_kind_is_refused_in_time(kind: str, tmp_path: Path) -> None:
    assert hangs.connection(kind, tmp_path) == ""


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


@pytest.mark.parametrize(
    ("ends", "code", "words"),
    [
        (lambda count, folder, tally: tally.passed("fine", count), 0, "fine 10"),
        (lambda count, folder, tally: tally.broke("bad"), 1, "0 of 1 passed"),
        (lambda count, folder, tally: os._exit(3), 1, "its process ended with 3"),
        (lambda count, folder, tally: setattr(tally, "left_out", "no compiler"), 1, "left out: no compiler"),
    ],
)
def test_a_part_that_fails_dies_or_is_left_out_fails_the_campaign(
    ends, code, words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "lab.campaign.a_part", SimpleNamespace(run=ends))
    monkeypatch.setattr(command, "PARTS", {"a-part": Part("lab.campaign.a_part", 100, "nothing")})
    monkeypatch.setattr(command, "PROCESSES", multiprocessing.get_context("fork"))
    out = tmp_path / "page.md"
    assert command.main(["--share", "0.1", "--out", str(out)]) == code
    assert words in capfd.readouterr().out
    assert "a-part" in out.read_text()


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


def test_a_wrong_answer_to_a_bad_input_is_counted(tmp_path: Path) -> None:
    tally = Tally(lambda line: None)
    bad_inputs.called("fine", lambda: None, "x", tally)
    bad_inputs.called("another word", bad_inputs.classifier(alpha=-1.0), "gamma", tally)
    bad_inputs.called("foreign", lambda: [][1], "list", tally)
    bad_inputs.typed(tmp_path, ["--version"], 2, "version", "--version", tally)
    assert (tally.tried, tally.failed) == (4, 4)
