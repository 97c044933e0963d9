"""A fit goes on from any round with the bits of the undisturbed run, and is a function of data, settings and seed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dboost.boosting.fit import UPDATES
from dboost.boosting.rowwise import SELECTIONS
from tests.boosting import plain

RUNS = [{"update": "newton"}, {"update": "newton", "sample": 0.5}, {"curvature": "gram"}]
RUNS += [{"update": update, "select": select, "tol": 1e-5} for update in UPDATES[1:] for select in SELECTIONS]
VOLATILE = ("seconds", "bytes_moved")


def bits(result):
    """Everything of a result but times."""
    history = [{key: value for key, value in r.items() if key not in VOLATILE} for r in result.history]
    arrays = result.active, result.W, result.intercept
    numbers = result.objective, result.lower_bound, result.gap, result.n_iter, result.passes, result.stop_reason
    return tuple(a.tobytes() for a in arrays), numbers, repr(history)


@pytest.mark.parametrize("settings", RUNS, ids=lambda run: "-".join(map(str, run.values())))
def test_any_round_can_be_resumed(loss, settings):
    if not plain.defined(loss, settings.get("update", "newton")) or (loss == "exp" and "curvature" in settings):
        pytest.skip("refused: tests/bounds/test_pairs.py")
    data = plain.make(loss, m=60, n=5, seed=20)
    settings = {"penalty": "l1/linf", "tol": 1e-7, **settings}

    def fitting():
        return plain.fitting(data, **settings)

    states = []
    alpha = 0.3 * fitting().alpha_max()
    whole = fitting().fit(alpha, callback=lambda record, state: states.append(pickle.dumps(state)))
    assert whole.stop_reason == "tol" and len(states) == whole.n_iter >= 2
    for stopped in {0, len(states) // 2}:
        resumed = fitting().fit(alpha, resume=pickle.loads(states[stopped]))
        assert bits(resumed) == bits(whole)


@pytest.mark.parametrize("update", UPDATES)
def test_threads_do_not_change_the_bits(loss, update):
    if not plain.defined(loss, update):
        pytest.skip("refused: tests/bounds/test_pairs.py")
    data = plain.make(loss, m=60, n=8, seed=21)
    select = "greedy" if update == "newton" else "template"
    runs = [plain.fitting(data, cuts=5, threads=t, update=update, select=select, tol=1e-4) for t in (1, 2, 3)]
    alpha = 0.3 * plain.alpha_max(data, "l1/linf")
    first, second, third = (bits(run.fit(alpha)) for run in runs)
    assert first == second == third


@pytest.mark.parametrize("update", UPDATES[1:])
def test_a_random_order_depends_on_the_seed_alone(loss, update):
    if not plain.defined(loss, update):
        pytest.skip("refused: tests/bounds/test_pairs.py")
    data = plain.make(loss, m=60, n=8, seed=22)
    alpha = 0.3 * plain.alpha_max(data, "l1/l2")

    def run(seed):
        settings = {"penalty": "l1/l2", "tol": 1e-4, "update": update, "select": "random", "random_state": seed}
        return plain.fitting(data, **settings).fit(alpha)

    same, again, other = run(1), run(1), run(2)
    assert bits(same) == bits(again)
    assert same.W.tobytes() != other.W.tobytes()
    assert other.objective == pytest.approx(same.objective, rel=2e-4)


def test_a_state_is_not_changed_by_the_rounds_after_it(loss):
    data = plain.make(loss, m=60, n=8, seed=23)
    seen = []
    plain.fitting(data, tol=1e-7).fit("auto", callback=lambda r, state: seen.append((state, pickle.dumps(state))))
    for state, before in seen:
        after = pickle.loads(before)
        np.testing.assert_array_equal(state.W, after.W)
        np.testing.assert_array_equal(state.active, after.active)
        assert repr(state.history) == repr(after.history)
