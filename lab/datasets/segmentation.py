"""Patches of outdoor images: 2,310 rows of 19 columns, 7 classes (labels 1-7), in the form of StatLog.

Covers: ``load`` (values as they are, a random split, as StatLog's own is by cross-validation) and the synthetic twin.

Source: Vision Group, University of Massachusetts, 1990; Michie, Spiegelhalter, Taylor 1994.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lab.datasets.base import Dataset, data_file, numeric_table, random_split

NAMES = (
    "region-centroid-col", "region-centroid-row", "region-pixel-count", "short-line-density-5", "short-line-density-2",
    "vedge-mean", "vedge-sd", "hedge-mean", "hedge-sd", "intensity-mean", "rawred-mean", "rawblue-mean",
    "rawgreen-mean", "exred-mean", "exblue-mean", "exgreen-mean", "value-mean", "saturation-mean", "hue-mean",
)  # fmt: skip


def load(home: str | Path | None = None, *, test_share: float = 0.3, seed: int = 0) -> Dataset:
    """Load the set.

    Parameters
    ----------
    home : path, optional
        Folder of the data sets; without it ``DBOOST_DATA_HOME``.
    test_share : float
        Share of the rows that are for testing.
    seed : int
        Of the split.
    """
    path = data_file(home, "segmentation", "segment.dat")
    X, y = numeric_table(path, len(NAMES))
    y = y.astype(np.int64)
    train, test = random_split(len(y), test_share, seed)
    return Dataset("segmentation", X[train], y[train], X[test], y[test], np.asarray(NAMES, dtype=np.str_), "multiclass")


def synthetic(seed: int = 0) -> Dataset:
    """Return a tiny twin: 210 + 70 rows of 19 columns around three centres, labels 1, 2 and 3."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(3), rng.integers(0, 3, 277)])
    centres = np.random.default_rng(7).normal(size=(3, len(NAMES)))
    X = centres[y] * 10.0 + 8.0 * rng.standard_normal((280, len(NAMES)))
    names = np.asarray(NAMES, dtype=np.str_)
    return Dataset("segmentation-synthetic", X[:210], y[:210] + 1, X[210:], y[210:] + 1, names, "multiclass")
