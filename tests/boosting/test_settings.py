"""Settings without meaning are refused by name before any data is read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dboost.boosting.checks import check_settings
from dboost.boosting.fit import FitSettings, Fitting
from dboost.errors import UsageError

GOOD = FitSettings("log")


class NoData:
    """A plan and an engine that may not be touched."""

    def __getattr__(self, name):
        raise AssertionError(f"read {name} before the settings were checked")


BAD = [
    ("loss", ["hinge", ""]),
    ("penalty", ["l3", None, 1.0]),
    ("alpha", [-1.0, 0.0, np.nan, np.inf, "large", True, None, [0.1]]),
    ("update", ["sgd", None]),
    ("select", ["best", None]),
    ("sample", ["all", 0.0, -0.5, 1.5, np.nan, None, True]),
    ("features_per_round", [0, -3, 2.5, "all", True]),
    ("max_rounds", [0, -1, 1.5, None, True]),
    ("max_features", [-1, 2.5, "all", False]),
    ("tol", [-1e-3, np.nan, np.inf, "small", None, True]),
    ("random_state", [-1, 1.5, None, "seed", True]),
]


@pytest.mark.parametrize("name,value", [(name, value) for name, values in BAD for value in values])
def test_a_bad_value_is_refused_by_name(name, value):
    settings = replace(GOOD, **{name: value})
    with pytest.raises(UsageError) as error:
        Fitting(NoData(), NoData(), settings)
    assert name in str(error.value)
    assert error.value.exit_code == 2


def test_good_values_are_accepted():
    for changes in (
        {"alpha": 1e-3},
        {"alpha": np.float32(0.5)},
        {"alpha": 1},
        {"penalty": "none"},
        {"penalty": "none", "alpha": 0.0},
        {"tol": 0.0},
        {"max_features": 0},
        {"features_per_round": np.int64(5)},
        {"sample": 1.0},
        {"sample": 0.01},
        {"random_state": 2**31},
    ):
        settings = replace(GOOD, **changes)
        check_settings(settings)
        # what comes next is the data
        with pytest.raises(AssertionError, match="before the settings were checked"):
            Fitting(NoData(), NoData(), settings)


def test_strength_and_penalty_must_agree():
    with pytest.raises(UsageError, match="penalty 'none' has no strength.*alpha"):
        check_settings(replace(GOOD, penalty="none", alpha=0.1))
    with pytest.raises(UsageError, match="alpha is 0.*penalty='none'"):
        check_settings(replace(GOOD, alpha=0.0))


def test_a_selection_that_newton_would_ignore_is_refused():
    with pytest.raises(UsageError, match="select='cyclic' chooses rows for the one-row updates"):
        check_settings(FitSettings("log", select="cyclic"))
