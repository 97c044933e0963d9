"""Run by the interpreter of the peers: one multinomial model of abess for each number of features.

``python best_subset.py FOLDER`` reads data.npz (X, y, sizes) and writes found.npz: W (sizes, n, k), b (sizes, k) and
seconds (sizes,). It imports nothing of the project, which need not be installed there.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np


def main(folder: Path) -> None:
    """Fit, and write what was found."""
    from abess import MultinomialRegression

    data = np.load(folder / "data.npz")
    X, y = data["X"], data["y"]
    codes = np.eye(int(y.max()) + 1)[y]
    weights, intercepts, seconds = [], [], []
    for size in data["sizes"]:
        begun = time.perf_counter()
        model = MultinomialRegression(support_size=[int(size)], thread=1).fit(X, codes)
        seconds.append(time.perf_counter() - begun)
        weights.append(np.asarray(model.coef_))
        intercepts.append(np.broadcast_to(np.asarray(model.intercept_, dtype=float), codes.shape[1]))
    np.savez(folder / "found.npz", W=np.array(weights), b=np.array(intercepts), seconds=np.array(seconds))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
