"""The programs that dboost is compared with, one file each; ``PEERS`` names them, the fastest expected first.

Two more are distributed and run by ``dboost bench distributed`` only.
"""

from __future__ import annotations

from . import celer, cyanure, dask_ml, gblinear, glmnet, liblinear, lightning, ours, saga, skglm, spark
from .base import Answer, Peer, Rung, Task

OURS = ours.PEER
PEERS: dict[str, Peer] = {
    module.PEER.name: module.PEER for module in (liblinear, skglm, cyanure, glmnet, celer, saga, lightning, gblinear)
}
DISTRIBUTED: dict[str, Peer] = {module.PEER.name: module.PEER for module in (spark, dask_ml)}

__all__ = ["DISTRIBUTED", "OURS", "PEERS", "Answer", "Peer", "Rung", "Task"]
