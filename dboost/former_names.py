"""Names of the version before, which are taken for one version: a row of W is a feature to users.

Covers: which name stands for which, columns of records under both. Does not cover: files of that version, which are
read without a warning by whoever reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dboost.notices import warn_user

PARAMETERS = {"rows_per_round": "features_per_round", "max_active_rows": "max_features"}
COLUMNS = {"rows_in": "features_in", "rows_out": "features_out", "active_rows": "features"}
"""Columns of records: of a round, of a strength of a path, of a strength that folds have judged."""


def renamed(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of a file of the version before, under the names of now."""
    return {COLUMNS.get(name, name): value for name, value in record.items()}


def column_now(name: str) -> str:
    """What a column of records is called, with a FutureWarning where it was called `name` before."""
    if name in COLUMNS:
        warn_renamed(name, COLUMNS[name])
    return COLUMNS.get(name, name)


def warn_renamed(former: str, now: str) -> None:
    """Say that something has another name (FutureWarning)."""
    warn_user(f"{former} is called {now} now; the former name goes with the next version", FutureWarning)


class UnderBothNames(dict[str, Any]):
    """A record, whose values are found by the former names of their columns too.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     UnderBothNames(features_in=3)["rows_in"]
    3
    """

    def __missing__(self, name: str) -> Any:
        now = COLUMNS.get(name)
        if now not in self:
            raise KeyError(name)
        return self[column_now(name)]
