"""Problems as they are measured: those of one data set and penalty together, the data on disk for other processes.

Covers: loading a data set once for all its problems, its canonical form, the largest strength.
Does not cover: which problems (``problems``), measuring (``against``, ``baseline.turns``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from lab.benchmarks.problems import Problem
from lab.benchmarks.sets import SETS
from lab.oracle import plain
from lab.oracle.peers import store
from lab.oracle.problems import Encoded


@dataclass(frozen=True)
class Group:
    """All strengths that are asked for of one data set and penalty.

    Parameters
    ----------
    problems : tuple of Problem
    data : Encoded
    penalty : str
    folder : path
        Where X and y are stored; also the place for what processes write.
    """

    problems: tuple[Problem, ...]
    data: Encoded
    penalty: str
    folder: Path

    def opening(self, threads: int) -> dict[str, Any]:
        """What a worker is told when it opens the problem; its ``alpha_max`` is the least strength at which W = 0."""
        high = plain.alpha_max(self.data.X, self.data.y, self.penalty, self.data.loss, False)
        return {"loss": self.data.loss, "penalty": self.penalty, "alpha_max": high, "threads": threads}


def laid_out(problems: Iterable[Problem], scratch: Path, twins: bool) -> Iterator[Group]:
    """The groups in the order of `problems`, each stored in a folder of `scratch` before it is yielded.

    Parameters
    ----------
    problems : iterable of Problem
        Those of one data set follow on one another, and of them those of one penalty.
    scratch : path
    twins : bool
        The tiny synthetic twin of each data set in its place.
    """
    for name, of_set in groupby(problems, key=lambda problem: problem.data):
        data = SETS[name].twin() if twins else SETS[name].load()
        if hasattr(data.X, "sort_indices"):
            # A vectoriser leaves the columns of a row in any order; everyone gets the canonical form.
            data.X.sort_indices()
        folder = scratch / name
        store(folder, data.X, data.y)
        for (_, penalty), group in groupby(of_set, key=lambda problem: problem.group):
            yield Group(tuple(group), data, penalty, folder)
