"""Models with as many features: which of a path is meant, whose error it is, and peers that are not there."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from lab.same_features import command


def weights(*used: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Models with so many features in use, of five."""
    return [(np.where(np.arange(5)[:, None] < n, 1.0, 0.0) * np.ones((1, 3)), np.zeros(3)) for n in used]


def test_the_last_model_before_there_are_more_features_is_meant() -> None:
    assert command.of_path([1, 2, 4], weights(0, 1, 1, 3, 2, 4, 5)) == {1: 2, 2: 2, 4: 5}
    assert command.of_path([1], weights(3, 5)) == {}


def test_each_model_is_judged_on_examples_it_has_not_seen_and_missing_peers_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path_factory.mktemp("nothing")))
    monkeypatch.setenv("DBOOST_PEER_PYTHON", sys.executable)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 12))
    y = np.argmax(X[:, :3] * [3.0, 2.5, 2.0] + rng.gumbel(size=(900, 3)), axis=1).astype(np.int32)
    problem = command.Problem("made up", X[:600], y[:600], X[600:], y[600:])
    said: list[str] = []
    found = command.rows(problem, [3], said.append)
    assert [row["model"] for row in found] == ["l1/l2 path", "ShareBoost"]
    assert [row["features"] for row in found] == [3, 3]
    chance = 100.0 * np.mean(problem.y_test != np.bincount(problem.y).argmax())
    for row in found:
        assert float(row["test error %"]) < 0.6 * chance and float(row["seconds"]) > 0.0
    # three features that do it all: without the shrinking they do no worse, up to a few of 300 examples
    assert float(found[0]["after a refit %"]) <= float(found[0]["test error %"]) + 2.0
    assert any("glmnet" in line and "Rscript" in line for line in said)
    assert any("abess" in line and "No module named 'abess'" in line for line in said)
