"""Printed characters: the digits and capital letters of the fonts that come with matplotlib, tilted, scaled and noisy.

Covers: ``load``: 36 classes, images of 20 x 20 pixels with values in [0, 1]. They are drawn when they are asked for, so
that no file is needed; another release of the fonts or of Pillow may draw a pixel otherwise.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lab.datasets.base import Dataset, random_split

CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SIDE = 20
FACES = (
    "DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSans-BoldOblique",
    "DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSansMono-Oblique", "DejaVuSansMono-BoldOblique",
    "DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic", "DejaVuSerif-BoldItalic",
    "STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic", "STIXGeneralBolIta",
    "cmr10", "cmb10", "cmss10", "cmti10", "cmtt10",
)  # fmt: skip
# Pixels of the canvas that a character is drawn on, and of its height there.
_CANVAS, _HEIGHT = 80, 52
# The most that a character is turned (radians), sheared, moved (pixels of the image) and made smaller.
_TURN, _SHEAR, _MOVE, _SMALLER = math.radians(12.0), 0.2, 1.5, 0.3
_NOISE = 0.1


def load(*, per_face: int = 12, test_share: float = 0.3, seed: int = 0) -> Dataset:
    """Draw the characters.

    Parameters
    ----------
    per_face : int
        Images of every character in every face.
    test_share : float
        Share of the images that are for testing.
    seed : int
        Of the deformations and the split.
    """
    rng = np.random.default_rng(seed)
    images = [
        _bent(drawn, rng)
        for face in FACES
        for drawn in (_drawn(face, character) for character in CHARACTERS)
        for _ in range(per_face)
    ]
    X = np.array(images).reshape(len(images), -1)
    y = np.tile(np.repeat(np.array(list(CHARACTERS)), per_face), len(FACES))
    train, test = random_split(len(y), test_share, seed)
    names = np.asarray([f"pixel {row},{column}" for row in range(SIDE) for column in range(SIDE)], dtype=np.str_)
    return Dataset("characters", X[train], y[train], X[test], y[test], names, "multiclass")


def _drawn(face: str, character: str) -> NDArray[np.float64]:
    """A character in the middle of a canvas, ink being one."""
    import matplotlib
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{face}.ttf"), 64)
    left, top, right, bottom = font.getbbox(character)
    size = (math.ceil(right - left), math.ceil(bottom - top))
    glyph = Image.new("L", size)
    ImageDraw.Draw(glyph).text((-left, -top), character, fill=255, font=font)
    width = min(round(size[0] * _HEIGHT / size[1]), _CANVAS)
    canvas = Image.new("L", (_CANVAS, _CANVAS))
    canvas.paste(glyph.resize((width, _HEIGHT)), ((_CANVAS - width) // 2, (_CANVAS - _HEIGHT) // 2))
    return np.asarray(canvas, dtype=np.float64) / 255.0


def _bent(drawn: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """The canvas turned, sheared, scaled and moved, as a small image with noise."""
    from scipy.ndimage import affine_transform

    turn, shear = rng.uniform(-_TURN, _TURN), rng.uniform(-_SHEAR, _SHEAR)
    cos, sin = math.cos(turn), math.sin(turn)
    step = _CANVAS / SIDE / (1.0 - rng.uniform(0.0, _SMALLER, 2))
    matrix = np.array([[cos, -sin], [sin, cos]]) @ np.array([[1.0, 0.0], [shear, 1.0]]) * step
    middle = np.full(2, (SIDE - 1) / 2) + rng.uniform(-_MOVE, _MOVE, 2)
    # Each pixel is the mean of four points of the canvas, without which thin strokes fall between them.
    around = np.array([(a, b) for a in (-0.25, 0.25) for b in (-0.25, 0.25)])
    centre = np.full(2, (_CANVAS - 1) / 2)
    parts = [
        affine_transform(drawn, matrix, centre - matrix @ (middle + part), output_shape=(SIDE, SIDE), order=1)
        for part in around
    ]
    noisy = np.mean(parts, axis=0) + _NOISE * rng.normal(size=(SIDE, SIDE))
    found: NDArray[np.float64] = np.round(255.0 * np.clip(noisy, 0.0, 1.0)) / 255.0
    return found
