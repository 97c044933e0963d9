"""The parameters of a family of kernels: what is refused, JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dboost.errors import UsageError
from dboost.hypotheses.kernels.family import Kernels


def test_nonsense_is_refused():
    for parameters in [
        {"support": "everything"},
        {"support": 0},
        {"support": np.zeros((0, 3))},
        {"support": np.array([[np.nan, 1.0]])},
        {"support": [["a", "b"]]},
        {"gamma": 0.0},
        {"gamma": "mean"},
        {"input": "angle"},
        {"max_support": 0},
        {"support": 10, "max_support": 5},
    ]:
        with pytest.raises(UsageError):
            Kernels(**parameters)


def test_a_family_survives_json():
    for kernels in [
        Kernels(),
        Kernels(support="perceptron-union", max_support=5),
        Kernels(support=3, gamma=0.1, input="cosine"),
    ]:
        assert Kernels.from_json(json.loads(json.dumps(kernels.to_json()))) == kernels
