"""Kernel hypotheses: support sets, sums and columns against the explicit matrix, names, parameters, reading back."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.engine.memo import MemoStore
from dboost.errors import DataError, ModelFormatError, UsageError
from dboost.files.documents import Document
from dboost.hypotheses import same_hypotheses
from dboost.hypotheses.kernels.family import Kernels
from tests.hypotheses.conftest import Raw, block_of, check_read_back, check_sums, dense

CUTS = {"one": [90], "three": [30, 0, 41, 19], "many": [1] * 20 + [70]}
K = 3


def make_data(seed=0, m=90, n=7, density=0.6, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(m, n)) * (rng.random((m, n)) < density)).astype(dtype)
    code = (X[:, :K] + 0.7 * rng.normal(size=(m, K))).argmax(axis=1)
    return X, code.astype(np.int32)


def labels_of(task, code):
    if task == "multiclass":
        return code
    if task == "binary":
        return np.where(code == 0, 1, -1).astype(np.int8)[:, None]
    signs = np.where(np.eye(K, dtype=bool)[code], 1, -1).astype(np.int8)
    signs[::5, 1] = 0
    return signs


def prepare(kernels, X, y, sizes=(90,), seed=0, engine=None):
    return Raw(X, dtype=X.dtype, cuts=sizes, y=y, engine=engine).prepare(kernels, seed)


def explicit(X, Z, gamma, cosine=False):
    """The kernel matrix (m, s) from its definition."""
    X, Z = X.astype(np.float64), Z.astype(np.float64)
    if cosine:
        X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
        Z = Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-300)
    return np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def formed(pool, X):
    """The kernels of all centres as the family makes them, (m, s)."""
    return dense(pool.columns(block_of(X), [(s,) for s in range(int(pool.size))]))


def naive_perceptron(X, y, gamma, cosine=False, limit=10**9):
    """The rows kept, one row and one kernel at a time."""
    H = explicit(X, X, gamma, cosine)
    kept, steps = [], []
    for i in range(len(X)):
        k = y.shape[1] if y.ndim == 2 else K
        f = np.zeros(k)
        for s, step in zip(kept, steps):
            f += step * H[i, s]
        step = np.zeros(k)
        if y.ndim == 2:
            wrong = (y[i] != 0) & (y[i] * f <= 0)
            step[wrong] = y[i][wrong]
        else:
            others = [r for r in range(k) if r != y[i]]
            best = max(others, key=lambda r: f[r])
            if f[y[i]] <= f[best]:
                step[y[i]], step[best] = 1.0, -1.0
        if step.any() and len(kept) < limit:
            kept.append(i)
            steps.append(step)
    return kept


def rows_of(part, n):
    return sparse.csr_array((part.values, part.slots, part.pointer), shape=(len(part), n)).toarray()


@pytest.mark.parametrize("task", ["binary", "multiclass", "multitask"])
@pytest.mark.parametrize("input", ["raw", "cosine"])
def test_the_perceptron_is_the_naive_one_for_any_cut(task, input):
    X, code = make_data(1)
    y = labels_of(task, code)
    expected = naive_perceptron(X, y, 0.4, input == "cosine")
    assert 10 < len(expected) < 80
    for sizes in CUTS.values():
        pool = prepare(Kernels(gamma=0.4, input=input), X, y, sizes)
        assert pool.centres.numbers.tolist() == expected
        np.testing.assert_array_equal(rows_of(pool.centres, X.shape[1]), X[expected])


def test_two_classes_as_codes_or_signs_are_one_perceptron():
    X, code = make_data(2)
    signs = labels_of("binary", code)
    two = (signs[:, 0] > 0).astype(np.int32)
    a, b = prepare(Kernels(gamma=0.4), X, signs), prepare(Kernels(gamma=0.4), X, two)
    assert a.centres.numbers.tolist() == b.centres.numbers.tolist()


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_the_perceptron_has_the_same_bits_in_any_chunks(chunk, monkeypatch):
    X, code = make_data(3, m=90, density=0.3, dtype=np.float32)
    before = prepare(Kernels(), X, code)
    monkeypatch.setattr("dboost.hypotheses.kernels.family.CHUNK", chunk)
    after = prepare(Kernels(), X, code, CUTS["three"])
    assert before.token == after.token and before.size == after.size > 10


@pytest.mark.parametrize("support", ["perceptron", 25])
def test_support_and_gamma_are_the_same_on_every_engine(client, support):
    X, code = make_data(4)
    kernels = Kernels(support=support)
    expected = prepare(kernels, X, code)
    for sizes in CUTS.values():
        with DaskEngine(client) as engine:
            pool = prepare(kernels, X, code, sizes, engine=engine)
        assert (pool.token, pool.gamma) == (expected.token, expected.gamma)


def test_the_union_is_one_perceptron_per_partition(client):
    X, code = make_data(5)
    sizes = CUTS["three"]
    expected, start = [], 0
    for size in sizes:
        part = slice(start, start + size)
        expected += [start + i for i in naive_perceptron(X[part], code[part], 0.4)]
        start += size
    kernels = Kernels(support="perceptron-union", gamma=0.4)
    pool = prepare(kernels, X, code, sizes)
    assert pool.centres.numbers.tolist() == expected
    with DaskEngine(client) as engine:
        assert prepare(kernels, X, code, sizes, engine=engine).token == pool.token
    fewer = prepare(replace(kernels, max_support=9), X, code, sizes)
    assert fewer.size == 9 and set(fewer.centres.numbers.tolist()) <= set(range(90))


def test_max_support_stops_the_perceptron():
    X, code = make_data(1)
    expected = naive_perceptron(X, code, 0.4, limit=12)
    for sizes in CUTS.values():
        assert prepare(Kernels(gamma=0.4, max_support=12), X, code, sizes).centres.numbers.tolist() == expected


def test_random_rows_depend_on_the_seed_only():
    X, code = make_data(6)
    pools = {seed: prepare(Kernels(support=20, gamma=1.0), X, code, seed=seed) for seed in (0, 1)}
    numbers = pools[0].centres.numbers
    assert len(set(numbers.tolist())) == 20 and np.all(np.diff(numbers) > 0)
    np.testing.assert_array_equal(rows_of(pools[0].centres, 7), X[numbers])
    assert numbers.tolist() != pools[1].centres.numbers.tolist()


def test_gamma_is_one_over_the_median_of_all_pairs_of_a_small_set():
    X, code = make_data(7, m=60)
    for input, Y in {"raw": X, "cosine": X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)}.items():
        square = ((Y[:, None] - Y[None]) ** 2).sum(axis=2)[np.triu_indices(60, 1)]
        pool = prepare(Kernels(support=3, input=input), X, code, (60,))
        assert pool.gamma == pytest.approx(1 / np.median(square), rel=1e-12)


@pytest.mark.parametrize("input", ["raw", "cosine"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [0.1, 1.0])
def test_columns_are_the_explicit_matrix(input, dtype, density):
    X, code = make_data(8, m=150, n=9, density=density, dtype=dtype)
    pool = prepare(Kernels(support=130, gamma=0.7, input=input), X, code, (150,))
    keys = [(s,) for s in (5, 129, 0, 64, 77)]
    matrix = dense(pool.columns(block_of(X), keys))
    Z = X[pool.centres.numbers[[s for (s,) in keys]]]
    expected = explicit(X, Z, 0.7, input == "cosine")
    np.testing.assert_allclose(matrix, expected, rtol=1e-12, atol=1e-14)
    own = matrix[pool.centres.numbers[[s for (s,) in keys]], np.arange(5)]
    assert np.all(own == 1.0) if input == "raw" else np.all(own >= 1 - 1e-15)
    # The same bits in any block of rows and beside any other centres.
    for rows in (slice(0, 1), slice(40, 97)):
        np.testing.assert_array_equal(dense(pool.columns(block_of(X[rows]), keys[2:3])), matrix[rows, 2:3])


def test_values_that_underflow_are_not_stored():
    X = np.array([[0.0], [1.0], [100.0]])
    pool = prepare(Kernels(support=X, gamma=1.0), X, np.zeros(3, np.int32), (3,))
    found = pool.columns(block_of(X), [(0,), (2,)])
    assert found.indptr.tolist() == [0, 2, 3] and found.rows.tolist() == [0, 1, 2]


@pytest.mark.parametrize("budget", [10**9, 1000], ids=["remembered", "not remembered"])
def test_sums_are_those_of_the_explicit_columns(budget):
    X, code = make_data(9, m=240, n=6)
    weight = np.where(np.arange(240) % 10, np.random.default_rng(0).random(240), 0.0)
    raw = Raw(X, weight, cuts=(140, 100), y=code, engine=LocalEngine(2, MemoStore(budget)))
    pool = raw.prepare(Kernels(support=170))
    for _ in range(2):
        assert check_sums(raw, pool) == [(s,) for s in range(170)]
    assert pool.shards([], 24, 500) == [(0, 64), (64, 128), (128, 170)]
    assert len(pool.shards([], 24, 10**8)) == 1


def test_names_say_which_rows():
    X, code = make_data(1)
    pool = prepare(Kernels(gamma=0.4), X, code)
    numbers = pool.centres.numbers
    assert pool.names([(3,), (0,)], None) == [f"K(x; row {numbers[3]})", f"K(x; row {numbers[0]})"]
    assert prepare(Kernels(support=X[:4]), X, code).names([(2,)], list("abcdefg")) == ["K(x; centre 2)"]


@pytest.mark.parametrize("support", [12, "given"])
@pytest.mark.parametrize("input", ["raw", "cosine"])
def test_a_set_survives_json_and_arrays(support, input):
    X, code = make_data(10, dtype=np.float32)
    kernels = Kernels(support=sparse.csr_array(X[:12]) if support == "given" else support, input=input)
    raw = Raw(X, y=code)
    held, _ = check_read_back(raw, raw.prepare(kernels), [(s,) for s in (1, 2, 7)])
    assert held.n_hypotheses == 3 and held.inputs.tolist() == list(range(7))
    with pytest.raises(DataError, match="need 7"):
        held.evaluate(block_of(X[:, :6]))


def damage(name, value):
    def change(fields, arrays):
        (fields if name in fields else arrays)[name] = value

    return change


DAMAGES = {
    "gamma": damage("gamma", -1.0),
    "input": damage("input", "angle"),
    "given": damage("given", 1),
    "features": damage("n_features", 8),
    "no centres": lambda fields, arrays: arrays.pop("kernel_values"),
    "dtype": damage("kernel_numbers", np.zeros(2, np.int32)),
    "NaN": lambda fields, arrays: arrays.update(kernel_values=np.full_like(arrays["kernel_values"], np.nan)),
    "column out of range": lambda fields, arrays: arrays.update(kernel_slots=arrays["kernel_slots"] + np.int32(7)),
    "columns fall": lambda fields, arrays: arrays.update(kernel_slots=arrays["kernel_slots"][::-1].copy()),
    "a pointer too far": lambda fields, arrays: arrays.update(kernel_pointer=arrays["kernel_pointer"] + 1),
    "a number less": lambda fields, arrays: arrays.update(kernel_numbers=arrays["kernel_numbers"][1:]),
    "negative row": lambda fields, arrays: arrays.update(kernel_numbers=-1 - arrays["kernel_numbers"]),
    "another array": lambda fields, arrays: arrays.update(W=np.ones(2)),
    "pointer falls": lambda fields, arrays: arrays.update(kernel_pointer=np.array([0, 9, 4, 14])),
}


def test_damaged_sets_are_refused():
    for change in DAMAGES.values():
        X, code = make_data(10, density=1.0)
        held = prepare(Kernels(support=2, gamma=1.0), X, code).chosen([(0,), (1,)], None)
        fields, arrays = held.to_json(), dict(held.arrays())
        assert same_hypotheses(Kernels.restore(Document(dict(fields), "model.json"), arrays, 7), held)
        change(fields, arrays)
        with pytest.raises(ModelFormatError):
            Kernels.restore(Document(fields, "model.json"), arrays, 7)


def test_data_that_does_not_fit_is_refused():
    X, code = make_data(1)
    with pytest.raises(DataError, match="8 features, the data has 7"):
        prepare(Kernels(support=np.ones((2, 8)), gamma=1.0), X, code)
    with pytest.raises(UsageError, match="91 rows at random, and the data has 90"):
        prepare(Kernels(support=91), X, code)
    with pytest.raises(DataError, match="median squared distance"):
        prepare(Kernels(), np.ones((90, 2)), code)
    for support in ("perceptron", "perceptron-union"):
        with pytest.raises(UsageError, match="needs classes"):
            prepare(Kernels(support=support), X, X[:, 0])
    assert prepare(Kernels(support=10), X, X[:, 0]).size == 10
    with pytest.raises(DataError, match="no finite length"):
        prepare(Kernels(support=5, gamma=1.0), X * 1e200, code).columns(block_of(X * 1e200), [(0,)])


# -- parameters --------------------------------------------------------------------------------------------------------


def test_nonsense_is_refused():
    for parameters in [
        {"support": "everything"},
        {"support": 0},
        {"support": True},
        {"support": None},
        {"support": np.zeros((0, 3))},
        {"support": np.array([[np.nan, 1.0]])},
        {"support": [["a", "b"]]},
        {"gamma": 0.0},
        {"gamma": np.inf},
        {"gamma": "mean"},
        {"gamma": True},
        {"input": "angle"},
        {"max_support": 0},
        {"max_support": 2.5},
        {"support": 10, "max_support": 5},
    ]:
        with pytest.raises(UsageError):
            Kernels(**parameters)


def test_equal_parameters_make_equal_families():
    rows = np.arange(6.0).reshape(2, 3)
    assert Kernels(support=rows) == Kernels(support=sparse.csr_matrix(rows)) != Kernels(support=rows + 1)
    assert Kernels() == Kernels() != Kernels(gamma=1.0) and len({Kernels(), Kernels(), Kernels(support=5)}) == 2


def test_a_family_survives_json():
    for kernels in [
        Kernels(),
        Kernels(support="perceptron-union", max_support=5),
        Kernels(support=3, gamma=0.1, input="cosine"),
    ]:
        assert Kernels.from_json(json.loads(json.dumps(kernels.to_json()))) == kernels


def test_given_centres_survive_json_and_nonsense_is_refused():
    kernels = Kernels(support=np.array([[0.1, 0.0], [1 / 3, 2.0]]))
    spec = json.loads(json.dumps(kernels.to_json()))
    assert Kernels.from_json(spec) == kernels
    with pytest.raises(UsageError, match="no parameter 'width'"):
        Kernels.from_json({**spec, "width": 1})
    for name, value in {"indptr": [0, 1, 9], "indices": [0, 5, 1], "data": ["a"], "shape": [2]}.items():
        with pytest.raises(UsageError, match="cannot be read"):
            Kernels.from_json({**spec, "support": {**spec["support"], name: value}})
