"""Many classes, one softmax, rows of W vanish as a whole."""

from __future__ import annotations

from lab.benchmarks.problems.base import Kind
from lab.benchmarks.problems.multinomial_l1 import DATA

KIND = Kind("multinomial-groups", "multinomial, l1/l2 and l1/linf", DATA, ("l1/l2", "l1/linf"), goal=15.0)
