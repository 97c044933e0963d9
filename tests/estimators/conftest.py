"""Data shared by the tests of the estimators."""

from __future__ import annotations

import numpy as np
import pytest


def blobs(k=3, m=150, n=12, seed=0):
    """Rows whose class shows in two columns each, the rest being noise; some zeros."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, m)
    X = rng.normal(size=(m, n))
    for c in range(k):
        X[y == c, c] += 2.0
        X[y == c, k + c] -= 1.0
    X[rng.random((m, n)) < 0.3] = 0.0
    return X, y


class Killed(BaseException):
    """As a signal: nothing in a fit may catch it."""


def after(rounds, error=Killed):
    """A callback that breaks off after so many rounds."""
    seen = []

    def callback(record):
        seen.append(record)
        if len(seen) == rounds:
            raise error

    return callback


@pytest.fixture
def multiclass():
    X, y = blobs()
    return X, np.array(["ant", "bee", "cat"])[y]


@pytest.fixture
def binary():
    X, y = blobs(k=2, seed=1)
    return X, y


@pytest.fixture
def tasks():
    X, y = blobs(k=3, seed=2)
    rng = np.random.default_rng(3)
    Y = np.stack([y == 0, X[:, 1] > 0, X[:, 4] + 0.3 * rng.normal(size=len(y)) > 0], axis=1).astype(float)
    Y[rng.random(Y.shape) < 0.2] = np.nan
    return X, Y


@pytest.fixture(scope="session")
def client(one_worker):
    """A client of one worker inside this process."""
    return one_worker
