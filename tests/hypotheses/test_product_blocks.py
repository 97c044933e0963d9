"""Products in blocks: what enters is what enters of the explicit matrix, however small the blocks and few the held."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from dboost import (
    AdaBoostL1Classifier,
    BoostedClassifier,
    LeveragingClassifier,
    Products,
    ShareBoostClassifier,
)
from dboost.boosting import totally_corrective as entering
from dboost.boosting.fit import FitSettings, Fitting
from dboost.engine.local import LocalEngine
from dboost.errors import UsageError
from dboost.hypotheses.base import Block
from dboost.hypotheses.columns import Columns
from dboost.hypotheses.products import family
from dboost.hypotheses.products.family import OCCURRING, words
from dboost.problem import induced
from tests.boosting import plain
from tests.hypotheses.conftest import Raw, dense

N = 14
PAIRS = Products(max_degree=2)
# fits of some rounds, with what each of them may choose from in every round
SYSTEMS = {
    "forward": BoostedClassifier(update="forward", loss="exp", penalty="none", max_rounds=6),
    "forward, 10 classes": BoostedClassifier(update="forward", loss="multinomial", penalty="none", max_rounds=4),
    "gradboost": BoostedClassifier(update="gradboost", alpha=0.02, features_per_round=2, max_rounds=3),
    "adaboost": BoostedClassifier(update="adaboost", penalty="none", features_per_round=1, max_rounds=3),
    "standardize": BoostedClassifier(
        update="gradboost", alpha=0.02, standardize=True, features_per_round=2, max_rounds=3
    ),
    "shareboost": ShareBoostClassifier(max_rounds=4),
    "shareboost by trials": ShareBoostClassifier(rule="row", shortlist=3, max_rounds=3),
    "adaboost+l1": AdaBoostL1Classifier(hypotheses=Columns(), max_rounds=5),
    "leveraging": LeveragingClassifier(hypotheses=Columns(), max_rounds=5),
    "l2": BoostedClassifier(penalty="l2", alpha=0.02, max_rounds=30),
}


def sparse(classes, seed=3):
    """Signed rows of which a fifth is not zero, one column of two values, and labels of some of their products."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(70, N)) * (rng.random((70, N)) < 0.2)
    X[:, 4] = 2.0 * (X[:, 4] != 0.0)
    scores = np.column_stack([X[:, a] * X[:, b] for a, b in rng.integers(0, N, size=(classes, 2)).tolist()])
    y = (scores + X[:, :classes] + 0.1 * rng.normal(size=scores.shape)).argmax(axis=1)
    y[:classes] = np.arange(classes)
    return sp.csr_array(X), y


def explicit(X):
    """All candidates as columns, and their names."""
    S = X.toarray() / np.abs(X.toarray()).max(axis=0)
    keys = [(j,) for j in range(N)] + list(itertools.combinations_with_replacement(range(N), 2))
    keys.remove((4, 4))
    return np.column_stack([np.prod(S[:, list(key)], axis=1) for key in keys]), [words(key, None) for key in keys]


def in_blocks(monkeypatch, size):
    """Blocks of at most `size` bytes, three of which are held at a time, of a class far beyond what is enumerated."""
    monkeypatch.setattr(family, "BLOCK_BYTES", size)
    monkeypatch.setattr(family, "ENUMERATED", 0)
    monkeypatch.setattr(induced, "SHARDS_AT_ONCE", 3)


@pytest.mark.filterwarnings("ignore::dboost.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_takes_what_it_takes_of_the_explicit_matrix(name, monkeypatch):
    X, y = sparse(10 if "10" in name else 2)
    H, names = explicit(X)
    model = SYSTEMS[name]
    whole = model.set_params(hypotheses=PAIRS).fit(X, y)
    entered, scores = list(whole.active_features_), whole.decision_function(X)
    in_blocks(monkeypatch, 1000)
    again = model.fit(X, y)
    assert list(again.active_features_) == entered
    if name == "l2":
        # the size of a dual point is a sum over all blocks
        np.testing.assert_allclose(again.decision_function(X), scores, rtol=1e-6, atol=1e-9)
        # of a class too large for all to enter together, the best enter first
        objective = model.objective_
        monkeypatch.setattr(entering, "MOST_AT_ONCE", 100)
        monkeypatch.setattr(entering, "INDUCED_ROWS", 5)
        grown = model.fit(X, y)
        assert grown.objective_ == pytest.approx(objective, rel=2e-4) and grown.stop_reason_ == "tol"
        assert grown.history_[0]["features_in"] == 5
    else:
        np.testing.assert_array_equal(again.decision_function(X), scores)
    # systems of stumps take them on tables unless columns are asked for
    columns = Columns() if name in ("adaboost+l1", "leveraging") else None
    as_they_are = {"standardize": False} if name in ("gradboost", "adaboost", "l2") else {}
    matrix = model.set_params(hypotheses=columns, **as_they_are).fit(H, y)
    assert sorted(names[int(column[1:])] for column in matrix.active_features_) == sorted(entered)
    np.testing.assert_allclose(matrix.decision_function(H), scores, rtol=1e-5, atol=1e-7)


def test_a_block_holds_what_it_may_and_only_some_are_held(monkeypatch):
    X = sparse(2)[0].toarray()
    raw = Raw(X)
    found = raw.prepare(PAIRS)
    assert found.size == N + N * (N + 1) // 2 - 1
    np.testing.assert_array_equal(found.formed, (X != 0).T @ np.count_nonzero(X, axis=1))
    k, size = 3, 600
    monkeypatch.setattr(family, "BLOCK_BYTES", size)
    shards = found.shards([], 8 * k, induced.SHARD_BYTES)
    assert len(shards) > 5
    held = []
    for shard in shards:
        total = raw.total(found, shard)
        part = total.add[OCCURRING]
        held.append(part.places.nbytes + part.sums.nbytes + part.peak.nbytes)
        # of one parent, all products that may occur are in one block
        assert held[-1] <= size or len(shard) == 1
        keys = found.keys(found.narrowed(shard, total))
        # nothing is held of what does not occur
        assert (np.abs(dense(found.columns(Block(*raw.block()), keys))).max(axis=0) > 0.0).all()
    assert sum(held) < (8 * k + 32) * found.size
    # a pass asks for no more of them at a time than may be held
    asked, engine = [], LocalEngine(1)
    run = engine.map_reduce
    monkeypatch.setattr(engine, "map_reduce", lambda *a, **b: asked.append(len(b.get("shards") or ())) or run(*a, **b))
    monkeypatch.setattr(induced, "SHARDS_AT_ONCE", 2)
    monkeypatch.setattr(family, "BLOCK_BYTES", 300)
    data = plain.make("log", m=50, n=12, seed=62)
    with engine:
        fitting = Fitting(plain.plan(data), engine, FitSettings("log", "l1", hypotheses=PAIRS))
        fitting.alpha_max()
    assert max(asked) == 2 and asked.count(2) > 2


def test_a_class_with_an_end_that_is_not_summed_is_not_looked_at_in_part(monkeypatch):
    monkeypatch.setattr(family, "ENUMERATED", 100)
    X, y = sparse(2)
    for model, words_of_it in (
        (SYSTEMS["forward"], r"hypotheses are not summed in every round.*max_degree=2"),
        (SYSTEMS["shareboost"].set_params(standardize=False), r"hypotheses are not summed in every round"),
        (SYSTEMS["leveraging"], r"the best hypothesis of \d+ hypotheses cannot be found"),
        (SYSTEMS["adaboost+l1"], r"the best hypothesis of \d+ hypotheses cannot be found"),
    ):
        with pytest.raises(UsageError, match=words_of_it):
            model.set_params(hypotheses=Products(max_degree=3)).fit(X, y)
