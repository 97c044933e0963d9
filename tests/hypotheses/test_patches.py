"""Patches: features and sums against the slow reference from the formula, templates, what is remembered, parameters."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from dboost.engine.memo import Memo, MemoStore
from dboost.errors import DataError, ModelFormatError, UsageError
from dboost.files.documents import Document
from dboost.hypotheses import family_from_json, restore_chosen, same_hypotheses
from dboost.hypotheses.base import Block, Family, evaluate_rows
from dboost.hypotheses.columns import Columns
from dboost.hypotheses.patches import patch_loops as loops
from dboost.hypotheses.patches.family import Bank, Patches
from tests.hypotheses.conftest import Raw, check_read_back, check_sums, dense

SHAPE = (9, 11)
SIZE = 3
GRID = 2


def make_images(m=40, seed=0):
    """Images with blank parts, and a blank one."""
    rng = np.random.default_rng(seed)
    images = rng.uniform(0.0, 2.0, size=(m, *SHAPE)) * (rng.random((m, *SHAPE)) < 0.5)
    images[:, :4, :5] = 0.0
    images[3] = 0.0
    return images.reshape(m, -1)


def given(t=5, seed=1):
    return np.random.default_rng(seed).normal(size=(t, SIZE, SIZE))


def slow_masks(positions, grid, spread):
    """Gaussians on a grid x grid lattice, standard deviation `spread` of its spacings, cut at three of them."""
    found = np.zeros((grid * grid, *positions))
    for a in range(grid):
        for b in range(grid):
            for y in range(positions[0]):
                for x in range(positions[1]):
                    step = positions[0] / grid, positions[1] / grid
                    centre = (a + 0.5) * step[0] - 0.5, (b + 0.5) * step[1] - 0.5
                    square = ((y - centre[0]) / step[0]) ** 2 + ((x - centre[1]) / step[1]) ** 2
                    found[a * grid + b, y, x] = np.exp(-square / spread**2 / 2) if square <= 9 * spread**2 else 0.0
    return found


def slow_features(images, templates, top, lattices, contrast=None):
    """max over positions of 256 (I * w) g, or of 256 cos(I, w) g, at least 0, unrounded: (m, templates, masks)."""
    positions = SHAPE[0] - SIZE + 1, SHAPE[1] - SIZE + 1
    masks = np.concatenate([slow_masks(positions, grid, spread) for grid, spread in lattices])
    out = np.zeros((len(images), len(templates), len(masks)))
    for i, image in enumerate(images.reshape(-1, *SHAPE)):
        for f, template in enumerate(templates):
            w = template - template.mean()
            w = 256 * w / (top * w[w > 0].sum() if contrast is None else np.sqrt((w**2).sum()))
            for y in range(positions[0]):
                for x in range(positions[1]):
                    patch = image[y : y + SIZE, x : x + SIZE]
                    r = (patch * w).sum()
                    if contrast is not None:
                        r /= max(np.sqrt(((patch - patch.mean()) ** 2).sum()), contrast * top)
                    out[i, f] = np.maximum(out[i, f], r * masks[:, y, x])
    return out


def family(t=5):
    return Patches(templates=given(t), size=SIZE, masks=GRID, shape=SHAPE)


@pytest.mark.parametrize(
    ("masks", "spread", "lattices"),
    [
        (2, 0.5, [(2, 0.5)]),
        (2, 0.9, [(2, 0.9)]),
        ((3, 1), 0.5, [(3, 0.5), (1, 0.5)]),
        (2, (0.4, 1.5), [(2, 0.4), (2, 1.5)]),
        ([1, 2], [0.3, 0.8], [(1, 0.3), (2, 0.8)]),
    ],
)
def test_features_are_the_formula_rounded_to_bytes(masks, spread, lattices):
    images = make_images()
    raw = Raw(images)
    pool = raw.prepare(replace(family(), masks=masks, spread=spread))
    assert isinstance(family(), Family)
    count = sum(grid**2 for grid, _ in lattices)
    assert pool.size == 5 * count
    keys = [(f, c) for f in range(5) for c in range(count)]
    found = 256 * dense(pool.columns(raw.block(), keys)).reshape(40, 5, count)
    expected = np.minimum(slow_features(images, given(), images.max(), lattices), 255)
    assert np.array_equal(found, np.round(found))
    assert np.abs(found - expected).max() <= 0.5 + 1e-3
    # an independent rounding may only differ where the number lies at the border of two levels
    border = np.abs(expected - np.floor(expected) - 0.5) < 1e-3
    assert np.array_equal(found[~border], np.floor(expected + 0.5)[~border])
    assert found.max() > 60 and np.all(found[3] == 0)


@pytest.mark.parametrize("contrast", [0.2, 1.0, 5.0])
def test_responses_are_cosines_above_a_contrast(contrast):
    images = make_images()
    images[5:] *= 10.0 ** -np.arange(35)[:, None] / 4
    raw = Raw(images)
    pool = raw.prepare(replace(family(), contrast=contrast))
    keys = [(f, c) for f in range(5) for c in range(4)]
    found = 256 * dense(pool.columns(raw.block(), keys)).reshape(40, 5, 4)
    expected = np.minimum(slow_features(images, given(), images.max(), [(2, 0.5)], contrast), 255)
    assert np.abs(found - expected).max() <= 0.5 + 1e-3
    assert found.max() > (60 if contrast < 5 else 10) and np.all(found[[3, 39]] == 0)
    chosen, spec = check_read_back(raw, pool, keys)
    with pytest.raises(ModelFormatError):
        restore_chosen(Document(spec.fields | {"floor": -1.0}, "model.json"), chosen.arrays(), raw.n)


def test_a_faint_stroke_counts_as_a_strong_one():
    stroke = np.zeros(SHAPE)
    stroke[2:5, 4] = 1.0
    images = np.array([stroke, 0.5 * stroke, 0.05 * stroke]).reshape(3, -1)
    asked = Patches(templates=stroke[None, 2:5, 3:6], size=3, masks=1, shape=SHAPE)
    plain, cosine = (dense(Raw(images).prepare(one).columns(Raw(images).block(), [(0, 0)]))[:, 0] for one in (
        asked, replace(asked, contrast=0.2)
    ))  # fmt: skip
    assert plain[0] > 1.9 * plain[1] > 0
    assert cosine[0] == cosine[1] > 0.8 and 0 < cosine[2] < 0.5 * cosine[1]


@pytest.mark.parametrize("t", [5, 130])
def test_sums_are_those_of_the_explicit_columns(t):
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 40)
    weight[[1, 39]] = 0.0
    raw = Raw(make_images(), weight)
    pool = raw.prepare(family(t))
    keys = check_sums(raw, pool)
    assert sorted(keys) == [(f, c) for f in range(t) for c in range(4)]
    assert pool.size == 4 * t and not pool.searched


def test_an_image_has_the_same_bits_in_any_block_beside_any_templates_and_in_a_model():
    raw = Raw(make_images(60))
    pool = raw.prepare(family(140))
    keys = [(139, 0), (2, 3), (2, 1), (77, 2)]
    whole = dense(pool.columns(raw.block(), keys))
    parts = [dense(pool.columns(Block(p.indptr, p.rows, p.values, p.n_rows), keys)) for p in raw.items]
    assert np.array_equal(np.concatenate(parts), whole)
    memo = Memo(MemoStore(10**9), "run", "one")
    assert np.array_equal(dense(pool.held(raw.items[1], memo, keys)), parts[1])
    assert np.array_equal(dense(pool.held(raw.items[1], Memo(MemoStore(0), "run", "two"), keys)), parts[1])
    chosen = pool.chosen(keys, None)
    assert np.array_equal(evaluate_rows(chosen, sp.csr_array(raw.X[:, chosen.inputs])).toarray(), whole)
    # masks in one corner do not see the opposite one
    small = pool.chosen([(0, 0)], None)
    assert 0 < len(small.inputs) < raw.n
    alone = dense(small.evaluate(raw.block(small.inputs)))
    assert np.array_equal(alone, dense(pool.columns(raw.block(), [(0, 0)])))


def test_bits_do_not_depend_on_what_is_remembered(monkeypatch):
    raw = Raw(make_images(400), cuts=1)
    pool = raw.prepare(family(300))
    part, theta = raw.items[0], raw.theta
    made = []
    features = Bank.features
    monkeypatch.setattr(Bank, "features", lambda bank, images, tile: made.append(tile) or features(bank, images, tile))
    (shard,) = pool.shards([], 24, 10**9)
    results, builds = [], []
    tile_bytes = 400 * 128 * 4
    for budget in (0, int(1.1 * tile_bytes / 0.7), 10**8):
        store = MemoStore(budget)
        memo = Memo(store, "run", part.key)
        for _ in range(3):
            results.append(pool.sums(part, memo, shard, theta, None).add["G"])
        builds.append(len(made))
        made.clear()
        assert store.nbytes <= budget
    assert all(np.array_equal(one, results[0]) for one in results)
    assert builds == [9, 7, 3]


def test_shards_cut_tiles_and_cover_all():
    pool = Raw(make_images(5)).prepare(family(300))
    assert pool.shards([], 8, 8 * 128 * 4) == [(0, 1), (1, 2), (2, 3)]
    assert pool.keys((2, 3), np.array([0, 44, 175])) == [(256, 0), (256, 1), (299, 3)]


def test_templates_are_found_by_a_seed_whatever_the_partitions_are():
    images = make_images(50)
    one, other = (Raw(images, cuts=cuts) for cuts in (1, 7))
    asked = Patches(templates=6, size=SIZE, masks=GRID, shape=SHAPE, sample=400)
    first = one.prepare(asked, seed=3)
    assert first.token == other.prepare(asked, seed=3).token
    assert first.token != one.prepare(asked, seed=4).token
    found = first.bank.templates.astype(float)
    np.testing.assert_allclose(found.mean(axis=1), 0.0, atol=1e-4)
    np.testing.assert_allclose(np.maximum(found, 0).sum(axis=1), 256 / images.max(), rtol=1e-5)


def test_k_means_finds_the_patches_that_there_are():
    strokes = np.zeros((2, SIZE, SIZE))
    strokes[0, 1], strokes[1, :, 1] = 1.0, 1.0
    rng = np.random.default_rng(5)
    images = np.zeros((60, *SHAPE))
    for image in images:
        for _ in range(2):
            y, x = 4 * rng.integers(0, 2) + 1, 4 * rng.integers(0, 2) + 1
            image[y : y + SIZE, x : x + SIZE] = strokes[rng.integers(0, 2)]
    pool = Raw(images.reshape(60, -1)).prepare(Patches(templates=40, size=SIZE, masks=GRID, shape=SHAPE, sample=2000))
    wanted = (strokes - 1 / 3).reshape(2, -1)
    found = pool.bank.templates / np.linalg.norm(pool.bank.templates, axis=1, keepdims=True)
    assert (found @ (wanted / np.linalg.norm(wanted, axis=1, keepdims=True)).T).max(axis=0).min() > 0.98


def test_flat_templates_and_bright_pixels():
    raw = Raw(np.full((4, 99), 0.5))
    pool = raw.prepare(Patches(templates=np.ones((1, 3, 3)), size=3, masks=1, shape=SHAPE))
    assert dense(pool.columns(raw.block(), [(0, 0)])).max() == 0.0
    edge = np.zeros((1, 3, 3))
    edge[0, 1, 1] = 1.0
    pool = raw.prepare(Patches(templates=edge, size=3, masks=1, shape=SHAPE))
    bright = np.zeros((2, 99))
    bright[0, 49], bright[1, 49] = 0.25, 1e6
    values = dense(pool.columns(Raw(bright).block(), [(0, 0)]))[:, 0]
    assert values.tolist() == [0.5, 255 / 256]


def test_words_json_and_reading_back():
    raw = Raw(make_images())
    asked = family()
    assert family_from_json(json.loads(json.dumps(asked.to_json()))) == asked
    counted = Patches(templates=7, size=5)
    assert family_from_json(json.loads(json.dumps(counted.to_json()))) == counted != asked
    pool = pickle.loads(pickle.dumps(raw.prepare(asked)))
    keys = [(4, 1), (0, 0), (4, 3)]
    assert pool.names(keys, None) == ["patch 4 at 0,1", "patch 0 at 0,0", "patch 4 at 1,1"]
    chosen, spec = check_read_back(raw, pool, keys)
    assert chosen.n_hypotheses == 3
    before = spec.fields | {"grid": GRID, "spread": 0.5}
    del before["lattices"], before["floor"]
    assert same_hypotheses(restore_chosen(Document(before, "model.json"), chosen.arrays(), raw.n), chosen)
    for name, bad in [
        ("patch_templates", np.full((2, 9), np.nan, np.float32)),
        ("patch_templates", np.zeros((2, 8), np.float32)),
        ("patch_slots", np.array([0, 1, 2])),
        ("patch_masks", np.array([0, 1, 4])),
        ("patch_masks", np.array([0, 1])),
        ("patch_numbers", np.array([-1, 1])),
        ("odd", np.zeros(1)),
    ]:
        with pytest.raises(ModelFormatError):
            restore_chosen(spec, {**chosen.arrays(), name: bad}, raw.n)
    with pytest.raises(ModelFormatError, match="shape"):
        restore_chosen(spec, chosen.arrays(), raw.n + 1)


def test_several_lattices_in_words_sums_and_a_model_read_back():
    raw = Raw(make_images())
    asked = replace(family(130), masks=(2, 1), spread=(0.5, 0.25))
    assert family_from_json(json.loads(json.dumps(asked.to_json()))) == asked
    pool = raw.prepare(asked)
    assert sorted(check_sums(raw, pool)) == [(f, c) for f in range(130) for c in range(5)]
    keys = [(4, 1), (129, 4), (4, 3)]
    chosen, spec = check_read_back(raw, pool, keys)
    fine = "of 2x2 (0.5)"
    assert chosen.words() == [f"patch 4 at 0,1 {fine}", "patch 129 at 0,0 of 1x1 (0.25)", f"patch 4 at 1,1 {fine}"]
    for lattices in ([], spec.fields["lattices"][:1], [{"side": 65, "spread": 1.0}], [{"side": 3, "spread": 0.0}], 4):
        with pytest.raises(ModelFormatError):
            restore_chosen(Document(spec.fields | {"lattices": lattices}, "model.json"), chosen.arrays(), raw.n)


def test_in_a_union():
    raw = Raw(make_images())
    pool = raw.prepare(Columns() | family())
    keys = [(1, 2, 0), (0, 50), (1, 0, 3)]
    memo = Memo(MemoStore(10**8), "run", "x")
    made = dense(pool.held(raw.items[0], memo, keys))
    assert np.array_equal(made, dense(pool.columns(raw.block(), keys))[: len(made)])
    assert np.array_equal(made[:, 1], raw.X[: len(made), 50])
    check_sums(raw, pool)


def test_parameters_without_a_meaning_are_refused():
    for arguments in [
        {"templates": 0},
        {"templates": True},
        {"templates": "many"},
        {"templates": np.zeros((2, 3, 4)), "size": 3},
        {"templates": np.full((1, 7, 7), np.inf)},
        {"size": 0},
        {"masks": 1.5},
        {"masks": 65},
        {"spread": 0.0},
        {"spread": "wide"},
        {"masks": ()},
        {"masks": (3, 0)},
        {"masks": (3, 2), "spread": (0.5, 0.6, 0.7)},
        {"spread": (0.5, 0.0)},
        {"masks": (3, 3)},
        {"contrast": 0.0},
        {"contrast": "low"},
        {"shape": 28},
        {"shape": (28, 6)},
        {"sample": -1},
    ]:
        with pytest.raises(UsageError):
            Patches(**arguments)


def test_data_that_cannot_be_images_is_refused():
    raw = Raw(make_images())
    with pytest.raises(DataError, match="shape"):
        raw.prepare(Patches(templates=2, size=SIZE))
    with pytest.raises(DataError, match="zero"):
        Raw(np.zeros((5, 99))).prepare(family())
    with pytest.raises(DataError, match="templates=5000"):
        raw.prepare(Patches(templates=5000, size=SIZE, shape=SHAPE, sample=300))
    with pytest.raises(UsageError, match="no parameter"):
        family_from_json({"family": "patches", "width": 3})


@pytest.mark.parametrize("shape", [(1, 1), (7, 300), (8, 513), (64, 20)])
def test_sums_of_bytes(shape):
    rng = np.random.default_rng(9)
    H, U = rng.integers(0, 256, shape).astype(np.uint8), rng.normal(size=(shape[0], 3))
    out = np.empty((shape[1], 3))
    loops.byte_sums(H, U, out)
    np.testing.assert_allclose(out, H.T / 256 @ U, rtol=1e-12, atol=1e-12)
    # the sums of a column are the same beside any other columns
    alone = np.empty((1, 3))
    loops.byte_sums(np.ascontiguousarray(H[:, -1:]), U, alone)
    assert np.array_equal(alone[0], out[-1])
