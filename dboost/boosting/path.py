"""A path of models of falling strengths, each from the ones before (docs/math.md 8 (iv)); which strengths.

Covers: the grid, and the problems that have none. Does not cover: the fits along it (``progress``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.checks import check_settings
from dboost.boosting.fit import Callback, Fitting, warn_if_dropped, warn_if_open
from dboost.boosting.planned import Planned
from dboost.boosting.progress import Nothing, PathKeeper, along
from dboost.engine.base import Engine
from dboost.errors import DataError, UsageError
from dboost.problem.state import FitResult, FitSettings


def path(
    plan: Planned,
    engine: Engine,
    settings: FitSettings,
    alphas: Sequence[float] | None = None,
    n_alphas: int = 50,
    eps: float = 1e-2,
    callback: Callback | None = None,
    keeper: PathKeeper | None = None,
    after: Callable[[FitResult], None] | None = None,
) -> list[FitResult]:
    """Fit a decreasing sequence of strengths, each from the last (docs/math.md 8 (iv)).

    By default `n_alphas` values, geometric from alpha_max to `eps` alpha_max. `after` is called with each result that
    the keeper had not kept.
    """
    fitting = Fitting(plan, engine, settings)
    warn_if_dropped(fitting)
    chosen, given = strengths(fitting, alphas, n_alphas, eps, empty=True), alphas is not None

    def ended(result: FitResult) -> None:
        warn_if_open(result, replace(settings, alpha=result.alpha))
        if after is not None:
            after(result)

    return along(
        fitting,
        chosen.tolist(),
        Nothing() if keeper is None else keeper,
        callback,
        # a strength of zero that was found, and not given, is of labels that no feature says anything of
        before=lambda alpha: check_settings(replace(settings, alpha=alpha) if given or alpha > 0.0 else settings),
        after=ended,
    )


def strengths(
    fitting: Fitting, alphas: Sequence[float] | None, n_alphas: int, eps: float, *, empty: bool = False
) -> NDArray[np.float64]:
    """Falling strengths: those that are given, or a geometric grid from alpha_max to `eps` of it.

    Where no feature says anything of the labels, as of a target that does not vary, `empty` asks for the one strength
    0, whose model is the best constant, instead of a DataError; where signs alone keep features out, it is one all the
    same. A penalty that leaves W = 0 at no strength is a UsageError, unless they are given.
    """
    if alphas is not None:
        return np.sort(np.asarray(alphas, np.float64))[::-1]
    largest = fitting.alpha_max()
    if not math.isfinite(largest):
        raise UsageError(
            f"penalty {fitting.problem.penalty.name!r} has no strength at which every weight is zero, where a path "
            "could begin",
            hint="give alphas= for the strengths",
        )
    if not largest > 0.0:
        signs = fitting.settings.signs is not None and fitting.drawn()
        if empty and not signs:
            return np.zeros(1)
        raise DataError(
            "no feature says anything of the labels: alpha_max, the least strength that uses none, is 0",
            hint="check positive=, lower= and upper=: no feature may have the sign that it is drawn to"
            if signs
            else "check that features and labels vary",
        )
    return largest * np.geomspace(1.0, eps, n_alphas)
