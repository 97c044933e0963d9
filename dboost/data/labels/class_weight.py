"""Weights of classes by their labels, where files can name labels in words only.

Covers: ``weights_by_label``. Does not cover: what a class weighs in the end (``labels``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dboost.errors import UsageError


def weights_by_label(class_weight: Mapping[Any, float], labels: Iterable[Any]) -> dict[Any, float]:
    """The weights under the labels themselves.

    Keys of JSON and TOML are texts: where the labels are numbers, a text names the label that is written so. Keys that
    name no label stay as they are.

    `labels`: All classes.
    Raises UsageError: When two keys name one label.
    """
    written: dict[str, Any] = {}
    for label in labels:
        if isinstance(label, int | float) and not isinstance(label, bool):
            written[str(label)] = label
            # A whole number is written without its point, too.
            if float(label).is_integer():
                written[str(int(label))] = label
    found: dict[Any, float] = {}
    keys: dict[Any, Any] = {}
    for key, weight in class_weight.items():
        label = written.get(key, key) if isinstance(key, str) else key
        if label in found:
            raise UsageError(
                f"class_weight names the label {label!r} twice, as {keys[label]!r} and as {key!r}",
                hint="name every label once",
            )
        found[label], keys[label] = weight, key
    return found
