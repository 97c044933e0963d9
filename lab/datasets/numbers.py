"""Tables of numbers: small sets of two or several classes and two regressions, values as they are.

Covers: ``rows``, all rows of a set by its name; where the source has a split its parts follow on one another. Does not
cover: scaling, names of columns, splits.

Sources: Diabetes of the Pima (NIDDK, Smith et al. 1988), German credit (StatLog, H. Hofmann, in numbers), Ringnorm
(L. Breiman 1996, the copy of G. Raetsch), Image Segmentation (University of Massachusetts 1990), Pen-Based Recognition
of Handwritten Digits (E. Alpaydin, F. Alimoglu 1998), Landsat Satellite (StatLog, A. Srinivasan), Boston housing
(Harrison, Rubinfeld 1978), Ailerons (L. Torgo, R. Camacho).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.datasets.base import data_file, numeric_table, open_text
from lab.datasets.bibtex import parse_arff


@dataclass(frozen=True)
class Source:
    """Where a table lies and how it is written."""

    folder: str
    files: tuple[str, ...]
    n_features: int
    # None: blanks.
    delimiter: str | None = None
    # Column of the label or the target.
    place: int = -1
    # The label that becomes +1 where there are two classes, and whether the last column is a number to be predicted.
    positive: float | None = None
    regression: bool = False


SOURCES = {
    "pima": Source("pima", ("pima-indians-diabetes.data",), 8, ",", positive=1.0),
    "german": Source("german_numeric", ("german.data-numeric",), 24, positive=2.0),
    "ringnorm": Source("ringnorm", ("ringnorm_data.csv",), 20, ",", place=0, positive=1.0),
    "segmentation": Source("segmentation", ("segment.dat",), 19),
    "pendigits": Source("pendigits", ("pendigits.tra", "pendigits.tes"), 16, ","),
    "landsat": Source("landsat", ("sat.trn", "sat.tst"), 36),
    "boston": Source("boston", ("housing.data",), 13, regression=True),
}


def rows(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Features (m, n) and labels or targets (m,) of a set."""
    if name == "ailerons":
        path = data_file("ailerons", "ailerons.arff")
        with open_text(path) as lines:
            found = parse_arff(lines, str(path))[1].toarray()
        return np.ascontiguousarray(found[:, :-1]), found[:, -1].copy()
    source = SOURCES[name]
    paths = [data_file(source.folder, file) for file in source.files]
    parts = [numeric_table(path, source.n_features, place=source.place, delimiter=source.delimiter) for path in paths]
    X, y = (np.concatenate([part[i] for part in parts]) for i in range(2))
    if source.regression:
        return X, y
    return X, y.astype(np.int64) if source.positive is None else np.where(y == source.positive, 1, -1)
