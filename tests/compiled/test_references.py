"""Loops over examples, columns and stored values count no references.

An atomic operation for every array of every row costs more than a short row. Numba leaves them out where it can follow
what a loop does; a call of a compiled function with arrays, a view that is given a name or a division that may raise
can bring them back, unseen by any test of the results.
"""

from __future__ import annotations

import platform
import re

import numpy as np
import pytest
from numba import njit

from dboost.compiled.examples import fused, loss_of_rows, margins
from dboost.compiled.solves import one_output, positive, quadratic
from dboost.compiled.sparse import columns
from dboost.compiled.vectors import scaled_rows
from dboost.compiled.vectors.scaled_rows import padded
from dboost.hypotheses.products import children_loops
from dboost.hypotheses.stumps import histograms
from dboost.losses import get_loss

M, N, K = 5, 3, 6
# For the arrays that a function makes before its loop.
ONCE = 1

POINTER = np.arange(M + 1)
COLUMNS = np.array([0, 2, 4, M])
SLOTS = np.zeros(M, np.int32)
VALUES = np.ones(M)
TABLE = padded(np.zeros((M, K)))
HALF = padded(np.zeros((M, K)), np.float32)
WEIGHT = np.ones(M)
TOTAL = np.zeros(TABLE.shape[1])
ROW = HALF[0].copy()
TARGET = get_loss("multinomial").target(np.zeros(M, np.int32))
BY_ROW = (POINTER, SLOTS, VALUES)
BY_COLUMN = (COLUMNS, SLOTS, VALUES)
CHILDREN = padded(np.zeros((9, K))), np.zeros((9, 2)), np.full(9, -1.0)
FOUND = np.zeros(99, np.int64), np.zeros((99, K + 2)), np.zeros(99)

CALLS = {
    "margins": (margins.add_margins, (*BY_ROW, TABLE, TABLE[:1], 0, TABLE.copy())),
    "gradient": (margins.add_rows, (*BY_ROW, 0, TABLE, TABLE.copy())),
    "hessian": (fused.padded_hessian_product, (*BY_ROW, HALF, WEIGHT, HALF.copy(), ROW, HALF.copy(), TOTAL.copy())),
    "residuals": (loss_of_rows.residuals, (TABLE.copy(), 0, K, TARGET, WEIGHT, TABLE.copy(), np.zeros(K))),
    "curvature": (loss_of_rows.curvature, (TABLE.copy(), 0, K, TARGET, WEIGHT, TABLE.copy(), WEIGHT.copy())),
    "columns": (columns.padded_column_gradient, (*BY_COLUMN, TABLE, np.arange(N), np.zeros((N, K)))),
    "one output": (one_output.column_sums, (*BY_COLUMN, np.arange(N), WEIGHT, np.zeros(N))),
    "stumps": (
        histograms.sums_of_many,
        (*BY_COLUMN[:2], COLUMNS, SLOTS.astype(np.uint8), np.arange(N + 1), np.zeros(N, np.int64), 0, N, TABLE, TOTAL,
         np.zeros((N, K))),
    ),
    "products": (
        children_loops.padded_children_gradient,
        (BY_COLUMN, np.zeros(N, np.int64), np.arange(N), BY_ROW, WEIGHT, TABLE, CHILDREN, FOUND),
    ),
    "held": (quadratic.add_products, (BY_ROW, BY_ROW, WEIGHT, 0, M, np.zeros((N, N)))),
    "factor": (positive.factor, (np.eye(M), 0.0)),
}  # fmt: skip


pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="reads the listing of another processor"
)


def counted(kernel, options, arguments):
    """How often the listing of a function, compiled anew, asks for a reference; of what is kept there is no listing."""
    fresh = njit(**options)(kernel)
    fresh(*arguments)
    (listing,) = fresh.inspect_asm().values()
    return len(re.findall(r"movabsq\s+\$NRT_incref", listing))


# those that take the longest to compile
LONG = ("hessian", "residuals", "curvature", "products", "stumps", "factor")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.full) if name in LONG else name for name in CALLS]
)
def test_no_loop_counts_references(name):
    kernel, arguments = CALLS[name]
    options = {key: value for key, value in kernel.targetoptions.items() if key not in ("cache", "nopython")}
    assert counted(kernel.py_func, options, arguments) <= ONCE


def test_a_call_in_a_loop_is_seen():
    @njit
    def gather(index, value, start, stop, table, base, out):
        scaled_rows.gather(index, value, start, stop, table, base, out)

    def called(pointer, slots, values, table, base, out):
        for i in range(out.shape[0]):
            gather(slots, values, pointer[i], pointer[i + 1], table, base, out[i])

    assert counted(called, {}, (*BY_ROW, TABLE, TOTAL, TABLE.copy())) > ONCE
