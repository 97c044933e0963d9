"""A vectorisable exponential for arguments that are never positive, and the logarithms that go with it.

The residual passes evaluate m * k exponentials, which is most of their arithmetic. The C library's ``exp`` is a scalar
call that keeps the compiler from using vector registers; this one is straight-line code (range reduction by powers of
two, a polynomial, the exponent assembled from its bits) and is vectorised. Its error stays below 4 units in the last
place (tested against the library on a dense grid).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

LOG2E = 1.4426950408889634
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
# Adding 1.5 * 2**52 rounds to the nearest integer and leaves it in the low bits of the sum.
ROUND = 6755399441055744.0
SMALLEST = -708.0
# exp(r) for |r| <= log(2) / 2, highest power first.
EXP = (
    2.08767569878681e-09,
    2.505210838544172e-08,
    2.755731922398589e-07,
    2.755731922398589e-06,
    2.48015873015873e-05,
    0.0001984126984126984,
    0.001388888888888889,
    0.008333333333333333,
    0.041666666666666664,
    0.16666666666666666,
    0.5,
    1.0,
    1.0,
)
# artanh(s) = s + s z p(z) with z = s**2.
LOG = (
    0.047619047619047616,
    0.05263157894736842,
    0.058823529411764705,
    0.06666666666666667,
    0.07692307692307693,
    0.09090909090909091,
    0.1111111111111111,
    0.14285714285714285,
    0.2,
    0.3333333333333333,
)


@intrinsic
def float_bits(typingctx: Any, x: Any) -> Any:
    """Bits of a float64 as int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def _bits_float(typingctx: Any, x: Any) -> Any:
    """Float64 with the given int64 bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@njit(nogil=True, cache=True, inline="always")
def exp_nonpositive(x: float) -> float:
    """e**x for x <= 0; arguments below -708 give e**-708, so the result is never zero or subnormal."""
    x = max(x, SMALLEST)
    shifted = x * LOG2E + ROUND
    n = shifted - ROUND
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = EXP[0]
    p = p * r + EXP[1]
    p = p * r + EXP[2]
    p = p * r + EXP[3]
    p = p * r + EXP[4]
    p = p * r + EXP[5]
    p = p * r + EXP[6]
    p = p * r + EXP[7]
    p = p * r + EXP[8]
    p = p * r + EXP[9]
    p = p * r + EXP[10]
    p = p * r + EXP[11]
    p = p * r + EXP[12]
    return p * _bits_float((float_bits(shifted) + 1023) << 52)


@njit(nogil=True, cache=True, inline="always")
def log1p_unit(e: float) -> float:
    """log(1 + e) for 0 <= e <= 1, as 2 artanh(e / (2 + e)): a series in a square of at most 1/9."""
    s = e / (2.0 + e)
    z = s * s
    p = 0.034482758620689655
    p = p * z + 0.037037037037037035
    p = p * z + 0.04
    p = p * z + 0.043478260869565216
    p = p * z + 0.047619047619047616
    p = p * z + 0.05263157894736842
    p = p * z + 0.058823529411764705
    p = p * z + 0.06666666666666667
    p = p * z + 0.07692307692307693
    p = p * z + 0.09090909090909091
    p = p * z + 0.1111111111111111
    p = p * z + 0.14285714285714285
    p = p * z + 0.2
    p = p * z + 0.3333333333333333
    return 2.0 * s + 2.0 * s * z * p


_MANTISSA = 0x000FFFFFFFFFFFFF
_ONE_BITS = 0x3FF0000000000000
# The bits of 2**52: an integer below it, or-ed in, makes a float64 from which it comes out by a subtraction.
_TWO_52_BITS = 0x4330000000000000
_TWO_52 = 4503599627370496.0


@njit(nogil=True, cache=True, inline="always")
def log_positive(x: float) -> float:
    """log(x) for positive normal x: the exponent from the bits, the rest as 2 artanh((m - 1) / (m + 1))."""
    bits = float_bits(x)
    n = _bits_float((bits >> 52) | _TWO_52_BITS) - (_TWO_52 + 1023.0)
    m = _bits_float((bits & _MANTISSA) | _ONE_BITS)
    large = m > 1.4142135623730951
    m = 0.5 * m if large else m
    n = n + 1.0 if large else n
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = LOG[0]
    p = p * z + LOG[1]
    p = p * z + LOG[2]
    p = p * z + LOG[3]
    p = p * z + LOG[4]
    p = p * z + LOG[5]
    p = p * z + LOG[6]
    p = p * z + LOG[7]
    p = p * z + LOG[8]
    p = p * z + LOG[9]
    return n * LN2_HIGH + (n * LN2_LOW + (2.0 * s + 2.0 * s * z * p))
