"""``dboost warm``: compile loops before a fit needs them, for this installation or into a folder that is carried.

Covers: which loops, and where they go. Does not cover: how they are compiled and found (``dboost.warm``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dboost.files.paths import local_path

from ..config import LogSettings, Text, key
from ..console import Console


@dataclass(frozen=True, kw_only=True)
class WarmSettings(LogSettings):
    """What `dboost warm` takes."""

    to: Text | None = key(None, "folder for loops that other machines of this kind can run as well")
    fits: Literal["all", "default"] = key("all", "whose loops: of every fit, or of those that the defaults make")


SETTINGS = WarmSettings


def run(settings: WarmSettings, console: Console) -> int:
    """Compile."""
    # numba and all parts of the library, which `--help` does not load
    from dboost import warm
    from dboost.compiled.kept import CARRIED

    if settings.to is None:
        seconds = warm.warm(settings.fits, warm.side_by_side(), console.say)
        console.say(warm.words(seconds))
        return 0
    folder = local_path(settings.to, "to").resolve()
    warm.warm_to(folder, settings.fits)
    found = "where they are found" if folder == CARRIED else f"to be found, they go to {CARRIED}"
    console.say(f"{sum(1 for _ in folder.glob('*.nbc'))} loops lie in {folder}: {found}")
    return 0
