"""Splitters of scikit-learn as cv=: the folds they give, and what is no partition of the rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, ShuffleSplit, StratifiedKFold, TimeSeriesSplit

import dboost
from dboost import BoostedClassifierCV, BoostedRegressorCV
from dboost.errors import UsageError
from dboost.estimators.cv import folds_of

FEW = {"n_alphas": 4, "eps": 0.05, "penalty": "l1"}


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6))
    return X, np.where(X[:, 0] + rng.logistic(size=90) > 0.5, "yes", "no")


@pytest.mark.parametrize("splitter", [KFold(3), StratifiedKFold(4, shuffle=True, random_state=1)])
def test_a_splitter_is_the_folds_that_it_makes(labelled, splitter, tmp_path):
    X, y = labelled
    folds = np.empty(90, int)
    for number, (_, test) in enumerate(splitter.split(X, y)):
        folds[test] = number
    found = BoostedClassifierCV(cv=splitter, **FEW).fit(X, y)
    given = BoostedClassifierCV(folds=folds, **FEW).fit(X, y)
    np.testing.assert_array_equal(found.fold_losses_, given.fold_losses_)
    listed = BoostedClassifierCV(cv=list(splitter.split(X, y)), **FEW).fit(X, y)
    np.testing.assert_array_equal(listed.fold_losses_, given.fold_losses_)
    table = pd.DataFrame(X).add_prefix("x").assign(label=y)
    np.testing.assert_array_equal(BoostedClassifierCV(cv=splitter, **FEW).fit(table, "label").coef_, given.coef_)
    found.save(tmp_path / "model")
    assert dboost.load_model(tmp_path / "model").alpha_ == found.alpha_


def test_a_regression_and_masks(labelled):
    X, _ = labelled
    halves = np.arange(90) % 2 == 0
    y = X[:, 0] + np.random.default_rng(1).normal(size=90)
    found = BoostedRegressorCV(cv=[(halves, ~halves), (~halves, halves)], **FEW).fit(X, y)
    assert found.fold_losses_.shape == (2, 4)


@pytest.mark.parametrize(
    "cv,said",
    [
        (ShuffleSplit(3, random_state=0), "no split of cv= tests row|tests a row that an earlier one tests"),
        (TimeSeriesSplit(3), "leaves rows out, and a fit trains on all others"),
        (LeaveOneGroupOut(), "does not split these rows.*groups"),
        (GroupKFold(3), "does not split these rows.*groups"),
        ([(np.arange(45), np.arange(45, 90))], "no split of cv= tests row 0"),
        ([(np.arange(90), np.arange(45, 90))], "trains on a row that it tests"),
        ([(np.arange(45), np.arange(45, 91))], "names rows that are not there"),
        ([(np.zeros(3), np.arange(90))], "names rows that are not there"),
    ],
)
def test_what_does_not_test_every_row_once_is_refused(labelled, cv, said):
    with pytest.raises(UsageError, match=said):
        folds_of(cv, labelled[1])


@pytest.mark.parametrize("cv", [1, True, "3", KFold, [], [3], None, 2.5])
def test_what_is_no_splitter_is_refused(labelled, cv):
    with pytest.raises(UsageError, match="expected an integer >= 2, a splitter"):
        BoostedClassifierCV(cv=cv, **FEW).fit(*labelled)


def test_a_splitter_needs_the_rows_in_memory(labelled):
    import dask.array as da

    X, y = (da.from_array(part, chunks=45) for part in (labelled[0], labelled[1] == "yes"))
    with pytest.raises(UsageError, match="a splitter as cv= is for data in memory"):
        BoostedClassifierCV(cv=KFold(3), **FEW).fit(X, y)
