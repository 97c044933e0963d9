"""Columns far from zero as users have them: times in tables, in files and on clusters, and what is told of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dboost import BoostedClassifier, load_model
from dboost.errors import DboostWarning

SECONDS = 1_700_000_000
WANTED = {"penalty": "l1", "alpha": 0.02, "standardize": True, "tol": 1e-8}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    time = np.arange(1500)
    frame = pd.DataFrame(
        {"time": SECONDS + time, "year": 1990 + rng.integers(0, 30, 1500), "noise": rng.normal(size=1500)}
    )
    score = (time - 700) / 50 + 0.1 * (frame["year"] - 2004) + rng.logistic(size=1500)
    return frame, np.where(score > 0, "late", "early")


@pytest.fixture(scope="module")
def near(table):
    frame, y = table
    return BoostedClassifier(**WANTED).fit(frame - [SECONDS, 2000, 0.0], y)


def agree(model, near):
    assert model.stop_reason_ == near.stop_reason_ == "tol"
    assert model.objective_ == pytest.approx(near.objective_, rel=1e-8)
    assert list(model.active_features_) == list(near.active_features_)
    np.testing.assert_allclose(model.coef_, near.coef_, rtol=1e-3, atol=1e-6)
    moved = near.intercept_ - model.coef_[:, :2] @ [SECONDS, 2000]
    np.testing.assert_allclose(model.intercept_, moved, rtol=1e-6)


def test_times_in_whole_numbers_are_used_and_predict_on_the_columns_as_given(table, near, tmp_path):
    frame, y = table
    model = BoostedClassifier(**WANTED).fit(frame, y)
    agree(model, near)
    found = model.predict_proba(frame)
    np.testing.assert_allclose(found, near.predict_proba(frame - [SECONDS, 2000, 0.0]), atol=1e-3)
    assert model.score(frame, y) > 0.9
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model").predict_proba(frame).tobytes() == found.tobytes()
    # an earlier model is the start of the next fit wherever its columns are
    again = model.set_params(warm_start=True).fit(frame, y)
    assert again.n_iter_ <= 2
    agree(again, near)


def test_a_constant_column_that_cannot_be_scaled_is_named(table):
    frame, y = table
    wider = frame.assign(site=7, unit=1e12 / 3)
    with pytest.warns(DboostWarning, match=r"leaves out 2 constant column\(s\).*'site', 'unit'"):
        model = BoostedClassifier(**WANTED).fit(wider, y)
    assert set(model.active_features_) <= {"time", "year", "noise"}
    # without a scale they only cost what they hold
    BoostedClassifier(alpha="quick", penalty="l1").fit(wider, y)
