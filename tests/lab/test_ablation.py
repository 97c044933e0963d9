"""What an accelerator is worth: the table, and measurements on made-up data."""

from __future__ import annotations

import pytest

from dboost.problem.accelerators import ACCELERATORS
from lab import ablation
from lab.benchmarks.problems import SETS


@pytest.mark.full
@pytest.mark.parametrize("strengths", [1, 3])
def test_the_fits_without_an_accelerator_end_at_the_same_optimum(strengths: int) -> None:
    case = ablation.Case("stackoverflow20k", "l1/l2", 0.1, True, strengths)
    found = list(ablation.compared(SETS[case.data].twin(), case, 1e-6, 1))
    assert len(found) >= 3 and all(one.agrees and one.ratio > 0.0 for one in found)
    names = {one.name for one in found}
    assert names <= set(ACCELERATORS)
    assert ("path_predictor" in names) == (strengths > 1)


def test_every_problem_is_of_a_set_that_there_is() -> None:
    cases = ablation.cases()
    assert {case.data for case in cases} == set(SETS) and len({case.name for case in cases}) == len(cases)


def test_a_problem_where_it_was_not_taken_counts_as_no_difference() -> None:
    first, second, third = "null_sums", "near_rows", "one_output"
    worths = [
        ablation.Worth(first, "a", 1.21, True),
        ablation.Worth(second, "b", 1.01, True),
        ablation.Worth(third, "b", 1.5, False),
    ]
    rows = {row["accelerator"]: row for row in ablation.lines(worths, 2)}
    assert abs(rows[first]["overall"] - 1.1) < 1e-12 and rows[first]["verdict"] == "stays"
    assert rows[second]["verdict"] == "worth little"
    assert rows[third]["verdict"] == "another optimum on b"
    assert rows["strong_rule"]["verdict"] == "not taken here"
    assert list(rows) == list(ACCELERATORS)
