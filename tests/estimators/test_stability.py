"""Stability selection: frequencies are those of a plain loop over explicit halves, and false features within the bound.

Covers: ``StabilitySelection`` on data in memory, on disk and on Dask, refusals, interrupts, the columns it leaves.
The bounds: no r-concave variable reaches further, one reaches as far. Does not cover: how halves are drawn
(tests/test_draws.py).
"""

from __future__ import annotations

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from scipy.optimize import differential_evolution
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import dboost
from dboost import ConvergenceWarning, DataError, DboostWarning, ParquetData, StabilitySelection, UsageError
from dboost.boosting.cross_validation import drawn
from dboost.estimators.fitting import prepared
from dboost.estimators.stability import largest_tail, r_concave, worst_case
from dboost.interruption import Interruption, heeded
from tests.test_folding import memo

# Short paths of few pairs use many features, and say so.
pytestmark = pytest.mark.filterwarnings("ignore:a half sample uses")

NAMES = [f"f{j}" for j in range(12)]


def explicit(estimator, X, y, weight, seed, n_pairs):
    """The half of each row in each pair."""
    with prepared(clone(estimator), X, y, weight) as parts:
        plan = parts.plan
        parts.engine.set_plan(plan.items, plan.rows, "explicit")
        pairs = drawn(plan, parts.engine, seed, n_pairs)
        loaded = [item.load() for item in plan.items]
        return [np.concatenate([halves.ids(part, memo(part.key)) for part in loaded]) for halves in pairs]


def plain_loop(estimator, X, y, weight, alphas, seed, n_pairs):
    """Share of the halves whose fit, one by one and each from nothing, uses a feature; (strengths, features)."""
    weight = np.ones(len(y)) if weight is None else weight
    counts = np.zeros((len(alphas), X.shape[1]))
    for ids in explicit(estimator, X, y, weight, seed, n_pairs):
        for half in (0, 1):
            mine = ids == half
            for t, alpha in enumerate(alphas):
                fit = clone(estimator).set_params(alpha=alpha).fit(X[mine], y[mine], weight[mine])
                counts[t] += np.any(fit.coef_ != 0.0, axis=0)
    return counts / (2 * n_pairs)


CASES = {
    "rows of classes": (dboost.BoostedClassifier(alpha="quick", penalty="l1/l2", tol=1e-9), "multiclass"),
    "entries of classes": (
        dboost.BoostedClassifier(alpha="quick", penalty="l1", tol=1e-9, standardize=True),
        "multiclass",
    ),
    "two classes": (dboost.BoostedClassifier(alpha="quick", tol=1e-9), "binary"),
    "numbers": (dboost.BoostedRegressor(alpha="quick", tol=1e-9), "numbers"),
    "tasks": (dboost.MultiTaskBoostedClassifier(alpha="quick", penalty="l1/l2", tol=1e-9), "tasks"),
}


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_frequencies_are_those_of_a_plain_loop(name, request):
    estimator, kind = CASES[name]
    if kind == "numbers":
        X, _ = request.getfixturevalue("binary")
        y = X[:, 0] - 0.5 * X[:, 5] + np.random.default_rng(0).normal(size=len(X))
    else:
        X, y = request.getfixturevalue(kind)
    weight = np.random.default_rng(9).integers(1, 4, len(y)).astype(float) if name == "rows of classes" else None
    alphas = [0.2, 0.08, 0.03]
    found = StabilitySelection(estimator, n_pairs=3, alphas=alphas, random_state=4).fit(X, y, weight)
    assert found.alphas_.tolist() == alphas and found.half_gaps_.shape == (3, 2, 3)
    np.testing.assert_array_equal(found.frequencies_, plain_loop(estimator, X, y, weight, alphas, 4, 3))
    assert 0 < found.frequencies_.sum() < found.frequencies_.size and found.half_gaps_.max() <= 1e-9
    assert found.stability_.tolist() == found.frequencies_.max(axis=0).tolist()
    assert found.selected_.tolist() == np.flatnonzero(found.stability_ >= 0.6).tolist()


def planted(seed, m=200, n=60, strength=1.5, places=(3, 7, 11)):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    y = strength * (X[:, places[0]] - X[:, places[1]] + X[:, places[2]]) + rng.logistic(size=m) > 0
    return X, y.astype(int)


def test_planted_features_are_found_and_noise_is_not():
    X, y = planted(0)
    found = StabilitySelection(n_pairs=4, expected_false=1.0).fit(X, y)
    assert found.selected_.tolist() == [3, 7, 11] and found.expected_false_bound_ <= 1.0
    # the same path without a limit goes on to strengths at which noise is used
    free = StabilitySelection(n_pairs=4).fit(X, y)
    assert free.frequencies_.tobytes() == found.frequencies_.tobytes()
    assert found.n_strengths_ < free.n_strengths_ == 10 and free.chosen_per_half_[-1] > 10
    q = found.chosen_per_half_[found.n_strengths_ - 1]
    assert found.expected_false_bound_ == found.expected_false_bounds_["worst_case"] == pytest.approx(q**2 / (0.2 * 60))
    further = found.chosen_per_half_[found.n_strengths_]
    assert further**2 / (0.2 * 60) > 1.0
    # the tighter bound lets weaker strengths in
    tighter = StabilitySelection(n_pairs=4, expected_false=1.0, bound="r_concave").fit(X, y)
    assert tighter.n_strengths_ >= found.n_strengths_ and tighter.expected_false_bound_ <= 1.0
    assert found.expected_false_bounds_["r_concave"] < found.expected_false_bound_


def bits(found):
    parts = (found.frequencies_, found.stability_, found.selected_, found.chosen_per_half_, found.half_gaps_)
    return [part.tobytes() for part in parts]


def stored(folder, X, y, group, name):
    table = pa.table({f: X[:, j] for j, f in enumerate(NAMES)} | {"label": y})
    path = folder / f"{name}.parquet"
    pq.write_table(table, path, row_group_size=group, write_page_checksum=True)
    return ParquetData(path, features=NAMES, label="label")


ROWS = dboost.BoostedClassifier(alpha="quick", standardize=False, penalty="l1/l2", tol=1e-3)
FEW = {"estimator": ROWS, "n_pairs": 2, "n_alphas": 2, "eps": 0.3, "random_state": 2}


@pytest.mark.full
def test_the_same_features_however_the_rows_are_kept(multiclass, tmp_path):
    X, y = multiclass
    here = StabilitySelection(**FEW).fit(X, y)
    others = [
        StabilitySelection(**FEW).fit(sparse.csr_array(X), y),
        StabilitySelection(**FEW).fit(pd.DataFrame(X, columns=NAMES), y),
        *(StabilitySelection(**FEW).fit(stored(tmp_path, X, y, size, f"g{size}")) for size in (150, 41)),
    ]
    for other in others:
        assert other.frequencies_.tobytes() == here.frequencies_.tobytes()
        assert other.selected_.tolist() == here.selected_.tolist()
    assert bits(others[0]) == bits(here)
    assert bits(StabilitySelection(**{**FEW, "random_state": 3}).fit(X, y)) != bits(here)


@pytest.mark.parametrize("workers", ["client", pytest.param("two_processes", marks=pytest.mark.full)])
def test_threads_and_workers_give_the_same_bits(multiclass, tmp_path, workers, request):
    X, y = multiclass
    data = stored(tmp_path, X, y, 60, "cut")
    here = StabilitySelection(**FEW).fit(data)
    where = request.getfixturevalue(workers)
    assert bits(StabilitySelection(**FEW, client=where).fit(data)) == bits(here)
    if workers == "client":
        lazy = da.from_array(X, chunks=(80, 12)), da.from_array(y, chunks=80)
        by_estimator = clone(ROWS).set_params(client=where)
        on_dask = StabilitySelection(**{**FEW, "estimator": by_estimator}).fit(*lazy)
        assert bits(on_dask) == bits(StabilitySelection(**FEW).fit(*lazy))


@pytest.fixture(scope="module")
def fitted():
    X, y = planted(1, m=150, n=12)
    table = pd.DataFrame(X, columns=NAMES)
    return table, y, StabilitySelection(n_pairs=5, n_alphas=4, eps=0.4).fit(table, y)


def test_what_is_selected_has_names_and_columns(fitted, tmp_path):
    table, y, found = fitted
    names = ["f3", "f7", "f11"]
    assert found.support_names_ == names and found.get_support(indices=True).tolist() == [3, 7, 11]
    assert found.support_.tolist() == found.get_support().tolist() and found.n_features_in_ == 12
    assert found.get_feature_names_out().tolist() == names and found.feature_names_in_.tolist() == NAMES
    expected = table[names].to_numpy()
    assert np.array_equal(found.transform(table), expected)
    assert list(clone(found).set_output(transform="pandas").fit(table, y).transform(table).columns) == names
    assert np.array_equal(found.transform(pa.Table.from_pandas(table)), expected)
    assert np.array_equal(found.transform(sparse.csr_array(table.to_numpy())).toarray(), expected)
    frame = dd.from_pandas(table.assign(more=1.0), npartitions=3)
    assert np.array_equal(found.transform(frame).compute().to_numpy(), expected)
    assert np.array_equal(found.transform(da.from_array(table.to_numpy(), chunks=(50, 12))).compute(), expected)
    back = found.inverse_transform(expected)
    assert back.shape == table.shape and np.count_nonzero(back.any(axis=0)) == 3
    with pytest.raises(UsageError, match="support_names_ as features="):
        found.transform(ParquetData(tmp_path))
    with pytest.raises(DataError, match="lacks 1 of the selected columns"):
        found.transform(frame[["f3", "f7"]])
    with pytest.raises(DataError, match="of 12 features"):
        found.transform(da.zeros((10, 5)))
    with pytest.raises(NotFittedError):
        StabilitySelection().transform(table)


def test_without_names_features_have_numbers_and_a_named_label_is_no_feature(fitted):
    table, y, found = fitted
    plain = clone(found).fit(table.to_numpy(), y)
    assert plain.support_names_ == ["x3", "x7", "x11"] and not hasattr(plain, "feature_names_in_")
    assert bits(plain) == bits(found)
    assert plain.transform(dd.from_pandas(table, npartitions=2)).compute().columns.tolist() == ["f3", "f7", "f11"]
    given = clone(found).fit(sparse.csr_array(table.to_numpy()), y, feature_names=NAMES)
    assert given.support_names_ == ["f3", "f7", "f11"]
    labelled = table.assign(bought=y)
    by_name = clone(found).fit(labelled, "bought")
    assert bits(by_name) == bits(found) and by_name.transform(labelled).shape == (150, 3)


def test_it_stands_in_pipelines_and_travels(fitted):
    table, y, found = fitted
    model = make_pipeline(clone(found), LogisticRegression()).fit(table, y)
    assert model.score(table, y) > 0.8 and model[-1].coef_.shape == (1, 3)
    again = pickle.loads(pickle.dumps(found))
    assert bits(again) == bits(found) and repr(again) == repr(found)
    assert repr(found).endswith("3 of 12 features in 60% or more of 10 halves: f3, f7, f11")
    assert found.get_params()["estimator__penalty"] == "l1/linf" if found.estimator else found.estimator is None


def test_a_number_as_alpha_is_the_one_strength_and_factors_count():
    X, y = planted(2, n=12)
    found = StabilitySelection(dboost.BoostedClassifier(alpha=0.05), n_pairs=2).fit(X, y)
    assert found.alphas_.tolist() == [0.05] and found.frequencies_.shape == (1, 12)
    factors = [np.inf] * 6 + [1.0] * 6
    estimator = dboost.BoostedClassifier(alpha=0.05, penalty_factors=factors)
    some = StabilitySelection(estimator, n_pairs=2).fit(X, y)
    assert not some.frequencies_[:, :6].any()
    with pytest.raises(UsageError, match="which every model then has"):
        StabilitySelection(clone(estimator).set_params(penalty_factors=[0.0, *factors[1:]]), n_pairs=2).fit(X, y)
    # six features can be used, and the bound is of these
    assert some.expected_false_bound_ == pytest.approx(some.chosen_per_half_[0] ** 2 / (0.2 * 6))


def test_every_round_is_told_and_may_end_its_fit():
    X, y = planted(3, n=12)
    told = []
    found = StabilitySelection(n_pairs=2, n_alphas=3, eps=0.3, callbacks=[told.append]).fit(X, y)
    seen = {(record["pair"], record["half"], record["strength"]) for record in told}
    assert seen == {(p, h, t) for p in range(2) for h in range(2) for t in range(3)}
    with pytest.warns(ConvergenceWarning, match="of 12 fits of half samples stopped above tol"):
        short = clone(found).set_params(callbacks=[lambda record: True]).fit(X, y)
    assert short.half_gaps_.max() > 1e-4


def test_an_interrupt_keeps_the_pairs_that_had_ended():
    X, y = planted(4, n=12)
    params = {"n_pairs": 4, "n_alphas": 3, "eps": 0.3}
    rounds = []

    def stop(record):
        rounds.append(record)
        if record["pair"] == 3:
            raise KeyboardInterrupt

    selection = StabilitySelection(**params, callbacks=[stop])
    with pytest.raises(KeyboardInterrupt) as caught:
        selection.fit(X, y)
    assert 1 <= selection.n_pairs_ < 4 and selection.support_.shape == (12,)
    assert f"keeps the {selection.n_pairs_} pairs" in caught.value.__notes__[0]
    if selection.n_pairs_ == 3:
        less = StabilitySelection(**{**params, "n_pairs": 3}).fit(X, y)
        assert bits(less) == bits(selection)

    def at_once(record):
        raise KeyboardInterrupt

    none = StabilitySelection(**params, callbacks=[at_once])
    with pytest.raises(KeyboardInterrupt):
        none.fit(X, y)
    assert not hasattr(none, "support_")


def test_a_request_to_end_is_found_by_the_fits_of_halves():
    X, y = planted(4, n=12)
    request = Interruption()

    def ask(record):
        if record["pair"] == 2:
            request.request(KeyboardInterrupt)

    selection = StabilitySelection(n_pairs=30, n_alphas=3, eps=0.3, callbacks=[ask])
    with heeded(request), pytest.raises(KeyboardInterrupt):
        selection.fit(X, y)
    assert request.answered and 1 <= selection.n_pairs_ < 5


def test_after_max_seconds_no_pair_begins_and_those_that_have_are_whole():
    X, y = planted(4, n=12)
    params = {"n_alphas": 3, "eps": 0.3}
    with pytest.warns(DboostWarning, match="max_seconds=0 were over after 1 of 50 pairs"):
        found = StabilitySelection(**params, max_seconds=0).fit(X, y)
    assert found.n_pairs_ == 1 and bits(found) == bits(StabilitySelection(**params, n_pairs=1).fit(X, y))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"threshold": 0.5}, "threshold=0.5; expected a share above 0.5"),
        ({"threshold": 1.1}, "threshold=1.1"),
        ({"threshold": "most"}, "threshold='most'"),
        ({"n_pairs": 0}, "n_pairs=0; expected an integer >= 1"),
        ({"n_pairs": 2.5}, "n_pairs=2.5"),
        ({"expected_false": 0.0}, "expected_false=0"),
        ({"expected_false": -1}, "expected_false=-1"),
        ({"max_seconds": -1}, "max_seconds=-1"),
        ({"bound": "best"}, "bound='best'"),
        ({"alphas": []}, "alphas is empty"),
        ({"alphas": [-1.0]}, "alpha must be finite and >= 0"),
        ({"n_alphas": 0}, "n_alphas=0"),
        ({"eps": 1.0}, "eps=1.0"),
        ({"random_state": -1}, "random_state=-1"),
        ({"estimator": LogisticRegression()}, "expected one of BoostedClassifier"),
        ({"estimator": dboost.BoostedClassifier}, "expected one of BoostedClassifier"),
        ({"estimator": dboost.BoostedClassifierCV()}, "which fit at a given strength"),
        ({"estimator": dboost.ShareBoostClassifier()}, "expected one of BoostedClassifier"),
        (
            {"estimator": dboost.BoostedClassifier(penalty="l2_squared")},
            "'l2_squared' leaves no single feature out",
        ),
        ({"estimator": dboost.BoostedClassifier(penalty="l2")}, "'l2' leaves no single feature out"),
        ({"estimator": dboost.BoostedClassifier(penalty="none")}, "'none' leaves no single feature out"),
        (
            {"estimator": dboost.BoostedClassifier(hypotheses=dboost.Stumps())},
            "each half sample induces others",
        ),
        (
            {"estimator": dboost.BoostedClassifier(checkpoint="c")},
            "has checkpoint=, which is of one fit",
        ),
        ({"estimator": dboost.BoostedClassifier(callbacks=[print])}, "has callbacks="),
    ],
)
def test_what_has_no_meaning_is_refused(params, message):
    X, y = planted(0, m=40, n=4, places=(0, 1, 2))
    with pytest.raises(UsageError, match=message):
        StabilitySelection(**params).fit(X, y)


def test_what_tells_nothing_is_refused_or_said():
    X, y = planted(0, m=80, n=4, places=(0, 1, 2))
    with pytest.raises(UsageError, match="every half sample uses every feature at alpha=1e-05, the strongest"):
        StabilitySelection(n_pairs=2, alphas=[1e-5]).fit(X, y)
    with pytest.raises(UsageError, match="false features are expected already at alpha=0.1"):
        StabilitySelection(n_pairs=2, alphas=[0.1], expected_false=0.01).fit(X, y)
    with pytest.warns(DboostWarning, match="that the bound on false ones says nothing"):
        StabilitySelection(n_pairs=2, alphas=[0.2, 1e-4]).fit(X, y)
    with pytest.raises(DataError, match="no feature says anything of the labels"):
        StabilitySelection(dboost.BoostedRegressor(), n_pairs=2).fit(np.zeros((80, 3)), X[:, 0])
    with pytest.raises(DataError, match="halves of 1 of the rows of class True"):
        StabilitySelection(n_pairs=2).fit(X, np.arange(80) == 3)


# ---- bounds on false features ----------------------------------------------------------------------------------------


def searched(mean, place, steps, r):
    """The largest P(X >= place) of falling r-concave variables on 0..steps, by a search over all their shapes."""
    best = 0.0
    for k in range(place, steps + 1):
        x = np.arange(k + 1) / steps

        def lacking(z, x=x):
            # f**r is convex and rises: it begins at 1, and its steps grow
            f = np.concatenate([[1.0], 1.0 + np.cumsum(np.cumsum(np.exp(z)))]) ** (1.0 / r)
            f /= f.sum()
            return -f[place:].sum() + 100.0 * max(0.0, f @ x - mean)

        found = differential_evolution(lacking, [(-12.0, 10.0)] * k, seed=0, maxiter=200, tol=1e-10, polish=False)
        best = max(best, -found.fun)
    return best


@pytest.mark.parametrize(
    ("steps", "r", "mean", "place"),
    [(3, -0.5, 0.1, 2), pytest.param(4, -0.25, 0.15, 4, marks=pytest.mark.full)],
)
def test_the_largest_tail_is_that_of_a_search(steps, r, mean, place):
    assert largest_tail(mean, place / steps, steps, r) == pytest.approx(searched(mean, place, steps, r), rel=1e-4)


def test_limits_of_the_largest_tail():
    assert largest_tail(0.0, 0.5, 50, -0.5) == 0.0 and largest_tail(0.2, 0.0, 50, -0.5) == 1.0
    assert largest_tail(0.3, 0.5, 50, -0.5) == 1.0 and largest_tail(0.6, 1.0, 50, -0.5) == 1.0
    tails = [largest_tail(0.1, t, 50, -0.5) for t in (0.3, 0.5, 0.7, 1.0)]
    assert tails == sorted(tails, reverse=True) and tails[0] < 0.1 / 0.3  # Markov's
    tails = [largest_tail(mean, 0.6, 50, -0.25) for mean in (0.01, 0.05, 0.1, 0.2)]
    assert tails == sorted(tails) and tails[0] > 0.0
    # a share of 0.6 of 100 is reached at 60, not at 61
    assert largest_tail(0.05, 0.6, 100, -0.25) == largest_tail(0.05, 0.595, 100, -0.25)


def test_the_bounds():
    assert worst_case(50, 1000, 0.6) == pytest.approx(12.5) and worst_case(10, 100, 1.0) == pytest.approx(1.0)
    for q, tau in ((5, 0.6), (20, 0.75), (50, 0.9)):
        assert 0.0 < r_concave(q, 1000, tau, 50) < worst_case(q, 1000, tau)
    assert r_concave(0.0, 100, 0.6, 50) == 0.0
    # where a shape says nothing, the bound without one remains
    assert r_concave(90, 100, 0.6, 50) == 100.0 and r_concave(30, 1000, 0.9, 1) <= worst_case(30, 1000, 0.9)
