"""Packages that an extra of dboost brings, imported when they are needed.

Covers: the import and what is said where it fails. Does not cover: which package is needed where.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dboost.errors import UsageError


def imported(module: str, extra: str) -> Any:
    """A module of an optional package."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != package:
            raise
        raise UsageError(f"{package} is not installed", hint=f"pip install 'dboost[{extra}]'") from error
