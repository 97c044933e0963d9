"""The file in which a scheduler of Dask says where it is."""

from __future__ import annotations

import json
import time
from pathlib import Path


def address_in(file: Path, seconds: float = 60.0) -> str:
    """The address of a scheduler that is starting.

    Dask writes the file in place, so that it is there before all of it is: it is read again until it can be.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            return str(json.loads(file.read_text(encoding="utf-8"))["address"])
        except (FileNotFoundError, ValueError):
            time.sleep(0.05)
    raise TimeoutError(f"{file}: no scheduler has written its address within {seconds:g} s")
