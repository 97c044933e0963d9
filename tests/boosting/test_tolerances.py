"""A looser tolerance is never dearer than a tighter one, and is reached wherever that is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dboost import BoostedClassifier, BoostedRegressor

TOLS = (1e-2, 1e-3, 1e-4, 1e-6)
# A pass more or less, because another tolerance ends an inner solve a step earlier, is no news, nor a round in ten.
NOISE = 1.2


def words(seed, m, n, k):
    """Documents of words by Zipf's law and four words of their topic, as rows of length one; and their topics."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, n + 1)
    topics = rng.permutation(n)[: 20 * k].reshape(k, 20)
    y = rng.integers(0, k, m)
    found = np.hstack([rng.choice(n, (m, 40), p=share / share.sum()), [rng.choice(topics[t], 4) for t in y]])
    X = sp.csr_array((np.ones(found.size), (np.repeat(np.arange(m), 44), found.ravel())), shape=(m, n))
    X.sum_duplicates()
    X.data = 1.0 + np.log(X.data)
    return sp.csr_array(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))[:, None])), y


def measurements(seed, m, n, noise):
    """Columns that pull on one another, of which every fourth counts; what they give."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) @ (np.eye(n) + 0.5 * np.eye(n, k=1))
    return X, X[:, ::4].sum(axis=1) + noise * rng.normal(size=m)


@pytest.fixture(scope="module")
def problems():
    """An estimator, X and y of each kind of data."""
    dense, number = measurements(2, 500, 80, 3.0)
    two = words(3, 600, 2000, 2)
    return {
        "8 topics": (BoostedClassifier, *words(0, 400, 1500, 8)),
        "12 topics": (BoostedClassifier, *words(1, 800, 3000, 12)),
        "2 topics": (BoostedClassifier, *two),
        "dense, 3 classes": (BoostedClassifier, dense, np.digitize(number, [-2.0, 2.0])),
        "dense, 2 classes": (BoostedClassifier, dense, number > 0.0),
        "dense, numbers": (BoostedRegressor, dense, number),
        "words, numbers": (BoostedRegressor, two[0], two[1] + 0.1 * np.random.default_rng(4).normal(size=600)),
    }


@pytest.mark.full
@pytest.mark.parametrize("share", [0.05, 0.01, 0.003])
@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf"])
@pytest.mark.parametrize(
    "data",
    ["8 topics", "12 topics", "2 topics", "dense, 3 classes", "dense, 2 classes", "dense, numbers", "words, numbers"],
)
def test_passes_to_a_certified_tolerance_rise_as_it_falls(problems, data, penalty, share):
    estimator, X, y = problems[data]
    largest = estimator(alpha="quick", penalty=penalty, tol=0.9).fit(X, y).alpha_max_
    fits = [estimator(penalty=penalty, alpha=share * largest, tol=tol).fit(X, y) for tol in TOLS]
    assert [model.stop_reason_ for model in fits] == ["tol"] * len(TOLS)
    passes = [model.history_[-1]["passes"] for model in fits]
    assert all(loose <= NOISE * tight for loose, tight in zip(passes, passes[1:], strict=False)), passes


@pytest.mark.parametrize(("estimator", "columns"), [(BoostedClassifier, 12), (BoostedRegressor, 30)])
def test_a_round_that_begins_with_every_column_solves_to_the_end(estimator, columns):
    """Its restricted problem is the whole: another round, with its passes, would have nothing to find."""
    X, number = measurements(5, 400, columns, 1.0)
    y = np.digitize(number, [-1.0, 1.0]) if estimator is BoostedClassifier else number
    model = estimator(penalty="l1", alpha=1e-4, tol=1e-6).fit(X, y)
    assert model.stop_reason_ == "tol" and {record["features"] for record in model.history_} == {columns}
    assert len(model.history_) <= 3


def test_rows_that_stay_are_solved_once():
    """After the round in which the last row has entered there is one more round, whatever the tolerance."""
    X, number = measurements(2, 500, 80, 3.0)
    for estimator, y in ((BoostedClassifier, number > 0.0), (BoostedClassifier, np.digitize(number, [-2.0, 2.0]))):
        model = estimator(penalty="l1", alpha=0.02, tol=1e-8, standardize=False).fit(X, y)
        entered = [record["round"] for record in model.history_ if record["features_in"] > 0]
        assert model.stop_reason_ == "tol" and len(model.history_) <= max(entered) + 2, model.history_
