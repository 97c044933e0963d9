"""What tests take that are about something else than the defaults: one plain fit of the columns as they are.

The default of an estimator looks for a strength on held-out rows and standardises tables, which a test of, say,
checkpoints would pay for and then have to undo. Here ``alpha`` is ``"quick"``, ``standardize`` is False and systems of
stumps weigh columns, wherever a test does not say otherwise; ``as_released`` puts the defaults of a user back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dboost

PLAIN = {"alpha": "quick", "standardize": False}
STUMPS = ("AdaBoostL1Classifier", "AdaBoostL1Regressor", "LeveragingClassifier", "LeveragingRegressor")


def _changes() -> list[tuple[dict[str, Any], str, Any]]:
    """Defaults of constructors, a parameter of each, and what it is in tests."""
    found: list[tuple[dict[str, Any], str, Any]] = []
    for name in dboost.__all__:
        defaults = getattr(getattr(getattr(dboost, name), "__init__", None), "__kwdefaults__", None) or {}
        changed = {key: value for key, value in PLAIN.items() if defaults.get(key) == "auto"}
        if name.startswith("ShareBoost"):
            changed = {}
        found += [(defaults, key, value) for key, value in changed.items()]
        if name in STUMPS:
            found.append((defaults, "hypotheses", dboost.Columns()))
    return found


CHANGES = [(defaults, key, defaults[key], value) for defaults, key, value in _changes()]


def be_plain() -> None:
    """Take the defaults of tests."""
    for defaults, key, _, value in CHANGES:
        defaults[key] = value


@contextmanager
def as_released() -> Iterator[None]:
    """The defaults of a user inside."""
    for defaults, key, value, _ in CHANGES:
        defaults[key] = value
    try:
        yield
    finally:
        be_plain()
