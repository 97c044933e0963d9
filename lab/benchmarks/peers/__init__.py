"""The programs that dboost is compared with, one file each: ``PEERS``, and ``in_turn``, the fastest expected first."""

from __future__ import annotations

from collections.abc import Sequence

from . import (
    adelie,
    blitz,
    celer,
    cyanure,
    glmnet,
    glum,
    lbfgs,
    liblinear,
    lightning,
    newton,
    ours,
    saga,
    skglm,
    snapml,
)
from .base import Answer, Peer, Rung, Task

OURS = ours.PEER
PEERS: dict[str, Peer] = {
    module.PEER.name: module.PEER
    for module in (
        liblinear,
        lbfgs,
        newton,
        snapml,
        skglm,
        glum,
        cyanure,
        glmnet,
        celer,
        blitz,
        adelie,
        saga,
        lightning,
    )
}

# By who is first the others are cut off. Two classes as in ``PEERS``.
_FIRST = {"multinomial": ("saga", "cyanure"), "multitask": ("cyanure",)}


def in_turn(names: Sequence[str], loss: str, penalty: str) -> list[Peer]:
    """The peers among `names` that solve a problem, in the order in which they run."""
    first = _FIRST.get(loss, ())
    taking = [PEERS[name] for name in names if (loss, penalty) in PEERS[name].solves]
    return sorted(taking, key=lambda peer: first.index(peer.name) if peer.name in first else len(first))


__all__ = ["OURS", "PEERS", "Answer", "Peer", "Rung", "Task", "in_turn"]
