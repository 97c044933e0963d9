"""A path of models of falling strengths, each from the ones before (docs/math.md 8 (iv))."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dboost.boosting.checks import check_settings
from dboost.boosting.fit import Callback, Fitting, warn_if_dropped, warn_if_open
from dboost.boosting.grid import strengths
from dboost.boosting.planned import Planned
from dboost.boosting.progress import Nothing, PathKeeper, along
from dboost.engine.base import Engine
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
