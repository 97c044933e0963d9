"""What a run came to, as plain values: the seam that a page is made from.

Covers: the model, its map, the figures, the settings and versions, in one JSON value.
Does not cover: how any of it looks.
"""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dboost

from .. import pages
from ..inputs import read_model
from .folder import EVALUATION, MODEL, PATH

PACKAGES = ("dask", "numpy", "numba", "pyarrow", "scikit-learn", "scipy")


def report(folder: Path, top: int) -> dict[str, Any]:
    """The report of a run folder whose model is there.

    Returns "model" (what it is, its certificate, its strongest features), "evaluation" and "path" where they are there,
    "versions".
    """
    found: dict[str, Any] = {"model": model_values(folder / MODEL, top)}
    evaluation = folder / EVALUATION / "evaluation.json"
    if evaluation.is_file():
        found["evaluation"] = json.loads(evaluation.read_bytes())
    path = folder / PATH / "path.json"
    if path.is_file():
        found["path"] = json.loads(path.read_bytes())
    found["versions"] = versions()
    return found


def model_values(folder: Path, top: int) -> dict[str, Any]:
    """A model as plain values."""
    model = read_model(str(folder))
    values = pages.map_values(model)
    values["features"] = values["features"][:top]
    return {"facts": dict(pages.model_facts(model)), **values}


def versions() -> dict[str, str]:
    """What it was made with."""
    return {"python": platform.python_version(), "dboost": dboost.__version__} | {
        name: version(name) for name in PACKAGES
    }
