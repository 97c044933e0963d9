"""Functions of one row of margins, four outputs at a time: largest, total, exponentials, entropy.

Rows are short: ten or twenty classes are many problems. The compiler turns a loop over a row into one over sixteen
elements and leaves the rest, which may be all there is, to scalar code that is several times slower. Here the vectors
are emitted; a row that is no whole number of them ends with a pair, a single element, or both.

What one function writes the next one reads at once, while it is on its way to memory. The processor hands it over only
where one write holds all of it: so all functions go over a row in the same vectors (vectors that overlap cost as much
as the exponentials of a row), and an element that is treated apart is chosen inside its vector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dboost.compiled.emit import add_product, splat
from dboost.compiled.exponential import EXP, LN2_HIGH, LN2_LOW, LOG, LOG2E, ROUND, SMALLEST

_I64 = ir.IntType(64)
_REAL = ir.DoubleType()
_N = 4
_VECTOR = ir.VectorType(_REAL, _N)
_BITS = ir.VectorType(_I64, _N)


def _int(n: int) -> Any:
    return ir.Constant(_I64, n)


def _all(x: float) -> Any:
    return ir.Constant(_VECTOR, [x] * _N)


def _all_bits(n: int) -> Any:
    return ir.Constant(_BITS, [n] * _N)


def _places(*places: int) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(places)), list(places))


def _polynomial(builder: Any, coefficients: tuple[float, ...], x: Any) -> Any:
    total = _all(coefficients[0])
    for c in coefficients[1:]:
        total = add_product(builder, total, x, _all(c))
    return total


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _exp(builder: Any, x: Any) -> Any:
    """As ``exponential.exp_nonpositive``."""
    x = _larger(builder, x, _all(SMALLEST))
    shifted = add_product(builder, x, _all(LOG2E), _all(ROUND))
    n = builder.fsub(shifted, _all(ROUND))
    r = add_product(builder, n, _all(-LN2_HIGH), x)
    r = add_product(builder, n, _all(-LN2_LOW), r)
    p = _polynomial(builder, EXP, r)
    bits = builder.shl(builder.add(builder.bitcast(shifted, _BITS), _all_bits(1023)), _all_bits(52))
    return builder.fmul(p, builder.bitcast(bits, _VECTOR))


def _log(builder: Any, x: Any) -> Any:
    """As ``exponential.log_positive``."""
    one, half = _all(1.0), _all(0.5)
    bits = builder.bitcast(x, _BITS)
    high = builder.or_(builder.lshr(bits, _all_bits(52)), _all_bits(0x4330000000000000))
    n = builder.fsub(builder.bitcast(high, _VECTOR), _all(4503599627370496.0 + 1023.0))
    low = builder.or_(builder.and_(bits, _all_bits(0x000FFFFFFFFFFFFF)), _all_bits(0x3FF0000000000000))
    m = builder.bitcast(low, _VECTOR)
    large = builder.fcmp_ordered(">", m, _all(1.4142135623730951))
    m = builder.select(large, builder.fmul(m, half), m)
    n = builder.select(large, builder.fadd(n, one), n)
    s = builder.fdiv(builder.fsub(m, one), builder.fadd(m, one))
    z = builder.fmul(s, s)
    twice = builder.fadd(s, s)
    series = add_product(builder, builder.fmul(twice, z), _polynomial(builder, LOG, z), twice)
    return add_product(builder, n, _all(LN2_HIGH), add_product(builder, n, _all(LN2_LOW), series))


class _Row:
    """A contiguous float64 row in memory."""

    def __init__(self, context: Any, builder: Any, ty: Any, value: Any) -> None:
        array = context.make_array(ty)(context, builder, value=value)
        self.builder, self.data = builder, array.data
        self.length = builder.extract_value(array.shape, 0)
        self.rest = builder.and_(self.length, _int(_N - 1))
        self.whole = builder.sub(self.length, self.rest)

    def at(self, place: Any) -> Any:
        return self.builder.gep(self.data, [place])

    def load(self, place: Any) -> Any:
        return self.builder.load(self.builder.bitcast(self.at(place), _VECTOR.as_pointer()), align=8)

    def store(self, value: Any, place: Any) -> None:
        self.builder.store(value, self.builder.bitcast(self.at(place), _VECTOR.as_pointer()), align=8)

    def vectors(self) -> Any:
        """Loop over the first elements of whole vectors."""
        return cgutils.for_range_slice(self.builder, _int(0), self.whole, _int(_N), _I64)

    def remaining(self) -> Any:
        """Loop over the elements beyond them."""
        return cgutils.for_range_slice(self.builder, self.whole, self.length, _int(1), _I64)

    def pair(self, emit: Callable[[Any], None]) -> None:
        """Code for two elements beyond the whole vectors, given the place of the first, where there are two."""
        with self.builder.if_then(self.builder.icmp_signed(">=", self.rest, _int(2))):
            emit(self.whole)

    def last(self, emit: Callable[[Any], None]) -> None:
        """Code for the last element, given its place, where it is in no vector and no pair."""
        with self.builder.if_then(self.builder.trunc(self.rest, ir.IntType(1))):
            emit(self.builder.sub(self.length, _int(1)))

    def load_pair(self, place: Any) -> Any:
        """Two elements, as a vector that holds each of them twice."""
        builder, two = self.builder, ir.VectorType(_REAL, 2)
        pair = builder.load(builder.bitcast(self.at(place), two.as_pointer()), align=8)
        return builder.shuffle_vector(pair, ir.Constant(two, ir.Undefined), _places(0, 1, 0, 1))

    def lanes(self, place: Any) -> Any:
        """The places of the elements of a vector."""
        return self.builder.add(splat(self.builder, place, _N), ir.Constant(_BITS, list(range(_N))))

    def change(self, emit: Callable[[Any], Any]) -> None:
        """Replace every element x by the same function of it, given for vectors."""
        self.fill(self, lambda x, _: emit(x))

    def fill(self, source: _Row, emit: Callable[[Any, Any], Any], single: bool = False) -> None:
        """Write a function of every element of another row, or this, and its place; as float32 where `single`."""
        builder, real = self.builder, ir.FloatType() if single else _REAL

        def put(value: Any, place: Any, n: int) -> None:
            kind = ir.VectorType(real, n)
            if n < _N:
                value = builder.shuffle_vector(value, ir.Constant(_VECTOR, ir.Undefined), _places(*range(n)))
            value = builder.fptrunc(value, kind) if single else value
            builder.store(value, builder.bitcast(self.at(place), kind.as_pointer()), align=4 if single else 8)

        with source.vectors() as (place, _):
            put(emit(source.load(place), source.lanes(place)), place, _N)
        source.pair(lambda place: put(emit(source.load_pair(place), source.lanes(place)), place, 2))
        source.last(
            lambda place: put(emit(splat(builder, builder.load(source.at(place)), _N), source.lanes(place)), place, 1)
        )

    def folded(self, start: float, join: Callable[[Any, Any], Any], but: Any = None) -> Any:
        """All elements joined: lane by lane, the lanes in order, what is beyond the whole vectors in order.

        In place of the element at `but` there is `start`.
        """
        builder = self.builder
        held = cgutils.alloca_once_value(builder, _all(start))
        with self.vectors() as (place, _):
            given = self.load(place)
            if but is not None:
                others = builder.icmp_signed("!=", self.lanes(place), splat(builder, but, _N))
                given = builder.select(others, given, _all(start))
            builder.store(join(builder.load(held), given), held)
        lanes = builder.load(held)
        a, b, c, d = (builder.extract_element(lanes, ir.Constant(ir.IntType(32), j)) for j in range(_N))
        total = cgutils.alloca_once_value(builder, join(join(a, b), join(c, d)))
        with self.remaining() as (place, _):
            given = builder.load(self.at(place))
            if but is not None:
                given = builder.select(builder.icmp_signed("!=", place, but), given, ir.Constant(_REAL, start))
            builder.store(join(builder.load(total), given), total)
        return builder.load(total)


def _is_row(f: Any, dtype: Any = types.float64) -> bool:
    return isinstance(f, types.Array) and f.ndim == 1 and f.dtype == dtype and f.layout == "C"


@intrinsic
def exp_row(typingctx: Any, f: Any, top: Any) -> Any:
    """Overwrite every f[r] by exp(f[r] - top), which must not be above one."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        less = splat(builder, args[1], _N)
        _Row(context, builder, f, args[0]).change(lambda x: _exp(builder, builder.fsub(x, less)))
        return context.get_dummy_value()

    return (types.void(f, types.float64), codegen) if _is_row(f) else None


@intrinsic
def entropy_row(typingctx: Any, f: Any, tiny: Any) -> Any:
    """Overwrite every f[r] by x log x with x = [f[r]]_+; `tiny` is a positive normal number that stands for log 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        least = splat(builder, args[1], _N)

        def emit(x: Any) -> Any:
            x = _larger(builder, x, _all(0.0))
            return builder.fmul(x, _log(builder, _larger(builder, x, least)))

        _Row(context, builder, f, args[0]).change(emit)
        return context.get_dummy_value()

    return (types.void(f, types.float64), codegen) if _is_row(f) else None


@intrinsic
def largest_of(typingctx: Any, f: Any) -> Any:
    """Largest element; -inf of none."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _Row(context, builder, f, args[0]).folded(float("-inf"), lambda a, b: _larger(builder, a, b))

    return (types.float64(f), codegen) if _is_row(f) else None


@intrinsic
def total_of(typingctx: Any, f: Any) -> Any:
    """Sum of the elements."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _Row(context, builder, f, args[0]).folded(0.0, lambda a, b: builder.fadd(a, b))

    return (types.float64(f), codegen) if _is_row(f) else None


@intrinsic
def others_of(typingctx: Any, f: Any, own: Any) -> Any:
    """Sum of the elements but f[own]."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _Row(context, builder, f, args[0]).folded(0.0, lambda a, b: builder.fadd(a, b), args[1])

    return (types.float64(f, types.int64), codegen) if _is_row(f) else None


@intrinsic
def scale_row(typingctx: Any, f: Any, scale: Any, out: Any) -> Any:
    """Write scale f into `out`, which has the length of f and does not overlap it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        factor = splat(builder, args[1], _N)
        target = _Row(context, builder, out, args[2])
        target.fill(_Row(context, builder, f, args[0]), lambda x, _: builder.fmul(x, factor))
        return context.get_dummy_value()

    return (types.void(f, types.float64, out), codegen) if _is_row(f) and _is_row(out) else None


@intrinsic
def scale_others(typingctx: Any, f: Any, scale: Any, own: Any, value: Any, out: Any) -> Any:
    """As ``scale_row``, but write `value` at the place `own`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        factor, place, apart = (splat(builder, arg, _N) for arg in args[1:4])
        target = _Row(context, builder, out, args[4])

        def emit(x: Any, lanes: Any) -> Any:
            return builder.select(builder.icmp_signed("!=", lanes, place), builder.fmul(x, factor), apart)

        target.fill(_Row(context, builder, f, args[0]), emit)
        return context.get_dummy_value()

    known = _is_row(f) and _is_row(out)
    return (types.void(f, types.float64, types.int64, types.float64, out), codegen) if known else None


@intrinsic
def narrow_row(typingctx: Any, f: Any, least: Any, out: Any) -> Any:
    """Write f into `out`, float32 or float64 and no shorter than f; elements not above `least` become zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bound = splat(builder, args[1], _N)
        target = _Row(context, builder, out, args[2])

        def emit(x: Any, _: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", x, bound), x, _all(0.0))

        target.fill(_Row(context, builder, f, args[0]), emit, single=out.dtype == types.float32)
        return context.get_dummy_value()

    known = _is_row(f) and (_is_row(out) or _is_row(out, types.float32))
    return (types.void(f, types.float64, out), codegen) if known else None


@intrinsic
def add_row(typingctx: Any, f: Any, total: Any) -> Any:
    """Add f to `total`, which has its length and does not overlap it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, target = _Row(context, builder, f, args[0]), _Row(context, builder, total, args[1])
        with source.vectors() as (place, _):
            target.store(builder.fadd(target.load(place), source.load(place)), place)
        with source.remaining() as (place, _):
            added = builder.fadd(builder.load(target.at(place)), builder.load(source.at(place)))
            builder.store(added, target.at(place))
        return context.get_dummy_value()

    return (types.void(f, total), codegen) if _is_row(f) and _is_row(total) else None
