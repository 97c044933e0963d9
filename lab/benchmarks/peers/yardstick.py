"""A fixed piece of work that has nothing of dboost: how fast the machine is just now, for figures of different days.

It is what a fit does, in NumPy, SciPy and scikit-learn: products of a sparse matrix with several columns, exponentials,
the product back, and coordinates or examples visited one by one. Every thread that a solver may use does it once at
the same time, so that other work on the machine slows it down as it slows down a fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Answer, Peer, Rung, Task

ROWS, COLUMNS, VALUES, OUTPUTS = 8000, 4000, 40, 8
STEPS, EPOCHS = 20, 5
"""Steps over all rows and visits of each example; about a fifth of a second together on the processors of 2026."""


def prepare(task: Task) -> Any:
    """The data of the work, which are the same everywhere; those of the problem are not looked at."""
    import scipy.sparse

    rng = np.random.default_rng(20091115)
    at = np.sort(rng.integers(0, COLUMNS, (ROWS, VALUES)), axis=1).ravel()
    X = scipy.sparse.csr_matrix((rng.random(at.size), at, np.arange(ROWS + 1) * VALUES), shape=(ROWS, COLUMNS))
    X.sum_duplicates()
    return X, rng.integers(0, OUTPUTS, ROWS)


def work(X: Any, labels: Any) -> Any:
    """Steps down the gradient of a multinomial log-loss, then the examples one by one; returns the weights."""
    from sklearn.linear_model import SGDClassifier

    W = np.zeros((COLUMNS, OUTPUTS))
    wanted = np.eye(OUTPUTS)[labels]
    back = X.T.tocsr()
    for _ in range(STEPS):
        margins = X @ W
        weights = np.exp(margins - margins.max(axis=1, keepdims=True))
        W -= back @ (weights / weights.sum(axis=1, keepdims=True) - wanted) / ROWS
    one_by_one = SGDClassifier(loss="log_loss", max_iter=EPOCHS, tol=None, random_state=0).fit(X, labels > 0)
    return np.column_stack([W, one_by_one.coef_[0]])


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """The work in as many threads as the task may use."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(task.threads) as pool:
        found = list(pool.map(lambda _: work(*prepared), range(task.threads)))
    return Answer(found[0], np.zeros(OUTPUTS + 1))


PEER = Peer(
    name="yardstick",
    package="scikit-learn",
    module="sklearn",
    solves=(),
    layout="data of its own, made before the clock starts",
    ladder=lambda task: [{}],
    prepare=prepare,
    solve=solve,
    environment="own",
    loads=True,
    warm=1,
)
