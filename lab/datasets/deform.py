"""Elastic deformations of images.

Covers: ``deformed``. Does not cover: which images (``mnist``).

Source: Simard, Steinkraus, Platt, "Best practices for convolutional neural networks applied to visual document
analysis", ICDAR 2003: a random field of displacements, smoothed by a Gaussian and scaled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SMOOTHNESS = 4.0
"""Standard deviation of the Gaussian, in pixels; the paper's value for digits."""
STRENGTH = 34.0
"""Factor of the smoothed field; the paper's value for digits."""


def deformed(images: NDArray[Any], seed: int) -> NDArray[np.float64]:
    """Each image under a field of its own.

    Parameters
    ----------
    images : array, shape (m, rows, columns)
    seed : int
        Image i is deformed by the i-th field of this seed, whatever images lie beside it.

    Returns
    -------
    float64 array, the same shape
        Bilinear interpolation; zero where a pixel comes from outside.
    """
    from scipy.ndimage import gaussian_filter, map_coordinates

    out = np.empty(images.shape)
    grid = np.indices(images.shape[1:]).astype(np.float64)
    for place, image in enumerate(images):
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, place])))
        field = rng.uniform(-1.0, 1.0, size=grid.shape)
        shift = [STRENGTH * gaussian_filter(part, SMOOTHNESS, mode="constant") for part in field]
        out[place] = map_coordinates(image.astype(np.float64), grid + shift, order=1, mode="constant")
    return out
