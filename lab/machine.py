"""The machine that something is measured on, in words for a page.

Covers: processor, cores this process may use, memory, versions. Does not cover: names of hosts, users or folders.
"""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

import psutil

import dboost
from dboost.engine.machine import available_cores

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


def describe() -> dict[str, str]:
    """Facts of the machine and of the software, by name."""
    facts = {
        "processor": processor(),
        "cores used": str(available_cores()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.1f} GiB",
        "load when it ended": f"{psutil.getloadavg()[0]:.1f} running processes over the last minute",
        "system": f"{platform.system()}, Python {platform.python_version()}",
        "dboost": dboost.__version__,
    }
    return facts | {package: version(package) for package in PACKAGES}


def processor(info: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's model."""
    try:
        lines = info.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    found = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    return found or platform.processor() or platform.machine()
