"""A retraining that is left alone: a year with kills, rollbacks, new hosts, wrong clocks and damaged files."""

import contextlib
import json
import os
import socket
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import dboost
from pipelines.cli import main
from pipelines.retraining import home, retrain
from pipelines.retraining.home import Home
from pipelines.runs import lock
from pipelines.runs.run_file import read_run_file
from tests.pipelines.test_retrain import FILE, RUN, documents, flipped, mostly_apples, shuffled

# Data of one kind differ by a tenth of a nat, and by what becomes of the rows of a class that lack its word; labels
# that were shuffled cost a whole nat.
GATES = "loss = 0.3\nclass_error = 0.6\n"
GOOD = ("grows", "changes", "returns")
# How often data comes and what happens, in a hundred nights.
DATA = {"stands still": 40, "grows": 20, "changes": 10, "returns": 6, "shrinks": 8, "drifts": 8, "is wrong": 8}
EVENTS = {"": 50, "killed": 18, "killed twice": 5, "killed outright": 4, "rolled back": 9, "damaged": 9, "clock": 5}


class Killed(BaseException):
    """The process is gone."""


class Year:
    """A home, its data and what has come of it."""

    def __init__(self, folder, seed, patch):
        self.folder, self.rng, self.patch = folder, np.random.default_rng(seed), patch
        self.home = Home(folder / "retraining")
        self.kind, self.rows, self.clock = "grows", 400, 0.0
        self.good: list[bytes] = []
        self.left: set[str] = set()
        # Whether the champion is one that took the place of a damaged one.
        self.fell = False
        self.seen: Counter[str] = Counter()
        (folder / "run.toml").write_text(RUN)
        (folder / "nightly.toml").write_text(FILE.replace("[gates]", "keep = 6\n[gates]") + GATES)
        documents(folder / "t.parquet", 200, 9_999)
        documents(folder / "d.parquet", 400, 0)
        for module in (home, retrain):
            patch.setattr(module, "now", lambda: time.time() + self.clock)
        # a folder that several machines share, whose locks none of them sees
        patch.setattr(lock, "LOCAL", frozenset())
        for name, value in (("BEAT", 0.02), ("LEASE", 0.1), ("LOOK", 0.02), ("SETTLE", 0.0)):
            patch.setattr(lock, name, value)

    def source(self):
        """What a model of the present data is made of."""
        return retrain.source_of(read_run_file(str(self.folder / "run.toml")))

    def new_data(self, kind, seed):
        """Let the data grow, change, shrink, drift, be wrong or return to what it was."""
        self.kind = self.kind if kind == "stands still" else kind
        path = self.folder / "d.parquet"
        if kind == "returns":
            path.write_bytes(self.good[int(self.rng.integers(len(self.good)))])
        elif kind != "stands still":
            self.rows = min(self.rows + 20, 700) if kind == "grows" else int(self.rng.integers(400, 700))
            rows = {"shrinks": 150, "drifts": 900}.get(kind, self.rows)
            documents(path, rows, seed, {"drifts": mostly_apples, "is wrong": shuffled}.get(kind))
        if kind in GOOD:
            self.good = [*self.good[-5:], path.read_bytes()]

    def attempt(self, at, outright):
        """One process of a night; it is killed at the step of storage with that number."""
        if outright:
            child = os.fork()
            if child == 0:
                with contextlib.suppress(BaseException):
                    self._until(at, lambda: os._exit(9))
                os._exit(0)
            return "killed" if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9 else "done"

        def raised():
            raise Killed

        try:
            self._until(at, raised)
        except Killed:
            # what a machine that is gone leaves
            record = {**lock.myself(), "key": "gone", "beat": 7}
            for place in (self.home.path, *(self.home.folder(one) for one in self.home.versions()[-1:])):
                (place / lock.LOCK).write_text(json.dumps(record).ljust(512))
                os.utime(place / lock.LOCK, (time.time() + self.clock,) * 2)
            return "killed"
        return "done"

    def _until(self, at, kill):
        steps_done = [0]

        def counted(real):
            def call(*arguments, **keywords):
                # the signs of life of the lock come from a thread of their own
                if threading.current_thread() is threading.main_thread():
                    steps_done[0] += 1
                    if steps_done[0] == at:
                        kill()
                return real(*arguments, **keywords)

            return call

        with self.patch.context() as patch:
            for name in ("replace", "rename", "fsync"):
                patch.setattr(os, name, counted(getattr(os, name)))
            assert main(["retrain", str(self.folder / "nightly.toml"), "--log-format", "json"]) == 0

    def night(self, number, data, event, capsys):
        """A day and the night after it."""
        if data == "returns" and not self.good:
            data = "grows"
        self.new_data(data, number)
        rolled = event == "rolled back" and self.home.champion is not None
        if rolled:
            gone, former = str(self.home.champion), self.home.former
            rolled = main(["rollback", str(self.home.path)]) == 0
            assert rolled or self.home.champion == gone
            if rolled:
                assert self.home.champion in former
                self.left.add(self.home.decision(gone)["source"])
        promotable = self.kind in GOOD and self.source() not in self.left
        # With one version left, what is not good enough would be the first of its kind.
        damaged = event == "damaged" and self.home.champion is not None and bool(self.home.former or promotable)
        if damaged:
            model = self.home.model()
            files = sorted(one for one in model.rglob("*") if one.is_file() and one.name != "run.json")
            file = files[int(self.rng.integers(len(files)))]
            [flipped, Path.unlink][int(self.rng.integers(2))](file)
            assert self.home.damage(str(self.home.champion)), file
        if event == "clock":
            self.clock += float(self.rng.choice([-400.0, -1.0, 0.05, 30.0, 4000.0])) * 86_400.0
        outcomes = []
        kills = {"killed": 1, "killed twice": 2, "killed outright": 1}.get(event, 0)
        for turn in range(kills + 1):
            self.patch.setattr(socket, "gethostname", lambda t=turn: f"pod-{number}-{t}")
            self.patch.setattr(lock, "kernel", lambda t=turn: f"node-{(number + t) % 3}")
            self.patch.setattr(lock, "process", lambda t=turn: f"process-{number}-{t}")
            at = int(self.rng.integers(1, 60)) if turn < kills else None
            outcomes.append(self.attempt(at, event == "killed outright" and at is not None))
        text = capsys.readouterr().out
        said = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        done = [one for one in said if one.get("event") == "retrained"]
        outcome = str(done[-1]["outcome"]) if done else "?"
        assert outcome != "?", text
        self.fell = (self.fell or damaged) and outcome != "promoted" and not rolled
        self.morning(number)
        happened = ["rolled back"] * rolled + ["damaged"] * damaged + ["clock"] * (event == "clock")
        happened += [one for one in outcomes if one == "killed"]
        self.seen.update([data, outcome, *happened])

    def morning(self, number):
        """One sound champion loads, and it is what it should be."""
        home = self.home
        found = json.loads((home.path / "champion.json").read_bytes())["version"]
        assert found == home.champion and home.damage(found) == "", (number, found)
        assert not list((home.path / "versions").glob(f"{found}/champion.json"))
        labels = dboost.load_pipeline(home.model()).predict(["word_birch", "word_apple"])
        assert list(labels) == ["birch", "apple"], number
        source, decision = self.source(), home.decision(found)
        should = self.kind in GOOD and source not in self.left
        assert (decision["source"] == source) is should, (number, self.kind, found, home.latest())
        assert decision["source"] not in self.left or self.fell, number
        assert len(home.versions()) <= 8


def drawn(rng, weights):
    share = np.array(list(weights.values()), float)
    return str(rng.choice(list(weights), p=share / share.sum()))


def test_five_nights_left_alone(tmp_path, monkeypatch, capsys):
    year = Year(tmp_path, 0, monkeypatch)
    plan = (
        ("grows", ""), ("changes", "killed"), ("is wrong", "clock"), ("stands still", "rolled back"),
        ("grows", "damaged"),
    )  # fmt: skip
    for number, (data, event) in enumerate(plan):
        year.night(number, data, event, capsys)
    assert year.seen["killed"] >= 1 and year.seen["promoted"] >= 2 and year.seen["declined"] >= 1


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_a_year_of_nights_left_alone(tmp_path, monkeypatch, capsys):
    year = Year(tmp_path, 1, monkeypatch)
    for number in range(365):
        year.night(number, drawn(year.rng, DATA), drawn(year.rng, EVENTS), capsys)
    wanted = {*DATA, "promoted", "declined", "nothing new", "killed", "rolled back", "damaged", "clock"}
    assert wanted <= set(year.seen)
