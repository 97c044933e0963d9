"""The file of a retraining, and what a challenger must do to be promoted; a new gate is one function and one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dboost.errors import UsageError
from dboost.files.paths import local_path

from .. import trust
from ..config import FromOne, NonNegative, Text, hints, read_keys, read_tables, read_toml
from ..runs.run_file import read_run_file
from .judge import Comparison

# How far off the probabilities of a version may be that is not the first one, where [gates] does not say it.
CALIBRATION = 0.1


@dataclass(frozen=True)
class Figures:
    """What the gates look at."""

    comparison: Comparison
    # Training rows, and features in use, of the challenger and of the champion; of the first champion its own twice.
    rows: tuple[int, int]
    features: tuple[int, int]
    label_drift: float  # population stability index between the data of the champion and that of the challenger
    feature_drift: float
    label_chance: float = 0.0  # what these indices seldom exceed where nothing has drifted
    feature_chance: float = 0.0
    # Which version that was rolled back is of the same data and settings, when it was, and why; empty for none.
    rolled_back: str = ""


@dataclass(frozen=True)
class Verdict:
    """What a gate says."""

    gate: str
    passed: bool
    words: str


def loss(figures: Figures, gates: Gates) -> Verdict:
    """The mean loss is not worse by more than chance explains, and what is allowed."""
    mean, error = figures.comparison.difference()
    most = gates.loss + gates.significance * error
    words = f"challenger less champion {mean:+.4f} nats, standard error {error:.4f}; at most {most:.4f}"
    return Verdict("loss", mean <= most, words)


def class_error(figures: Figures, gates: Gates) -> Verdict:
    """No class that has enough rows is labelled much worse."""
    worst, words = -1.0, "no class has enough rows"
    passed = True
    for one in figures.comparison.by_class():
        if one["rows"] < gates.class_rows:
            continue
        beyond = one["difference"] - 2.0 * one["error"]
        if one["difference"] > worst:
            worst = one["difference"]
            words = f"largest rise: {one['label']} by {100 * worst:.1f} points over {one['rows']} rows"
        passed = passed and beyond <= gates.class_error
    return Verdict("class_error", passed, f"{words}; at most {100 * gates.class_error:.0f} points beyond chance")


def calibration(figures: Figures, gates: Gates) -> Verdict:
    """Probabilities are about the shares of right answers, or no further from them than those of the champion."""
    mine, theirs = figures.comparison.challenger, figures.comparison.champion
    most, off = gates.calibration, mine.off()
    if most is None and theirs is None:
        return Verdict("calibration", True, f"{off:.3f} off; a first version has nothing to be compared with")
    if most is None:
        assert theirs is not None
        most = max(CALIBRATION, theirs.off())
    mean, deviation = mine.off_by_chance()
    chance = mean + gates.significance * deviation
    words = f"{off:.3f} off; at most {most:.3g} beyond the {chance:.3f} that so few rows explain"
    return Verdict("calibration", off <= most + chance, words)


def rows(figures: Figures, gates: Gates) -> Verdict:
    """There is enough data."""
    mine, theirs = figures.rows
    words = f"{mine:,} training rows, the champion had {theirs:,}; at least {gates.rows:g} of that"
    return Verdict("rows", mine >= gates.rows * theirs, words)


def size(figures: Figures, gates: Gates) -> Verdict:
    """The model has not grown out of proportion."""
    mine, theirs = figures.features
    words = f"{mine:,} features in use, the champion has {theirs:,}; at most {gates.size:g} times that"
    return Verdict("size", mine <= gates.size * max(theirs, 1), words)


def label_drift(figures: Figures, gates: Gates) -> Verdict:
    """Labels come as often as they did."""
    return _drift("label_drift", figures.label_drift, gates.label_drift, figures.label_chance)


def feature_drift(figures: Figures, gates: Gates) -> Verdict:
    """Terms come as often as they did."""
    return _drift("feature_drift", figures.feature_drift, gates.feature_drift, figures.feature_chance)


def _drift(gate: str, found: float, most: float, chance: float) -> Verdict:
    words = f"population stability index {found:.3f}; at most {most:g} beyond the {chance:.3f} that so few rows explain"
    return Verdict(gate, found <= most + chance, words)


def rolled_back(figures: Figures, gates: Gates) -> Verdict:
    """It is not the one that was rolled back once more."""
    same = figures.rolled_back
    return Verdict("rolled_back", not same, same or "no version of the same data and settings was")


GATES: tuple[Callable[[Figures, Gates], Verdict], ...] = (
    loss, class_error, calibration, rows, size, label_drift, feature_drift, rolled_back,
)  # fmt: skip


def verdicts(figures: Figures, gates: Gates) -> list[Verdict]:
    """What every gate says."""
    return [gate(figures, gates) for gate in GATES]


@dataclass(frozen=True)
class Gates:
    """What a challenger must do; a share that is not exceeded, unless it says otherwise."""

    # Standard errors by which the paired difference of losses must be away from zero to count.
    significance: NonNegative = 2.0
    loss: NonNegative = 0.0  # how much worse the mean loss may be beyond that, in nats
    class_error: NonNegative = 0.1  # how much the error of a class may rise, beyond two standard errors
    class_rows: FromOne = 50  # held-out rows below which a class is not judged by itself
    # Largest mean distance between probabilities and shares of right answers, beyond what the number of rows explains.
    # By default a first version may have any, and a later one that of the champion, or 0.1.
    calibration: NonNegative | None = None
    rows: NonNegative = 0.5  # least number of training rows, as a share of the champion's
    size: NonNegative = 4.0  # most features in use, as a multiple of the champion's
    # Largest population stability index of the labels, and of the terms, beyond what the number of rows explains.
    label_drift: NonNegative = 0.25
    feature_drift: NonNegative = 0.25


# The keys of the table [retrain].
KEYS: dict[str, Any] = {
    "run": Text | None,
    "home": Text,
    "begin": Literal["champion", "nothing"] | None,
    "keep": FromOne | None,
}


@dataclass(frozen=True)
class Retraining:
    """A checked file, with its paths from the root."""

    run: Path  # the run file of a challenger; both models are judged on the raw documents of its data.test
    home: Path  # the folder of versions, decisions and the pointer to the champion
    # Where the fit of a challenger begins (default: at the champion, where such a fit can begin with a model).
    begin: str | None = None
    # How many of the latest versions stay, beside the champion and the one before it (default: all).
    keep: int | None = None
    gates: Gates = field(default_factory=Gates)
    file: Path | None = None  # that it was read from; None for tables that Python gave

    def refuse_reaching(self) -> None:
        """Refuse a file that names what needs consent (``trust``), or whose run file does."""
        if self.file is not None:
            trust.refuse({"home": str(self.home)}, self.file.parent, file=str(self.file), where="retrain.")
        if self.run.is_file():
            read_run_file(self.run).refuse_reaching()


def read_retraining(path: str) -> Retraining:
    """Read and check a file with the tables [retrain] and [gates]; paths are relative to its folder."""
    return checked(read_toml(path, "retrain file"), local_path(path).resolve().parent, path)


def checked(tables: Mapping[str, Any], folder: Path, file: str | None = None) -> Retraining:
    """Check the tables of a retraining; paths are relative to `folder`."""
    known = {"retrain": KEYS, "gates": hints(Gates)}
    given = read_tables(tables, known, file)
    table, gates = (read_keys(keys, given.get(name, {}), file, table=name) for name, keys in known.items())
    if table.get("run") is None:
        raise UsageError("retrain.run is missing: name the run file that makes a challenger", file=file)
    for name in ("run", "home"):
        table[name] = (folder / local_path(table.get(name, "retraining"), f"retrain.{name}")).resolve()
    return Retraining(**table, gates=Gates(**gates), file=None if file is None else local_path(file).resolve())
