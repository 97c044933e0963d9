"""How many of the features that a stability selection chooses may be false, in the mean.

Covers: the bound of Meinshausen & Buehlmann (2010), which Shah & Samworth (2013) have under weaker assumptions, and the
tighter one of the latter for frequencies of a certain shape. Does not cover: the frequencies (``stability``).

Here p is the number of features, q the mean number of them that a half sample uses at any of the strengths, theta =
q / p, tau the threshold and B the number of complementary pairs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

Float = NDArray[np.float64]

# The parameter of a shape is looked for between these: below the first it has its whole mass at zero, above the second
# it is flat, each up to the rounding of a float.
_LEAST, _MOST = 1e-9, 1e9


def worst_case(q: float, p: int, tau: float) -> float:
    """The bound q**2 / ((2 tau - 1) p).

    It holds for the number of false features if those of noise are exchangeable, and the selection is not worse than a
    guess (Meinshausen & Buehlmann 2010, theorem 1). Without any assumption it holds for the number of chosen features
    whose probability to be used by a half sample is at most q / p (Shah & Samworth 2013, theorem 1).

    Parameters
    ----------
    q : float
        Mean number of features that a half sample uses.
    p : int
        Number of features.
    tau : float
        Above 1/2.

    Returns
    -------
    float
    """
    return q * q / ((2.0 * tau - 1.0) * p)


def r_concave(q: float, p: int, tau: float, pairs: int) -> float:
    """The bound p min{D(theta**2, 2 tau - 1, B, -1/2), D(theta, tau, 2 B, -1/4)}, or `worst_case` where that is less.

    It holds for the number of chosen features whose probability to be used by a half sample is at most theta = q / p,
    if for each of them the share of pairs in which both halves use it has a distribution that is -1/2-concave, and the
    share of the halves that use it one that is -1/4-concave (Shah & Samworth 2013, section 3.3). That is an
    assumption about shape: their simulations support it, and it is not proved of any method of selection.

    Parameters
    ----------
    q, p, tau
        As of `worst_case`.
    pairs : int
        Number B of complementary pairs.

    Returns
    -------
    float
    """
    theta = q / p
    both = largest_tail(theta * theta, 2.0 * tau - 1.0, pairs, -0.5)
    each = largest_tail(theta, tau, 2 * pairs, -0.25)
    return min(p * min(both, each), worst_case(q, p, tau))


def largest_tail(mean: float, t: float, steps: int, r: float) -> float:
    """D(mean, t, steps, r): the largest probability that an r-concave variable reaches t.

    The variable takes the values 0, 1/steps, ..., 1 and has at most that mean; a function f is r-concave, for r < 0,
    if f**r is convex on its support. The largest is reached by an f(i) proportional to (a + i)**(1/r) for i up to some
    k, with what the mean still needs at k + 1, at most as much as the same curve has there (Shah & Samworth 2013,
    appendix).

    Parameters
    ----------
    mean, t : float
        In [0, 1].
    steps : int
    r : float
        Negative.

    Returns
    -------
    float
        In [0, 1]; 1 where t is within twice the mean, which is no bound.
    """
    # a threshold between two values is reached at the larger one; a share such as 0.6 of 100 is not to be the next
    place = math.ceil(t * steps - 1e-9)
    if mean <= 0.0 or place <= 0:
        return float(place <= 0)
    centre = mean * steps
    first = math.floor(2.0 * centre) + 1
    if place <= 2.0 * centre or first > steps:
        return 1.0
    power = 1.0 / r
    best = 0.0
    above = math.log(_MOST)
    for k in range(max(place - 1, first), steps + 1):
        # the curve up to k has the mean itself at a_k, and at a_(k+1) < a_k once all of k + 1 belongs to it
        here = _shape(k, centre, power, above)
        if k == steps:
            return max(best, _tail(here, k, centre, power, place))
        beyond = _shape(k + 1, centre, power, here)
        best = max(best, _highest(beyond, here, k, centre, power, place))
        above = here
    return best


def _curve(log_a: float, k: int, power: float) -> Float:
    """(a + i)**power for i up to k, in units of its first value."""
    a = math.exp(log_a)
    found: Float = (1.0 + np.arange(k + 1) / a) ** power
    return found


def _shape(k: int, centre: float, power: float, above: float) -> float:
    """The logarithm of the a at which the curve up to k has its mean at `centre`; it is at most `above`."""

    def off(log_a: float) -> float:
        f = _curve(log_a, k, power)
        return float(np.arange(k + 1) @ f / f.sum()) - centre

    low = math.log(_LEAST)
    if off(low) >= 0.0:
        return low
    return above if off(above) <= 0.0 else float(brentq(off, low, above, xtol=1e-13, rtol=1e-13))


def _tail(log_a: float, k: int, centre: float, power: float, place: int) -> float:
    """The probability of `place` and more, where the curve ends at k and the mean is made up for at k + 1."""
    f = _curve(log_a, k, power)
    i = np.arange(k + 1)
    more = max(0.0, float((centre - i) @ f)) / (k + 1 - centre)
    return float((f[place:].sum() + more) / (f.sum() + more))


def _highest(low: float, high: float, k: int, centre: float, power: float, place: int) -> float:
    """The largest of these probabilities for shapes between two."""
    ends = max(_tail(low, k, centre, power, place), _tail(high, k, centre, power, place))
    if high - low < 1e-12:
        return ends
    inside = minimize_scalar(lambda a: -_tail(a, k, centre, power, place), bounds=(low, high), method="bounded")
    return max(ends, -float(inside.fun))
