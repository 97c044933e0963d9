"""What a loss is: all that is its own, from its value to the labels it takes and what its scores predict.

A loss provides a *target*, a ``NamedTuple`` of label arrays of one block, overloads the functions of one example
(``dboost.compiled.examples.loss_rows``) for the type of its target, and says in the members of ``Loss`` what it is
worth to the bounds, the certificate and the solvers. Nobody else asks which loss it is: who needs something of a loss
asks for that.

Covers: ``Loss``, and what makes residuals a dual point (``Repair``).
Does not cover: losses of one real label, which need to say less (``real``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dboost.losses.link import Link

Array = NDArray[np.float64]

# An output that has one label only has its optimal intercept at infinity; this finite stand-in costs 1e-13 per example.
SATURATED = 30.0
# The largest |z| at which `Loss.kept` says that the dual point stays inside.
_HALF = 0.5


@dataclass(frozen=True)
class Repair:
    """How the residuals U become a dual point Theta that a free intercept allows: its columns sum to zero.

    Parameters
    ----------
    keep, mix, shift, prior : float64 arrays, shape (k,)
        What ``loss_rows.dual_row`` and ``theta_row`` are given; their meaning belongs to the loss.
    null_share : float
    drift, spill : float64 arrays, shape (k,)
        They bound what the repair does to the sums of a column j, in every dual norm:
        ||X_j'(Theta - U)||_* <= null_share ||G0_j||_* + (sum_i s_i |x_ij|) ||drift||_* + (max_i |x_ij|) ||spill||_*,
        with G0 the sums of the null model.
    """

    keep: Array
    mix: Array
    shift: Array
    prior: Array
    null_share: float
    drift: Array
    spill: Array

    @staticmethod
    def nothing(k: int) -> Repair:
        """Theta = U: what holds without an intercept."""
        zero = np.zeros(k)
        return Repair(np.ones(k), zero, zero, zero, 0.0, zero, zero)


def share(excess: Array, mass: Array) -> Array:
    """t = [e]_+ / ([e]_+ + n): how far towards the null model, where the mass n is, an excess e must be moved."""
    positive = np.maximum(excess, 0.0)
    total = positive + mass
    return np.where(total > 0.0, positive / np.where(total > 0.0, total, 1.0), 0.0)


@dataclass(frozen=True)
class Alike:
    """A model without features, by class: the residual of an example of class c and weight one is e_c - `p`.

    Parameters
    ----------
    p : float64 array, shape (k,)
        Probabilities of the classes.
    loss : float
        Of all examples.
    """

    p: Array
    loss: float


class Loss(ABC):
    """A loss: one of the registry, or an instance with parameters of its own. Frozen and picklable.

    What most losses say alike is said here, and a loss may say otherwise.

    Attributes
    ----------
    name : str
        Its public name.
    task : str
        The kind of labels, one of ``dboost.partition.TASKS``: what a plan is asked for.
    kappa : float
        Largest curvature per example, the quadratic bound's constant (docs/math.md 1). ``math.inf`` where there is no
        largest one, and so no quadratic bound and no gap-safe screening.
    template_constant : float
        The constant c of the exponential template bound (docs/math.md, eq. 3); 0 where there is no such bound.
    floor : float
        D0 = inf_f l(y, f), the dual value of Theta = 0 per unit of weight (docs/math.md 1).
    separable : bool
        Whether the Hessian of an example is diagonal over the outputs.
    growing : bool
        Whether the curvature may grow like e^x along a step x, so that Newton steps overshoot. Not where it falls as
        slowly as 1 / |z| (``real.FAR``): labels and steps have a unit there, and e^x would not.
    closed_null : bool
        Whether `null_intercept` is exact; otherwise it is where a search over passes starts.
    counted : bool
        Whether `label_mass` counts labels, so that a rare one has little mass; that of real labels is their sum.
    difference : bool
        Whether it depends on y - f alone, so that labels and scores may both be less a number.
    parabolic : bool
        Whether the curvature of an example is `kappa` everywhere, so that one Newton step along a line is exact.
    exponential : bool
        Whether it is e^(-y f) in every output: residuals are then AdaBoost's weights and sum to the loss in size.
    kinked : bool
        Whether residuals reach an end of their range, where the dual value has a kink. Scaled by t they then lose a
        share 1 - t of the dual value, and not its square (``duality_gap.expected_gap``).
    probabilities : bool
        Whether residuals are probabilities q, so that dual values need 1 - q, which is rounded in units of one.
    mixes : bool
        Whether `repair` mixes predictions that are probabilities with the shares of the labels, `null_share` of these.
    targets : int or None
        How many outputs it is made for; None: as many as there are.
    labels_taken : str
        The labels it is defined for, in words, for the message about one that it is not.
    link : Link
        What `predicted` does to scores, where it is the same for all outputs.

    Examples
    --------
    >>> from dboost.losses import get_loss
    >>> isinstance(get_loss("squared"), Loss), get_loss("squared").kappa
    (True, 1.0)
    """

    if TYPE_CHECKING:
        # fields, constants of the class, or properties, as the loss needs
        @property
        def name(self) -> str: ...
        @property
        def task(self) -> str: ...
        @property
        def kappa(self) -> float: ...
        @property
        def template_constant(self) -> float: ...
        @property
        def floor(self) -> float: ...
        @property
        def separable(self) -> bool: ...
        @property
        def growing(self) -> bool: ...
        @property
        def closed_null(self) -> bool: ...
        @property
        def counted(self) -> bool: ...
        @property
        def difference(self) -> bool: ...
        @property
        def parabolic(self) -> bool: ...
        @property
        def exponential(self) -> bool: ...
        @property
        def kinked(self) -> bool: ...
        @property
        def probabilities(self) -> bool: ...
        @property
        def mixes(self) -> bool: ...
        @property
        def targets(self) -> int | None: ...
        @property
        def labels_taken(self) -> str: ...
        @property
        def link(self) -> Link: ...
    else:
        name: str
        task: str
        kappa: float
        separable: bool
        template_constant = floor = 0.0
        growing = True
        closed_null = counted = difference = parabolic = exponential = kinked = probabilities = mixes = False
        targets = None
        labels_taken = "any label of its task"
        link = Link()

    @abstractmethod
    def target(self, y: NDArray[Any]) -> Any:
        """Wrap the encoded labels of a block for the compiled functions."""

    @abstractmethod
    def label_mass(self, y: NDArray[Any], weight: Array, k: int) -> tuple[Array, Array]:
        """Weighted counts per output: (mass with label on, total observed mass), each of shape (k,).

        For real labels: (sum s y, sum s).
        """

    @abstractmethod
    def null_intercept(self, mass: Array, total: Array) -> Array:
        """Optimal intercept of the model without features, shape (k,), or near it where `closed_null` is false.

        Finite also for outputs with one label only.
        """

    @abstractmethod
    def longest_residual(self, k: int) -> Array | None:
        """A row (k,) that no residual of an example of weight one is longer than, in any norm that looks at sizes only.

        None where residuals have no bound.
        """

    @abstractmethod
    def repair(self, mass: Array, total: Array, bias: Array) -> Repair:
        """Make residuals with column sums `bias` feasible for a free intercept; `mass`, `total` of `label_mass`."""

    def wider(self, value: float) -> Sequence[tuple[Loss, float]]:
        """Losses that are curved up to larger errors, widest first, where errors are as large as a mean loss says.

        Each leads to the next and the last to this one. With the factor of the strengths by which its optimum is near
        that of this one. None of a loss that is curved everywhere.
        """
        return ()

    def of_output(self, r: int) -> Loss:
        """The loss of one output, where outputs have losses of their own; else this one."""
        return self

    def by_difference(self, k: int) -> NDArray[np.bool_]:
        """Which of k outputs depend on y - f alone, as `difference` says of all of them."""
        return np.full(k, self.difference)

    def links(self, k: int) -> tuple[Link, ...]:
        """What `predicted` does to the scores of each of k outputs."""
        return (self.link,) * k

    def invalid(self, y: NDArray[Any]) -> int:
        """Place of the first encoded label of a block that it is not defined for; -1 where there is none.

        Of several outputs it is counted row by row.
        """
        return -1

    def unbounded(self, mass: Array, total: Array) -> str:
        """Why a free intercept has no optimum with these labels (``label_mass``), in words; empty where it has one.

        The labels that plans let through have an optimum, or are refused by class (``boosting.fit``).
        """
        return ""

    def predicted(self, F: Array) -> Array:
        """What scores (m, k) say of new examples, by the inverse link.

        Log-odds of the label of every output; of many classes up to what they have in common. Of a real label, its
        mean.
        """
        return self.link.applied(F)

    def shown(self, F: Array) -> Array:
        """Scores (m, k) of several outputs as ``decision_function`` shows them: (m, k), or (m,) for two classes."""
        return F

    def deviance(self, y: Array, mean: Array) -> Array | None:
        """How far each real label is from its prediction, in the measure that `score` explains; None: squared error."""
        return None

    def middle(self, y: Array, weight: Array) -> float:
        """The one number that predicts real labels best, which `score` compares predictions with: the weighted mean."""
        return float(np.average(y, weights=weight))

    def pulls(self, value: float, mass: Array, total: Array, bias: Array) -> float:
        """A number that sum_i ||U_i|| is no larger than, from the loss and the column sums of U; for kappa = inf.

        The loss itself, which residuals of e^(-y f) are as large as.
        """
        return value

    def terms(self, value: float, at_zero: float, mass: Array, total: Array, bias: Array) -> float:
        """A bound of the summed sizes of the dual terms, for the rounding error of the certificate.

        From the loss at a model and at zero margins, and the column sums of U: 2 sqrt(L) sqrt(L(0)), as
        sum_i s_i |u_i y_i| of the squared loss is no larger (Cauchy and Schwarz).
        """
        return 2.0 * math.sqrt(max(value, 0.0)) * math.sqrt(max(at_zero, 0.0))

    def without_features(self, intercept: Array, mass: Array) -> Alike | None:
        """What the examples of a class have in common at the model of an intercept (k,) alone; None without a formula.

        `mass` (k,) is the weight of each class.
        """
        return None

    def shifts(self, pull: Array, z: Array) -> Array:
        """What ``loss_rows.dual_row`` is given as the `shift` of every example whose residual is to be U_i - H_i z_i.

        Both (m, k): `pull` is H_i z_i per unit of weight, the part of a Newton step's change that is the example's.
        """
        return pull

    def kept(self, far: Array, moved: Array) -> float:
        """The share of all residuals U_i - H_i z_i that are dual points, 0 where none is known to be.

        From the largest |z| and the largest |H_i z_i| per unit of weight of each output, (k,). Probabilities q become
        q_r (1 + z_r - <q, z>), and a mean mu becomes mu (1 + z): with |z| of a half all of them stay positive, and
        probabilities at most one. So it is 1 where no |z| is above a half, else 0.
        """
        return 1.0 if float(np.max(far, initial=0.0)) <= _HALF else 0.0


class SignLoss(Loss):
    """What is true of a loss of labels -1, 0 (missing) and +1 whose scores are log-odds up to the scale of its link."""

    def label_mass(self, y: NDArray[Any], weight: Array, k: int) -> tuple[Array, Array]:
        """Weighted mass of label +1, and of all observed labels, per output."""
        if np.all(weight == 1.0):
            # exact in any order
            return np.count_nonzero(y > 0, axis=0).astype(np.float64), np.count_nonzero(y, axis=0).astype(np.float64)
        found = np.empty((2, y.shape[1]))
        for r, label in enumerate(y.T):
            # one after the other, as no sum of NumPy adds them
            found[:, r] = [np.bincount(on, weight, 2)[1] for on in (label > 0, label != 0)]
        return found[0], found[1]

    def null_intercept(self, mass: Array, total: Array) -> Array:
        """log(p / (1 - p)) of the weighted share p of +1 labels, over the scale of the link."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logit = (np.log(mass) - np.log(total - mass)) / self.link.scale
        logit = np.where(total > 0.0, logit, 0.0)
        return np.where(np.isfinite(logit), logit, np.copysign(SATURATED, logit))
