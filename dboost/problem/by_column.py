"""Numbers that a user gives for single features, by place or by name, as one for every column of the data."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError

Array = NDArray[np.float64]


def by_column(
    what: str,
    values: Array | None,
    named: Mapping[str, float] | None,
    usual: float,
    n: int,
    names: Sequence[str] | None,
) -> Array:
    """The number of every column, shape (n,).

    Parameters
    ----------
    what : str
        The parameter that they were given as.
    values : float64 array or None
        By place.
    named : mapping of str to float, or None
        By name, where there are no `values`.
    usual : float
        That of features which are not named.
    n : int
        Number of features.
    names : sequence of str or None
        Their names, where the data has some.

    Raises
    ------
    UsageError
        Where there are not as many numbers as features, or a name is unknown.
    """
    if values is not None:
        if values.shape[0] != n:
            raise UsageError(
                f"{what} has {values.shape[0]} numbers, and the data has {n} features",
                hint=f"give one number for each feature, or a dict by name of those that differ from {usual:g}",
            )
        return values
    found = np.full(n, usual)
    given = named or {}
    if given and names is None:
        raise UsageError(
            f"{what} is given by name, and the features of the data have no names",
            hint="give an array with one number for each feature, or a table with named columns",
        )
    place = {name: at for at, name in enumerate(names or ())}
    for name, number in given.items():
        if name not in place:
            near = difflib.get_close_matches(name, list(place), n=1, cutoff=0.0)
            raise UsageError(
                f"{what} names {name!r}, which is no feature of the data",
                hint=f"did you mean {near[0]!r}?" if near else "name features of the data",
            )
        found[place[name]] = number
    return found
