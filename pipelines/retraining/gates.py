"""What a challenger must do to be promoted; a new gate is one function and one line.

Covers: the gates. Does not cover: how their figures are found (``judge``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .config import Gates
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


def as_values(found: list[Verdict]) -> list[dict[str, Any]]:
    """The verdicts as plain values."""
    return [dict(vars(one)) for one in found]
