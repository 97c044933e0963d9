"""Fits that end when rows that they do not see are predicted no better: when, with which model, and of which rows."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import get_scorer

import dboost
from dboost import BoostedClassifier, BoostedRegressor, DataError, EarlyStopping, UsageError

NAMES = [f"f{j}" for j in range(30)]
pytestmark = pytest.mark.filterwarnings("ignore::dboost.errors.ConvergenceWarning")


def rows(m, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 30))
    return X, np.array(["no", "perhaps", "yes"])[np.argmax(X[:, :3] + rng.normal(size=(m, 3)), axis=1)]


@pytest.fixture(scope="module")
def seen():
    return rows(120, 0)


@pytest.fixture(scope="module")
def unseen():
    return rows(150, 1)


def slow(**more):
    """Rounds whose models after a while fit the noise."""
    return BoostedClassifier(update="newton", alpha=1e-5, tol=1e-6, features_per_round=1, max_rounds=12, **more)


@pytest.mark.full
def test_a_fit_ends_as_by_the_scores_of_all_its_rounds(seen, unseen):
    models = []

    class All(EarlyStopping):
        def after_round(self, record, estimator):
            models.append(estimator)
            return False

    slow(callbacks=[All(*unseen)]).fit(*seen)
    scores = [get_scorer("neg_log_loss")(model, *unseen) for model in models]
    assert 0 < np.argmax(scores) < len(models) - 3
    stop = EarlyStopping(*unseen, scoring="neg_log_loss", rounds=3)
    model = slow(callbacks=[stop]).fit(*seen)
    last = next(t for t in range(len(scores)) if t - np.argmax(scores[: t + 1]) >= 3)
    assert (model.stop_reason_, model.n_iter_) == ("callback", last + 1)
    np.testing.assert_array_equal(stop.scores_, scores[: last + 1])
    best = int(np.argmax(stop.scores_))
    assert (stop.best_round_, stop.best_score_) == (best + 1, scores[best])
    np.testing.assert_array_equal(stop.best_estimator_.coef_, models[best].coef_)
    assert stop.best_estimator_.callbacks is None
    # a second fit begins anew
    model.fit(*seen)
    assert len(stop.scores_) == last + 1


def test_a_gain_that_is_asked_for_ends_it_sooner(seen, unseen):
    stop = EarlyStopping(*unseen, scoring="neg_log_loss", rounds=2, gain=0.05)
    model = slow(callbacks=[stop]).fit(*seen)
    best = stop.scores_[stop.best_round_ - 1]
    assert model.n_iter_ == stop.best_round_ + 2 and max(stop.scores_) <= best + 0.05


@pytest.mark.full
@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
@pytest.mark.parametrize("binary", [False, True])
def test_rows_of_every_kind_give_the_same_scores(seen, unseen, tmp_path, scoring, binary):
    (X, y), (held, labels) = seen, unseen
    if binary:
        y, labels = y == "yes", labels == "yes"
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(labels))
    table = pd.DataFrame(held, columns=NAMES).assign(label=labels, weight=weight)
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), tmp_path / "held.parquet")
    frame = dd.from_pandas(table, npartitions=3)
    kinds = {
        "matrix": (held, labels, weight),
        "table": (table, "label", "weight"),
        "array": tuple(da.from_array(part, chunks=(60, -1)[: part.ndim]) for part in (held, labels, weight)),
        "frame": (frame, "label", "weight"),
        "parquet": (dboost.ParquetData(tmp_path / "held.parquet", label="label", weight="weight"),),
    }  # fmt: skip
    found = {}
    for kind, given in kinds.items():
        stop = EarlyStopping(*given, scoring=scoring, rounds=2)
        named = kind in ("table", "frame", "parquet")
        slow(callbacks=[stop]).fit(pd.DataFrame(X, columns=NAMES) if named else X, y)
        found[kind] = stop.scores_
    for kind in kinds:
        np.testing.assert_array_equal(found[kind], found["matrix"], err_msg=kind)


def test_numbers_are_judged_too():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 30))
    y = X[:, 0] + rng.normal(size=80)
    stop = EarlyStopping(X[40:], y[40:], rounds=4)
    fit = BoostedRegressor(alpha=1e-6, max_rounds=30, callbacks=[stop])
    fit.fit(X[:40], y[:40])
    assert stop.best_score_ == stop.best_estimator_.score(X[40:], y[40:]) == max(stop.scores_)


@pytest.mark.parametrize(
    ("change", "said"),
    [({"rounds": 0}, "rounds=0"), ({"rounds": True}, "rounds=True"), ({"gain": -1.0}, "gain=-1.0"),
     ({"gain": np.nan}, "gain=nan"), ({"scoring": "loss"}, "scoring='loss'"), ({"scoring": "no"}, "scoring='no'")],
)  # fmt: skip
def test_bad_parameters_are_refused(unseen, change, said):
    with pytest.raises(UsageError, match=said):
        EarlyStopping(*unseen, **change)


def test_rows_that_cannot_be_scored_are_one_error(seen, unseen):
    X, y = unseen
    for stop, said in (
        (EarlyStopping(X[:, :4], y), "round 1"),
        (EarlyStopping(X), "score needs y"),
        (EarlyStopping(X, y, scoring=lambda estimator, X, y: float("nan")), "expected a finite number"),
    ):
        with pytest.raises(DataError, match=said):
            slow(callbacks=[stop]).fit(*seen)


def test_several_fits_are_refused(seen, unseen):
    with pytest.raises(UsageError, match="one of a single fit"):
        dboost.regularization_path(*seen, estimator=BoostedClassifier(callbacks=[EarlyStopping(*unseen)]), n_alphas=2)
