"""Which classes share a stump: the sets that JointBoost searches, greedily or all of them (docs/math.md 7 (J)).

The gain of a stump shared by the classes S is a sum of squares of weighted means: of the classes of S together, below
the threshold and elsewhere, and of each other class alone,

    (sum_S bz)^2 / sum_S bw + (sum_S az)^2 / sum_S aw + sum_{c not in S} (bz_c + az_c)^2 / (bw_c + aw_c),

with bz and bw the sums of w z and of w below the threshold, az and aw elsewhere. The greedy search grows S class by
class, O(K^2) for each stump; there are 2^K - 1 sets, and for few classes all can be tried.

Does not cover: the sums, or the numbers that the stump then has (``rounds``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError

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

    Parameters
    ----------
    Bz, Bw, Az, Aw : float64 arrays, shape (T, k)
        Sums of w z and of w, below each threshold and elsewhere.

    Returns
    -------
    gain : float64 array, shape (T,)
        What is taken off the weighted squares by the best stage.
    order : int64 array, shape (T, k)
        The classes in the order in which they join.
    count : int64 array, shape (T,)
        How many of them share the stump at the best stage.
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
    """The best of all sets of classes for each of some stumps.

    Parameters
    ----------
    Bz, Bw, Az, Aw : float64 arrays, shape (T, k)
        As for `shared_by`.

    Returns
    -------
    gain : float64 array, shape (T,)
        What is taken off the weighted squares by the best set.
    shares : bool array, shape (T, k)
        The set; of sets that gain the same the first in binary order, which holds no class that adds nothing.
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


def refuse_many_classes(search: str, k: int) -> None:
    """Refuse to try all sets of more classes than `MOST_CLASSES` (UsageError)."""
    if search == "exhaustive" and k > MOST_CLASSES:
        raise UsageError(
            f"search='exhaustive' with {k} classes would try 2^{k} = {2**k:,} sets of them for every stump",
            hint=f"it takes at most {MOST_CLASSES} classes: use search='greedy'",
        )


def first_of_best(gains: Array) -> NDArray[np.int64]:
    """Place of the first entry along the last axis that is the largest, but for rounding."""
    top = gains.max(axis=-1, keepdims=True)
    return np.asarray((gains >= top - TIE * np.abs(top)).argmax(axis=-1))


def _ratio(z: Array, w: Array) -> Array:
    """z^2 / w, 0 where there is no weight."""
    return np.divide(z * z, w, out=np.zeros(np.broadcast(z, w).shape), where=w > 0.0)
