"""Sweeps over entries, two groups of outputs side by side: what they reach, who is with whom, and the bits."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.compiled.sparse import columns
from dboost.engine.local import LocalEngine
from dboost.solvers.newton import entry_sweeps
from dboost.solvers.newton.entry_sweeps import TURN, Listed, in_groups
from dboost.solvers.newton.entrywise import EntryModel, unsettled

A, K, M = 5, 40, 300
LAM = 0.4
# so few values that there are many groups
SHORT = 2_000


@pytest.fixture(params=[True, False], ids=["tied", "apart"])
def given(request):
    """Columns, Hessians diag(h) - rho h h', and sums of a model of many outputs."""
    rng = np.random.default_rng(5)
    X = ((rng.random((M, A)) < 0.6) * rng.uniform(0.5, 1.5, (M, A))).astype(np.float32)
    h = rng.dirichlet(np.full(K, 0.3), M).astype(np.float32)
    rank_one = np.full(M, 1.0) if request.param else np.zeros(M)
    return X, h, rank_one, rng.normal(size=(A, K)), np.zeros((A, K))


def entries_of(given, threads=1, turn=TURN):
    X, h, rank_one, _, _ = given
    pointer = np.arange(M + 1) * A
    slots = np.tile(np.arange(A, dtype=np.int32), M)
    turned = columns.transpose(pointer, slots, X.ravel(), A)
    padded = np.zeros((M, 48), np.float32)
    padded[:, :K] = h
    return EntryModel(turned, padded, rank_one, K, False, LocalEngine(threads).on_driver, turn)


def value(given, D):
    X, h, rank_one, G, W = given
    z = X.astype(np.float64) @ D
    bent = np.sum(h * z**2) - np.sum(rank_one * np.sum(h * z, axis=1) ** 2)
    return 0.5 * bent - np.sum(G * D) + LAM * np.abs(W + D).sum()


def descended(given, threads=1, settle=1e-5, seed=1, most=100_000, turn=TURN):
    lam = np.full(A, LAM)
    G, W = given[3:]
    entries = entries_of(given, threads, turn)
    return entries.descend(G, W, lam, np.full((A, K), 1e-6), unsettled(G, W, lam), most, seed, settle)[0]


def test_groups_side_by_side_reach_what_one_after_another_do(given, monkeypatch):
    alone = descended(given)
    met = []
    groups = entry_sweeps.in_groups
    monkeypatch.setattr(entry_sweeps, "in_groups", lambda *a: met.append(groups(*a)) or met[-1])
    both = descended(given, turn=SHORT)
    assert max(len(found) for found in met) > 4
    assert value(given, both) == pytest.approx(value(given, alone), rel=1e-5)
    assert value(given, both) < value(given, 0.0 * both)


def test_no_sweep_raises_the_model(given):
    # a budget for more and more sweeps, which are the same but for the last
    seen = [value(given, descended(given, most=most, turn=SHORT)) for most in range(1, 40)]
    assert len(set(seen)) > 2
    assert max(np.diff(seen)) <= 1e-6 * abs(seen[-1])


def test_bits_do_not_depend_on_threads(given):
    one, two, other = (descended(given, threads, 0.0, seed, turn=SHORT) for threads, seed in ((1, 3), (2, 3), (2, 4)))
    assert one.tobytes() == two.tobytes() != other.tobytes()


def test_groups_are_everyone_once_in_their_order_with_about_equal_loads():
    rng = np.random.default_rng(0)
    outputs, loads = rng.permutation(100), rng.integers(1, 9, 100) * 20_000.0
    groups = in_groups(outputs, loads)
    assert np.concatenate(groups).tolist() == outputs.tolist()
    sums = [loads[group].sum() for group in groups]
    assert len(groups) == int(loads.sum() // TURN)
    assert max(sums) <= 2 * TURN


@pytest.mark.parametrize("many, load", [(entry_sweeps.MANY - 1, 1e9), (200, 100.0)])
def test_few_outputs_or_little_work_are_one_group(many, load):
    groups = in_groups(np.arange(many), np.full(many, load))
    assert len(groups) == 1 and groups[0].shape == (many,)


def test_an_output_that_outweighs_all_others_has_a_turn_like_any():
    loads = np.zeros(50)
    loads[20] = 1e9
    groups = in_groups(np.arange(50), loads)
    assert np.concatenate(groups).tolist() == list(range(50))


def test_entries_are_listed_output_by_output():
    held = np.zeros((3, 4), np.bool_)
    held[[0, 2, 1], [1, 1, 3]] = True
    listed = Listed.of(held)
    assert listed.rows.tolist() == [0, 2, 1] and listed.outputs.tolist() == [1, 1, 3]
    assert listed.bounds.tolist() == [0, 0, 2, 2, 3]
    loads = listed.loads(np.array([5, 7, 11]), np.array([True, False, True]))
    assert loads.tolist() == [0.0, 5.0, 0.0, 7.0]
