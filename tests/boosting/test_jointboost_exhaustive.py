"""JointBoost's exhaustive search against brute force over every stump and every set of classes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dboost import JointBoostClassifier, UsageError
from dboost.boosting.jointboost.rounds import JointBoost
from dboost.boosting.jointboost.sharing import MOST_CLASSES
from tests.boosting.test_jointboost import fitted_by_hand, fitting, labels, make
from tests.boosting.test_resume import bits
from tests.boosting.test_stump_fits import thresholds_of


def sets_of(k):
    """Every set of classes but the empty one, in binary order."""
    return [[c for c in range(k) if number >> c & 1] for number in range(1, 2**k)]


def best_by_hand(X, s, z, w):
    """The least weighted squares over all stumps and sets of classes, and its h."""
    best = (np.inf, None)
    for j, th in thresholds_of(X, s):
        for S in sets_of(z.shape[1]):
            h = fitted_by_hand(X[:, j] < th, z, w, S)
            error = (w * (z - h) ** 2).sum()
            if error < best[0] - 1e-9:
                best = (error, h)
    return best


@pytest.mark.parametrize("k", [3, 4])
def test_every_round_is_the_best_of_all_stumps_and_sets(k):
    data = make("multinomial", m=40, n=2, k=k)
    result = fitting(data, system=JointBoost("exhaustive"), max_rounds=4).fit("auto")
    z, s = labels(data), data.s
    F, values = np.zeros_like(z), []
    for _ in range(4):
        w = s[:, None] * np.exp(-z * F)
        values.append(w.sum() / s.sum())
        F = F + best_by_hand(data.X, s, z, w)[1]
    np.testing.assert_allclose([r["objective"] for r in result.history], values, rtol=1e-9)
    assert result.objective == pytest.approx((s[:, None] * np.exp(-z * F)).sum() / s.sum(), rel=1e-9)


def test_bits_of_chunks_threads_and_resumed_fits():
    data, states = make("multinomial", k=4), []
    whole = fitting(data, system=JointBoost("exhaustive")).fit(
        "auto", callback=lambda r, state: states.append(pickle.dumps(state))
    )
    small = JointBoost("exhaustive", shard_bytes=100, chunk=20)
    assert bits(fitting(data, system=small).fit("auto")) == bits(whole)
    resumed = fitting(data, system=JointBoost("exhaustive")).fit("auto", resume=pickle.loads(states[3]))
    assert bits(resumed) == bits(whole)


def test_many_classes_are_refused_with_their_number_of_sets():
    data = make("multinomial", m=80, k=MOST_CLASSES + 1)
    with pytest.raises(UsageError, match=r"13 classes would try 2\^13 = 8,192 sets .*at most 12 classes"):
        fitting(data, system=JointBoost("exhaustive")).fit("auto")
    fitting(data, system=JointBoost("greedy"), max_rounds=1).fit("auto")


def test_what_is_no_search_is_refused():
    data = make("multinomial", k=3)
    with pytest.raises(UsageError, match="search='all'.*expected one of 'greedy', 'exhaustive'"):
        JointBoostClassifier(search="all").fit(data.X, data.y)
