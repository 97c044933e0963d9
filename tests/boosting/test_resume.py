"""A fit goes on from any round with the bits of the undisturbed run, and is a function of data, settings and seed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dboost.boosting.checks import UPDATES
from dboost.losses import LOSSES
from dboost.problem.tuning import Samples, Tuning
from dboost.solvers.row_updates import SELECTIONS
from tests.boosting import plain

RUNS = [{"update": "newton"}, {"update": "newton", "sample": 0.5}]


ROWWISE = [pair for pair in plain.DEFINED if pair[1] != "newton"]
ONE_BOUND = plain.covering(LOSSES, UPDATES[1:], SELECTIONS, allowed=lambda loss, update, _: (loss, update) in ROWWISE)
CASES = [(loss, run) for loss in LOSSES for run in RUNS]
CASES += [(loss, {"update": update, "select": select, "tol": 1e-5}) for loss, update, select in ONE_BOUND]
VOLATILE = (
    "seconds",
    "seconds_driver",
    "seconds_scheduler",
    "seconds_network",
    "seconds_kernels",
    "bytes_moved",
)


def bits(result):
    """Everything of a result but times."""
    history = [{key: value for key, value in r.items() if key not in VOLATILE} for r in result.history]
    arrays = result.active, result.W, result.intercept
    numbers = result.objective, result.lower_bound, result.gap, result.n_iter, result.passes, result.stop_reason
    return tuple(a.tobytes() for a in arrays), numbers, repr(history)


@pytest.mark.full
@pytest.mark.parametrize(
    "loss,settings", CASES, ids=[f"{loss}-{'-'.join(map(str, run.values()))}" for loss, run in CASES]
)
def test_any_round_can_be_resumed(loss, settings):
    data = plain.make(loss, m=60, n=5, seed=20)
    settings = {"penalty": "l1/linf", "tol": 1e-7, **settings}

    def fitting():
        return plain.fitting(data, **settings)

    states, live = [], []

    def kept(record, state):
        states.append(pickle.dumps(state))
        live.append(state)

    alpha = 0.3 * fitting().alpha_max()
    whole = fitting().fit(alpha, callback=kept)
    assert whole.stop_reason == "tol" and len(states) == whole.n_iter >= 2
    # later rounds change no state
    for state, before in zip(live, map(pickle.loads, states), strict=True):
        np.testing.assert_array_equal(state.W, before.W)
        np.testing.assert_array_equal(state.active, before.active)
        assert repr(state.history) == repr(before.history)
    for stopped in {0, len(states) // 2, len(states) - 1}:
        resumed = fitting().fit(alpha, resume=pickle.loads(states[stopped]))
        assert bits(resumed) == bits(whole)
    # a fit that had done its last round does no other, but certifies what that left
    short = plain.fitting(data, **settings, max_rounds=1).fit(alpha, resume=pickle.loads(states[0]))
    ended = "tol" if [record["step"] for record in whole.history[1:]] == ["certificate"] else "max_rounds"
    assert (short.stop_reason, short.n_iter) == (ended, 1)
    assert short.W.tobytes() == pickle.loads(states[0]).W.tobytes()


@pytest.mark.full
@pytest.mark.parametrize("loss,update", plain.DEFINED)
def test_threads_do_not_change_the_bits(loss, update):
    data = plain.make(loss, m=60, n=8, seed=21)
    select = "greedy" if update == "newton" else "template"
    runs = [plain.fitting(data, cuts=5, threads=t, update=update, select=select, tol=1e-4) for t in (1, 2, 3)]
    alpha = 0.3 * plain.alpha_max(data, "l1/linf")
    first, second, third = (bits(run.fit(alpha)) for run in runs)
    assert first == second == third


@pytest.mark.parametrize("loss", ["multinomial", "multitask"])
def test_a_sample_in_parts_has_the_same_optimum_and_the_same_bits_on_all_threads(loss):
    data = plain.make(loss, m=60, n=8, seed=21)
    alpha = 0.2 * plain.alpha_max(data, "l1/l2")
    whole = plain.fitting(data, penalty="l1/l2", tol=1e-10).fit(alpha)
    settings = {"penalty": "l1/l2", "tol": 1e-10, "tuning": Tuning(samples=Samples(part=30))}
    runs = [plain.fitting(data, threads=t, **settings).fit(alpha) for t in (1, 2, 3)]
    assert bits(runs[0]) == bits(runs[1]) == bits(runs[2])
    assert runs[0].objective == pytest.approx(whole.objective, rel=1e-9)
    np.testing.assert_allclose(plain.dense(runs[0], 8), plain.dense(whole, 8), atol=1e-4)


@pytest.mark.full
@pytest.mark.parametrize("loss,update", ROWWISE)
def test_a_random_order_depends_on_the_seed_alone(loss, update):
    data = plain.make(loss, m=60, n=8, seed=22)
    alpha = 0.3 * plain.alpha_max(data, "l1/l2")

    def run(seed):
        settings = {"penalty": "l1/l2", "tol": 1e-4, "update": update, "select": "random", "random_state": seed}
        return plain.fitting(data, **settings).fit(alpha)

    same, again, other = run(1), run(1), run(2)
    assert bits(same) == bits(again)
    assert same.W.tobytes() != other.W.tobytes()
    assert other.objective == pytest.approx(same.objective, rel=2e-4)


def test_the_seconds_of_a_round_add_up():
    data = plain.make("multinomial", m=60, n=5, seed=20)
    history = plain.fitting(data, penalty="l1/linf", tol=1e-7).fit("auto").history
    for record in history:
        shares = [record[f"seconds_{share}"] for share in ("driver", "scheduler", "network", "kernels")]
        assert min(shares) >= 0.0 and sum(shares) == pytest.approx(record["seconds"])
        assert record["seconds_kernels"] > 0.0
        assert record["seconds_scheduler"] == record["seconds_network"] == 0.0, "nothing waits in one process"
