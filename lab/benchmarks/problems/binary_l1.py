"""Two classes, l1: where liblinear is at home."""

from __future__ import annotations

from lab.benchmarks.problems.base import Kind

KIND = Kind("binary-l1", "binary, l1", ("imdb", "reuters-lasvm", "a9a", "w8a"), ("l1",), goal=2.0)
