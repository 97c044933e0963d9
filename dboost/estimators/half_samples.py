"""What stability selection asks of an estimator, and what the supports of half samples come to.

Covers: the fits whose rows of weights are zero one by one, the strengths, the features that may be used, frequencies.
Does not cover: the half samples and their fits (``dboost.boosting.stability``), what is selected (``stability``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.checks import check_settings
from dboost.boosting.fit import FitSettings
from dboost.boosting.stability import HalfFits
from dboost.errors import UsageError
from dboost.estimators.fitting import Prepared
from dboost.penalties import get_penalty
from dboost.problem.offset_columns import offset_columns


@dataclass(frozen=True)
class Found:
    """What the supports of half samples come to; see the attributes of ``StabilitySelection``."""

    alphas: NDArray[np.float64]  # (T,)
    frequencies: NDArray[np.float64]  # (T, n)
    chosen: NDArray[np.float64]  # (T,): Mean number of features that a half uses at one of the strengths so far
    gaps: NDArray[np.float64]  # (n_pairs, 2, T)
    n_pairs: int


def check_rows(settings: FitSettings) -> None:
    """Refuse what leaves no single feature out."""
    penalty = get_penalty(settings.penalty)
    if not (penalty.threshold and penalty.separable):
        raise UsageError(
            f"penalty {penalty.name!r} leaves no single feature out",
            hint="use another, such as 'l1', 'l1/l2' or 'l1/linf'",
        )
    if settings.hypotheses is not None:
        raise UsageError(
            "hypotheses= of the estimator: each half sample induces others, which cannot come again",
            hint="use an estimator of the raw columns",
        )
    if settings.penalty_factors is not None and settings.penalty_factors.frees:
        raise UsageError(
            "penalty_factors of the estimator is 0 for a feature, which every model then has: that it comes again says "
            "nothing",
            hint="give it a small factor such as 1e-3, or leave it to be chosen",
        )


def strengths_of(settings: FitSettings, alphas: Sequence[float] | None) -> Sequence[float] | None:
    """The strengths; None where they begin at the least that uses no feature."""
    if alphas is None:
        return None if settings.alpha == "auto" else [float(settings.alpha)]
    for alpha in alphas:
        check_settings(replace(settings, alpha=alpha))
    return alphas


def candidates_of(parts: Prepared) -> int:
    """How many features may be used at all: not those of an infinite factor, nor those that are offsets."""
    plan, settings = parts.plan, parts.settings
    free = np.ones(plan.n_features, dtype=np.bool_)
    if settings.penalty_factors is not None:
        free &= np.isfinite(settings.penalty_factors.of_columns(plan.n_features, plan.feature_names))
    if settings.offset is not None:
        free[offset_columns(settings.offset, plan.n_features, plan.feature_names, plan.n_outputs)] = False
    return max(1, int(free.sum()))


def found_of(ended: Sequence[HalfFits], n: int) -> Found | None:
    """What the halves that have ended come to, of the pairs both of whose halves have; None if there is none."""
    by_place = {(one.pair, one.half): one for one in ended}
    pairs = sorted(pair for pair, half in by_place if half == 0 and (pair, 1) in by_place)
    if not pairs:
        return None
    fits = [by_place[pair, half] for pair in pairs for half in (0, 1)]
    counts = np.zeros((len(fits[0].alphas), n), dtype=np.int64)
    chosen = np.zeros((len(fits), len(counts)), dtype=np.int64)
    for place, one in enumerate(fits):
        seen = np.zeros(n, dtype=np.bool_)
        for t, support in enumerate(one.supports):
            counts[t, support] += 1
            seen[support] = True
            chosen[place, t] = np.count_nonzero(seen)
    gaps = np.array([one.gaps for one in fits]).reshape(len(pairs), 2, -1)
    return Found(fits[0].alphas, counts / len(fits), chosen.mean(axis=0), gaps, len(pairs))
