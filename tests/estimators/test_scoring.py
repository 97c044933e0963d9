"""Any scorer in cross-validation: equal to scikit-learn's own loop over the same folds, on every kind of input.

Covers: ``scoring=`` of ``BoostedClassifierCV``, ``BoostedRegressorCV``, ``MultiTaskBoostedClassifierCV`` and
``cross_validated``. Does not cover: folds, and the sums "loss" and "error" (test_cv.py).
"""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, fbeta_score, make_scorer
from sklearn.model_selection import StratifiedKFold, cross_validate

import dboost
from dboost import (
    BoostedClassifier,
    BoostedClassifierCV,
    BoostedRegressor,
    BoostedRegressorCV,
    MultiTaskBoostedClassifier,
    MultiTaskBoostedClassifierCV,
    ParquetData,
)
from dboost.errors import DataError, UsageError
from dboost.estimators import scoring as held_out

pytestmark = pytest.mark.filterwarnings("ignore:alpha_best_=.* an end of the grid")

ALPHAS = [0.1, 0.03]
# so near to the optimum that what is predicted does not depend on the way there
EXACT = {"tol": 1e-13, "fold_tol": 1e-13}
THREE = StratifiedKFold(3)

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 6))
KIND = np.array(["cat", "dog", "emu"])[np.argmax(X[:, :3] + 0.7 * rng.normal(size=(150, 3)), axis=1)]
TWO = (X[:, 0] + 0.7 * rng.normal(size=150) > 0).astype(int)
NUMBER = X[:, 0] * 2 + X[:, 1] + rng.normal(size=150)
TASKS = np.stack([TWO, X[:, 1] + rng.normal(size=150) > 0, X[:, 2] > 0.2], axis=1).astype(int)
WEIGHT = rng.integers(0, 4, 150).astype(float)


def by_hand(estimator, X, y):
    return balanced_accuracy_score(y, estimator.predict(X))


# Of each kind of labels, what may judge them.
CASES = {
    "three classes": (
        BoostedClassifier,
        KIND,
        [
            "balanced_accuracy", "neg_log_loss", "roc_auc_ovr", "f1_macro", "neg_brier_score", "top_k_accuracy", by_hand
        ],
    ),
    "two classes": (BoostedClassifier, TWO, ["roc_auc", "neg_log_loss", make_scorer(fbeta_score, beta=2.0)]),
    "numbers": (BoostedRegressor, NUMBER, ["r2", "neg_mean_absolute_error"]),
    "tasks": (MultiTaskBoostedClassifier, TASKS, ["f1_macro", "roc_auc"]),
}  # fmt: skip
CHOOSES = {
    BoostedClassifier: BoostedClassifierCV,
    BoostedRegressor: BoostedRegressorCV,
    MultiTaskBoostedClassifier: MultiTaskBoostedClassifierCV,
}


@pytest.mark.parametrize("name", CASES)
def test_equal_to_the_loop_of_scikit_learn(name):
    kind, y, scorers = CASES[name]
    splits = list(THREE.split(X, y if y is not TASKS and y is not NUMBER else TWO))
    named = {str(number): scoring for number, scoring in enumerate(scorers)}
    peers = [
        cross_validate(kind(penalty="l1", alpha=alpha, tol=1e-13), X, y, cv=splits, scoring=named) for alpha in ALPHAS
    ]
    for number, scoring in enumerate(scorers):
        found = CHOOSES[kind](penalty="l1", cv=splits, alphas=ALPHAS, scoring=scoring, **EXACT).fit(X, y)
        for place, peer in enumerate(peers):
            expected, row = peer[f"test_{number}"], found.cv_results_[place]
            np.testing.assert_allclose(
                found.fold_scores_[:, place], expected, rtol=1e-12, atol=1e-12, err_msg=str(scoring)
            )
            assert row["mean_test_score"] == pytest.approx(expected.mean(), abs=1e-12)
            assert row["std_test_score"] == pytest.approx(expected.std(), abs=1e-12)
            assert row["se_test_score"] == pytest.approx(expected.std(ddof=1) / np.sqrt(3), abs=1e-12)
        mean = found.cv_results_.column("mean_test_score")
        assert found.cv_results_.column("rank_test_score").tolist() == [1 + int((mean > one).sum()) for one in mean]
        assert found.best_score_ == mean.max() and found.alpha_best_ == found.alphas_[int(np.argmax(mean))]


@pytest.mark.full
def test_the_rule_of_one_standard_error_holds_in_the_direction_of_the_scorer():
    params = {"penalty": "l1/l2", "cv": 4, "n_alphas": 10, "eps": 1e-3, "scoring": "neg_log_loss"}
    found = {rule: BoostedClassifierCV(rule=rule, **params).fit(X, KIND) for rule in ("best", "1se")}
    one = found["1se"]
    mean, error = (one.cv_results_.column(name) for name in ("mean_test_score", "se_test_score"))
    best = int(np.argmax(mean))
    assert found["best"].alpha_ == one.alpha_best_ == one.alphas_[best]
    assert one.alpha_ == one.alphas_[mean >= mean[best] - error[best]].max() > one.alpha_best_
    # the loss says the same, with the other sign
    assert BoostedClassifierCV(**params | {"scoring": None}).fit(X, KIND).alpha_best_ == one.alpha_best_
    np.testing.assert_allclose(-one.fold_scores_, one.fold_losses_, rtol=1e-9)


def parquet(folder, y, weight=None, files=3):
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(150), files)):
        table = {f"x{j}": X[rows, j] for j in range(6)} | {"y": y[rows]}
        pq.write_table(pa.table(table | ({} if weight is None else {"w": weight[rows]})), folder / f"{number}.parquet")
    return ParquetData(folder, label="y", **({} if weight is None else {"weight": "w"}))


def test_weights_go_to_the_scorer_and_those_of_classes_do_not(tmp_path):
    params = {"cv": 3, "alphas": ALPHAS, "class_weight": {0: 1.0, 1: 3.0}, "penalty": "l1", **EXACT}
    folds = np.arange(150) % 3
    found = BoostedClassifierCV(**params, folds=folds, scoring="accuracy").fit(X, TWO, WEIGHT)
    for fold in range(3):
        train, test = folds != fold, folds == fold
        for place, alpha in enumerate(ALPHAS):
            peer = BoostedClassifier(alpha=alpha, penalty="l1", tol=1e-13, class_weight=params["class_weight"])
            peer.fit(X[train], TWO[train], WEIGHT[train])
            expected = accuracy_score(TWO[test], peer.predict(X[test]), sample_weight=WEIGHT[test])
            assert found.fold_scores_[fold, place] == pytest.approx(expected, rel=1e-12)
    stored = BoostedClassifierCV(**params, scoring="accuracy").fit(parquet(tmp_path / "data", TWO, WEIGHT))
    again = BoostedClassifierCV(**params, scoring="accuracy").fit(X, TWO, WEIGHT)
    np.testing.assert_allclose(stored.fold_scores_, again.fold_scores_, rtol=1e-12)
    with pytest.raises(UsageError, match=r"by_hand' takes no sample_weight"):
        BoostedClassifierCV(**params, scoring=by_hand).fit(X, TWO, WEIGHT)


def test_tables_keep_their_columns_and_a_function_sees_the_rows():
    table = pd.DataFrame(X, columns=list("abcdef")).assign(kind=KIND, fold=np.arange(150) % 3)
    seen = []

    def tells(estimator, rows, y):
        seen.append((type(rows), "a" in rows.columns, len(rows) == len(y) == 50))
        return estimator.score(rows, y)

    found = BoostedClassifierCV(folds="fold", alphas=ALPHAS, scoring=tells).fit(table, "kind")
    assert set(seen) == {(pd.DataFrame, True, True)} and len(seen) == 6
    np.testing.assert_allclose(found.fold_scores_, 1.0 - found.fold_errors_, rtol=1e-12)
    arrow = pa.table(table[list("abcdef")])
    again = BoostedClassifierCV(folds=np.arange(150) % 3, alphas=ALPHAS, scoring="accuracy").fit(arrow, KIND)
    np.testing.assert_allclose(again.fold_scores_, found.fold_scores_, rtol=1e-12)


def test_few_strengths_come_in_one_pass_where_their_scores_take_much(monkeypatch, tmp_path):
    data = parquet(tmp_path / "data", KIND)
    params = {"cv": 3, "n_alphas": 5, "scoring": "roc_auc_ovr"}
    whole = BoostedClassifierCV(**params).fit(data)
    monkeypatch.setattr(held_out, "MARGIN_BYTES", 3_000)
    np.testing.assert_array_equal(BoostedClassifierCV(**params).fit(data).fold_scores_, whole.fold_scores_)


def test_a_class_in_one_fold_only_is_never_predicted():
    y, folds = KIND.copy(), np.arange(150) % 3
    y[[1, 4, 7]] = "rare"
    params = {"penalty": "l1/l2", "folds": folds, "alphas": [0.03], **EXACT}
    found = BoostedClassifierCV(scoring="accuracy", **params).fit(X, y)
    np.testing.assert_allclose(found.fold_scores_, 1.0 - found.fold_errors_, rtol=1e-12)
    by_classes = BoostedClassifierCV(scoring=lambda e, rows, y: float(len(e.classes_)), **params).fit(X, y)
    assert np.all(by_classes.fold_scores_ == 4.0)


@pytest.mark.full
def test_a_fold_that_lacks_a_class_is_scored_or_refused_with_a_remedy(client):
    y = np.where(KIND == "emu", "dog", KIND)
    y[::38] = "emu"
    lazy = da.from_array(X, chunks=(60, 6)), da.from_array(y, chunks=60)
    params = {"penalty": "l1", "alphas": [0.1], "tol": 1e-3}
    # four rows in six folds: what sums over the rows are is known of all of them
    for scoring in ("neg_log_loss", "neg_brier_score", "d2_log_loss_score", "top_k_accuracy"):
        found = BoostedClassifierCV(cv=6, scoring=scoring, **params).fit(X, y)
        assert np.all(np.isfinite(found.fold_scores_)) and found.fold_scores_.shape == (6, 1)
    remedy = r"fold [0-5] of 6 has no row of class 'emu'; use cv=4 or fewer, as the rarest class has 4 rows, or another"
    for where, given in ((None, (X, y)), (client, lazy)):
        found = BoostedClassifierCV(cv=6, scoring="neg_log_loss", client=where, **params).fit(*given)
        np.testing.assert_allclose(-found.fold_scores_, found.fold_losses_, rtol=1e-9)
        with pytest.raises(DataError, match=remedy) as caught:
            BoostedClassifierCV(cv=6, scoring="roc_auc_ovr", callbacks=[never], client=where, **params).fit(*given)
        assert "\n" not in str(caught.value)
        # and the remedy is one
        BoostedClassifierCV(cv=4, scoring="roc_auc_ovr", client=where, **params).fit(*given)


def test_a_class_of_one_row_and_folds_that_were_given_have_other_remedies():
    y, folds = KIND.copy(), np.arange(150) % 3
    y[7] = "owl"
    with pytest.raises(DataError, match="leave out the classes of fewer than two rows"):
        BoostedClassifierCV(cv=3, scoring="roc_auc_ovr").fit(X, y)
    y[1] = "owl"
    with pytest.raises(DataError, match="fold 0 of 3 has no row of class 'owl'; give folds that spread each class"):
        BoostedClassifierCV(folds=folds, scoring="roc_auc_ovr").fit(X, y)


def test_early_stopping_on_rows_that_lack_a_class():
    stop = dboost.EarlyStopping(X[KIND != "emu"], KIND[KIND != "emu"], scoring="neg_log_loss", rounds=3)
    BoostedClassifier(callbacks=[stop], alpha=0.01).fit(X, KIND)
    assert np.isfinite(stop.best_score_) and stop.scores_


def test_other_systems_and_offsets_are_scored():
    found = dboost.cross_validated(
        X,
        TWO,
        estimator=dboost.LeveragingClassifier(hypotheses=dboost.Columns(), max_rounds=5),
        cv=3,
        scoring="roc_auc",
    )
    assert found.fold_scores_.shape == (3, 1) and found.best_score_ > 0.8
    begin = rng.normal(size=150)
    moved = BoostedRegressorCV(offset=6, folds=np.arange(150) % 3, alphas=ALPHAS, scoring="neg_mean_squared_error")
    moved.fit(np.column_stack([X, begin]), NUMBER + begin)
    np.testing.assert_allclose(-0.5 * moved.fold_scores_, moved.fold_losses_, rtol=1e-9)


def test_saved_without_the_callable_and_gone_on_with_from_a_folder(tmp_path):
    params = {"cv": 3, "n_alphas": 4}
    found = BoostedClassifierCV(scoring=by_hand, **params).fit(X, KIND)
    found.save(tmp_path / "model")
    again = dboost.load_model(tmp_path / "model")
    assert again.scoring == "loss" and again.best_score_ == found.best_score_
    np.testing.assert_array_equal(again.fold_scores_, found.fold_scores_)
    assert (again.alpha_best_, again.alpha_1se_) == (found.alpha_best_, found.alpha_1se_)
    folder = tmp_path / "progress"
    whole = BoostedClassifierCV(scoring="f1_macro", checkpoint=folder, **params).fit(X, KIND)
    calls = []

    def counted(record):
        calls.append(record)

    kept = BoostedClassifierCV(scoring="f1_macro", checkpoint=folder, callbacks=[counted], **params).fit(X, KIND)
    np.testing.assert_array_equal(kept.fold_scores_, whole.fold_scores_)
    assert calls == []
    with pytest.raises(UsageError, match="belongs to|other"):
        BoostedClassifierCV(scoring="accuracy", checkpoint=folder, **params).fit(X, KIND)


class Fitted(AssertionError):
    """A fit was begun where one should have been refused."""


def never(record):
    raise Fitted


MISSING = np.where(rng.random((150, 3)) < 0.1, np.nan, TASKS)


@pytest.mark.parametrize(
    ("estimator", "y", "scoring", "said"),
    [
        (BoostedClassifierCV, KIND, "auc", r"scoring='auc'.*balanced_accuracy.*roc_auc"),
        (BoostedClassifierCV, KIND, 3, r"scoring=3; expected None"),
        (BoostedClassifierCV, KIND, "roc_auc", r"'roc_auc' cannot judge .* 'multinomial' on 3 classes: multi_class"),
        (BoostedClassifierCV, KIND, "f1", r"'f1' cannot judge"),
        (BoostedClassifierCV, KIND, "r2", r"'r2' cannot judge"),
        (BoostedRegressorCV, NUMBER, "neg_log_loss", r"'neg_log_loss' needs predict_proba.* loss 'squared'"),
        (BoostedRegressorCV, NUMBER, "accuracy", r"'accuracy' cannot judge .* on numbers"),
        (MultiTaskBoostedClassifierCV, TASKS, "neg_log_loss", r"needs probabilities of classes.* loss 'multitask'"),
        (MultiTaskBoostedClassifierCV, MISSING, "f1_macro", r"needs every label"),
    ],
)
def test_what_cannot_be_scored_is_refused_before_any_fit(estimator, y, scoring, said):
    with pytest.raises(UsageError, match=said):
        estimator(cv=3, scoring=scoring, callbacks=[never]).fit(X, y)


def test_a_score_that_is_no_number_is_refused_with_its_fold_and_strength():
    params = {"folds": np.arange(150) % 3, "alphas": [0.05]}
    with pytest.raises(DataError, match=r"nan on fold|on fold 0 at alpha=0.05 is nan, expected a finite number"):
        BoostedClassifierCV(scoring=lambda e, rows, y: np.nan, **params).fit(X, KIND)
    with pytest.raises(DataError, match=r"on fold 0 at alpha=0.05 failed: it gave dict"):
        BoostedClassifierCV(scoring=lambda e, rows, y: {"a": 1.0}, **params).fit(X, KIND)
    # all rows of one fold have one label, of which no ranking is known
    one = np.where(np.arange(150) % 3 == 2, 1, TWO)
    with pytest.raises(DataError, match=r"'roc_auc' needs each class in each fold, .* 2 of 3 has no row of class 0"):
        BoostedClassifierCV(scoring="roc_auc", **params).fit(X, one)
