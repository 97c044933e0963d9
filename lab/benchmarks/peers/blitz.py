"""Blitz (Johnson & Guestrin 2015): working sets by the distance of the dual constraints, binary l1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import Answer, Peer, Rung, Task, answered, by_column, tightening


def prepare(task: Task) -> Any:
    """Its own copy of the columns, and the labels as numbers."""
    import blitzl1

    # its release compares types of numbers with types of pointers, which NumPy no longer does; the types here are right
    blitzl1._blitzl1.data_as = lambda numbers, pointer: (numbers, numbers.ctypes.data_as(pointer))
    return blitzl1.LogRegProblem(by_column(task), np.where(task.y > 0, 1.0, -1.0))


def _solved(problem: Any, task: Task, alpha: float, rung: Rung, start: Any) -> Any:
    """One strength on the sum of the losses, from the weights of another one."""
    import blitzl1

    blitzl1.set_use_intercept(task.intercept)
    blitzl1.set_tolerance(rung["tol"])
    first = {} if start is None else {"initial_x": start.x.copy(), "initial_intercept": start.intercept}
    return problem.solve(alpha * task.X.shape[0], **first)


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """sum_i loss_i + lambda |w|_1 from nothing; its tolerance is a relative duality gap."""
    found = _solved(prepared, task, task.alpha, rung, None)
    return answered(found.x, found.intercept)


def path(prepared: Any, task: Task, alphas: Sequence[float], rung: Rung) -> list[Answer]:
    """Each strength from the weights of the one before."""
    answers, last = [], None
    for alpha in alphas:
        last = _solved(prepared, task, alpha, rung, last)
        answers.append(answered(last.x.copy(), last.intercept))
    return answers


PEER = Peer(
    name="blitz",
    package="blitzl1",
    module="blitzl1",
    solves=(("log", "l1"),),
    layout="CSC or Fortran-contiguous array, float64, in a copy of its own",
    ladder=lambda task: tightening("tol", -1, -10),
    prepare=prepare,
    solve=solve,
    path=path,
    note="one thread: it has no other",
)
