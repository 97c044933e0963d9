"""The registry, and what every registered penalty is as an object."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

from dboost.errors import UsageError
from dboost.penalties import (
    L1,
    PENALTIES,
    ElasticNet,
    Face,
    GroupElasticNet,
    Penalty,
    SmoothL1,
    SparseGroup,
    get_penalty,
)
from tests.penalties.conftest import ANY


def test_names():
    assert sorted(PENALTIES) == [
        "elastic_net", "l1", "l1/l2", "l1/l2+l1", "l1/l2+ridge", "l1/linf", "l2", "l2_squared", "none", "smooth_l1",
        "smooth_l1/linf",
    ]  # fmt: skip
    for name in PENALTIES:
        assert get_penalty(name).name == name
    mine = SparseGroup(l1_ratio=0.3)
    assert get_penalty(mine) is mine


def test_what_is_no_penalty_is_refused_and_the_known_are_listed():
    with pytest.raises(UsageError) as caught:
        get_penalty("l3")
    for name in ["l3", *PENALTIES]:
        assert repr(name) in str(caught.value)
    for wrong in [None, 1.0, L1, object()]:
        with pytest.raises(UsageError, match="neither a name nor an instance"):
            get_penalty(wrong)


def test_parameters_outside_their_range_are_refused():
    share = [0.0, -0.1, 1.1, np.nan, np.inf, True, "half"]
    for kind, name, values, said in [
        (SparseGroup, "l1_ratio", [-0.1, 1.1, np.nan, np.inf], "l1_ratio"),
        (ElasticNet, "l1_ratio", share, r"l1_ratio is .* expected a number in \(0, 1\]"),
        (GroupElasticNet, "l1_ratio", share, r"l1_ratio is .* expected a number in \(0, 1\]"),
        (SmoothL1, "sharpness", [0.0, -1.0, np.nan, np.inf], "sharpness"),
    ]:
        for value in values:
            with pytest.raises(UsageError, match=said):
                kind(**{name: value})


def test_travels_and_compares():
    for penalty in ANY:
        copy = pickle.loads(pickle.dumps(penalty))
        assert copy == penalty and hash(copy) == hash(penalty)
        assert isinstance(penalty, Penalty) and dataclasses.is_dataclass(penalty)
        assert isinstance(penalty.face(np.ones((2, 3))), Face)
        with pytest.raises(dataclasses.FrozenInstanceError):
            penalty.l1_ratio = 0.7
    assert SparseGroup(0.2) != SparseGroup(0.3)


def test_what_the_penalties_say_of_themselves():
    """(certified, threshold, separable, degree) of each: the loop, the paths and standardize go by them."""
    said = {n: (p.certified, p.threshold, p.separable, p.degree) for n, p in ((n, PENALTIES[n]()) for n in PENALTIES)}
    assert said.pop("none") == (False, False, True, 1)
    assert said.pop("l2") == (True, True, False, 1)
    assert said.pop("l2_squared") == (True, False, True, 2)
    assert said.pop("smooth_l1") == said.pop("smooth_l1/linf") == (False, False, True, 0)
    assert said.pop("elastic_net") == said.pop("l1/l2+ridge") == (True, True, True, 0)
    assert set(said.values()) == {(True, True, True, 1)}


def test_the_degree_is_the_power_of_the_scale(cases):
    for penalty in ANY:
        W = cases.rows(60, 4)
        power = penalty.degree
        if power == 0:
            follows = np.allclose(penalty.value(3.0 * W), penalty.value(W) * 3.0, rtol=1e-3)
            # without its ridge a class of norm and ridge is a norm, and still not to be standardised
            assert follows == (getattr(penalty, "l1_ratio", 0.0) == 1.0)
            continue
        assert np.allclose(penalty.value(3.0 * W), penalty.value(W) * 3.0**power, rtol=1e-12)
        one, lam = W[:1], np.array([0.7])
        assert np.isclose(penalty.total(one / 3.0, lam * 3.0**power), penalty.total(one, lam), rtol=1e-12)
