"""Many classes, one softmax, entries of W vanish one by one."""

from __future__ import annotations

from lab.benchmarks.problems.base import Kind

DATA = ("stackoverflow20k", "arxiv-archives", "mnist", "arxiv-categories")
KIND = Kind("multinomial-l1", "multinomial, l1", DATA, ("l1",), goal=8.0)
