"""How large the sums of a pass are, and whether tasks merge them before the driver gets them.

Covers: ``SumSizes``. Does not cover: the tasks that merge (``pass_tasks``).
"""

from __future__ import annotations

TREE_BYTES = 8 * 2**20
"""Sums of all bundles that are together larger than this reach the driver through a tree of tasks."""

TREE_WORKERS = 64
"""How large the sums of a pass are is known once there was a pass of its name. Before, they are merged by a tree where
there are more bundles than this: of sums as large as W the driver would get one from each of a thousand workers."""


class SumSizes:
    """Bytes of the sums that one task gives, by name of the pass."""

    def __init__(self) -> None:
        self._bytes: dict[str, int] = {}

    def note(self, name: str, nbytes: int, results: int) -> None:
        """A pass gave so many bytes in so many results.

        What one result takes is the same with and without a tree. What arrives in all is less with one: if that were
        noted, every other pass would go without.
        """
        self._bytes[name] = nbytes // max(1, results)

    def by_tree(self, name: str, bundles: int) -> bool:
        """Whether the sums of so many bundles are merged by tasks."""
        size = self._bytes.get(name)
        return bundles > TREE_WORKERS if size is None else size * bundles > TREE_BYTES
