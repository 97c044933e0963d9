"""From rows in memory, in Parquet or on Dask to the blocks a fit runs over.

Covers: row blocks (``memory``, ``parquet``, ``collections``), labels (``labels``), the plan of a fit (``plan``), and
text to Parquet (``prepared``, ``manifest``).
Does not cover: sums over blocks (``dboost.passes``) or where functions run (``dboost.engine``).

Names are loaded on first use: a fit on arrays needs neither pyarrow nor Dask.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "Plan": "plan",
    "build_plan": "plan",
    "ParquetData": "parquet.input",
    "Manifest": "manifest",
    "load_manifest": "manifest",
    "prepare_text": "prepared.prepare",
}

__all__ = ["Manifest", "ParquetData", "Plan", "build_plan", "load_manifest", "prepare_text"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
