"""The registry, and what every registered penalty is as an object."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

from dboost.errors import UsageError
from dboost.penalties import L1, PENALTIES, Face, Penalty, SparseGroup, get_penalty


def test_names():
    assert sorted(PENALTIES) == ["l1", "l1/l2", "l1/l2+l1", "l1/linf", "none"]
    for name in PENALTIES:
        assert get_penalty(name).name == name


def test_instance_is_returned():
    mine = SparseGroup(l1_ratio=0.3)
    assert get_penalty(mine) is mine


def test_unknown_name_lists_the_known():
    with pytest.raises(UsageError) as caught:
        get_penalty("l3")
    for name in ["l3", *PENALTIES]:
        assert repr(name) in str(caught.value)


@pytest.mark.parametrize("wrong", [None, 1.0, L1, object()], ids=["None", "number", "class", "object"])
def test_not_a_penalty(wrong):
    with pytest.raises(UsageError, match="neither a name nor an instance"):
        get_penalty(wrong)


@pytest.mark.parametrize("ratio", [-0.1, 1.1, np.nan, np.inf])
def test_mix_outside_its_range(ratio):
    with pytest.raises(UsageError, match="l1_ratio"):
        SparseGroup(l1_ratio=ratio)


def test_travels_and_compares(penalty):
    copy = pickle.loads(pickle.dumps(penalty))
    assert copy == penalty and hash(copy) == hash(penalty) and copy.compiled == penalty.compiled
    assert isinstance(penalty, Penalty) and dataclasses.is_dataclass(penalty)
    with pytest.raises(dataclasses.FrozenInstanceError):
        penalty.l1_ratio = 0.7


def test_face_is_a_face(penalty):
    assert isinstance(penalty.face(np.ones((2, 3))), Face)


def test_different_mixes_differ():
    assert SparseGroup(0.2) != SparseGroup(0.3)
