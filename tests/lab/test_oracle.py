"""The oracle's own mathematics, which judges ours and must therefore be judged first.

Covers: the plain objective, residual, proximal steps, dual norms and gaps against brute force; the reference solver
against liblinear and saga; the verdicts; peers that are missing or fail; the table of passes. Does not cover: real
data (``python -m lab oracle``).
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from lab import tables
from lab.benchmarks.peers import PEERS
from lab.benchmarks.peers.base import Task
from lab.benchmarks.process import LIGHTNING_VARIABLE, PEER_PYTHON_VARIABLE, store
from lab.datasets import SYNTHETIC
from lab.oracle import plain, reference
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


def test_loss_is_that_of_its_formula() -> None:
    for loss in LOSSES:
        X, y = small(loss)
        F = X @ np.random.default_rng(1).standard_normal((5, plain.n_outputs(y, loss)))
        total = 0.0
        for i in range(30):
            if loss == "multinomial":
                total += np.log(np.exp(F[i]).sum()) - F[i, y[i]]
            else:
                for r, label in enumerate(np.atleast_1d(y[i])):
                    total += np.log(1 + np.exp(-label * F[i, r])) if label else 0.0
        assert plain.mean_loss(F, y, loss) == pytest.approx(total / 30, rel=1e-13)


def test_residual_is_minus_the_gradient() -> None:
    for loss in LOSSES:
        X, y = small(loss)
        F = X @ np.random.default_rng(1).standard_normal((5, plain.n_outputs(y, loss)))
        U = plain.residual(F, y, loss)
        step = 1e-4
        for i, r in ((0, 0), (4, F.shape[1] // 2), (29, F.shape[1] - 1)):
            values = []
            for t in (-2, -1, 1, 2):
                moved = F.copy()
                moved[i, r] += t * step
                values.append(30 * plain.mean_loss(moved, y, loss))
            slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
            assert U[i, r] == pytest.approx(-slope, abs=1e-9)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_prox_is_never_beaten_and_obeys_the_three_point_inequality(penalty: str) -> None:
    rng = np.random.default_rng(2)
    Z = rng.standard_normal((40, 4)) * rng.choice([0.1, 1.0, 5.0], (40, 1))
    for t in (0.0, 0.3, 2.0):
        T = plain.prox(Z, t, penalty)
        value = 0.5 * ((T - Z) ** 2).sum(axis=1) + t * plain.omega(T, penalty)
        for V in (Z, np.zeros_like(Z), T + 0.01 * rng.standard_normal(Z.shape), rng.standard_normal(Z.shape)):
            other = 0.5 * ((V - Z) ** 2).sum(axis=1) + t * plain.omega(V, penalty)
            assert (other - value >= 0.5 * ((V - T) ** 2).sum(axis=1) - 1e-12).all()


def test_dual_norm_is_the_largest_product() -> None:
    for penalty in PENALTIES:
        rng = np.random.default_rng(3)
        G = rng.standard_normal((3, 4)) * np.array([[0.2], [1.0], [7.0]])
        norms = plain.dual_norm(G, penalty)
        directions = rng.standard_normal((20_000, 4)) * (rng.random((20_000, 4)) < 0.7)
        directions = np.vstack([directions, np.sign(directions), G, np.eye(4), -np.eye(4)])
        size = plain.omega(directions, penalty)
        ratio = (directions[size > 0] @ G.T) / size[size > 0, None]
        assert (ratio.max(axis=0) <= norms * (1 + 1e-12)).all()
        assert (ratio.max(axis=0) >= 0.97 * norms).all()
        # The prox is zero on one side of the dual norm and not on the other.
        for row, norm in zip(G, norms, strict=True):
            assert not plain.prox(row[None], norm * 1.000001, penalty).any()
            assert plain.prox(row[None], norm * 0.999999, penalty).any()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_alpha_max_is_where_weights_appear(loss: str, intercept: bool) -> None:
    X, y = small(loss)
    for penalty in ("l1", "l1/linf"):
        largest = plain.alpha_max(X, y, penalty, loss, intercept)
        known = {"loss": loss, "penalty": penalty, "intercept": intercept, "tol": 1e-10}
        assert not reference.solve(X, y, alpha=1.001 * largest, **known).W.any()
        assert reference.solve(X, y, alpha=0.98 * largest, **known).W.any()


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


def test_optimum_is_that_of_a_general_minimiser() -> None:
    X, y = small("multinomial")
    alpha = 0.1
    found = reference.solve(X, y, loss="multinomial", penalty="l1/l2", alpha=alpha, intercept=True, tol=1e-11)

    def value(flat: Any) -> float:
        table = flat.reshape(6, 3)
        # Smoothed by 1e-12 under the root, for a minimiser that needs derivatives.
        smooth = np.sqrt((table[:5] ** 2).sum(axis=1) + 1e-12).sum()
        return plain.mean_loss(X @ table[:5] + table[5], y, "multinomial") + alpha * smooth

    other = minimize(value, np.zeros(18), method="BFGS", options={"gtol": 1e-9, "maxiter": 2000})
    best = plain.objective(X, y, found.W, found.b, alpha, "l1/l2", "multinomial")
    assert best <= other.fun + 1e-12
    assert best == pytest.approx(other.fun, abs=1e-5)


def test_hessian_path_and_data_path_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(SYNTHETIC["arxiv"](0))
    known: dict[str, Any] = {"loss": data.loss, "penalty": "l1/linf", "alpha": 0.01, "intercept": True, "tol": 1e-9}
    newton = reference.solve(data.X, data.y, **known)
    monkeypatch.setattr(reference, "HESSIAN_SIZE", 0)
    fista = reference.solve(data.X, data.y, **known)
    values = [plain.objective(data.X, data.y, s.W, s.b, 0.01, "l1/linf", data.loss) for s in (newton, fista)]
    assert max(newton.gap, fista.gap) <= 1e-9
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    assert newton.iterations < fista.iterations


@pytest.mark.full
@pytest.mark.parametrize(
    ("peer", "name", "rung"),
    [
        ("liblinear", "imdb", {"tol": 1e-8}),
        ("liblinear", "bibtex", {"tol": 1e-8}),
        ("saga", "arxiv", {"max_iter": 4096}),
    ],
)
def test_reference_agrees_with_other_programs(peer: str, name: str, rung: dict[str, Any]) -> None:
    data = encode(SYNTHETIC[name](0))
    largest = plain.alpha_max(data.X, data.y, "l1", data.loss, False)
    alpha = 0.1 * largest
    found = reference.solve(data.X, data.y, loss=data.loss, penalty="l1", alpha=alpha, intercept=False)
    task = Task(data.X, data.y, data.loss, "l1", alpha, largest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = PEERS[peer].solve(data.X, task, rung)
    values = [
        plain.objective(data.X, data.y, A, c, alpha, "l1", data.loss)
        for A, c in ((found.W, found.b), (theirs.W, theirs.b))
    ]
    assert values[0] <= values[1] + 1e-12
    assert values[0] == pytest.approx(values[1], rel=1e-6)


@pytest.mark.full
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


@pytest.mark.full
def test_a_missing_peer_is_in_the_table_and_the_reference_steps_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (PEER_PYTHON_VARIABLE, LIGHTNING_VARIABLE):
        monkeypatch.setenv(name, sys.executable)
    data = encode(SYNTHETIC["libsvm"](0))
    problem = Problem("libsvm", "l1", 0.1, False, ("lightning", "liblinear"))
    alpha = strength(data, problem)
    store(tmp_path, data.X, data.y)
    ours = solve(data, "l1", alpha, False)
    absent, found = compare(data, problem, alpha, ours, tmp_path, 20.0)
    assert absent["verdict"].startswith("lightning is not installed") and "P peer" not in absent
    assert found["verdict"] == "agrees" and found["rows"] == found["rows peer"] > 0
    (tmp_path / "X.npz").unlink()
    failed, last = compare(data, replace(problem, peers=("liblinear",)), alpha, ours, tmp_path, 20.0)
    assert "FileNotFoundError" in failed["verdict"] and failed["verdict"].endswith("ours certified")
    assert last["peer"] == "reference" and last["verdict"] == "agrees"


def test_markdown_is_aligned_and_keeps_what_is_missing(tmp_path: Path) -> None:
    text = tables.markdown([{"a": 1, "bb": 0.123456}, {"a": "long"}], ("a", "bb"))
    assert text.splitlines() == [
        "| a    | bb     |",
        "|------|--------|",
        "| 1    | 0.1235 |",
        "| long | -      |",
    ]
    tables.write(tmp_path / "new" / "t.md", "T", ["one", text])
    assert (tmp_path / "new" / "t.md").read_text().startswith("# T\n\none\n\n| a ")
