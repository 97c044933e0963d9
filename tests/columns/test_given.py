"""What users say of single columns, by place, by name or for all: what is read, what is refused, and its old digests.

Covers: ``penalty_factors``, ``lower``, ``upper``, ``column_groups`` and ``offset`` as they are read, and the table of
columns that they become. Does not cover: the fits that have them.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dboost.columns.given import LOWER, PENALTY_FACTORS, UPPER, ColumnGroups, Features, Signs, given_offset
from dboost.columns.table import ColumnTable
from dboost.errors import UsageError

NAMES = ["a", "b", "c", "d"]
FOUR, UNNAMED = Features(4, NAMES), Features(4, None)
inf, nan = np.inf, np.nan


def table(features=FOUR, k=1, **asked):
    none = {"penalty_factors": None, "signs": None, "column_groups": None, "offset": None}
    return ColumnTable.of(SimpleNamespace(**(none | asked)), features, k)


def test_by_place_by_name_and_for_all_are_one():
    expected = [2.0, 1.0, 0.0, inf]
    named = {"d": inf, "a": 2, "c": np.float32(0)}
    for given in (expected, tuple(expected), np.array(expected), pd.Series(expected), named, pd.Series(named)):
        assert PENALTY_FACTORS.read(given).of_columns(FOUR).tolist() == expected
    # a series that is indexed by names is in no order of its own
    assert PENALTY_FACTORS.read(pd.Series([1.0, 2.0, 3.0, 4.0], index=list("dcba"))).of_columns(FOUR)[0] == 4.0
    for given in (0, [0, 0, 0, -0.0], dict.fromkeys(NAMES, 0)):
        assert Signs.given(lower=given).of_columns(FOUR).tolist() == [1, 1, 1, 1]
    assert UPPER.read({"b": 0}).of_columns(FOUR).tolist() == [inf, 0.0, inf, inf]
    by_name = ColumnGroups.given({"x": ["d", 1]})
    assert (
        by_name.of_columns(FOUR).tolist() == ColumnGroups.given([7, 3, 9, 3]).of_columns(FOUR).tolist() == [0, 1, 2, 1]
    )


NUMBERS = {
    "has 2 numbers, and the data has 4 features": [inf, inf],
    "names 'e', which is no feature of the data; did you mean": {"e": inf},
    "is nan for feature 1": [inf, nan, inf, inf],
    "is nan for 'b'": {"b": nan},
    "is True for feature 1": [inf, True, inf, inf],
    "is True for 'b'": {"b": True},
    "is None for feature 0": [None, inf, inf, inf],
    "is 'much' for 'b'": {"b": "much"},
    r"=\['1', '1', '1', '1'\]; expected": ["1"] * 4,
    "='abcd'; expected": "abcd",
    "=True; expected": True,
    r"=array\(\[\[": np.ones((2, 2)),
    r"=\[\[1\], \[1, 2\]\]; expected": [[1], [1, 2]],
    "names a feature 1.5; expected the name of a feature": {1.5: inf},
    "has feature 4, and the data has 4 features": {4: inf},
    "has 'a' twice; give it once": {"a": inf, 0: inf},
    "has 'a' twice in its index": pd.Series([inf, inf], index=["a", "a"]),
}
GROUPS = {
    "has 3 labels, and the data has 4 features": [0, 0, 1],
    "is -2 for feature 1": [0, -2, 1, 1],
    r"=\[0.0, 0, 1, 1\]; expected a whole number": [0.0, 0, 1, 1],
    r"=\[True, True": [True] * 4,
    r"=\[1, True": [1, True, 1, 2],
    "=3; expected": 3,
    "='a'; expected": "a",
    "names 'e' in the group 'x', which is no feature.*did you mean": {"x": ["a", "e"]},
    "has feature 'b' in the groups 'x' and 'y'": {"x": ["a", "b"], "y": ["b", "c"]},
    "has feature 0 in the groups 'x' and 'x'": {"x": ["a", 0]},
    r"is \[\] for the group 'x'": {"x": []},
    "is 'ab' for the group 'x'": {"x": "ab"},
    "has feature 4 in the group 'x', and the data has 4 features": {"x": [0, 4]},
    "has a feature -1 in the group 'x'": {"x": [0, -1]},
    "has a feature True in the group 'x'": {"x": [0, True]},
    "names a group 2": {2: ["a", "b"]},
}
OFFSETS = {
    r"has 1 column\(s\), and the model has 2 output": "a",
    "names 'e', which is no feature of the data; did you mean": ["a", "e"],
    r"=\['a', 'a'\] names a column twice": ["a", "a"],
    "names a column twice, by name and by place": ["a", 0],
    "is column 4, and the data has 4 columns": [0, 4],
    r"=\[\]; expected": [],
    "names a column 1.5": [1.5, 2],
    "names a column True": [True, 2],
    "=3.5; expected": 3.5,
}


READ = {
    "penalty_factors": lambda given: {"penalty_factors": PENALTY_FACTORS.read(given)},
    "lower": lambda given: {"signs": Signs.given(lower=given)},
    "upper": lambda given: {"signs": Signs.given(upper=given)},
    "column_groups": lambda given: {"column_groups": ColumnGroups.given(given)},
    "offset": lambda given: {"offset": given_offset(given)},
}


@pytest.mark.parametrize("parameter", READ)
def test_what_a_stranger_gets_wrong_is_named(parameter):
    """The parameter, what was found and what is expected, in one line."""
    for said, given in {"column_groups": GROUPS, "offset": OFFSETS}.get(parameter, NUMBERS).items():
        with pytest.raises(UsageError, match=f"^{parameter} ?{said}"):
            table(k=2, **READ[parameter](_negated(given) if parameter == "lower" else given))
    by_name = {"column_groups": {"x": ["a", "b"]}, "offset": ["a", "b"]}.get(parameter, {"a": 0.0})
    with pytest.raises(UsageError, match=f"^{parameter} has the feature 'a' by name.*have no names; give it by place"):
        table(UNNAMED, 2, **READ[parameter](by_name))


def _negated(given):
    """The bound that is none, of the other side."""
    if isinstance(given, dict):
        return {name: -one if one is inf else one for name, one in given.items()}
    if isinstance(given, pd.Series):
        return -given
    return [-one if one is inf else one for one in given] if isinstance(given, list) else given


def test_numbers_that_a_parameter_does_not_take_are_refused_with_those_it_does():
    for read, given, said in (
        (PENALTY_FACTORS.read, -1.0, "penalty_factors=-1.0; expected a number from 0 on for each feature"),
        (PENALTY_FACTORS.read, [1.0, -1.0], "penalty_factors is -1.0 for feature 1; expected a number from 0 on"),
        (LOWER.read, -1.0, "lower is -1.0 for every feature; expected 0 or -inf.*bounds="),
        (UPPER.read, {"a": 2.0}, "upper is 2.0 for 'a'; expected 0 or inf"),
        (lambda given: Signs.given(positive=given), 1, "positive=1; expected True or False"),
        (lambda given: Signs.given(positive=True, upper=given), 0, "positive=True is lower=0 for every feature"),
        (lambda given: table(signs=Signs.given(lower=0, upper=given)), {"b": 0.0}, "both 0 for 'b'"),
        (lambda given: table(penalty_factors=PENALTY_FACTORS.read(given)), [inf] * 4, "leaves every feature out"),
        (lambda given: table(k=4, offset=given_offset(given)), NAMES, "no feature is left"),
    ):
        with pytest.raises(UsageError, match=said):
            read(given)


def test_a_table_has_a_row_for_each_column():
    asked = {
        "penalty_factors": PENALTY_FACTORS.read({"a": 0.0, "b": inf, "d": 2.0}),
        "signs": Signs.given(lower={"c": 0.0}),
        "offset": given_offset(-1),
    }
    found = table(**asked)
    assert found.weight.tolist() == [0.0, inf, 1.0, inf] and found.sign.tolist() == [0, 0, 1, 0]
    assert found.free.tolist() == [0] and found.offset.tolist() == [3] and found.group is None
    assert found.candidates.tolist() == [True, False, True, False] and found.charged and table().charged
    assert not table(penalty_factors=PENALTY_FACTORS.read([0.0, inf, 0.0, 0.0])).charged
    # what asks nothing changes no bit
    assert table(signs=Signs.given(lower=-inf)).sign is None
    assert table(column_groups=ColumnGroups.given(range(4))).group is None


def test_digests_are_those_that_checkpoints_of_earlier_versions_hold():
    held = {
        PENALTY_FACTORS.read([0.5, 2.0]).digest(): "20ba81",
        PENALTY_FACTORS.read({"b": 0.5, "a": 2.0}).digest(): "2a36eb",
        Signs.given(positive=True).digest(): "802093",
        Signs.given(lower={"a": 0.0}, upper=[0.0, inf]).digest(): "2c18af",
        ColumnGroups.given([3, 3, 1]).digest(): "2dab30",
        ColumnGroups.given({"x": ["a", 1]}).digest(): "4e4ee9",
    }
    assert all(digest.startswith(first) for digest, first in held.items()), held
