"""``python -m lab mutation``: whether `make test` finds the faults that `make test-all` finds.

Covers: small changes of the code (mutants), drawn by a seed from six parts in equal numbers; which tests call
which functions, and which slow ones call nothing that others do not; each mutant under the tests of the short lane that
call its function and, where none fails, under the others that do.
Does not cover: what runs in processes that tests start, which neither lane's record sees.

Tests are collected once. Each mutant is tried in a fork of that process, in which the code of one function is replaced;
what cannot be replaced so (compiled loops, values of modules and classes) is tried in a process of its own, on a copy
of the checkout.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

from lab.mutation.mutants import PARTS, ROOT, Mutant, changed, draw, function_of, mentions, replaced
from lab.tables import markdown

SHORT, REST = "not full", "full"
FOUND, MISSED = "found", "missed"
QUIETLY = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "timeout=60")
OTHERS = 4
"""So many tests of the short lane call each function that a test calls which is left to the rest."""
_CALLS = "DBOOST_CALLS"


class Record:
    """Which items call which functions, and what each of them takes.

    `folder`: where ``record`` has written. `root`: the checkout of that time.
    """

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self.root = root
        self.seconds: dict[str, float] = {}
        # Items by file and first line of a function.
        self.calls: dict[tuple[str, int], set[str]] = defaultdict(set)
        for path in sorted(folder.glob("calls-*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                name, seconds, called = json.loads(line)
                self.seconds[name] = seconds
                for file, first in called:
                    self.calls[file, first].add(name)

    def items(self, mutant: Mutant) -> set[str]:
        """Items that call the function of a mutant.

        What numba compiles is called unseen, so its callers count in its place, up to those that Python calls. What
        stands in no function is read by all that call anything of its file.
        """
        name, firsts = function_of(mutant, self.root)
        if not name:
            return {item for (file, _), items in self.calls.items() if file == mutant.file for item in items}
        found = {item for first in firsts for item in self.calls.get((mutant.file, first), ())}
        names, todo = {name}, [] if found else [name]
        while todo:
            for caller, file, firsts in mentions(self.root).get(todo.pop(), ()):
                items = {item for first in firsts for item in self.calls.get((file, first), ())}
                found |= items
                if not items and caller not in names:
                    names.add(caller)
                    todo.append(caller)
        return found


class Trials:
    """The plugin that tries mutants in forks, in place of running the tests."""

    def __init__(self, mutants: Sequence[Mutant], record: Record, seconds: float, out: Path) -> None:
        self.mutants, self.record, self.seconds, self.out = mutants, record, seconds, out

    def pytest_runtestloop(self, session: Any) -> bool:
        """Try each of them, and write a line about it."""
        items = {item.nodeid: item for item in session.items}
        short = {name for name, item in items.items() if item.get_closest_marker("full") is None}
        for mutant in self.mutants:
            began = time.perf_counter()
            pairs = replaced(mutant)
            where = self.record.items(mutant) & items.keys()
            lanes: dict[str, Any] = {}
            for lane, names in ((SHORT, where & short), (REST, where - short)):
                if pairs and lanes.get(SHORT) != FOUND:
                    chosen, left = affordable(names, self.record.seconds, self.seconds)
                    by = self._fork(session, [items[name] for name in chosen], pairs)
                    lanes |= {lane: FOUND if by else MISSED, f"{lane}, by": by, f"{lane}, not tried": left}
            line = {**asdict(mutant), "lanes": lanes, "seconds": time.perf_counter() - began, "fork": bool(pairs)}
            with open(self.out, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        return True

    def _fork(self, session: Any, items: list[Any], pairs: list[tuple[FunctionType, CodeType]]) -> str:
        """The item that fails with the changed code; "" where none does."""
        if not items:
            return ""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            for function, code in pairs:
                function.__code__ = code
            session.items = items
            session.config.pluginmanager.register(Failing(writer))
            from _pytest.main import pytest_runtestloop

            try:
                pytest_runtestloop(session)
            except BaseException:
                # the session ends at the first item that fails
                os._exit(1)
            os._exit(0)
        os.close(writer)
        with open(reader, encoding="utf-8") as pipe:
            by = pipe.readline().strip()
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return by or ("" if ended == 0 else f"process ended with {ended}")


class Spare:
    """The plugin that names slow tests of the short lane that call nothing of their own, in place of running any."""

    def __init__(self, record: Record) -> None:
        self.record = record

    def pytest_runtestloop(self, session: Any) -> bool:
        """Say so for each of them."""
        seconds: dict[str, float] = defaultdict(float)
        calls: dict[str, set[tuple[str, int]]] = defaultdict(set)
        short = {item.nodeid for item in session.items if item.get_closest_marker("full") is None}
        for name in short & self.record.seconds.keys():
            seconds[name.partition("[")[0]] += self.record.seconds[name]
        for place, items in self.record.calls.items():
            for name in items & short:
                calls[name.partition("[")[0]].add(place)
        for name, spent in spare(seconds, calls):
            print(f"{spent:7.1f} s  {name}")
        return True


def spare(seconds: dict[str, float], calls: dict[str, set[tuple[str, int]]]) -> list[tuple[str, float]]:
    """Tests above a second, the slowest first, without which `OTHERS` still call each function that they call."""
    callers = Counter(place for places in calls.values() for place in places)
    found = []
    for name in sorted(calls, key=lambda name: -seconds[name]):
        if seconds[name] >= 1.0 and all(callers[place] > OTHERS for place in calls[name]):
            callers.subtract(calls[name])
            found.append((name, seconds[name]))
    return found


class Failing:
    """The plugin of a fork that names the item that fails."""

    def __init__(self, writer: int) -> None:
        self.writer = writer

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A step of an item has ended."""
        if report.failed:
            os.write(self.writer, f"{report.nodeid}\n".encode())


def affordable(names: set[str], seconds: dict[str, float], most: float) -> tuple[list[str], int]:
    """Items in the order in which they are tried, the quick ones first, and how many there is no time for."""
    order = sorted(names, key=lambda name: (seconds.get(name, 0.0), name))
    chosen, spent = [], 0.0
    for name in order:
        spent += seconds.get(name, 0.0)
        if spent > most:
            break
        chosen.append(name)
    return chosen, len(order) - len(chosen)


def record(folder: Path, tests: Sequence[str]) -> int:
    """Run the tests once and write which functions each of them calls."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "lab.mutation.command", "-n", "2", "--dist", "loadfile"]
    return subprocess.run([*command, *tests], cwd=ROOT, env={**os.environ, _CALLS: str(folder)}).returncode


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """As a plugin of a run: note the functions that an item calls, in all threads, and its seconds."""
    began, called = time.process_time(), set[CodeType]()

    def note(frame: FrameType, _event: str, _value: Any) -> None:
        called.add(frame.f_code)

    sys.settrace(note)
    threading.settrace(note)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)
        ours = sorted({place for code in list(called) if (place := place_of(code))})
        line = json.dumps([item.nodeid, round(time.process_time() - began, 4), ours])
        with open(Path(os.environ[_CALLS], f"calls-{os.getpid()}.jsonl"), "a", encoding="utf-8") as file:
            file.write(line + "\n")


def place_of(code: CodeType) -> tuple[str, int] | None:
    """File and first line of a function of the checkout; none of others, and of what stands in no function."""
    if not code.co_filename.startswith((f"{ROOT}/dboost/", f"{ROOT}/pipelines/")) or not code.co_flags & 0x2:
        return None
    return Path(code.co_filename).relative_to(ROOT).as_posix(), code.co_firstlineno


def collected(plugin: Any) -> int:
    """Collect the tests, and leave them to a plugin."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    return int(pytest.main([*QUIETLY, "-s", "tests"], plugins=[plugin]))


def run_apart(mutants: Sequence[Mutant], folder: Path, seconds: float, out: Path) -> int:
    """Try those that no fork can: on a copy of the checkout, in a process for each lane."""
    found = Record(folder)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "copy")
        shutil.copytree(ROOT, copy, ignore=_left_out)
        chosen = [affordable(found.items(one) or near(one, found), found.seconds, seconds) for one in mutants]
        # What fails on a copy by itself would find every mutant: a test that asks git, or one of comments, which a
        # changed file has lost.
        sources = {one.file: (copy / one.file).read_text(encoding="utf-8") for one in mutants}
        for name, source in sources.items():
            (copy / name).write_text(ast.unparse(ast.parse(source)), encoding="utf-8")
        by_itself = _failing(copy, sorted({item for items, _ in chosen for item in items}), f"{SHORT} or {REST}", 0)
        for mutant, (names, left) in zip(mutants, chosen, strict=True):
            names = [name for name in names if name not in by_itself]
            began, path = time.perf_counter(), copy / mutant.file
            plain = path.read_text(encoding="utf-8")
            path.write_text(ast.unparse(changed(sources[mutant.file], mutant.site)), encoding="utf-8")
            lanes: dict[str, Any] = {}
            for lane in (SHORT, REST):
                by = next(iter(_failing(copy, names, lane)), "")
                lanes |= {lane: FOUND if by else MISSED, f"{lane}, by": by, f"{lane}, not tried": left}
                if lanes[lane] == FOUND:
                    break
            path.write_text(plain, encoding="utf-8")
            line = {**asdict(mutant), "lanes": lanes, "seconds": time.perf_counter() - began, "fork": False}
            with open(out, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
    return 0


def _left_out(folder: str, names: list[str]) -> set[str]:
    """What lies in the checkout and is no part of it; a folder of the sources may be called the same."""
    ours = {name for name in names if name.startswith((".git", ".venv", ".peers"))}
    return ours | ({"runs", "dist", "build"} & set(names)) if Path(folder) == ROOT else set()


def near(mutant: Mutant, found: Record) -> set[str]:
    """Items of the folder of tests of the same name, for what no recorded call leads to."""
    folder = Path(mutant.file).parts[1] if mutant.file.startswith("dboost/") else "pipelines"
    return {name for name in found.seconds if name.startswith(f"tests/{folder}/")}


def _failing(copy: Path, names: Sequence[str], lane: str, most: int = 1) -> list[str]:
    """The items of a lane that fail on a copy of the checkout, the first `most` of them, or all for 0."""
    if not names:
        return []
    listed = copy / "items.txt"
    listed.write_text("\n".join(names), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", *QUIETLY, f"--maxfail={most}", "-m", lane, f"@{listed}"]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, encoding="utf-8")
    said = [line.partition(" ") for line in done.stdout.splitlines()]
    failed = [rest.partition(" - ")[0] for word, _, rest in said if word in ("FAILED", "ERROR")]
    # 5: the lane has none of these items
    return (failed or [f"process ended with {done.returncode}"]) if done.returncode not in (0, 5) else []


def told(path: Path) -> list[dict[str, Any]]:
    """What a file of results has; nothing where it is not there yet."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def tell(paths: Sequence[Path]) -> str:
    """The table of what was found, and the mutants that only the rest of the tests finds."""
    lines = [line for path in paths for line in told(path)]
    # what no fork could try is in the table once it was tried apart
    lines = [line for line in lines if line["lanes"]]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    missed = []
    for line in lines:
        lanes = line["lanes"]
        end = "short lane" if lanes.get(SHORT) == FOUND else "rest" if lanes.get(REST) == FOUND else "neither"
        for part in (line["part"], "all"):
            counts[part][end] += 1
        if end == "rest":
            missed.append(f"only in the rest: {line['file']}:{line['line']}  {line['change']}")
    rows = []
    for part in (*PARTS, "all"):
        short, rest = counts[part]["short lane"], counts[part]["rest"]
        share = f"{100 * short / (short + rest):.1f} %" if short + rest else "-"
        found = {"make test": short, "make test-all only": rest, "neither": counts[part]["neither"], "share": share}
        rows.append({"part": part, "mutants": counts[part].total(), **found})
    return "\n".join([markdown(rows, list(rows[0])), *missed])


def main(arguments: Sequence[str]) -> int:
    """Record, say what is spare, try, or tell."""
    parser = argparse.ArgumentParser(prog="python -m lab mutation", description=__doc__.split("\n")[0])
    parser.add_argument("step", choices=("record", "spare", "forks", "apart", "tell"))
    parser.add_argument("--folder", type=Path, required=True, help="where the record and the results lie")
    parser.add_argument("--count", type=int, default=300, help="mutants in all (300)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of tests, as recorded, for a mutant in a lane (60)"
    )
    parser.add_argument("--shard", default="0/1", help="which share of the mutants, as in 0/2 and 1/2")
    parser.add_argument("tests", nargs="*", default=["tests"], help="of record: files or folders")
    found = parser.parse_intermixed_args(arguments)
    if found.step == "record":
        return record(found.folder, found.tests)
    if found.step == "spare":
        return collected(Spare(Record(found.folder)))
    number, shards = map(int, found.shard.split("/"))
    results = found.folder / f"{found.step}-{number}.jsonl"
    if found.step == "tell":
        print(tell(sorted(found.folder.glob("forks-*.jsonl")) + sorted(found.folder.glob("apart-*.jsonl"))))
        return 0
    done = {(one["file"], one["site"]) for one in told(results)}
    mine = [one for one in draw(found.count, found.seed)[number::shards] if (one.file, one.site) not in done]
    if found.step == "forks":
        return collected(Trials(mine, Record(found.folder), found.seconds, results))
    forked = [one for path in found.folder.glob("forks-*.jsonl") for one in told(path)]
    left = {(one["file"], one["site"]) for one in forked if not one["fork"]}
    left_of_mine = [one for one in mine if (one.file, one.site) in left]
    return run_apart(left_of_mine, found.folder, found.seconds, results)
