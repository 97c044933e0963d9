"""Cross-validation along a path: every strength, fitted without each fold in turn and judged on it.

Covers: the fits of all folds over one engine and one plan, their starts, and what they make of the held-out rows.
Does not cover: which strength is chosen (``dboost.estimators.cv``) or the folds themselves (``dboost.folding``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost import folding
from dboost.boosting.fit import Fitting
from dboost.boosting.state import FitResult, FitSettings
from dboost.errors import DataError
from dboost.folding import Folds, Left

Array = NDArray[np.float64]


class LeftEngine:
    """An engine that sees the partitions of another without the rows of one fold.

    Parameters
    ----------
    engine : Engine
        Its plan is set.
    left : Left
        What is left.
    """

    def __init__(self, engine: Any, left: Left) -> None:
        self._engine = engine
        self.left = left

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def set_plan(self, items: Sequence[Any], rows: Sequence[int], run_id: str) -> None:
        """The plan of the other engine stays: all folds share its partitions."""

    def map_reduce(self, leaf: Any, *args: Any, shards: Sequence[Any] | None = None, **kwargs: Any) -> Any:
        """As ``Engine.map_reduce``."""
        if shards is None:
            return self._engine.map_reduce(folding.training, self.left, leaf, *args, **kwargs)
        return self._engine.map_reduce(folding.training_shard, self.left, leaf, *args, shards=shards, **kwargs)


def fold_path(fitting, alphas, full, mode):
    prev=None; out=[]
    for t,alpha in enumerate(alphas):
        if prev is None: start=None
        elif mode=='previous': start=prev
        elif mode=='full': start=full[t]
        else: start=predicted(full[t],full[t-1],prev)
        prev=fitting.fit(alpha,start); out.append(prev)
    return out

def predicted(now, before, mine):
    """now + (mine - before) on the rows"""
    active=np.union1d(np.union1d(now.active,mine.active),before.active)
    W=np.zeros((len(active),now.W.shape[1]))
    W[np.searchsorted(active,now.active)]+=now.W
    W[np.searchsorted(active,mine.active)]+=mine.W
    W[np.searchsorted(active,before.active)]-=before.W
    keep=np.zeros(len(active),bool)
    keep[np.searchsorted(active,now.active)]=True
    # rows that both held and now does not..
    m=np.isin(active,mine.active); b=np.isin(active,before.active); n=np.isin(active,now.active)
    keep=n|(m&~b)
    return replace(now,active=active[keep],W=W[keep],intercept=now.intercept+mine.intercept-before.intercept)
