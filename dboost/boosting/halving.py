"""Successive halving: candidates judged on a few rows first, the best of them on more, until a rung has all rows.

Covers: the rungs, and a cross-validation of some candidates within one rung over any engine. Does not cover: what a
candidate is (``dboost.estimators.halving``), the rows of a rung (``dboost.passes.subsamples``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dboost.boosting.cross_validation import FoldPaths
from dboost.boosting.fold_scores import FoldScores
from dboost.boosting.planned import Planned
from dboost.engine.base import Engine
from dboost.passes import subsamples
from dboost.passes.folds import Folds
from dboost.passes.subsamples import Subsample
from dboost.problem.state import FitSettings


@dataclass(frozen=True)
class Rung:
    """One round of halving."""

    share: float  # Of the rows.
    candidates: int  # How many are judged.


def rungs(candidates: int, factor: float, n_rows: int, min_rows: int) -> list[Rung]:
    """The rounds, the one of fewest rows first; the last has all rows and at most `factor` candidates.

    From each to the next the rows become `factor` times as many, and the candidates as many times fewer (Jamieson &
    Talwalkar 2016). Where the first would have fewer than `min_rows` rows, there are fewer rounds, and the first has
    more candidates for its rows.

    Examples
    --------
    >>> [(round(rung.share, 3), rung.candidates) for rung in rungs(9, 3.0, 90_000, 1000)]
    [(0.111, 9), (0.333, 3), (1.0, 1)]
    """
    wanted = 1 + math.floor(math.log(max(candidates, 1)) / math.log(factor) + 1e-9)
    affordable = 1 + math.floor(math.log(max(n_rows / min_rows, 1.0)) / math.log(factor) + 1e-9)
    count = min(wanted, affordable)
    left, found = candidates, []
    for number in range(count):
        found.append(Rung(factor ** (number + 1 - count), left))
        left = kept(left, factor)
    return found


def kept(candidates: int, factor: float) -> int:
    """How many of some candidates go on."""
    return max(1, math.ceil(candidates / factor - 1e-9))


def judged(
    plan: Planned, engine: Engine, settings: FitSettings, alphas: Sequence[float], some: Subsample, cv: int, tol: float
) -> tuple[FoldScores, int]:
    """Fit a path to a subsample without each of `cv` folds, judged on that fold; and the rows of the subsample."""
    seen = engine if some.share >= 1.0 else engine.through(some, f"{100 * some.share:.3g} % of the rows")
    rows = int(seen.map_reduce(subsamples.count_rows, name="rows").add["rows"])
    paths = FoldPaths.of(plan, seen, replace(settings, tol=tol), Folds(cv, settings.random_state))
    return paths.judged(list(alphas)), rows
