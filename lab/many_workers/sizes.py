"""The problem that is asked about, and the same a thousand times smaller, which is what runs.

Covers: ``Question``, and the engine's limits in bytes made smaller by the same number (``smaller_limits``).
Does not cover: how long the work of a partition takes (``recorded``).

Sums of 1,000,000 features in 100 classes are 800 MB, and 1,024 workers of them 800 GB. So all that has a row for each
feature, or for each row of W, has a thousandth of its rows here, and every limit in bytes by which the engine decides
how a pass is cut, sent and merged is a thousandth too: the tasks of a pass, where they run and what they depend on are
then those of the full size. Bytes are multiplied again by whoever counts them (``Question.full_bytes``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest import mock

SMALLER = 1000
"""How many times fewer features and rows of W the simulation has."""

LIMITS = (
    "dboost.engine.dask.spent_results.SPENT_BYTES",
    "dboost.engine.dask.submission.HOLD_BYTES",
    "dboost.engine.dask.sum_sizes.TREE_BYTES",
    "dboost.problem.shards._SHARD_BYTES",
    "dboost.problem.stored._DRIVER_BYTES",
)
"""The limits in bytes of what a pass sends and sums. What describes a plan is as large as ever, and so is its limit."""


@dataclass(frozen=True)
class Question:
    """The size of a fit.

    Parameters
    ----------
    documents, features, classes : int
    stored : int
        Features of a document that are not zero.
    active : int
        Rows of W that are not zero.
    """

    documents: int = 10**8
    features: int = 10**6
    classes: int = 100
    stored: int = 100
    active: int = 10**4

    @property
    def few_features(self) -> int:
        """Features in the simulation."""
        return self.features // SMALLER

    @property
    def few_active(self) -> int:
        """Rows of W in the simulation."""
        return self.active // SMALLER

    def full_bytes(self, nbytes: int) -> int:
        """Bytes of a result, or of what is sent, at the full size; `nbytes` are those in the simulation.

        What has one number for each class, and what wraps it, has no fewer of them in the simulation.
        """
        fixed = 8 * self.classes + 300
        return nbytes if nbytes <= fixed else fixed + SMALLER * (nbytes - fixed)


@contextmanager
def smaller_limits() -> Iterator[None]:
    """Make the engine's limits in bytes smaller in this process, the driver's, which decides by them."""
    with ExitStack() as stack:
        for name in LIMITS:
            module, _, limit = name.rpartition(".")
            held = getattr(__import__(module, fromlist=[limit]), limit)
            stack.enter_context(mock.patch(name, held // SMALLER))
        yield
