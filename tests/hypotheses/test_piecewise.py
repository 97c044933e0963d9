"""Pieces: features, sums and groups against the explicit matrix, centres and radii, parameters, reading back."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from dboost.engine.memo import Memo, MemoStore
from dboost.errors import DataError, ModelFormatError, UsageError
from dboost.hypotheses import family_from_json, restore_chosen
from dboost.hypotheses.base import Block, evaluate_rows
from dboost.hypotheses.columns import Columns
from dboost.hypotheses.pieces.family import PiecewiseLinear
from tests.hypotheses.conftest import Raw, check_read_back, check_sums, dense

CENTRES = np.random.default_rng(1).normal(size=(4, 6))
RADII = [1.0, 1.7, 2.4, 3.0]


def explicit(X, keys, centres=CENTRES, radii=RADII):
    """1[||x - c|| < r] (x, 1), one feature of one row at a time."""
    out = np.zeros((len(X), len(keys)))
    for place, (j, q, a) in enumerate(keys):
        for i, row in enumerate(X):
            if np.sqrt(sum((row - centres[j]) ** 2)) < radii[q]:
                out[i, place] = 1.0 if a == X.shape[1] else row[a]
    return out


def test_features_and_sums_are_those_of_the_explicit_matrix(sparse_rows):
    pool = sparse_rows.prepare(PiecewiseLinear(CENTRES, RADII))
    keys = check_sums(sparse_rows, pool)
    assert keys == [(j, q, a) for j in range(4) for q in range(4) for a in range(7)]
    assert pool.size == len(keys) and not pool.searched
    found = dense(pool.columns(sparse_rows.block(), keys))
    np.testing.assert_array_equal(found, explicit(sparse_rows.X, keys))
    share = (found[:, 6::7] != 0).mean(axis=0).reshape(4, 4)
    assert np.all(np.diff(share, axis=1) >= 0) and share.min() < 0.2 < share.max() < 1.0


@pytest.mark.full
def test_many_centres_by_tiles(dense_rows):
    centres = np.random.default_rng(3).uniform(0.5, 3.0, size=(70, 5))
    pool = dense_rows.prepare(PiecewiseLinear(centres, [0.9, 1.5]))
    keys = [key for shard in pool.shards([], 24, 24 * 12 * 3) for key in pool.keys(shard)]
    assert len(keys) == pool.size == 70 * 2 * 6
    assert len(pool.shards([], 24, 24 * 12 * 3)) == 24
    check_sums(dense_rows, pool)
    found = dense(pool.columns(dense_rows.block(), keys))
    assert np.array_equal(found, explicit(dense_rows.X, keys, centres, [0.9, 1.5]))


def test_groups_are_a_centre_and_a_radius(sparse_rows):
    pool = sparse_rows.prepare(PiecewiseLinear(CENTRES, RADII) | Columns())
    for shard in pool.shards([], 24, 24 * 7 * 4 * 3):
        keys = pool.keys(shard)
        starts = pool.groups(shard, len(keys)).tolist()
        for start, stop in zip(starts, [*starts[1:], len(keys)], strict=True):
            for key in keys[start:stop]:
                assert pool.group(key) == keys[start:stop]
        assert len(starts) == (len(keys) if shard[0] == 1 else len(keys) // 7)


def test_bits_in_any_block_and_in_a_model(sparse_rows):
    raw = sparse_rows
    pool = raw.prepare(PiecewiseLinear(CENTRES, RADII))
    keys = [(3, 1, 6), (0, 3, 2), (3, 2, 0)]
    whole = dense(pool.columns(raw.block(), keys))
    parts = [dense(pool.columns(Block(p.indptr, p.rows, p.values, p.n_rows), keys)) for p in raw.items]
    assert np.array_equal(np.concatenate(parts), whole)
    chosen = pickle.loads(pickle.dumps(pool.chosen(keys, None)))
    assert len(chosen.balls) == 2 and chosen.inputs.tolist() == list(range(6))
    assert np.array_equal(evaluate_rows(chosen, sp.csr_array(raw.X)).toarray(), whole)
    part, theta = raw.items[0], raw.theta[: raw.items[0].n_rows]
    sums = [
        pool.sums(part, Memo(MemoStore(budget), "run", part.key), (0, 4), theta, None).add["G"] for budget in (0, 10**8)
    ]
    assert np.array_equal(*sums)


def test_a_row_at_the_radius_is_outside():
    X = np.array([[3.0, 4.0], [3.0, 3.9], [0.0, 0.0]])
    raw = Raw(X, cuts=1)
    pool = raw.prepare(PiecewiseLinear(np.zeros((1, 2)), [5.0]))
    assert dense(pool.columns(raw.block(), [(0, 0, 2), (0, 0, 1)])).tolist() == [[0, 0], [1, 3.9], [1, 0]]


def test_centres_and_radii_are_found_by_a_seed_whatever_the_partitions_are():
    rng = np.random.default_rng(4)
    middles = np.array([[0.0, 0.0, 9.0], [9.0, 0.0, 0.0], [0.0, 9.0, 0.0]])
    X = middles[rng.integers(0, 3, 300)] + 0.1 * rng.normal(size=(300, 3))
    pools = [Raw(X, cuts=cuts).prepare(PiecewiseLinear(3, 4), seed=2) for cuts in (1, 8)]
    assert pools[0].token == pools[1].token
    balls = pools[0].balls
    nearest = ((middles - balls.centres[:, None]) ** 2).sum(axis=2).argmin(axis=1)
    assert sorted(nearest) == [0, 1, 2]
    np.testing.assert_allclose(balls.centres, middles[nearest], atol=0.1)
    distances = np.sqrt(((X[:, None] - balls.centres) ** 2).sum(axis=2))
    np.testing.assert_allclose(balls.radii, np.quantile(distances, [0.25, 0.5, 0.75, 1.0]), rtol=1e-12)


def test_words_json_and_reading_back(sparse_rows):
    for asked in (PiecewiseLinear(CENTRES, RADII), PiecewiseLinear(3, 5)):
        assert family_from_json(json.loads(json.dumps(asked.to_json()))) == asked
    pool = sparse_rows.prepare(PiecewiseLinear(CENTRES, RADII))
    keys = [(3, 1, 6), (1, 0, 2)]
    names = [f"f{a}" for a in range(6)]
    assert pool.names(keys, None) == ["1 within 1.7 of centre 3", "x2 within 1 of centre 1"]
    chosen, spec = check_read_back(sparse_rows, pool, keys, names)
    assert chosen.words() == ["1 within 1.7 of centre 3", "f2 within 1 of centre 1"]
    for name, bad in [
        ("piece_centres", np.zeros((2, 5))),
        ("piece_centres", np.full((2, 6), np.inf)),
        ("piece_radii", np.array([2.0, 1.0])),
        ("piece_radii", np.zeros(0)),
        ("piece_keys", np.array([[0, 0, 7]])),
        ("piece_keys", np.array([[0, 4, 0]])),
        ("piece_keys", np.array([[2, 0, 0]])),
        ("piece_numbers", np.array([0.5, 1.0])),
        ("odd", np.zeros(1)),
    ]:
        with pytest.raises(ModelFormatError):
            restore_chosen(spec, {**chosen.arrays(), name: bad}, 6)


def test_parameters_without_a_meaning_are_refused():
    for arguments in [
        {"centres": 0},
        {"centres": [1.0, 2.0]},
        {"centres": "few"},
        {"centres": [[np.nan]]},
        {"radii": 0},
        {"radii": 256},
        {"radii": [2.0, 1.0]},
        {"radii": [0.0, 1.0]},
        {"radii": [[1.0]]},
        {"radii": []},
    ]:
        with pytest.raises(UsageError):
            PiecewiseLinear(**arguments)


def test_data_that_cannot_be_cut_is_refused(sparse_rows):
    with pytest.raises(DataError, match="features"):
        sparse_rows.prepare(PiecewiseLinear(np.zeros((1, 5))))
    with pytest.raises(DataError, match="centres=99"):
        sparse_rows.prepare(PiecewiseLinear(99))
    with pytest.raises(DataError, match="distances"):
        Raw(np.ones((10, 2))).prepare(PiecewiseLinear(np.ones((1, 2)), 3))
    with pytest.raises(UsageError, match="no parameter"):
        family_from_json({"family": "piecewise_linear", "depth": 3})
    chosen = sparse_rows.prepare(PiecewiseLinear(CENTRES, RADII)).chosen([(0, 0, 0)], None)
    with pytest.raises(DataError, match="need 6"):
        chosen.evaluate(sparse_rows.block([0, 1]))
