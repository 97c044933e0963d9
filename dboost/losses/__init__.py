"""The losses, by name. A new loss is one file here and one line in ``LOSSES``; every generic test then runs on it."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from dboost.errors import DataError, UsageError
from dboost.losses import real_rows as _real_rows  # noqa: F401  the loops find its functions by the target's type
from dboost.losses.base import Loss
from dboost.losses.epsilon_insensitive import EpsilonInsensitive
from dboost.losses.exponential import Exponential, OneVsRestExponential
from dboost.losses.huber import Huber
from dboost.losses.logistic import Logistic
from dboost.losses.margin_softmax import MarginSoftmax
from dboost.losses.multinomial import Multinomial
from dboost.losses.per_target import SEPARATOR, PerTarget
from dboost.losses.poisson import Poisson
from dboost.losses.quantile import Quantile
from dboost.losses.squared import Squared, SquaredTargets

# The first of a task is its default.
LOSSES: dict[str, Loss] = {
    "log": Logistic("log", "binary"),
    "multinomial": Multinomial(),
    "exp": Exponential(),
    "margin_softmax": MarginSoftmax(),
    "multitask": Logistic("multitask", "multitask"),
    "squared": Squared(),
    "epsilon_insensitive": EpsilonInsensitive(),
    "poisson": Poisson(),
    "huber": Huber(),
    "quantile": Quantile(),
    "multitarget": SquaredTargets(),
}
# Losses that an estimator makes for the classes it finds: a model names them, and a user does not.
_MADE: dict[str, Loss] = {"exp_one_vs_rest": OneVsRestExponential()}


def get_loss(loss: Any) -> Loss:
    """The loss of that name with its default parameters, or the instance itself.

    Parameters
    ----------
    loss : str or Loss, or sequence of them
        A key of ``LOSSES``, or an instance; several are those of several targets, one each, and may also be written as
        one text with commas.

    Returns
    -------
    Loss

    Raises
    ------
    UsageError
        If the name is unknown, or the object is neither a name nor an instance of a loss.

    Examples
    --------
    >>> get_loss("squared").name
    'squared'
    >>> get_loss("squared, log") == get_loss(["squared", "log"])
    True
    """
    if isinstance(loss, str) and SEPARATOR in loss:
        loss = [name.strip() for name in loss.removesuffix(SEPARATOR).split(SEPARATOR)]
    if isinstance(loss, (list, tuple)):
        return PerTarget(tuple(get_loss(one) for one in loss))
    found: Loss = loss
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise UsageError(f"unknown loss {loss!r}", hint=f"known losses: {', '.join(LOSSES)}")
        return LOSSES[loss]
    if isinstance(loss, type) or not isinstance(loss, Loss):
        raise UsageError(
            f"loss is {loss!r}, which is neither a name nor an instance of a loss",
            hint=f"give one of {', '.join(LOSSES)}, or an instance such as EpsilonInsensitive(epsilon=0.5)",
        )
    return found


def loss_of_model(name: str) -> Loss | None:
    """The loss that a model names, to read its scores by.

    Parameters
    ----------
    name : str
        As in ``Model.loss``.

    Returns
    -------
    Loss or None
        None where there is none of that name, as for a model of a loss that this process does not know.

    Examples
    --------
    >>> loss_of_model("squared").task
    'regression'
    >>> loss_of_model("unknown") is None
    True
    """
    if SEPARATOR in name:
        names = name.removesuffix(SEPARATOR).split(SEPARATOR)
        return get_loss(name) if all(one in LOSSES for one in names) else None
    return LOSSES.get(name) or _MADE.get(name)


def refuse_invalid(loss: Loss, y: NDArray[Any], where: str = "") -> None:
    """Refuse encoded labels that a loss is not defined for, with the row of the first and, in words, `where` it is.

    Parameters
    ----------
    loss : Loss
    y : array
        Encoded labels, as ``Loss.target`` takes them.
    where : str, optional
        Follows the row in the message, such as " of partition b.parquet".

    Raises
    ------
    DataError

    Examples
    --------
    >>> import numpy as np
    >>> refuse_invalid(LOSSES["poisson"], np.array([0.0, 3.0]))
    """
    wrong = loss.invalid(y)
    if wrong >= 0:
        k = y.size // y.shape[0]
        row, r = divmod(wrong, k)
        of, one = f" of target {r}" if k > 1 else "", loss.of_output(r)
        raise DataError(
            f"label {y.flat[wrong]:g}{of} in row {row}{where}: loss {one.name!r} takes {one.labels_taken}",
            hint="drop these rows, or use another loss",
        )


def refuse_other_targets(loss: Loss, n_outputs: int) -> None:
    """Refuse data of another number of targets than a loss is made for.

    Parameters
    ----------
    loss : Loss
    n_outputs : int

    Raises
    ------
    UsageError

    Examples
    --------
    >>> refuse_other_targets(get_loss("squared,log"), 2)
    """
    if loss.targets is not None and loss.targets != n_outputs:
        raise UsageError(
            f"loss {loss.name!r} is of {loss.targets} targets, and there are {n_outputs}",
            hint="give one loss for each target, in the order of their columns",
        )


def losses_of(*tasks: str) -> tuple[str, ...]:
    """Names of the losses of some tasks, in the order of the registry.

    Parameters
    ----------
    *tasks : {"binary", "multiclass", "multitask", "regression", "multitarget"}

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> "poisson" in losses_of("regression"), "poisson" in losses_of("binary")
    (True, False)
    """
    return tuple(name for name, loss in LOSSES.items() if loss.task in tasks)


__all__ = [
    "LOSSES",
    "EpsilonInsensitive",
    "Huber",
    "Loss",
    "PerTarget",
    "Quantile",
    "get_loss",
    "loss_of_model",
    "losses_of",
    "refuse_other_targets",
    "refuse_invalid",
]
