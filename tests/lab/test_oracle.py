"""The oracle's own mathematics, which judges ours and must therefore be judged first.

Covers: gaps against brute force; the reference solver against liblinear and saga, and the library against it; the
verdicts; peers that are missing. Does not cover: real data (``python -m lab oracle``).
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.datasets import SYNTHETIC
from lab.oracle import peers, plain, reference, worker
from lab.oracle.compare import compare, strength, verdict
from lab.oracle.ours import solve
from lab.oracle.problems import PENALTIES, Encoded, Problem, encode, project

LOSSES = ("log", "multinomial", "multitask")
TWIN = {"log": "imdb", "multinomial": "arxiv", "multitask": "bibtex"}


def small(loss: str, seed: int = 0) -> tuple[Any, Any]:
    """A dense problem of 30 x 5, three outputs where the loss has several, one missing label in a multitask set."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 5))
    if loss == "multinomial":
        return X, np.concatenate([np.arange(3), rng.integers(0, 3, 27)])
    Y = np.where(rng.random((30, 3)) < 0.5, 1, -1)
    if loss == "log":
        return X, Y[:, 0]
    Y[4, 1] = 0
    return X, Y


def test_gap_bounds_the_distance_to_the_optimum() -> None:
    for loss in LOSSES:
        for penalty in [*PENALTIES, "none"]:
            for intercept in [False, True]:
                X, y = small(loss)
                alpha = 0.0 if penalty == "none" else 0.2 * plain.alpha_max(X, y, penalty, loss, intercept)
                known = {"loss": loss, "penalty": penalty, "alpha": alpha, "intercept": intercept}
                found = reference.solve(X, y, **known, tol=1e-11)
                best = plain.objective(X, y, found.W, found.b, alpha, penalty, loss)
                assert -1e-14 <= found.gap <= 1e-8
                rng = np.random.default_rng(4)
                for size in (1e-3, 0.1, 1.0):
                    W = found.W + size * rng.standard_normal(found.W.shape)
                    b = found.b + (size * rng.standard_normal(found.b.shape) if intercept else 0.0)
                    value = plain.objective(X, y, W, b, alpha, penalty, loss)
                    gap = plain.relative_gap(X, y, W, b, alpha, penalty, loss, intercept)
                    assert value >= best * (1 - 1e-12)
                    assert (value - best) / value <= gap * (1 + 1e-9) + 1e-12


@pytest.mark.full
@pytest.mark.parametrize(("peer", "name"), [("liblinear", "imdb"), ("liblinear", "bibtex"), ("saga", "arxiv")])
def test_reference_agrees_with_other_programs(peer: str, name: str) -> None:
    data = encode(SYNTHETIC[name](0))
    alpha = 0.1 * plain.alpha_max(data.X, data.y, "l1", data.loss, False)
    found = reference.solve(data.X, data.y, loss=data.loss, penalty="l1", alpha=alpha, intercept=False)
    job = {"alpha": alpha, "intercept": False, "seconds": 4.0, "penalty": "l1", "loss": data.loss}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        W, b = worker.PEERS[peer](data.X, data.y, job)
    values = [plain.objective(data.X, data.y, A, c, alpha, "l1", data.loss) for A, c in ((found.W, found.b), (W, b))]
    assert values[0] <= values[1] + 1e-12
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_library_agrees_with_the_reference() -> None:
    for loss in LOSSES:
        for penalty in [*PENALTIES, "none"]:
            data = encode(SYNTHETIC[TWIN[loss]](0))
            if penalty == "none":
                data = project(data, most=3)
                data = Encoded(data.name, data.loss, data.X[:, :4], data.y)
            alpha = strength(data, Problem(data.name, penalty, 0.1, True, ()))
            ours = solve(data, penalty, alpha, True, 1e-7)
            found = reference.solve(data.X, data.y, loss=loss, penalty=penalty, alpha=alpha, intercept=True, tol=1e-9)
            about = (alpha, penalty, loss)
            mine = plain.objective(data.X, data.y, ours.W, ours.b, *about)
            assert mine == pytest.approx(plain.objective(data.X, data.y, found.W, found.b, *about), rel=1e-6)
            assert plain.relative_gap(data.X, data.y, ours.W, ours.b, *about, True) <= 2e-7


def test_verdicts() -> None:
    assert verdict(5e-7, 1.0) == verdict(-5e-7, 1.0) == "agrees"
    assert verdict(2e-6, 1e-9) == verdict(float("nan"), 1e-9) == "DISAGREES"
    assert verdict(-2e-6, 1e-7) == "peer short; ours certified"
    assert verdict(-2e-6, 1e-5) == "OURS NOT CERTIFIED"


def test_a_missing_peer_is_in_the_table_and_the_reference_steps_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(peers.PEER_PYTHON_VARIABLE, sys.executable)
    data = encode(SYNTHETIC["libsvm"](0))
    problem = Problem("libsvm", "l1", 0.1, False, ("no_such_peer", "liblinear"))
    alpha = strength(data, problem)
    peers.store(tmp_path, data.X, data.y)
    ours = solve(data, "l1", alpha, False)
    absent, found = compare(data, problem, alpha, ours, tmp_path, 20.0)
    assert absent["verdict"] == "not installed; ours certified" and "P peer" not in absent
    assert found["verdict"] == "agrees" and found["rows"] == found["rows peer"] > 0
    nobody = Problem("libsvm", "l1", 0.1, False, ("no_such_peer",))
    assert [r["peer"] for r in compare(data, nobody, alpha, ours, tmp_path, 20.0)] == ["no_such_peer", "reference"]
