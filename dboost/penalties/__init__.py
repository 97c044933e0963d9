"""Penalties of rows of W: how large a row is, when it is zero, and how one row is solved for.

``PENALTIES`` maps each name a user may give to its class; a new penalty is one file and one line here.
"""

from __future__ import annotations

from collections.abc import Callable

from dboost.errors import UsageError
from dboost.penalties.base import Penalty
from dboost.penalties.capabilities import ChargesRows, CompiledProx, ExponentialSolves, Faced
from dboost.penalties.faces import Face
from dboost.penalties.l1_linf import Linf
from dboost.penalties.l2 import Frobenius
from dboost.penalties.mixed import L1, L2, ElasticNet, GroupElasticNet, L2Squared, NoPenalty, SparseGroup
from dboost.penalties.rounded import SmoothL1, SmoothLinf

__all__ = [
    "L1",
    "L2",
    "PENALTIES",
    "ChargesRows",
    "CompiledProx",
    "ElasticNet",
    "ExponentialSolves",
    "Face",
    "Faced",
    "Frobenius",
    "GroupElasticNet",
    "L2Squared",
    "Linf",
    "NoPenalty",
    "Penalty",
    "SmoothL1",
    "SmoothLinf",
    "SparseGroup",
    "get_penalty",
]

PENALTIES: dict[str, Callable[[], Penalty]] = {
    "l1": L1,
    "l1/l2": L2,
    "l1/linf": Linf,
    "l1/l2+l1": SparseGroup,
    "l2": Frobenius,
    "l2_squared": L2Squared,
    "smooth_l1": SmoothL1,
    "none": NoPenalty,
    "smooth_l1/linf": SmoothLinf,
    "elastic_net": ElasticNet,
    "l1/l2+ridge": GroupElasticNet,
}


def get_penalty(penalty: str | Penalty) -> Penalty:
    """The penalty of that name, or the instance itself.

    Parameters
    ----------
    penalty : str or Penalty
        A key of ``PENALTIES``, or an instance.

    Returns
    -------
    Penalty

    Raises
    ------
    UsageError
        If the name is unknown, or the object is neither a name nor an instance of a penalty.

    Examples
    --------
    >>> get_penalty("l1/l2")
    L2()
    """
    named = PENALTIES
    if isinstance(penalty, str) and penalty in named:
        return named[penalty]()
    known = ", ".join(repr(name) for name in named)
    if isinstance(penalty, str):
        raise UsageError(f"penalty is {penalty!r}", hint=f"expected one of {known}")
    if isinstance(penalty, type) or not isinstance(penalty, Penalty):
        raise UsageError(
            f"penalty is {penalty!r}, which is neither a name nor an instance of a penalty",
            hint=f"give one of {known}, or an instance such as SparseGroup(l1_ratio=0.3)",
        )
    return penalty
