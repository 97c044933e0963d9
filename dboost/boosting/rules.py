"""What greedy systems rank hypotheses by, in the form in which scoring passes ask: as a penalty.

A scoring pass asks the penalty how good each candidate is (``Penalty.score_quadratic`` and ``score_exponential``). The
totally corrective loop answers with the guaranteed decrease of its bound; the systems of Raetsch, Mika & Warmuth, of
Xi et al. and of Stratos answer with edges. These classes are the penalties ``none`` and ``l1`` in everything else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from dboost.compiled.vectors.norms import largest_entries
from dboost.errors import UsageError
from dboost.hypotheses.capabilities import has_tree
from dboost.penalties.l1 import L1
from dboost.penalties.none import NoPenalty
from dboost.problem.problem import Problem

Array = NDArray[np.float64]

RULES = ("edge", "nearest", "joint")
# log of the smallest number that ``_positive`` tells from zero
_TINY = 1e-300
_MIDDLE = 1500.0

SUMMED_HINT = (
    "use dboost.Products(max_degree=2), which is summed whole whatever the number of features; "
    "of a higher max_degree at most 10,000,000 products are"
)


def rank(rule: str, G: Array, square: Array, lam: npt.ArrayLike = 0.0) -> Array:
    """How much a hypothesis deserves to be moved; positive, larger is better (docs/math.md 7 (I)).

    Parameters
    ----------
    rule : {"edge", "nearest", "joint"}
        "edge": |<d, h>| - lam, the learner of AdaBoost and logistic regression, and the Gauss-Southwell rule.
        "nearest": |<d, h>| - <h, h> / 2, whose maximiser has the least (1/2) sum_n (d_n - h_n)^2 of all h and -h
        (LS-Boost, first version). "joint": (|<d, h>| - lam)^2 / (2 <h, h>), the decrease of the squared loss at the
        best weight (LS-Boost, second version).
    G : float64 array, shape (c,)
        <d, h>.
    square : float64 array, shape (c,)
        <h, h>, times the largest curvature of the loss.
    lam : float or float64 array
        Strength of an l1 penalty.
    """
    size = np.abs(G)
    if rule == "nearest":
        return _positive(size - 0.5 * square)
    beyond = np.maximum(size - lam, 0.0)
    if rule == "edge":
        return beyond
    result: Array = np.divide(beyond * beyond, 2.0 * square, out=np.zeros_like(beyond), where=square > 0.0)
    return result


def _positive(x: Array) -> Array:
    """A positive number for each, in the same order: candidates of a pass without a positive score are dropped."""
    result: Array = _MIDDLE + np.sign(x) * (np.log(np.abs(x) + _TINY) - np.log(_TINY))
    return result


@dataclass(frozen=True)
class RankedNone(NoPenalty):
    """No penalty; candidates are ranked by `rank`."""

    rule: str = "edge"

    def dual_norm(self, G: Array) -> Array:
        """Largest absolute entry: the size of a gradient that is to vanish."""
        return largest_entries(G)

    def score_quadratic(self, G: Array, D: npt.ArrayLike, lam: npt.ArrayLike) -> Array:
        """`rank` of rows of one entry."""
        return rank(self.rule, G[:, 0], np.broadcast_to(np.asarray(D, float), len(G)))


@dataclass(frozen=True)
class RankedL1(L1):
    """The l1 penalty; candidates are ranked by `rank`."""

    rule: str = "edge"

    def score_quadratic(self, G: Array, D: npt.ArrayLike, lam: npt.ArrayLike) -> Array:
        """`rank` of rows of one entry."""
        return rank(self.rule, G[:, 0], np.broadcast_to(np.asarray(D, float), len(G)), lam)


@dataclass(frozen=True)
class NormalisedEdges(NoPenalty):
    """No penalty; candidates are ranked by |<d, h>| / max |h|, the edge of a hypothesis scaled into [-1, 1]."""

    rule: ClassVar[str] = "normalised"

    def score_exponential(self, mu_plus: Array, mu_minus: Array, a: npt.ArrayLike, lam: npt.ArrayLike) -> Array:
        """|mu+ - mu-| times a = 1 / max |h|."""
        result: Any = np.abs(mu_plus[:, 0] - mu_minus[:, 0]) * np.asarray(a, float)
        return np.asarray(result, dtype=np.float64)


def refuse_searched(problem: Problem) -> None:
    """Refuse a class that no round sums: these systems take the best hypothesis of all in every round.

    The search of a tree finds the largest |h'Theta|. Edges that are divided by max |h|, and gradients by the root of
    sum h^2, are ranked otherwise: products of ever more features become small in both, no bound on what lies below one
    falls with its degree, and a search has no end. A class of which every round finds the best, though it does not sum
    all (``hypotheses.capabilities.Binned``), will do.

    Raises
    ------
    UsageError
    """
    if has_tree(problem.pool):
        raise UsageError(
            f"the best hypothesis of {_number(problem)} cannot be found in every round",
            hint=SUMMED_HINT,
        )


def refuse_part(problem: Problem) -> None:
    """Refuse a class that has an end and is not summed, of which a round would look at a part.

    Of a class without end the part next to the model is all that a round can look at, and what is asked for.

    Raises
    ------
    UsageError
    """
    if math.isfinite(problem.n_candidates) and has_tree(problem.pool):
        raise UsageError(
            f"{_number(problem)} are not summed in every round, and some would not be looked at",
            hint=SUMMED_HINT,
        )


def _number(problem: Problem) -> str:
    many = math.isfinite(problem.n_candidates)
    return f"{problem.n_candidates:,.0f} hypotheses" if many else "an infinite class"
