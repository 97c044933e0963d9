"""What a Newton step is for: how exactly its model is worth solving, and whether descent alone will get there."""

from __future__ import annotations

import math
from dataclasses import dataclass

# On the model of a step its rows are solved to this share of the gap so far. A sample of the examples errs by more.
_WHOLE = 0.05
_SAMPLED = 0.15
# Where the penalty is a smaller share of the objective, its rows are held to this price.
_CHEAPEST = 0.05
# Never closer than this share of the gap that is asked for.
_CLOSEST = 0.7
# Relative residual of conjugate gradients; smaller where the goal needs it and it costs only a few products.
RESIDUAL = 0.05
_LEAST = 0.01
_WANTED = 0.35
# So many steps of descent cost less than a solve by conjugate gradients and the step of descent that must follow it. On
# a sample each of them gains less than the one before.
_FEW_DESCENTS = 2.5
_FEW_ON_SAMPLE = 1.5


@dataclass(frozen=True)
class Aim:
    """What a step is for.

    `whole`, `sampled`: share of its strength within which a row's optimality is solved for, on a model of all examples
    or of some of them.
    """

    whole: float
    sampled: float
    # How many steps of descent lead to the goal, each gaining what the last step did; infinitely many where none do.
    descents: float
    residual: float  # Share of the gradient that a solve by conjugate gradients may leave.
    gap: float  # Relative gap that the model of a step may keep.

    @classmethod
    def of(cls, target: float, rest: float, before: float, price: float) -> Aim:
        """The aim of a step.

        `target`: relative gap of the rows held at which they count as solved.
        `rest`: their gap now.
        `before`: their gap before the last step; `rest` when there was none.
        `price`: what the worst row costs: gap for each share of its strength that it misses its optimality by.
        """
        closest = _CLOSEST * target
        gap = min(rest, 1.0)
        price = max(price, _CHEAPEST)
        whole, sampled = max(closest, _WHOLE * gap) / price, max(closest, _SAMPLED * gap) / price
        return cls(whole, sampled, _descents(target, rest, before), _residual(target, rest), _WANTED * target)

    def near(self, whole: bool) -> bool:
        """Whether steps of descent alone are the cheapest way to the goal, on all examples or on a sample."""
        return self.descents <= (_FEW_DESCENTS if whole else _FEW_ON_SAMPLE)


def _descents(target: float, rest: float, before: float) -> float:
    return math.log(rest / target) / math.log(before / rest) if target < rest < before else math.inf


def _residual(target: float, rest: float) -> float:
    # the gap is about linear in the gradient; what is out of reach of one solve is the less worth products
    wanted = max(_WANTED * target / rest, 1e-300) if rest > 0.0 else RESIDUAL
    return min(RESIDUAL, max(wanted, _LEAST * _LEAST / wanted))
