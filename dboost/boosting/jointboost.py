"""JointBoost: in each round one stump that some of the classes share, and a constant for each of the others.

z_ic is 1 where example i is of class c and -1 elsewhere, F_ic its score and w_ic = s_i e^(-z_ic F_ic) its weight. A
round takes the stump v < th, the classes S and the numbers that fit z best in weighted squares:

    h_ic = b where v_i < th and a + b elsewhere, for c in S;    h_ic = k_c for the other classes

and adds h to F (Torralba, Murphy & Freeman 2007; Shalev-Shwartz, Wexler & Shashua leave out the k_c; docs/math.md
7 (J)). All follows from the sums of w over the labels z = 1 and z = -1 below every threshold: the gain of a stump is
a sum of squares of weighted means, of the classes of S together, below the threshold and elsewhere, and of each other
class alone,

    (sum_S bz)^2 / sum_S bw + (sum_S az)^2 / sum_S aw + sum_{c not in S} (bz_c + az_c)^2 / (bw_c + aw_c),

with bz and bw the sums of w z and of w below the threshold, az and aw elsewhere. S is grown greedily from the best
class on, and the best of its k stages is taken, O(k^2) per threshold; or it is the best of all 2^k - 1 sets.

There is no certificate; a fit ends by its budget, or once no round gains anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.systems import Rounds, System
from dboost.errors import UsageError
from dboost.hypotheses.base import Key
from dboost.hypotheses.stumps.family import Stumps
from dboost.partition import Sums
from dboost.passes import pools
from dboost.problem.induced import SHARD_BYTES
from dboost.problem.iterate import Iterate

if TYPE_CHECKING:
    from dboost.penalties import Penalty
    from dboost.problem.iterate import Score
    from dboost.problem.problem import Problem
    from dboost.problem.state import FitSettings, FitState

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

SEARCHES = ("greedy", "exhaustive")

MOST_CLASSES = 12
"""Classes up to which all sets are tried: 4095 sets for each stump, and twice as many with one more class."""

# Gains that differ by less than this share are equal but for rounding; the first of them is taken, so that a weight of
# two and a row twice lead to the same model.
TIE = 1e-11


def shared_by(Bz: Array, Bw: Array, Az: Array, Aw: Array) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
    """Greedy search for the classes that share each of some stumps.

    From sums of w z and of w (T, k), below each threshold and elsewhere: what is taken off the weighted squares by the
    best stage (T,), the classes in the order in which they join (T, k), and how many share the stump then (T,).
    """
    T, k = Bz.shape
    every = np.arange(T)
    alone = _ratio(Bz + Az, Bw + Aw)
    total = alone.sum(axis=1)
    zero = np.zeros((T, 1))
    b, wb, a, wa, out = zero, zero, zero, zero, total[:, None]
    joined = np.zeros((T, k), np.bool_)
    order = np.empty((T, k), np.int64)
    best, count = np.full(T, -np.inf), np.zeros(T, np.int64)
    for stage in range(k):
        gains = _ratio(b + Bz, wb + Bw) + _ratio(a + Az, wa + Aw) + (out - alone)
        gains[joined] = -np.inf
        chosen = first_of_best(gains)
        order[:, stage] = chosen
        joined[every, chosen] = True
        better = gains[every, chosen] > best + TIE * np.abs(gains[every, chosen])
        best[better], count[better] = gains[every, chosen][better], stage + 1
        b, wb = b + Bz[every, chosen][:, None], wb + Bw[every, chosen][:, None]
        a, wa = a + Az[every, chosen][:, None], wa + Aw[every, chosen][:, None]
        out = out - alone[every, chosen][:, None]
    return best, order, count


def of_all_sets(Bz: Array, Bw: Array, Az: Array, Aw: Array) -> tuple[Array, Bools]:
    """As `shared_by`, of all sets of classes: the gain (T,) of the best one, and the set as bool (T, k).

    Of sets that gain the same it is the first in binary order, which holds no class that adds nothing.
    """
    k = Bz.shape[1]
    alone = _ratio(Bz + Az, Bw + Aw)
    b, wb, a, wa, within = (_sums_of_sets(part) for part in (Bz, Bw, Az, Aw, alone))
    gains = _ratio(b, wb) + _ratio(a, wa) + (alone.sum(axis=1)[:, None] - within)
    # a stump belongs to one class at least
    gains = gains[:, 1:]
    chosen = first_of_best(gains)
    shares = (chosen[:, None] + 1) >> np.arange(k) & 1
    return gains[np.arange(gains.shape[0]), chosen], shares.astype(np.bool_)


def _sums_of_sets(part: Array) -> Array:
    """Sums over the classes of every set, (T, 2^k); bit c of the place of a set says whether class c is in it."""
    sums = np.zeros((part.shape[0], 1))
    for c in range(part.shape[1]):
        sums = np.concatenate([sums, sums + part[:, [c]]], axis=1)
    return sums


def searched(search: str, Bz: Array, Bw: Array, Az: Array, Aw: Array) -> tuple[Array, Bools]:
    """The gain (T,) of some stumps by a search, and the classes (T, k) that share each."""
    if search == "exhaustive":
        return of_all_sets(Bz, Bw, Az, Aw)
    gain, order, count = shared_by(Bz, Bw, Az, Aw)
    # the place of a class in the order says whether it had joined by the best stage
    return gain, np.argsort(order, axis=1) < count[:, None]


def sets_of(search: str, k: int) -> int:
    """Numbers that a search holds at once for each stump."""
    return 2**k if search == "exhaustive" else k


def first_of_best(gains: Array) -> NDArray[np.int64]:
    """Place of the first entry along the last axis that is the largest, but for rounding."""
    top = gains.max(axis=-1, keepdims=True)
    return np.asarray((gains >= top - TIE * np.abs(top)).argmax(axis=-1))


def _ratio(z: Array, w: Array) -> Array:
    """z^2 / w, 0 where there is no weight."""
    return np.divide(z * z, w, out=np.zeros(np.broadcast(z, w).shape), where=w > 0.0)


# A round that gains less than this share of `tol` ends the fit, as in ``forward``.
_GAINED = 0.1
# Numbers of thresholds times classes that are searched at once.
CHUNK = 1 << 20


@dataclass(frozen=True)
class Joint:
    """The best stump of some, with the classes that share it."""

    gain: float  # What it takes off sum w (z - h)^2.
    key: Key
    shares: NDArray[np.bool_]  # (k,): Whether a class is in S.
    below: float  # H of the classes in S where the value is below the threshold, b, and elsewhere, a + b.
    above: float
    constant: Array  # (k,): k_c of the others; 0 for those in S.


def best_stump(total: Sums, shard: Any, pool: Any, chunk: int = CHUNK, search: str = "greedy") -> Joint | None:
    """The best stump of a shard; None where the shard has none.

    `total` has "mu_plus" and "mu_minus" (T, k) of the stumps, "bias_plus" and "bias_minus" (k,) of all examples.
    `chunk` thresholds times classes, or sets of classes, are searched at once; the stump does not depend on it.
    """
    plus, minus = total.add["mu_plus"], total.add["mu_minus"]
    T, k = plus.shape
    if T == 0:
        return None
    whole_z = total.add["bias_plus"] - total.add["bias_minus"]
    whole_w = total.add["bias_plus"] + total.add["bias_minus"]

    def sums(rows: slice) -> tuple[Array, Array, Array, Array]:
        Bz, Bw = plus[rows] - minus[rows], plus[rows] + minus[rows]
        return Bz, Bw, whole_z - Bz, np.maximum(whole_w - Bw, 0.0)

    step = max(1, chunk // sets_of(search, k))
    gain = np.concatenate([searched(search, *sums(slice(t, t + step)))[0] for t in range(0, T, step)])
    place = int(first_of_best(gain))
    Bz, Bw, Az, Aw = sums(slice(place, place + 1))
    shares = searched(search, Bz, Bw, Az, Aw)[1][0]
    constant = np.divide(whole_z, whole_w, out=np.zeros(k), where=whole_w > 0.0)
    below, above = (
        float(z[0, shares].sum() / w[0, shares].sum()) if w[0, shares].sum() > 0.0 else 0.0
        for z, w in ((Bz, Bw), (Az, Aw))
    )
    key = pool.keys(shard, np.array([place]))[0]
    return Joint(float(gain[place]), key, shares, below, above, np.where(shares, 0.0, constant))


@dataclass(frozen=True)
class JointBoost(System):
    """The system, and two numbers that no model depends on."""

    search: str = "greedy"  # Whether the set of classes is grown, or the best of all sets.
    shard_bytes: int = SHARD_BYTES  # Bytes of the sums that are formed at once.
    chunk: int = CHUNK  # Thresholds times classes, or sets of classes, that are searched at once.
    name = "jointboost"
    exponential = True

    def check(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse anything but stumps of the values 0 and 1, without a penalty."""
        if self.search not in SEARCHES:
            known = ", ".join(map(repr, SEARCHES))
            raise UsageError(f"search={self.search!r}", hint=f"expected one of {known}")
        family = settings.hypotheses
        if not isinstance(family, Stumps) or family.signed:
            raise UsageError(f"JointBoost: hypotheses={family!r}", hint="expected dboost.Stumps(), not signed")
        if not penalty.weightless or not settings.fit_intercept:
            raise UsageError("JointBoost has no penalty, and its constants are the intercept")

    def rounds(self, problem: Problem, settings: FitSettings, null: Score, n_rows: int) -> JointRounds:
        """The rounds of a fit."""
        k = problem.k
        if self.search == "exhaustive" and k > MOST_CLASSES:
            raise UsageError(
                f"search='exhaustive' with {k} classes would try 2^{k} = {2**k:,} sets of them for every stump",
                hint=f"it takes at most {MOST_CLASSES} classes: use search='greedy'",
            )
        return JointRounds(problem, settings, null, self, n_rows)

    def to_json(self) -> dict[str, Any]:
        """Its name and its search, which is all that a checkpoint must agree with."""
        return {"system": self.name, "search": self.search}


class JointRounds(Rounds):
    """Rounds of one fit over stumps, with an exponential loss; they end by "gradient", "max_rounds" or "callback"."""

    def begun(self, state: FitState) -> FitState:
        """The paper begins with all scores 0 and all weights 1."""
        return replace(state, intercept=np.zeros_like(state.intercept)) if state.round == 0 else state

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason to stop if there is one."""
        clock, before = self.clock(), state
        iterate = Iterate.unsummed(state.active, state.W, state.intercept)
        found = self._best_of_shards(iterate)
        value = found[0][1]
        joints = [best for best, _ in found if best is not None]
        state = self.valued(state, value)
        best = joints[int(first_of_best(np.array([joint.gain for joint in joints])))] if joints else None
        stop = best is None or best.gain <= _GAINED * self.settings.tol * value
        if best is not None and not stop:
            state = self._moved(state, best)
        more = {"sharing_classes": 0 if best is None or stop else int(np.count_nonzero(best.shares))}
        state = self.recorded(before, state, clock, "jointboost", 0.0 if stop else 1.0, more)
        return state, "gradient" if stop else ""

    def _best_of_shards(self, iterate: Iterate) -> list[tuple[Joint | None, float]]:
        """The best stump of each shard at a model, and the loss there; one pass over mu+ and mu- of all stumps."""
        problem, pool = self.problem, self.problem.pool
        held = sorted(problem.held(iterate.active).keys)
        found: list[tuple[Joint | None, float]] = problem.runner.run(
            pools.pulled,
            pool,
            problem.point(iterate.active, iterate.W, iterate.intercept),
            name="score",
            shards=pool.shards(held, 16 * problem.k, self.system.shard_bytes),
            finish=pools.finished,
            finish_args=lambda shard: (pool, _best_and_loss, pool, self.system.chunk, self.system.search),
        )
        return found

    def _moved(self, state: FitState, best: Joint) -> FitState:
        """F + h: b + a 1[v >= th] is a + b - a 1[v < th]."""
        row = int(self.problem.register([best.key])[0])
        active = np.union1d(state.active, [row]).astype(np.int64)
        W = np.zeros((len(active), self.problem.k))
        W[np.searchsorted(active, state.active)] = state.W
        W[np.searchsorted(active, row)] += np.where(best.shares, best.below - best.above, 0.0)
        intercept = state.intercept + np.where(best.shares, best.above, best.constant)
        return replace(state, active=active, W=W, intercept=intercept)


def _best_and_loss(total: Sums, shard: Any, pool: Any, chunk: int, search: str) -> tuple[Joint | None, float]:
    return best_stump(total, shard, pool, chunk, search), float(total.add["loss"])
