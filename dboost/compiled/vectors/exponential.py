"""A vectorisable exponential for arguments that are never positive, and the logarithms that go with it.

The residual passes evaluate m * k exponentials, which is most of their arithmetic. The C library's ``exp`` is a scalar
call that keeps the compiler from using vector registers; this one is straight-line code (range reduction by powers of
two, a polynomial, the exponent assembled from its bits) and is vectorised. Its error stays below 4 units in the last
place (tested against the library on a dense grid).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dboost.compiled.kept import njit
from dboost.compiled.vectors.room import greater

LOG2E = 1.4426950408889634
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
# Adding 1.5 * 2**52 rounds to the nearest integer and leaves it in the low bits of the sum.
ROUND = 6755399441055744.0
SMALLEST = -708.0
# Polynomials, highest power first, with the least largest relative error (Remez's exchange): a Taylor polynomial of the
# same error has up to half as many terms more.
# exp(r) for |r| <= log(2) / 2, to 3e-18.
EXP = (
    2.4994303274814394e-08,
    2.7632308174894487e-07,
    2.755762262047198e-06,
    2.48014864814364e-05,
    0.00019841269432470488,
    0.0013888888951261041,
    0.008333333333559434,
    0.04166666666649263,
    0.1666666666666617,
    0.5000000000000018,
    1.0,
    1.0,
)
# artanh(s) = s + s z p(z) with z = s**2; for |s| <= (sqrt(2) - 1) / (sqrt(2) + 1) to 1e-18, ...
LOG = (
    0.0739805275813128,
    0.07657017909288794,
    0.09091782433887174,
    0.11111099281726561,
    0.1428571437123767,
    0.1999999999970716,
    0.3333333333333367,
)
# ... and for s <= 1/3 to 5e-17.
LOG1P = (
    0.08874421582120244,
    0.049491557417038305,
    0.06793622545658996,
    0.07682096109537938,
    0.0909141036161257,
    0.1111109632756608,
    0.14285714531588398,
    0.1999999999799885,
    0.3333333333333894,
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
    x = greater(x, SMALLEST)
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
    found: float = p * _bits_float((float_bits(shifted) + 1023) << 52)
    return found


@njit(nogil=True, cache=True, inline="always")
def log1p_unit(e: float) -> float:
    """log(1 + e) for 0 <= e <= 1, as 2 artanh(e / (2 + e)) by `LOG1P`."""
    s = e / (2.0 + e)
    z = s * s
    p = LOG1P[0]
    p = p * z + LOG1P[1]
    p = p * z + LOG1P[2]
    p = p * z + LOG1P[3]
    p = p * z + LOG1P[4]
    p = p * z + LOG1P[5]
    p = p * z + LOG1P[6]
    p = p * z + LOG1P[7]
    p = p * z + LOG1P[8]
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
    found: float = n * LN2_HIGH + (n * LN2_LOW + (2.0 * s + 2.0 * s * z * p))
    return found
