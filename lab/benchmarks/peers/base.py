"""What a peer is: a declaration of what it can solve, and the functions that make it solve it.

Covers: ``Task``, ``Answer``, ``Peer``, ladders of settings, the small problem on which a peer compiles.
Does not cover: any one peer (one file each beside this one), processes (``..process``), time limits (``..measure``).

The files of this package are read twice: by ``python -m lab bench``, which wants the declarations only, and inside the
peer's own environment, which has NumPy and SciPy and the peer but need not have this project. They import nothing of
the project but one another, and a peer's own package inside functions only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

L1_RATIO = 0.5
"""Share of the l1 norm in ``l1/l2+l1`` and ``elastic_net``."""
# Penalties of entries by their share of the l1 norm, the rest being half of the square, as scikit-learn writes them.
MIXES = {"l1": 1.0, "elastic_net": L1_RATIO, "l2_squared": 0.0}
Rung = dict[str, Any]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Task:
    """One problem: minimise mean_i loss_i(x_i W + b) + alpha sum_j omega(W_j)."""

    X: Any
    # -1/+1 (m,), codes 0..k-1 (m,), or -1/+1 (m, k), as the loss asks.
    y: Any
    loss: str
    penalty: str
    # Strength on the mean loss, and the smallest at which W = 0 is optimal.
    alpha: float
    alpha_max: float
    # How many it may use.
    threads: int = 2
    # Whether b is free; else it is zero.
    intercept: bool = False

    @property
    def n_outputs(self) -> int:
        """Columns of W."""
        if self.loss == "multinomial":
            return int(self.y.max()) + 1
        return 1 if self.loss == "log" else int(self.y.shape[1])

    def falling(self, factor: float = 0.5) -> list[float]:
        """Strengths from alpha_max down to alpha, none less than `factor` of the one before."""
        steps = max(1, math.ceil(math.log(self.alpha_max / self.alpha) / -math.log(factor)))
        return [float(a) for a in np.geomspace(self.alpha_max, self.alpha, steps + 1)]


@dataclass(frozen=True)
class Answer:
    """What a solver returned."""

    W: Any
    b: Any
    # What else it says of its run, as plain values.
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Peer:
    """A program that solves some of the problems."""

    name: str
    # The distribution whose version is reported, and what is imported to see whether it is there.
    package: str
    module: str
    # The objectives without an intercept in which it is compared by its time, each as it is written in `Task`.
    solves: tuple[Pair, ...]
    # What `prepare` does, in words for the page.
    layout: str
    # Settings from coarse to fine. Each is a whole run of its own; the curve is read from all of them. None for a
    # problem that it is not made for.
    ladder: Callable[[Task], Sequence[Rung]]
    # The data in the peer's favourite layout. Its seconds count as part of every fit, as our own layout does.
    prepare: Callable[[Task], Any]
    # Timed. Converts what a user would have to convert, solves, returns an `Answer`.
    solve: Callable[[Any, Task, Rung], Answer]
    # Solve a falling sequence of strengths with what the peer offers for it; returns a list of `Answer`.
    path: Callable[[Any, Task, Sequence[float], Rung], list[Answer]] | None = None
    # Which interpreter has it.
    environment: str = "peers"
    # Whether `prepare` loads a cluster, which no fit is charged with.
    loads: bool = False
    # How many rungs of the ladder are run on a small problem before any run is timed.
    warm: int = 3
    # What a reader of its line must know.
    note: str = ""
    # Its version, where that is not the one of `package`.
    version: Callable[[], str] | None = None


def doubling(name: str, first: int, last: int, **fixed: Any) -> list[Rung]:
    """Rungs with `name` = first, 2 first, 4 first ... up to last."""
    return [{name: first << i, **fixed} for i in range(int(math.log2(last / first)) + 1)]


def tightening(name: str, first: int, last: int, per_decade: int = 2, **fixed: Any) -> list[Rung]:
    """Rungs with `name` = 10**first ... 10**last (first > last), `per_decade` of them in each factor of ten."""
    count = (first - last) * per_decade
    return [{name: 10.0 ** (first - i / per_decade), **fixed} for i in range(count + 1)]


def same(task: Task) -> Any:
    """The data as it lies in memory: CSR, or a C-contiguous array."""
    return task.X


def by_column(task: Task) -> Any:
    """The data as CSC, or as a Fortran-contiguous array."""
    return task.X.tocsc() if hasattr(task.X, "tocsc") else np.asfortranarray(task.X)


def answered(W: Any, b: Any = 0.0, **facts: Any) -> Answer:
    """An answer; W may be (k, n) turned by the caller, or (n,)."""
    W = np.asarray(W, dtype=np.float64)
    W = W.reshape(-1, 1) if W.ndim == 1 else W
    return Answer(W, np.broadcast_to(np.asarray(b, dtype=np.float64).ravel(), W.shape[1]).copy(), facts)


def small(task: Task, rows: int = 200) -> Task:
    """A small problem of the same kind, for compilation: some rows, all columns and outputs, every label of each."""
    order = np.random.default_rng(0).permutation(task.X.shape[0])
    labels = task.y[order].reshape(order.shape[0], -1)
    first = [np.unique(column, return_index=True)[1] for column in labels.T]
    chosen = np.unique(np.concatenate([order[:rows], *(order[places] for places in first)]))
    return replace(task, X=task.X[chosen], y=task.y[chosen], alpha=0.5 * task.alpha_max)
