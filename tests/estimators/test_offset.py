"""``offset`` of the estimators: by name and by place, on both engines, in files, folds, saved models; what is refused.

Covers: what users see. Does not cover: the optimum (tests/boosting/test_offset.py).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import dboost
from dboost import (
    BoostedClassifier,
    BoostedClassifierCV,
    BoostedRegressor,
    DataError,
    UsageError,
)

NAMES = ["a", "b", "c", "d"]
CLASSES = ["o0", "o1", "o2"]


@pytest.fixture(scope="module")
def counts():
    """A table of four features and the logarithm of an exposure, and counts."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 4)), columns=NAMES)
    table.insert(1, "exposure", np.log(rng.uniform(0.2, 5.0, 120)))
    return table, rng.poisson(np.exp(table["exposure"] + 0.8 * table["a"])).astype(float)


@pytest.fixture(scope="module")
def classes():
    """A table of four features and an offset for each of three classes, and labels."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(150, 7)), columns=[*NAMES, *CLASSES])
    scores = table[CLASSES].to_numpy() + table[["a", "b", "c"]].to_numpy()
    return table, np.array(["ant", "bee", "cat"])[np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)]


def poisson(**more):
    return BoostedRegressor(loss="poisson", alpha=0.02, tol=1e-8, **more)


def test_a_prediction_needs_the_offset_and_adds_it(counts):
    table, y = counts
    model = poisson(offset="exposure").fit(table, y)
    assert model.duality_gap_ <= 1e-8 and model.coef_[0, 1] == 1.0
    score = table.to_numpy() @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.predict(table), np.exp(score), rtol=1e-12)
    twice = table.assign(exposure=table["exposure"] + np.log(2.0))
    np.testing.assert_allclose(model.predict(twice), 2.0 * model.predict(table), rtol=1e-12)
    with pytest.raises((DataError, ValueError), match="exposure|4 columns"):
        model.predict(table[NAMES])
    free = poisson().fit(table, y)
    assert free.coef_[0, 1] != 1.0 and model.score(table, y) > 0.2


def test_by_place_is_by_name(counts, classes):
    (table, y), (wide, labels) = counts, classes
    by_name, by_place = (poisson(offset=one) for one in ("exposure", 1))
    np.testing.assert_array_equal(by_name.fit(table, y).coef_, by_place.fit(table.to_numpy(), y).coef_)
    found = BoostedClassifier(penalty="l1/l2", alpha=0.02, offset=CLASSES).fit(wide, labels)
    np.testing.assert_array_equal(found.coef_[:, 4:], np.eye(3))
    last = BoostedClassifier(penalty="l1/l2", alpha=0.02, offset=[-3, -2, -1]).fit(wide, labels)
    np.testing.assert_array_equal(found.coef_, last.coef_)
    np.testing.assert_allclose(found.predict_proba(wide).sum(axis=1), 1.0)


def test_a_column_of_files_is_one_of_memory(counts, tmp_path):
    table, y = counts
    whole = pa.table({**{name: table[name].to_numpy() for name in table.columns}, "y": y})
    pq.write_table(whole, tmp_path / "rows.parquet", row_group_size=50, write_page_checksum=True)
    data = dboost.ParquetData(str(tmp_path / "rows.parquet"), label="y")
    filed, held = poisson(offset="exposure").fit(data), poisson(offset="exposure").fit(table, y)
    np.testing.assert_allclose(filed.coef_, held.coef_, rtol=1e-6)
    np.testing.assert_allclose(filed.predict(data), filed.predict(table), rtol=1e-12)


def test_it_is_saved_and_started_from(counts, tmp_path):
    table, y = counts
    model = poisson(offset="exposure").fit(table, y)
    model.save(tmp_path / "model")
    again = dboost.load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    assert again.offset == "exposure"
    warm = again.set_params(warm_start=True).fit(table, y)
    assert warm.n_iter_ <= model.n_iter_ and warm.coef_[0, 1] == 1.0
    np.testing.assert_allclose(warm.coef_, model.coef_, atol=1e-4)


def test_folds_are_judged_with_their_offsets(counts):
    """Scaling the exposures by a constant is a matter of the intercept alone."""
    table, y = counts
    asked = dboost.BoostedRegressor(alpha="quick", loss="poisson", offset="exposure", tol=1e-8)
    one = dboost.cross_validated(table, y, estimator=asked, folds=np.arange(120) % 3, n_alphas=4, fold_tol=1e-8)
    other = dboost.cross_validated(
        table.assign(exposure=table["exposure"] + 3.0), y, estimator=asked, folds=np.arange(120) % 3, n_alphas=4,
        fold_tol=1e-8,
    )  # fmt: skip
    np.testing.assert_allclose(other.fold_losses_, one.fold_losses_, rtol=1e-5)
    without = dboost.cross_validated(
        table[NAMES], y, estimator=clone(asked).set_params(offset=None), folds=np.arange(120) % 3, n_alphas=4
    )
    assert one.fold_losses_.min() < without.fold_losses_.min()


def test_a_class_that_a_fold_lacks_takes_its_offset_with_it(classes):
    wide, labels = classes
    folds = np.where(labels == "cat", 0, 1 + np.arange(150) % 2)
    found = BoostedClassifierCV(folds=folds, n_alphas=3, offset=CLASSES, penalty="l1/l2").fit(wide, labels)
    assert np.isfinite(found.fold_losses_).all() and found.duality_gap_ <= 1e-4


def test_other_refusals(classes, counts):
    wide, labels = classes
    with pytest.raises(UsageError, match="has 1 column.*3 output"):
        BoostedClassifier(alpha="quick", offset="o0").fit(wide, labels)
    with pytest.raises(UsageError, match="class 'dog' has no example"):
        BoostedClassifier(alpha="quick", offset=[*CLASSES, "d"], classes=["ant", "bee", "cat", "dog"]).fit(wide, labels)
    with pytest.raises(UsageError, match="offset= with hypotheses=Stumps"):
        BoostedClassifier(alpha="quick", offset=CLASSES, hypotheses=dboost.Stumps()).fit(wide, labels)
