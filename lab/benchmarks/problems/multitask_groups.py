"""Many labels a row, one logistic loss each, rows of W vanish as a whole."""

from __future__ import annotations

from lab.benchmarks.problems.base import Kind

KIND = Kind(
    "multitask-groups", "multitask, l1/l2 and l1/linf", ("bibtex", "delicious"), ("l1/l2", "l1/linf"), goal=15.0
)
