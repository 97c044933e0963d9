"""A kind of problems, and one problem of it.

Covers: ``Kind``, ``Problem``. Does not cover: data (``..sets``), peers (``..peers``), measuring.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lab.benchmarks.sets import SETS

RATIOS = (0.3, 0.1, 0.02)
"""Strengths, as shares of the smallest at which W = 0."""

_START = 0.1
"""Seconds that count for every problem: what any run costs beside the solver."""


@dataclass(frozen=True)
class Problem:
    """One data set, loss, penalty and strength; never an intercept.

    Parameters
    ----------
    kind : str
        Name of its kind.
    data : str
        Key of ``SETS``.
    penalty : str
    ratio : float
        alpha / alpha_max.
    goal : float
        That of its kind.
    """

    kind: str
    data: str
    penalty: str
    ratio: float
    goal: float

    @property
    def name(self) -> str:
        """As it is asked for and shown."""
        return f"{self.data} {self.penalty} {self.ratio:g}"

    @property
    def group(self) -> tuple[str, str]:
        """What problems share that differ in strength only."""
        return self.data, self.penalty

    @property
    def part(self) -> float:
        """How much time a peer gets for it beside the others: more where we take longer or are to be further ahead.

        In proportion to the goal, little would be left where several peers are almost as fast.
        """
        return float((SETS[self.data].SECONDS + _START) * self.ratio**-0.4 * self.goal**0.5)

    @property
    def loss(self) -> str:
        """Loss of its data set."""
        return str(SETS[self.data].LOSS)


@dataclass(frozen=True)
class Kind:
    """Problems whose ratios are averaged together.

    Parameters
    ----------
    name, title : str
    data, penalties : tuple of str
    goal : float
        The geometric mean of the ratios to the fastest peer that is aimed at.
    ratios : tuple of float
    """

    name: str
    title: str
    data: tuple[str, ...]
    penalties: tuple[str, ...]
    goal: float
    ratios: tuple[float, ...] = RATIOS

    def problems(self) -> Iterator[Problem]:
        """All problems, those of one data set and penalty together."""
        for data in self.data:
            for penalty in self.penalties:
                for ratio in self.ratios:
                    yield Problem(self.name, data, penalty, ratio, self.goal)
