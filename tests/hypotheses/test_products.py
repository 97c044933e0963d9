"""Products of features: columns, sums, names and counts against the explicit matrix; the search against enumeration."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from dboost import BoostedClassifier
from dboost.errors import ModelFormatError, UsageError
from dboost.files.documents import Document
from dboost.hypotheses.columns import Columns
from dboost.hypotheses.products.family import Products, words
from dboost.penalties import get_penalty
from dboost.problem import tree_search as searching
from tests.hypotheses.conftest import Raw, check_cuts, check_read_back, check_sums, count_monomials, dense


def scaled(raw, scale, decay=1.0):
    """The raw columns as the family scales them; constant ones become nan."""
    live = raw.X[raw.weight > 0]
    low, high = live.min(axis=0), live.max(axis=0)
    width = high - low if scale == "range" else np.abs(live).max(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(high > low, decay * (raw.X - (low if scale == "range" else 0.0)) / width, np.nan)


@pytest.mark.parametrize("decay", [None, 0.7])
@pytest.mark.parametrize("scale", ["max", "range"])
@pytest.mark.parametrize("rows", ["sparse_rows", "dense_rows"])
def test_columns_are_products_of_scaled_features(request, rows, scale, decay):
    raw = request.getfixturevalue(rows)
    pool = raw.prepare(Products(max_degree=3, scale=scale, decay=decay))
    S = scaled(raw, scale, decay or 1.0)
    keys = [key for shard in pool.shards([], 24, 10_000) for key in pool.keys(shard)]
    H = dense(pool.columns(raw.block(), keys))
    wanted = np.column_stack([np.prod(S[:, list(key)], axis=1) for key in keys])
    np.testing.assert_allclose(H, wanted, rtol=1e-12, atol=1e-15)
    assert np.abs(H[raw.weight > 0]).max() <= (decay or 1.0) * (1 + 1e-12)


@pytest.mark.parametrize("degrees", [(1, 1), (1, 2), (2, 2), (1, 3)])
@pytest.mark.parametrize("rows", ["sparse_rows", "dense_rows"])
def test_every_monomial_is_a_candidate_once(request, rows, degrees):
    raw = request.getfixturevalue(rows)
    pool = raw.prepare(Products(min_degree=degrees[0], max_degree=degrees[1]))
    found = check_sums(raw, pool)
    letters, twice = ([0, 1, 2, 3, 4, 5], [4]) if rows == "sparse_rows" else ([0, 2, 3, 4], [])
    assert sorted(found) == sorted(count_monomials(letters, twice, *degrees))
    assert pool.size == len(found) and not pool.searched


def test_powers_of_two_valued_features_are_left_out(dense_rows):
    """Scaled to 0 and 1, a feature is its own square."""
    pool = dense_rows.prepare(Products(max_degree=2, scale="range"))
    keys = check_sums(dense_rows, pool)
    assert (3, 3) not in keys and (2, 2) in keys and (2, 3) in keys
    assert dense_rows.prepare(Products(scale="range")).size == math.inf


def test_sums_do_not_depend_on_the_cut_of_the_rows(sparse_rows):
    check_cuts(sparse_rows, Products(max_degree=2))


def test_a_searched_pool_offers_the_neighbours_of_the_model(dense_rows):
    pool = dense_rows.prepare(Products(scale="range"))
    assert pool.searched
    near = set(check_sums(dense_rows, pool, active=[(0, 2), (4,)]))
    letters = [0, 2, 3, 4]
    wanted = {(j,) for j in letters} | {tuple(sorted((0, 2, j))) for j in letters}
    assert near == wanted | {tuple(sorted((4, j))) for j in letters}


def test_names():
    assert words((0, 1, 1), ["rm", "lstat"]) == "rm * lstat^2"
    assert words((2,), None) == "x2"
    assert words((), None) == "1"


# ---- the search ----------------------------------------------------------------------------------------------------


def ask(raw, pool):
    """Children of some parents with mu+ and mu- of each."""

    def sums(parents):
        keys, found = raw.keys_and_sums(pool, pool.branch(parents), split=True)
        return keys, found["mu_plus"], found["mu_minus"]

    return sums


def children(raw, pool, norm):
    """What a search asks for, of all children."""

    def open_subtrees(parents, seen):
        keys, plus, minus = ask(raw, pool)(parents)
        return keys, norm(plus - minus).tolist(), norm(pool.reach(plus, minus)).tolist()

    return open_subtrees


@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf"])
@pytest.mark.parametrize("scale", ["max", "range"])
@pytest.mark.parametrize("rows", ["sparse_rows", "dense_rows"])
def test_what_lies_below_is_never_above_the_bound(request, rows, scale, penalty):
    raw = request.getfixturevalue(rows)
    pool = raw.prepare(Products(scale=scale, decay=0.8))
    norm = get_penalty(penalty).dual_norm
    keys, plus, minus = ask(raw, pool)([(), (0,), (0, 2)])
    reach = norm(pool.reach(plus, minus))
    for key, bound in zip(keys, reach, strict=True):
        below = [tuple(sorted(key + more)) for d in (1, 2, 3) for more in itertools.product([0, 2, 3, 4], repeat=d)]
        H = dense(pool.columns(raw.block(), [k for k in below if k[: len(key)] == key]))
        assert norm(H.T @ raw.theta).max(initial=0.0) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("scale", ["max", "range"])
def test_a_search_finds_the_largest_of_the_class(dense_rows, scale):
    """The class up to degree 5, searched, against all of its sums."""
    family = Products(max_degree=5, scale=scale, decay=0.9)
    pool = dense_rows.prepare(family)
    norm = get_penalty("l1/l2").dual_norm
    every = {}
    for shard in pool.shards([], 24, 5_000):
        keys, sums = dense_rows.keys_and_sums(pool, shard)
        every |= dict(zip(keys, norm(sums["G"]).tolist(), strict=True))
    pool = replace(pool, enumerated=0)
    assert pool.searched
    largest = max(every.values())
    found = searching.search(pool, children(dense_rows, pool, norm), 100, 0.0, 0)
    assert found.size == pytest.approx(largest, rel=1e-12)
    assert found.complete and found.opened < len(every) / 3
    strength = sorted(every.values())[-10] * (1 + 1e-9)
    found = searching.search(pool, children(dense_rows, pool, norm), 100, strength, 20)
    assert found.best[0] == max(every, key=every.get) and all(every[key] > strength for key in found.best)
    quiet = searching.search(pool, children(dense_rows, pool, norm), 100, 1.01 * largest, 20)
    assert quiet.size == 1.01 * largest and not quiet.best and quiet.complete


def test_an_exhausted_budget_still_bounds_the_class(dense_rows, monkeypatch):
    pool = dense_rows.prepare(Products(scale="range", decay=1.0, max_opened=3))
    norm = get_penalty("l1").dual_norm
    found = searching.search(pool, children(dense_rows, pool, norm), 10**9, 0.0, 0)
    assert found.opened == 3 and not found.complete
    deep = [key for d in range(1, 6) for key in itertools.combinations_with_replacement([0, 2, 3, 4], d)]
    H = dense(pool.columns(dense_rows.block(), deep))
    assert found.size >= norm(H.T @ dense_rows.theta).max()


# ---- what a model holds --------------------------------------------------------------------------------------------


def test_a_model_holds_only_its_monomials_and_their_inputs(sparse_rows):
    pool = sparse_rows.prepare(Products(max_degree=3, scale="range"))
    keys = [(1,), (1, 1, 4), (2, 5)]
    held, _ = check_read_back(sparse_rows, pool, keys, ["a", "b", "c", "d", "e", "f"])
    live = sparse_rows.X[sparse_rows.weight > 0]
    b, c, e, f = (
        f"({name} + {-low:.4g})" if low else name for name, low in zip("bcef", live.min(axis=0)[[1, 2, 4, 5]].tolist())
    )
    assert held.words() == [b, f"{b}^2 * {e}", f"{c} * {f}"] and held.n_hypotheses == 3
    # weights of what is named: of the columns moved, and not divided
    named = np.prod(sparse_rows.X[:, [1, 1, 4]] - live.min(axis=0)[[1, 1, 4]], axis=1)
    weights = held.named_weights(np.ones((3, 1)))
    np.testing.assert_allclose(named * weights[1, 0], dense(held.evaluate(sparse_rows.block(held.inputs)))[:, 1])
    assert held.inputs.tolist() == [1, 2, 4, 5]


def test_a_damaged_document_is_refused(sparse_rows):
    held = sparse_rows.prepare(Products(max_degree=2)).chosen([(0, 1)], None)
    document, arrays = held.to_json(), held.arrays()
    broken = [
        ({**document, "monomials": [[1, 0]]}, arrays),
        ({**document, "monomials": [[0, 9]]}, arrays),
        ({**document, "monomials": [[]]}, arrays),
        ({**document, "names": []}, arrays),
        ({**document, "names": [3]}, arrays),
        ({**document, "monomials": "all"}, arrays),
        (document, {**arrays, "width": np.zeros(2)}),
        (document, {**arrays, "low": np.array([0.0, np.nan])}),
        (document, {**arrays, "inputs": np.array([0, 99])}),
        (document, {"inputs": arrays["inputs"]}),
        (document, {**arrays, "more": arrays["low"]}),
    ]
    for bad_document, bad_arrays in broken:
        with pytest.raises(ModelFormatError, match=r"model\.json"):
            Products.restore(Document(bad_document, "model.json"), bad_arrays, 6)


def test_nonsense_is_refused():
    for parameters in [
        {"max_degree": 0},
        {"min_degree": 0},
        {"min_degree": 3, "max_degree": 2},
        {"max_degree": 2.5},
        {"scale": "std"},
        {"decay": 0.0},
        {"decay": 1.5},
        {"decay": True},
        {"max_opened": 0},
    ]:
        with pytest.raises(UsageError, match=r"Products: \w+="):
            Products(**parameters)


@pytest.mark.parametrize("family", [Products(max_degree=3), Columns() | Products(min_degree=2, max_degree=2)], ids=str)
def test_products_follow_to_other_rows_with_the_scores_they_had(family):
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(40, 4)), 3.0 * rng.normal(size=(30, 4))
    before, after = Raw(old).prepare(family), Raw(new).prepare(family)
    keys = [key for shard in before.shards([], 24, 10_000) for key in before.keys(shard)]
    weights = rng.normal(size=len(keys))
    held = before.chosen(keys, None)
    places, factors = after.follow(held, keys)
    assert places.tolist() == list(range(len(keys)))
    raw = Raw(new).block()
    np.testing.assert_allclose(
        dense(after.columns(raw, keys)) @ (weights * factors), dense(held.evaluate(raw)) @ weights, rtol=1e-12
    )


def test_products_that_are_no_candidates_of_other_rows_are_left_behind():
    rng = np.random.default_rng(0)
    old = rng.normal(size=(40, 3))
    new = rng.normal(size=(30, 3))
    new[:, 0], new[:, 1] = 2.0, new[:, 1] > 0
    keys = [(0,), (1,), (2,), (0, 2), (1, 1), (1, 2), (2, 2)]
    held = Raw(old).prepare(Products(max_degree=2)).chosen(keys, None)
    # the first column is constant here, and the second is its own square
    places, factors = Raw(new).prepare(Products(max_degree=2)).follow(held, keys)
    assert [keys[place] for place in places.tolist()] == [(1,), (2,), (1, 2), (2, 2)]
    wide = np.abs(new).max(axis=0) / np.abs(old).max(axis=0)
    np.testing.assert_allclose(factors, [wide[1], wide[2], wide[1] * wide[2], wide[2] ** 2])


@pytest.mark.parametrize("value", [0.0, 1.0, -1e300])
def test_products_over_constant_columns_only_are_the_model_without_features(value):
    X, y = np.full((20, 3), value), np.arange(20) % 4 == 0
    for max_degree in (None, 3):
        model = BoostedClassifier(hypotheses=Products(max_degree=max_degree), alpha=0.01).fit(X, y)
        assert len(model.active_features_) == 0 and model.stop_reason_ == "tol"
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], 0.25, rtol=1e-6)
