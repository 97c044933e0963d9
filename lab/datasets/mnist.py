"""Handwritten digits: 60,000 + 10,000 images of 28 x 28 pixels, 10 classes.

Covers: the idx container, pixels as features (sparse or pooled), the synthetic twin.
Does not cover: patches of images as hypotheses.

Source: LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition", Proc. IEEE 86, 1998.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError
from lab.datasets.base import Dataset, data_file, read_bytes

FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def parse_idx(content: bytes, file: str) -> NDArray[np.uint8]:
    """Decode an idx file of unsigned bytes.

    The head is two zero bytes, the type (8 for unsigned bytes), the number of axes, and each length as a big-endian
    32-bit integer.
    """
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise DataError("not an idx file of unsigned bytes (expected to begin with 00 00 08)", file=file)
    axes = content[3]
    shape = tuple(int(n) for n in np.frombuffer(content, dtype=">u4", count=axes, offset=4))
    expected = 4 + 4 * axes + int(np.prod(shape))
    if len(content) != expected:
        raise DataError(f"idx file of shape {shape} must have {expected} bytes, found {len(content)}", file=file)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)


def pool(images: NDArray[Any], size: int) -> NDArray[np.float64]:
    """Average `size` x `size` blocks of pixels: shape (m, 28, 28) to (m, 28 / size, 28 / size)."""
    m, height, width = images.shape
    if height % size or width % size:
        raise DataError(f"images of {height} x {width} pixels cannot be pooled by {size}; {size} must divide both")
    blocks = images.reshape(m, height // size, size, width // size, size)
    return blocks.mean(axis=(2, 4), dtype=np.float64)


def _features(images: NDArray[Any], pooled: int) -> Any:
    from scipy.sparse import csr_matrix

    if pooled > 1:
        return pool(images, pooled).reshape(images.shape[0], -1) / 255.0
    return csr_matrix(images.reshape(images.shape[0], -1).astype(np.float64) / 255.0)


def _names(side: int) -> NDArray[np.str_]:
    return np.asarray([f"pixel {row},{column}" for row in range(side) for column in range(side)], dtype=np.str_)


def load(pooled: int = 1, n_train: int = 60_000) -> Dataset:
    """Load the digits with pixels in [0, 1].

    `pooled`: average blocks of `pooled` x `pooled` pixels. 1 gives a csr_matrix of 784 columns, more a dense array.
    `n_train`: use the first `n_train` training images.
    """
    images, labels, images_test, labels_test = (
        parse_idx(read_bytes(path), str(path)) for path in (data_file("mnist", name) for name in FILES)
    )
    return Dataset(
        "mnist" if pooled == 1 else f"mnist-{28 // pooled}x{28 // pooled}",
        _features(images[:n_train], pooled),
        labels[:n_train].astype(np.int64),
        _features(images_test, pooled),
        labels_test.astype(np.int64),
        _names(28 // pooled),
        "multiclass",
    )


def synthetic(seed: int = 0) -> Dataset:
    """Return a tiny twin: 300 + 100 noisy images of 8 x 8 pixels, 4 classes (one bright quarter each)."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(4), rng.integers(0, 4, 396)])
    images = rng.integers(0, 60, (400, 8, 8)) * (rng.random((400, 8, 8)) < 0.4)
    for i, code in enumerate(y):
        row, column = 4 * (code // 2), 4 * (code % 2)
        images[i, row : row + 4, column : column + 4] += rng.integers(0, 120, (4, 4))
    X = _features(images, 1)
    return Dataset("mnist-synthetic", X[:300], y[:300], X[300:], y[300:], _names(8), "multiclass")
