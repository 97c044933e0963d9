"""The kinds of clusters by name; a new kind is one file and one line here."""

from __future__ import annotations

from .gateway import Gateway
from .kubernetes import Kubernetes
from .local import Local
from .place import Place
from .slurm import Slurm
from .ssh import Ssh

PLACES: dict[str, Place] = {
    "local": Local(),
    "ssh": Ssh(),
    "slurm": Slurm(),
    "kubernetes": Kubernetes(),
    "gateway": Gateway(),
}
