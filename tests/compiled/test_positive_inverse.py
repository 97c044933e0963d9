"""Inverses that have the same bits whatever the threads of a BLAS are, and nothing in a fit that has others."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import dboost
from dboost.compiled.solves.positive import inverse_positive


def test_the_inverse_of_what_is_positive_and_of_what_is_not_quite():
    rng = np.random.default_rng(0)
    for n in (1, 3, 40):
        A = rng.normal(size=(2 * n, n))
        H = A.T @ A
        np.testing.assert_allclose(inverse_positive(H, 0.0) @ H, np.eye(n), atol=1e-8)
        # centred, as curvature is that a common shift of all classes has no part in
        C = np.eye(n) - 1.0 / n
        flat = C @ H @ C
        found = inverse_positive(flat, 1e-10)
        np.testing.assert_allclose(flat @ found @ flat, flat, atol=1e-8 * np.abs(H).max())
        np.testing.assert_array_equal(found, found.T)


def test_no_fit_asks_lapack():
    """Its threads would fight the passes' for the cores, and may change the bits."""
    asked = re.compile(r"linalg\.(?!norm\b)\w+")
    files = Path(dboost.__file__).parent.rglob("*.py")
    assert not [f"{file.name}: {found}" for file in files for found in asked.findall(_code(file.read_text()))]


def _code(text: str) -> str:
    """Without the examples of docstrings."""
    return "\n".join(line for line in text.splitlines() if not line.strip().startswith((">>>", "...")))
