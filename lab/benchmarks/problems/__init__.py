"""The problems of the benchmarks, one file a kind."""

from __future__ import annotations

from lab.benchmarks.problems import binary_l1, multinomial_groups, multinomial_l1, multitask_groups
from lab.benchmarks.problems.base import Kind, Problem

KINDS: dict[str, Kind] = {
    module.KIND.name: module.KIND for module in (binary_l1, multinomial_l1, multinomial_groups, multitask_groups)
}


def all_problems() -> list[Problem]:
    """Every problem, those of one data set and penalty together."""
    return [problem for kind in KINDS.values() for problem in kind.problems()]


def chosen(words: tuple[str, ...]) -> list[Problem]:
    """Problems whose kind is one of the words, or whose name contains one; all of them for no words."""
    return [p for p in all_problems() if not words or any(word == p.kind or word in p.name for word in words)]


__all__ = ["KINDS", "Kind", "Problem", "all_problems", "chosen"]
