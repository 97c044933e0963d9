"""A family of hypotheses of one's own: |x_j| for every column, and max(x_i, x_j) for every pair.

This file is the whole family. The line that lets a saved model find it stands in ``test_toy_family.py``::

    FAMILIES["largest"] = ("tests.extending.toy_family", "Largest")

A fit takes it as ``BoostedClassifier(hypotheses=Largest())``, alone or joined: ``Columns() | Largest()``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dboost.hypotheses.base import Array, Key
from dboost.hypotheses.listed import ListedFamily


@dataclass(frozen=True)
class Largest(ListedFamily):
    """Absolute values of columns, and the larger value of two.

    Parameters
    ----------
    pairs : bool
        Whether there are pairs.

    Examples
    --------
    >>> Largest().word("price"), Largest().word("price", "area")
    ('|price|', 'max(price, area)')
    """

    pairs: bool = True

    name = "largest"

    def keys(self, n_features: int) -> Iterator[Key]:
        """A hypothesis is named by its columns: (j,) is |x_j|, (i, j) the larger of x_i and x_j."""
        yield from ((j,) for j in range(n_features))
        if self.pairs:
            yield from combinations(range(n_features), 2)

    def value(self, *columns: Array) -> Array:
        """The hypothesis on some rows. Every row is looked at alone, so its bits do not depend on the others."""
        return np.abs(columns[0]) if len(columns) == 1 else np.maximum(*columns)

    def word(self, *names: str) -> str:
        """The hypothesis in words, for ``active_features_``."""
        return f"|{names[0]}|" if len(names) == 1 else f"max({', '.join(names)})"
