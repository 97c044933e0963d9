"""``column_groups`` of the estimators: by place and by name, on both engines, saved, kept, along paths, refused.

Covers: what users see. Does not cover: the optimum they have (tests/boosting/test_column_groups.py).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import dboost
from dboost import (
    BoostedClassifier,
    BoostedClassifierCV,
)
from tests.boosting import plain

LABELS = np.array([4, 1, 1, 0, 4, 4, 2, 3])
NAMES = [f"x{j}" for j in range(8)]
BY_NAME = {"first": ["x0", "x4", "x5"], "second": ["x1", "x2"]}


@pytest.fixture(scope="module")
def data():
    return plain.make("multinomial", m=90, n=8, seed=4)


def test_by_name_by_place_and_sparse_are_the_same(data):
    table = pd.DataFrame(data.X, columns=NAMES)
    asked = BoostedClassifier(standardize=False, alpha=0.03, penalty="l1/l2", column_groups=LABELS)
    by_place = asked.fit(data.X, data.y)
    others = (
        (BY_NAME, table),
        ({"a": [5, 0, 4], "b": (1, 2)}, data.X),
        (pd.Series(LABELS), sp.csr_array(data.X)),
    )
    for given, X in others:
        found = clone(asked).set_params(column_groups=given).fit(X, data.y)
        np.testing.assert_array_equal(found.coef_, by_place.coef_)
    used = by_place.coef_.any(axis=0)
    assert by_place.duality_gap_ <= 1e-4 and 0 < used.sum() < 8
    assert used[[0, 4, 5]].all() == used[[0, 4, 5]].any() and used[[1, 2]].all() == used[[1, 2]].any()


@pytest.mark.filterwarnings("ignore:alpha_best_")
def test_paths_folds_and_refits_have_them(data):
    def whole(coef):
        used = np.any(coef, axis=0)
        return all(used[LABELS == g].all() or not used[LABELS == g].any() for g in LABELS)

    given = {"penalty": "l1/linf", "column_groups": LABELS}
    along = dboost.regularization_path(data.X, data.y, n_alphas=5, **given)
    assert (along.gaps <= 1e-4).all() and all(map(whole, along.coefs))
    assert not along.coefs[0].any() and along.coefs[-1].any()
    # of 90 examples the three of the rarest class are separated in a fold
    more = plain.make("multinomial", m=300, n=8, seed=4)
    found = BoostedClassifierCV(cv=2, n_alphas=3, relax=True, **given).fit(more.X, more.y)
    assert whole(found.coef_) and np.nanmax(found.fold_gaps_) <= 1e-2 and found.fold_losses_.shape == (2, 3, 5)
    model = BoostedClassifier(alpha=0.02, warm_start=True, **given).fit(data.X, data.y)
    refit = dboost.relaxed(model, data.X, data.y)
    assert refit.active_features_ == model.active_features_ and whole(refit.coef_)
    before = model.coef_
    again = model.fit(data.X, data.y)
    assert again.n_iter_ == 1 and np.allclose(again.coef_, before, atol=1e-3)


def test_stability_counts_groups_together(data):
    asked = BoostedClassifier(alpha="quick", penalty="l1/l2", column_groups=LABELS)
    found = dboost.StabilitySelection(asked, n_pairs=2, n_alphas=3, eps=0.5).fit(data.X, data.y)
    chosen = found.frequencies_
    assert chosen.any() and all((np.ptp(chosen[:, LABELS == g], axis=1) == 0.0).all() for g in LABELS)
