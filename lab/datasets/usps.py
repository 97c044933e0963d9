"""Handwritten digits of envelopes: 11,000 images of 16 x 16 pixels, 10 classes of 1,100.

Covers: ``load``, pixels in [0, 1], split at random, as the source has no split.

Source: J. J. Hull, "A database for handwritten text recognition research", PAMI 16, 1994, in the form of S. Roweis.
"""

from __future__ import annotations

import numpy as np

from dboost.errors import DataError
from lab.datasets.base import Dataset, data_file, read_bytes

SIDE = 16
IMAGES, LABELS = "usps_11000x256_uint8.bin", "usps_labels_uint8.bin"
TEST_SHARE = 0.3


def load() -> Dataset:
    """Load the digits."""
    path = data_file("usps", IMAGES)
    pixels = np.frombuffer(read_bytes(path), dtype=np.uint8)
    labels = np.frombuffer(read_bytes(data_file("usps", LABELS)), dtype=np.uint8)
    if pixels.size != SIDE * SIDE * labels.size:
        raise DataError(
            f"{pixels.size} bytes of images for {labels.size} labels, expected {SIDE * SIDE} for each", file=str(path)
        )
    X, y = pixels.reshape(-1, SIDE * SIDE) / 255.0, labels.astype(np.int64)
    order, n_test = np.random.default_rng(0).permutation(len(y)), round(TEST_SHARE * len(y))
    train, test = np.sort(order[n_test:]), np.sort(order[:n_test])
    names = np.asarray([f"pixel {row},{column}" for row in range(SIDE) for column in range(SIDE)], dtype=np.str_)
    return Dataset("usps", X[train], y[train], X[test], y[test], names, "multiclass")
