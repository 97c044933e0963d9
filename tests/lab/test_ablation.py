"""What an accelerator is worth: the table, and one measurement on made-up data."""

from __future__ import annotations

from dboost.problem.accelerators import ACCELERATORS
from lab import ablation
from lab.benchmarks.problems import KINDS
from lab.benchmarks.sets import SETS


def test_the_fits_without_an_accelerator_end_at_the_same_optimum() -> None:
    problem = next(problem for problem in KINDS["multinomial-groups"].problems() if problem.ratio == 0.1)
    found = list(ablation.compared(SETS[problem.data].twin(), problem, True, 1e-6, 1))
    assert len(found) >= 3 and all(one.agrees and one.ratio > 0.0 for one in found)
    assert {one.name for one in found} <= set(ACCELERATORS)


def test_a_problem_where_it_was_not_taken_counts_as_no_difference() -> None:
    worths = [
        ablation.Worth("gram", "a", 1.21, True),
        ablation.Worth("ray_value", "b", 1.01, True),
        ablation.Worth("one_output", "b", 1.5, False),
    ]
    rows = {row["accelerator"]: row for row in ablation.lines(worths, 2)}
    assert abs(rows["gram"]["overall"] - 1.1) < 1e-12 and rows["gram"]["verdict"] == "stays"
    assert rows["ray_value"]["verdict"] == "worth little"
    assert rows["one_output"]["verdict"] == "another optimum on b"
    assert rows["null_sums"]["verdict"] == "not taken here"
    assert list(rows) == list(ACCELERATORS)
