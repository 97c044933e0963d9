"""``python -m lab bench``: how fast the library is, measured against peers, against the machine and against itself.

How a benchmark is plugged in
-----------------------------
One module here with ``run(out: Path, quick: bool) -> int``, named in ``REGISTRY``. It writes what it measured into the
folder `out`, which exists and is its own, prints its table, and returns the exit code (0; 1 when a goal is missed is
for the reader of the page, not an error). ``quick`` asks for a version of a minute. One that takes more than that says
so with ``options=True`` and gets the settings of the command as a third argument.

Data sets and kinds of problems are lines of ``problems``, peers one small file each of ``peers``.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Entry:
    """A benchmark that can be asked for."""

    # Its module in this package; loaded only when it runs.
    module: str
    # One line for ``--list``.
    summary: str
    # Whether ``run`` takes the settings of the command.
    options: bool = False

    def load(self) -> Any:
        """The module, with ``run``."""
        return importlib.import_module(f".{self.module}", __package__)


REGISTRY: dict[str, Entry] = {
    "peers": Entry("suite", "seconds to 1e-2, 1e-4, 1e-6 against every peer on one machine", options=True),
    "path": Entry("paths", "a whole path of 50 strengths against peers with paths", options=True),
    "stumps": Entry("stumps", "a round of boosting on stumps beside LightGBM's", options=True),
    "overhead": Entry("overhead", "what Dask costs over the in-process fit, and per pass"),
}
