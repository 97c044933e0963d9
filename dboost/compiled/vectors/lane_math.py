"""Arithmetic of vectors of any length, emitted: largest, exponential, logarithms."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from dboost.compiled.vectors.emit import add_product
from dboost.compiled.vectors.exponential import EXP, LN2_HIGH, LN2_LOW, LOG, LOG2E, ROUND, SMALLEST

_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_REAL = ir.DoubleType()


def all_of(x: float, n: int) -> Any:
    """A vector of n times x."""
    return ir.Constant(ir.VectorType(_REAL, n), [x] * n)


def _all_bits(bits: int, n: int) -> Any:
    return ir.Constant(ir.VectorType(_I64, n), [bits] * n)


def _places(*places: int) -> Any:
    return ir.Constant(ir.VectorType(_I32, len(places)), list(places))


def taken(builder: Any, x: Any, *places: int) -> Any:
    """The elements of a vector at some places."""
    return builder.shuffle_vector(x, ir.Constant(x.type, ir.Undefined), _places(*places))


def absolute(builder: Any, x: Any) -> Any:
    """The absolute values of a number, or of a vector of them."""
    name = "llvm.fabs.f64" if x.type == _REAL else f"llvm.fabs.v{x.type.count}f64"
    kind = ir.FunctionType(x.type, [x.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [x])


def _polynomial(builder: Any, coefficients: tuple[float, ...], x: Any) -> Any:
    total = all_of(coefficients[0], x.type.count)
    for c in coefficients[1:]:
        total = add_product(builder, total, x, all_of(c, x.type.count))
    return total


def larger(builder: Any, a: Any, b: Any) -> Any:
    """The larger of two numbers, or vectors of them."""
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def exponential(builder: Any, x: Any) -> Any:
    """As ``exponential.exp_nonpositive``."""
    n, kind = x.type.count, x.type
    x = larger(builder, x, all_of(SMALLEST, n))
    shifted = add_product(builder, x, all_of(LOG2E, n), all_of(ROUND, n))
    power = builder.fsub(shifted, all_of(ROUND, n))
    r = add_product(builder, power, all_of(-LN2_HIGH, n), x)
    r = add_product(builder, power, all_of(-LN2_LOW, n), r)
    p = _polynomial(builder, EXP, r)
    bits = builder.add(builder.bitcast(shifted, ir.VectorType(_I64, n)), _all_bits(1023, n))
    return builder.fmul(p, builder.bitcast(builder.shl(bits, _all_bits(52, n)), kind))


def logarithm(builder: Any, x: Any) -> Any:
    """As ``exponential.log_positive``."""
    n, kind = x.type.count, x.type
    one, half = all_of(1.0, n), all_of(0.5, n)
    bits = builder.bitcast(x, ir.VectorType(_I64, n))
    high = builder.or_(builder.lshr(bits, _all_bits(52, n)), _all_bits(0x4330000000000000, n))
    power = builder.fsub(builder.bitcast(high, kind), all_of(4503599627370496.0 + 1023.0, n))
    low = builder.or_(builder.and_(bits, _all_bits(0x000FFFFFFFFFFFFF, n)), _all_bits(0x3FF0000000000000, n))
    m = builder.bitcast(low, kind)
    large = builder.fcmp_ordered(">", m, all_of(1.4142135623730951, n))
    m = builder.select(large, builder.fmul(m, half), m)
    power = builder.select(large, builder.fadd(power, one), power)
    s = builder.fdiv(builder.fsub(m, one), builder.fadd(m, one))
    z = builder.fmul(s, s)
    twice = builder.fadd(s, s)
    series = add_product(builder, builder.fmul(twice, z), _polynomial(builder, LOG, z), twice)
    return add_product(builder, power, all_of(LN2_HIGH, n), add_product(builder, power, all_of(LN2_LOW, n), series))


def log1p(builder: Any, z: Any) -> Any:
    """log(1 + z) for a vector of z >= 0: the logarithm of the sum, and what the sum lost of z."""
    one = all_of(1.0, z.type.count)
    whole = builder.fadd(one, z)
    lost = builder.fsub(z, builder.fsub(whole, one))
    return builder.fadd(logarithm(builder, whole), builder.fdiv(lost, whole))
