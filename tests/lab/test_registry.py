"""What can be asked for: every problem has a data set with a twin, every peer says what it can do."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import numpy as np
import pytest

from lab.benchmarks import REGISTRY
from lab.benchmarks.peers import DISTRIBUTED, OURS, PEERS, in_turn
from lab.benchmarks.peers import base as peers_base
from lab.benchmarks.peers.base import Task, doubling, small, tightening
from lab.benchmarks.plots import LOOK, file_name
from lab.benchmarks.problems import KINDS, all_problems, chosen
from lab.benchmarks.sets import SETS
from lab.oracle import plain

EVERY = {**PEERS, **DISTRIBUTED, OURS.name: OURS}
LOSSES, PENALTIES = {"log", "multinomial", "multitask"}, {"l1", "l1/l2", "l1/linf"}


def twin_task(name: str, penalty: str, ratio: float = 0.1) -> Task:
    data = SETS[name].twin()
    high = plain.alpha_max(data.X, data.y, penalty, data.loss, False)
    return Task(data.X, data.y, data.loss, penalty, ratio * high, high)


def test_the_problems_are_those_of_the_issue() -> None:
    found = all_problems()
    assert len(found) == 4 * 3 + 4 * 3 + 4 * 2 * 3 + 2 * 2 * 3
    assert len({problem.name for problem in found}) == len(found)
    assert {problem.ratio for problem in found} == {0.3, 0.1, 0.02}
    # the long set of titles is one of the ablation
    assert {problem.data for problem in found} == set(SETS) - {"arxiv-titles"}
    assert {kind.name: kind.goal for kind in KINDS.values()} == {
        "binary-l1": 2.0, "multinomial-l1": 8.0, "multinomial-groups": 15.0, "multitask-groups": 15.0,
    }  # fmt: skip


def test_problems_are_chosen_by_kind_and_by_part_of_a_name() -> None:
    assert {p.kind for p in chosen(("binary-l1",))} == {"binary-l1"}
    assert [p.name for p in chosen(("imdb l1 0.1",))] == ["imdb l1 0.1"]
    assert chosen(()) == all_problems()
    assert chosen(("no such thing",)) == []


@pytest.mark.parametrize("name", SETS)
def test_every_set_has_a_twin_of_its_loss(name: str) -> None:
    data = SETS[name].twin()
    assert data.loss == SETS[name].LOSS
    assert data.y.shape[0] == data.X.shape[0] and data.y.dtype == np.int64
    if data.loss == "multinomial":
        assert np.array_equal(np.unique(data.y), np.arange(data.y.max() + 1))
    else:
        assert set(np.unique(data.y)) == {-1, 1}
    penalty = next((problem.penalty for problem in all_problems() if problem.data == name), "l1/l2")
    assert twin_task(name, penalty).alpha_max > 0.0


def test_a_dense_set_stays_dense() -> None:
    assert isinstance(SETS["mnist"].twin().X, np.ndarray)


@pytest.mark.parametrize("peer", EVERY.values(), ids=list(EVERY))
def test_every_peer_declares_what_it_can_do(peer: peers_base.Peer) -> None:
    assert peer.solves and peer.layout and peer.name in LOOK
    assert {loss for loss, _ in peer.solves} <= LOSSES and {penalty for _, penalty in peer.solves} <= PENALTIES
    assert set(peer.intercept) <= {loss for loss, _ in peer.solves}
    assert peer.environment in ("own", "peers", "lightning")
    names = {"log": "imdb", "multinomial": "stackoverflow20k", "multitask": "bibtex"}
    for loss, penalty in peer.solves:
        ladder = list(peer.ladder(twin_task(names[loss], penalty)))
        assert ladder and all(isinstance(rung, dict) and rung for rung in ladder)
        assert len({str(sorted(rung.items())) for rung in ladder}) == len(ladder)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("penalty", sorted(PENALTIES))
def test_peers_run_in_turn_and_none_is_left_out(loss: str, penalty: str) -> None:
    order = in_turn(tuple(PEERS), loss, penalty)
    assert {peer.name for peer in order} == {name for name, peer in PEERS.items() if (loss, penalty) in peer.solves}
    if (loss, penalty) == ("multinomial", "l1"):
        assert order[0].name == "saga"
    assert in_turn(("liblinear",), loss, penalty) == ([PEERS["liblinear"]] if (loss, penalty) == ("log", "l1") else [])


def test_our_solver_takes_every_problem() -> None:
    assert all((problem.loss, problem.penalty) in OURS.solves for problem in all_problems())


def test_peers_import_nothing_of_the_project_but_their_base() -> None:
    """They run in environments that need not have it; their own packages are imported inside functions only."""
    folder = Path(peers_base.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.level:
                assert path.name == "__init__.py" or node.module == "base", f"{path.name} imports {node.module}"
            elif isinstance(node, ast.Import | ast.ImportFrom):
                top = (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name) or ""
                assert top.split(".")[0] in {
                    "__future__", "collections", "dataclasses", "importlib", "json", "math", "numpy", "os",
                    "time", "typing", "warnings",
                }, f"{path.name} imports {top} when it is read"  # fmt: skip


def test_ladders_go_from_coarse_to_fine() -> None:
    assert doubling("max_iter", 1, 8) == [{"max_iter": i} for i in (1, 2, 4, 8)]
    levels = [rung["tol"] for rung in tightening("tol", -1, -3)]
    assert levels == pytest.approx([1e-1, 10**-1.5, 1e-2, 10**-2.5, 1e-3])


def test_strengths_fall_from_the_largest() -> None:
    task = twin_task("imdb", "l1", ratio=0.02)
    falling = task.falling()
    assert falling[0] == pytest.approx(task.alpha_max) and falling[-1] == pytest.approx(task.alpha)
    assert all(0.5 <= after / before < 1.0 for before, after in zip(falling, falling[1:], strict=False))


@pytest.mark.parametrize("name", ["imdb", "mnist", "arxiv-categories", "bibtex"])
def test_the_small_problem_has_every_class_and_column(name: str) -> None:
    task = twin_task(name, "l1")
    tiny = small(task, rows=20)
    assert tiny.X.shape[0] < task.X.shape[0] and tiny.X.shape[1] == task.X.shape[1]
    assert tiny.n_outputs == task.n_outputs
    for mine, whole in zip(tiny.y.reshape(len(tiny.y), -1).T, task.y.reshape(len(task.y), -1).T, strict=True):
        assert set(np.unique(mine)) == set(np.unique(whole))


@pytest.mark.parametrize("name", REGISTRY)
def test_every_benchmark_can_be_run(name: str) -> None:
    entry = REGISTRY[name]
    assert callable(entry.load().run) and entry.summary
    assert entry.part_of is None or entry.part_of in REGISTRY


def test_every_plot_has_a_file_of_its_own() -> None:
    names = {file_name(problem.name) for problem in all_problems()}
    assert len(names) == len(all_problems()) and "imdb-l1-0.1.png" in names
    assert importlib.util.find_spec("matplotlib") is not None


def test_every_peer_lies_in_the_file_that_its_process_reads() -> None:
    folder = Path(peers_base.__file__).parent
    for name in EVERY:
        file = "ours" if name == OURS.name else name.replace("-", "_")
        assert (folder / f"{file}.py").exists(), name
