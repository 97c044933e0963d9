"""The parameters of a family of kernels: what is refused, equality, JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse

from dboost.errors import UsageError
from dboost.hypotheses.kernels.family import Kernels


def test_nonsense_is_refused():
    for parameters in [
        {"support": "everything"},
        {"support": 0},
        {"support": True},
        {"support": None},
        {"support": np.zeros((0, 3))},
        {"support": np.array([[np.nan, 1.0]])},
        {"support": [["a", "b"]]},
        {"gamma": 0.0},
        {"gamma": np.inf},
        {"gamma": "mean"},
        {"gamma": True},
        {"input": "angle"},
        {"max_support": 0},
        {"max_support": 2.5},
        {"support": 10, "max_support": 5},
    ]:
        with pytest.raises(UsageError):
            Kernels(**parameters)


def test_equal_parameters_make_equal_families():
    rows = np.arange(6.0).reshape(2, 3)
    assert Kernels(support=rows) == Kernels(support=sparse.csr_matrix(rows)) != Kernels(support=rows + 1)
    assert Kernels() == Kernels() != Kernels(gamma=1.0) and len({Kernels(), Kernels(), Kernels(support=5)}) == 2


def test_a_family_survives_json():
    for kernels in [
        Kernels(),
        Kernels(support="perceptron-union", max_support=5),
        Kernels(support=3, gamma=0.1, input="cosine"),
    ]:
        assert Kernels.from_json(json.loads(json.dumps(kernels.to_json()))) == kernels


def test_given_centres_survive_json_and_nonsense_is_refused():
    kernels = Kernels(support=np.array([[0.1, 0.0], [1 / 3, 2.0]]))
    spec = json.loads(json.dumps(kernels.to_json()))
    assert Kernels.from_json(spec) == kernels
    with pytest.raises(UsageError, match="no parameter 'width'"):
        Kernels.from_json({**spec, "width": 1})
    for name, value in {"indptr": [0, 1, 9], "indices": [0, 5, 1], "data": ["a"], "shape": [2]}.items():
        with pytest.raises(UsageError, match="cannot be read"):
            Kernels.from_json({**spec, "support": {**spec["support"], name: value}})
