"""MNIST by ShareBoost with patches, the training images and five deformations of each: the long run.

Covers: the measurement of section 7.4 behind the error of 0.47 %. Does not cover: the original images
(``shareboost_digits``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lab.datasets import mnist
from lab.datasets.deform import SMOOTHNESS, STRENGTH, deformed
from lab.reproduce.base import Context, Report
from lab.reproduce.claims import Claim
from lab.reproduce.shareboost_digits import DIFFERENCES, Sizes, choose, follow
from lab.reproduce.shareboost_digits import SMALL as SMALL_ORIGINAL
from lab.reproduce.shareboost_digits import WHOLE as WHOLE_ORIGINAL
from lab.reproduce.shareboost_digits_claims import figures, findings, judge_at
from lab.reproduce.shareboost_drawn import FEW_OPERATIONS

COPIES = 5
WHOLE = replace(WHOLE_ORIGINAL, rounds=305)
SMALL = replace(SMALL_ORIGINAL, images=400, validation=100)

CLAIMS = (
    Claim(
        "75 features are enough for an error below 1 %",
        "section 7.4",
        "75 rounds are enough for achieving less than 1 % error.",
        "Test error of the model of round 75 below 1 %.",
        judge_at(75, 0.01, strictly=True),
    ),
    Claim(
        "0.47 % with 305 features on the deformed training set",
        "Table 1, Figs. 4 and 6",
        "With five deformations of every training image, ShareBoost has an error of 0.47 % with 305 features.",
        "Test error of the model of round 305 of at most 0.47 %.",
        judge_at(305, 0.0047, strictly=False),
    ),
    FEW_OPERATIONS,
)
FIGURES = figures(0.47)


def run(context: Context) -> Report:
    """Measure; see ``CLAIMS`` for what is judged."""
    sizes = SMALL if context.quick else WHOLE
    with context.stage("data"):
        data = mnist.load(n_train=sizes.images)
    with context.stage("validation"):
        tried = choose(data.X, data.y, sizes, context)
    best = tried[int(np.argmin(tried.column("error")))]
    with context.stage("deformations"):
        X, y = widened(data.X, data.y)
    with context.stage("fit"):
        followed = follow(X, y, data.X_test, data.y_test, best, sizes, context)
    tables = {"validation": tried, **followed}
    return Report(
        title="MNIST by ShareBoost with patches: training images and their deformations",
        about=(
            "Handwritten digits, ten classes, the training images with five elastic deformations of each. How low is "
            "the test error of ShareBoost with how few patch features?"
        ),
        claims=CLAIMS,
        protocol=protocol(sizes, best),
        differences=DIFFERENCES[:4] + DIFFERENCES[5:],
        tables=tables,
        figures=FIGURES,
        findings=findings(tables),
    )


def widened(X: Any, y: np.ndarray[Any, Any]) -> tuple[Any, np.ndarray[Any, Any]]:
    """The images, then `COPIES` deformations of all of them; pixels rounded to multiples of 1/255 as the originals."""
    from scipy.sparse import csr_matrix, vstack

    side = int(np.sqrt(X.shape[1]))
    images = X.toarray().reshape(-1, side, side)
    parts = [X]
    for copy in range(COPIES):
        made = np.round(255.0 * deformed(images, copy)) / 255.0
        parts.append(csr_matrix(made.reshape(len(images), -1)))
    return vstack(parts, format="csr"), np.tile(y, COPIES + 1)


def protocol(sizes: Sizes, best: dict[str, Any]) -> tuple[str, ...]:
    """What was done."""
    return (
        f"Training: the {sizes.images:,} original images and {COPIES} elastic deformations of each (Simard et al. "
        f"2003: displacements smoothed by a Gaussian of {SMOOTHNESS:g} pixels, times {STRENGTH:g}). Test: the 10,000 "
        "test images, as they are.",
        f"Features and ShareBoost as in shareboost-digits, {sizes.rounds} rounds; kind of patches ("
        f"{best['kind']}) and ridge ({best['ridge']:g}) by the same validation on original images.",
    )
