"""The benchmarks of the engines: what they draw, what they add up, and the words on their pages."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from dboost.engine.local import LocalEngine
from lab.benchmarks import overhead, resampled, scaling, streaming


@pytest.fixture
def corpus():
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 40), density=0.2, format="csr", rng=rng, dtype=np.float32)
    y = np.minimum(rng.geometric(0.4, 300) - 1, 5).astype(np.int32)
    return resampled.Corpus(sparse.csr_matrix(X), y)


def test_partitions_are_drawn_the_same_anywhere():
    part = overhead.Drawn(3, 50, 200, 4)
    one, two = part.load(), overhead.Drawn(3, 50, 200, 4).load()
    assert one.values.tobytes() == two.values.tobytes() and one.y.tobytes() == two.y.tobytes()
    assert (one.n_rows, one.n_features, one.key) == (50, 200, "drawn-3")
    assert overhead.Drawn(4, 50, 200, 4).load().values.tobytes() != one.values.tobytes()


def test_the_shares_of_a_pass_add_up():
    from dboost.penalties import get_penalty
    from dboost.problem.stored import StoredProblem

    parts = [overhead.Drawn(i, 50, 200, 4) for i in range(3)]
    with LocalEngine(2) as engine:
        watched = overhead.Stopwatch(engine)
        watched.set_plan(parts, [part.n_rows for part in parts], "test")
        problem = StoredProblem(watched, "multinomial", get_penalty("l1/l2"), 200, 4, True, "test")
        for run in overhead.kinds(problem, 10).values():
            run()
    names = [one["name"] for one in watched.passes]
    assert {"labels", "statistics", "score", "gradient", "grid", "hessian", "sample"} <= set(names)
    for one in watched.passes:
        assert one["wall"] == pytest.approx(sum(one[share] for share in overhead.SHARES[1:]))
        assert one["kernels"] > 0.0 and one["network"] == one["scheduler"] == 0.0


def test_a_missed_goal_is_shown():
    line = {"workers": 64, "pass": "score", "overhead": 0.2, "wall": 0.3}
    assert overhead.in_ms(line)["goal"] == "150: MISSED"
    assert overhead.in_ms(line | {"overhead": 0.1})["goal"] == "150: met"
    assert "goal" not in overhead.in_ms(line | {"workers": 8})


def test_documents_are_drawn_again(corpus):
    more = corpus.again(1000, 0)
    assert more.X.shape == (1000, 40) and more.y.shape == (1000,)
    rows = {row.tobytes() for row in corpus.X.toarray()}
    assert {row.tobytes() for row in more.X.toarray()} <= rows
    assert more.X.nnz / 1000 == pytest.approx(corpus.X.nnz / 300, rel=0.1)


def test_classes_and_features_are_cut(corpus):
    few = corpus.with_classes(3)
    assert set(few.y.tolist()) == {0, 1, 2} and np.array_equal(few.y[corpus.y < 2], corpus.y[corpus.y < 2])
    narrow = corpus.with_features(10)
    assert narrow.X.shape == (300, 10) and narrow.X.nnz >= corpus.X.nnz / 4
    wide = corpus.with_features(500)
    assert wide.X.shape == (300, 500)
    assert np.array_equal(wide.X[:, :40].toarray(), corpus.X.toarray())
    assert wide.X.nnz > corpus.X.nnz and wide.X.dtype == np.float32


def test_parquet_holds_the_documents(corpus, tmp_path):
    resampled.write_all(corpus, tmp_path / "all")
    table = pq.read_table(tmp_path / "all")
    assert np.array_equal(table["label"].to_numpy(), corpus.y)
    assert np.array_equal(np.concatenate(table["indices"].to_numpy()), corpus.X.indices)
    stored = resampled.write(corpus, tmp_path / "more", 700)
    table = pq.read_table(tmp_path / "more")
    assert table.num_rows == 700 and sum(map(len, table["values"].to_pylist())) == stored
    assert streaming.read_files([str(p) for p in (tmp_path / "more").iterdir()])[0] == 700


def test_peak_memory_sees_an_array():
    before = scaling.peak_memory()
    array = np.ones(40_000_000, np.int8)
    assert scaling.peak_memory() >= before
    assert scaling.peak_memory() > array.nbytes


def test_the_page_judges_passes_against_reading():
    passes = [{"name": "score", "wall": 3.0}, {"name": "gradient", "wall": 1.0}]
    found = {
        "rows": 10, "stored": 100, "features": 5, "classes": 2, "decoded": 10**9, "files": 10**8, "limit": 10**9,
        "peak": [1, 2], "driver": 3, "lost workers": 0, "reading": [1.0, 0.9, 1.1], "passes": passes, "gap": 1e-4,
        "tol": 1e-3, "rounds": 2, "seconds": 9.0, "processor": 4.0, "reading processor": 1.0,
    }  # fmt: skip
    said, table, _ = streaming.page(found)
    assert "0.50 times the speed" in said and "met" in said and "The fit finished" in said
    assert "gradient" in table
    slow = found | {"passes": [{"name": "score", "wall": 5.0}], "gap": 0.1}
    said = streaming.page(slow)[0]
    assert "MISSED" in said and "ended by its time limit" in said


def test_the_page_of_scaling_judges_memory_and_dask():
    one = {
        "problem": "rows x1", "rows": 10, "features": 5, "classes": 2, "nnz": 40, "seconds": 1.0, "rounds": 2,
        "passes": 4, "in passes": 1.0, "gap": 1e-4, "stored": 100, "margins": 100, "peak": 250,
    }  # fmt: skip
    lines = [
        {"run": i, "engine": name, "seconds": seconds, "processor seconds": 1.0, "passes": 4, "gap": 1e-3}
        for i, (name, seconds) in enumerate([("two threads", 1.0), ("two workers", 1.2)])
    ]
    page = "\n".join(scaling.page([[one, one | {"peak": 310}]], lines, 10, 5))
    assert "1.55 times the stored rows" in page and "goal 1.5: MISSED" in page
    assert "1.20 times the seconds" in page and "goal 1.25: met" in page
