"""Stumps: thresholds, columns, sums, names and saved sets against the explicit matrix."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

from dboost import passes
from dboost.compiled.vectors.scaled_rows import padded
from dboost.engine.views import NoMemo
from dboost.errors import ModelFormatError, UsageError
from dboost.files.documents import Document
from dboost.hypotheses import family_from_json, restore_chosen
from dboost.hypotheses.held_by_model import Held
from dboost.hypotheses.stumps.family import Stumps, encoded, halfway, key_arrays, threshold_keys
from dboost.passes import Point
from tests.hypotheses.conftest import Raw, block_of, check_cuts, check_read_back, check_sums, dense, every_stump


def keys_of(pool):
    return [key for shard in pool.shards([], 24, 500) for key in pool.keys(shard)]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("rows", ["sparse_rows", "dense_rows"])
def test_every_stump_is_a_candidate_once_with_the_sums_of_its_column(request, rows, signed):
    raw = request.getfixturevalue(rows)
    pool = raw.prepare(Stumps(signed=signed))
    keys = check_sums(raw, pool)
    wanted = every_stump(raw.X, raw.weight)
    columns, thresholds = key_arrays(keys)
    assert columns.tolist() == [j for j, _ in wanted] and not pool.searched and pool.size == len(wanted)
    np.testing.assert_allclose(thresholds, [th for _, th in wanted], rtol=1e-15)
    H = dense(pool.columns(raw.block(), keys))
    below = np.column_stack([raw.X[:, j] < th for j, th in wanted])
    assert np.array_equal(H, np.where(below, 1.0, -1.0 if signed else 0.0))
    live = H[raw.weight > 0]
    assert (live.min(axis=0) < live.max(axis=0)).all() and len(np.unique(H, axis=1).T) == len(keys)


@pytest.mark.parametrize("signed", [False, True])
def test_margins_and_sums_of_held_stumps_are_those_of_their_columns(signed):
    """Columns of few values, of most, and of all; thresholds on both sides of zero, several of a column or none."""
    rng = np.random.default_rng(11)
    for filled in (0.1, 0.6, 0.97, 1.0):
        raw = Raw(rng.normal(size=(90, 4)) * (rng.random((90, 4)) < filled), cuts=1)
        pool, part, memo = raw.prepare(Stumps(signed=signed)), raw.items[0], NoMemo()
        chosen = rng.permutation(len(keys := keys_of(pool)))[: len(keys) // 3]
        held = [keys[i] for i in chosen if keys[i][0] != 2]
        H, w, f = dense(pool.columns(raw.block(), held)), rng.normal(size=len(held)), rng.normal(size=90)
        expected = f + H @ w
        arranged = pool.arranged(held)
        pool.add_margins(part, memo, arranged, w, f)
        np.testing.assert_allclose(f, expected, atol=1e-13)
        for k in (1, 3):
            plus, minus = rng.random((2, 90, k))
            G = pool.held_sums(part, memo, arranged, plus - minus, None)["G"]
            np.testing.assert_allclose(G, H.T @ (plus - minus), atol=1e-12)
            mu = pool.held_sums(part, memo, arranged, plus, minus)
            up, down = np.maximum(H, 0.0).T, np.maximum(-H, 0.0).T
            np.testing.assert_allclose(mu["mu_plus"], up @ plus + down @ minus, atol=1e-12)
            np.testing.assert_allclose(mu["mu_minus"], up @ minus + down @ plus, atol=1e-12)


@pytest.mark.parametrize("offsets", [False, True])
def test_passes_over_held_stumps_are_those_over_their_columns(offsets):
    """At a model of three classes; the pass for products takes the curvature in float32."""
    rng = np.random.default_rng(12)
    raw = Raw(rng.normal(size=(90, 4)) * (rng.random((90, 4)) < 0.7), weight=rng.integers(0, 3, 90) * 1.0, cuts=1)
    part = replace(raw.items[0], offset=rng.normal(size=(90, 3)) if offsets else None)
    pool = raw.prepare(Stumps(signed=True))
    keys = keys_of(pool)[::4]
    indptr, rows, values, _ = block_of(dense(pool.columns(raw.block(), keys)))
    alone = replace(part, indptr=indptr, rows=rows, values=values)
    (W, D), b, d = rng.normal(size=(2, len(keys), 3)), rng.normal(size=3), rng.normal(size=3)
    stumps = Held(np.zeros(0, np.int64), "stumps", pool, tuple(keys))
    mine = Point("multinomial", stumps, W, b, "mine")
    other = Point("multinomial", Held(np.arange(len(keys)), "columns"), W, b, "other")
    repair = np.full(3, 0.8), np.zeros(3), np.zeros(3), np.full(3, 1 / 3)
    for leaf, arguments, off in (
        (passes.active_gradient, (), 1e-12),
        (passes.losses_along, (padded(D), d, np.array([0.0, 0.3, 1.0])), 1e-12),
        (passes.dual_value, repair, 1e-12),
        (passes.hessian_product, (padded(D, np.float32), d), 1e-5),
        (passes.curvature_diagonal, (True,), 1e-5),
    ):
        found, expected = (leaf(p, NoMemo(), point, *arguments).add for p, point in ((part, mine), (alone, other)))
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=off, atol=off * np.abs(value).max(), err_msg=name)


@pytest.mark.parametrize("signed", [False, True])
def test_scores_of_held_stumps_are_those_of_their_columns_to_the_bit_in_any_batch(sparse_rows, signed):
    pool = sparse_rows.prepare(Stumps(signed=signed))
    keys = keys_of(pool)[::3]
    chosen, W = pool.chosen(keys, None), np.random.default_rng(5).normal(size=(len(keys), 2))
    raw = sparse_rows.block(chosen.inputs)
    scores = chosen.products(raw, W)
    np.testing.assert_allclose(scores, dense(chosen.evaluate(raw)) @ W, atol=1e-13)
    X = sparse_rows.X[:, chosen.inputs]
    alone = [chosen.products(block_of(X[i : i + 1]), W) for i in range(len(X))]
    np.testing.assert_array_equal(np.vstack(alone), scores)


def test_constant_columns_have_no_stump(dense_rows):
    assert 1 not in {key[0] for key in keys_of(dense_rows.prepare(Stumps()))}
    nothing = Raw(np.ones((6, 2))).prepare(Stumps())
    assert nothing.size == 0 and keys_of(nothing) == []


def test_stored_zeros_are_zeros_of_any_sign():
    raw = Raw([[0.0], [-0.0], [1.0], [-1.0]], cuts=2)
    part = raw.items[0]
    raw.engine.set_plan([raw.items[1], pickle.loads(pickle.dumps(part))], [2, 2], "zeros")
    stored = type(part)(np.array([0, 2]), np.array([0, 1], np.int32), np.array([0.0, -0.0]), part.y, part.weight, "z")
    raw.engine.set_plan([stored, raw.items[1]], [2, 2], "stored")
    pool = raw.prepare(Stumps())
    assert key_arrays(keys_of(pool))[1].tolist() == [-0.5, 0.5]


def test_sums_and_token_do_not_depend_on_the_cut_of_the_rows(sparse_rows):
    assert check_cuts(sparse_rows, Stumps()).token != sparse_rows.prepare(Stumps(signed=True)).token


def test_many_distinct_values_take_wider_codes():
    rng = np.random.default_rng(3)
    raw = Raw(rng.normal(size=(400, 2)))
    pool = raw.prepare(Stumps())
    _, codes, _ = encoded(raw.items[0], pool.start, pool.thresholds)
    assert pool.size == 798 and codes.dtype == np.uint16
    check_sums(raw, pool)


def test_halfway_is_above_the_lower_value_and_not_above_the_upper():
    tiny, huge = np.nextafter(0.0, 1.0), np.finfo(float).max
    low = np.array([1.0, 0.0, -huge, 1.9, -tiny, -2.0])
    high = np.array([np.nextafter(1.0, 2.0), tiny, huge, 3.0, 0.0, np.nextafter(-2.0, 0.0)])
    middle = halfway(low, high)
    assert ((low < middle) & (middle <= high)).all()
    assert middle[3] == 2.45 and middle[2] == 0.0


def test_keys_ascend_with_column_and_threshold():
    thresholds = np.array([-np.finfo(float).max, -2.0, -1e-300, 0.0, 5e-324, 1.0, 1e300])
    keys = threshold_keys(np.repeat([0, 3], 7), np.tile(thresholds, 2))
    assert keys == sorted(keys)
    columns, back = key_arrays(keys)
    assert columns.tolist() == [0] * 7 + [3] * 7 and np.array_equal(back, np.tile(thresholds, 2))
    assert max(max(key) for key in keys) < 2**53


def test_names_in_words():
    raw = Raw([[1.9, 0.0], [3.0, 0.0], [3.0, -1.0]])
    for signed, form in ((False, "{}"), (True, "sign({})")):
        pool = raw.prepare(Stumps(signed=signed))
        named = pool.names(keys_of(pool), ["petal length", "b"])
        assert named == [form.format("petal length < 2.45"), form.format("b < -0.5")]
        assert pool.names(keys_of(pool), None)[0] == form.format("x0 < 2.45")


def test_parameters():
    family = Stumps(signed=True)
    assert family_from_json(json.loads(json.dumps(family.to_json()))) == family
    for wrong in (1, None, "yes"):
        with pytest.raises(UsageError, match="Stumps: signed="):
            Stumps(signed=wrong)
    with pytest.raises(UsageError, match="have no parameter 'depth'"):
        family_from_json({"family": "stumps", "depth": 2})


def test_a_model_holds_what_it_needs(sparse_rows):
    pool = sparse_rows.prepare(Stumps())
    keys = keys_of(pool)[::7][::-1]
    chosen, _ = check_read_back(sparse_rows, pool, keys)
    # a row has the same bits in any block
    few = Raw(sparse_rows.X[10:13]).block(chosen.inputs)
    assert np.array_equal(dense(chosen.evaluate(few)), dense(pool.columns(sparse_rows.block(), keys))[10:13])
    assert pool.chosen([], None).evaluate(sparse_rows.block([])).values.shape == (0,)


def test_damaged_sets_are_refused(sparse_rows):
    pool = sparse_rows.prepare(Stumps())
    chosen = pool.chosen(keys_of(pool)[:3], None)
    spec, arrays = chosen.to_json(), chosen.arrays()
    changes = [
        (spec | {"signed": 1}, arrays),
        (spec | {"names": None}, arrays),
        (spec | {"names": ["x"]}, arrays),
        (spec, arrays | {"columns": arrays["columns"] + 6}),
        (spec, arrays | {"columns": arrays["columns"].astype(np.int32)}),
        (spec, arrays | {"thresholds": arrays["thresholds"] * np.nan}),
        (spec, {"columns": arrays["columns"]}),
        (spec, arrays | {"more": arrays["columns"]}),
    ]
    for changed, given in changes:
        with pytest.raises(ModelFormatError):
            restore_chosen(Document(changed, "model.json"), given, 6)
