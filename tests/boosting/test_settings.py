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


def test_a_bad_share_of_the_examples_is_refused_before_any_data_is_read():
    """No estimator has this one; those of the others are in tests/estimators/test_refusals.py."""
    for value in ("all", 0.0, -0.5, 1.5, np.nan, None, True):
        with pytest.raises(UsageError, match="sample"):
            Fitting(NoData(), NoData(), replace(GOOD, sample=value))


def test_strength_and_penalty_must_agree():
    with pytest.raises(UsageError, match="penalty 'none' has no strength.*alpha"):
        check_settings(replace(GOOD, penalty="none", alpha=0.1))
    with pytest.raises(UsageError, match="alpha is 0.*penalty='none'"):
        check_settings(replace(GOOD, alpha=0.0))


def test_a_selection_that_newton_would_ignore_is_refused():
    with pytest.raises(UsageError, match="select='cyclic' chooses rows for the one-row updates"):
        check_settings(FitSettings("log", select="cyclic"))
