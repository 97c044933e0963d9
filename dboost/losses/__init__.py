"""The losses, by name. A new loss is one file here and one line in ``LOSSES``; every generic test then runs on it."""

from __future__ import annotations

from dboost.errors import UsageError
from dboost.losses.base import Loss
from dboost.losses.logistic import Logistic
from dboost.losses.multinomial import Multinomial

LOSSES: dict[str, Loss] = {
    "log": Logistic("log"),
    "multinomial": Multinomial(),
    "multitask": Logistic("multitask"),
}


def get_loss(name: str) -> Loss:
    """The loss called `name`.

    Raises
    ------
    UsageError
        If there is none; the message lists the known ones.
    """
    if name not in LOSSES:
        raise UsageError(f"unknown loss {name!r}", hint=f"known losses: {', '.join(LOSSES)}")
    return LOSSES[name]


__all__ = ["LOSSES", "Loss", "get_loss"]
