"""What a solver may need of a penalty beyond the least that every penalty has: capabilities, one Protocol each.

Covers: penalties with faces (``faces``), the exponential bound, compiled proxes, conjugates of rows, and norms of
several rows. Does not cover: the least (``base``), and who needs what (``dboost.boosting.checks``).
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy.typing as npt

from dboost.capability import OfTypes
from dboost.errors import UsageError
from dboost.penalties.faces import Face
from dboost.penalties.rows import BoolArray, FloatArray, IntArray


@runtime_checkable
class ExponentialSolves(Protocol, metaclass=OfTypes):
    """Rows solved and scored under the exponential bound: what ``update="adaboost"`` and the loss ``exp`` need."""

    def solve_exponential(
        self, W: FloatArray, mu_plus: FloatArray, mu_minus: FloatArray, a: npt.ArrayLike, lam: npt.ArrayLike
    ) -> tuple[FloatArray, BoolArray]:
        """New rows (rows, k), and whether each had an entry without a finite minimiser (``TiltedPenalty``)."""
        ...

    def score_exponential(
        self, mu_plus: FloatArray, mu_minus: FloatArray, a: npt.ArrayLike, lam: npt.ArrayLike
    ) -> FloatArray:
        """Decrease of bound plus penalty when a zero row leaves zero, (rows,) (``TiltedPenalty``)."""
        ...


@runtime_checkable
class CompiledProx(Protocol, metaclass=OfTypes):
    """A prox that compiled loops know: what coordinate descent on the driver needs (``update="newton"``)."""

    @property
    def compiled(self) -> tuple[int, float, float, float]:
        """``(code, a, b, c)`` for ``row_prox.diagonal_prox``."""
        ...


@runtime_checkable
class Faced(Protocol, metaclass=OfTypes):
    """Smooth pieces with derivatives: what conjugate gradients (``update="newton"``) and corrective steps need."""

    def face(self, W: FloatArray, lam: npt.ArrayLike | None = None) -> Face:
        """The face through W (rows, k). Rows with lam_j = 0 are wholly free; lam=None means all are penalised."""
        ...


@runtime_checkable
class ChargesRows(Protocol, metaclass=OfTypes):
    """No norm, though rows vanish: a dual point is charged with the conjugate of the rows held (docs/math.md 6.1)."""

    def conjugate(self, G: FloatArray, lam: npt.ArrayLike) -> FloatArray:
        """(lam_j omega)*(G_j) = sup_w <G_j, w> - lam_j omega(w) for each row, (rows,).

        It is zero where ``dual_norm(G_j) <= lam_j``, and inf where the supremum is.
        """
        ...


@runtime_checkable
class JoinsRows(Protocol, metaclass=OfTypes):
    """A norm of several rows at once that follows from those of the rows: what groups of columns need.

    The three are for groups of rows, ``count`` of them, row j being of group ``place[j]``; a group may be empty.
    """

    @property
    def compiled(self) -> tuple[int, float, float, float]:
        """As ``CompiledProx``: of the entries of all rows of a group, read as one row."""
        ...

    def joined(self, values: FloatArray, place: IntArray, count: int) -> FloatArray:
        """omega of every group (count,), from omega of its rows (rows,)."""
        ...

    def dual_joined(self, norms: FloatArray, place: IntArray, count: int) -> FloatArray:
        """Dual norm of every group (count,), from those of its rows (rows,)."""
        ...

    def of_size(self, rows: FloatArray) -> FloatArray:
        """What a group of so many rows has its strength multiplied by (docs/math.md 6.5), (groups,)."""
        ...


def joins_rows(penalty: object) -> JoinsRows:
    """The penalty, where it is a norm of groups of rows too; refused otherwise."""
    if not isinstance(penalty, JoinsRows):
        raise lacks(
            penalty, "column_groups", "a norm of several rows", "use penalty='l1/l2' or 'l1/linf', or leave it out"
        )
    return penalty


def exponential_solves(penalty: object) -> ExponentialSolves:
    """The penalty, where it has solves under the exponential bound; refused otherwise."""
    if not isinstance(penalty, ExponentialSolves):
        raise lacks(
            penalty,
            "the exponential bound",
            "a solve of a row under the exponential bound",
            "use update='gradboost' or 'newton'",
        )
    return penalty


def compiled_prox(penalty: object) -> tuple[int, float, float, float]:
    """``(code, a, b, c)`` of ``row_prox.diagonal_prox``; refused where the penalty has none."""
    if not isinstance(penalty, CompiledProx):
        raise lacks(penalty, "coordinate descent", "a compiled prox", "use update='gradboost'")
    return penalty.compiled


def faced(penalty: object) -> Faced:
    """The penalty, where it has faces; refused otherwise."""
    if not isinstance(penalty, Faced):
        raise lacks(penalty, "conjugate gradients", "derivatives on a face", "use update='gradboost'")
    return penalty


def lacks(penalty: object, who: str, what: str, hint: str) -> UsageError:
    """The refusal of a solver and a penalty that lacks what the solver needs; both are named."""
    name = getattr(penalty, "name", penalty)
    return UsageError(f"{who} needs {what}, which penalty {name!r} does not have", hint=hint)
