"""Functions of one row of margins, eight outputs at a time: largest, total, exponentials, entropy.

Rows are short: ten or twenty classes are many problems. The compiler turns a loop over a row into one over sixteen
elements and leaves the rest, which may be all there is, to scalar code that is several times slower. Here the vectors
are emitted; a row that is no whole number of them ends with four elements, a pair, a single one, or some of these. A
processor whose registers hold four numbers goes over the two halves of a vector in turn, which hides how long one
takes.

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

from dboost.compiled.vectors.emit import splat, sum_lanes
from dboost.compiled.vectors.lane_math import absolute, all_of, exponential, larger, log1p, logarithm, taken

_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_REAL = ir.DoubleType()
_WIDE = 8
_QUAD = 4
_PAIR = 2


def _int(n: int) -> Any:
    return ir.Constant(_I64, n)


def _vector(n: int) -> Any:
    return ir.VectorType(_REAL, n)


class _Row:
    """A contiguous float64 row in memory."""

    def __init__(self, context: Any, builder: Any, ty: Any, value: Any) -> None:
        array = context.make_array(ty)(context, builder, value=value)
        self.builder, self.data = builder, array.data
        self.length = builder.extract_value(array.shape, 0)
        self.rest = builder.and_(self.length, _int(_WIDE - 1))
        self.whole = builder.sub(self.length, self.rest)
        # where the quads end, with the one beyond the whole vectors
        self.quads = builder.and_(self.length, _int(-_QUAD))

    def at(self, place: Any) -> Any:
        return self.builder.gep(self.data, [place])

    def load(self, place: Any, n: int = _WIDE) -> Any:
        return self.builder.load(self.builder.bitcast(self.at(place), _vector(n).as_pointer()), align=8)

    def store(self, value: Any, place: Any) -> None:
        self.builder.store(value, self.builder.bitcast(self.at(place), value.type.as_pointer()), align=8)

    def vectors(self) -> Any:
        """Loop over the first elements of whole vectors."""
        return cgutils.for_range_slice(self.builder, _int(0), self.whole, _int(_WIDE), _I64)

    def has_quad(self) -> Any:
        """Context of code for the four elements beyond the whole vectors, which begin there, where there are."""
        return self.builder.if_then(self.builder.icmp_signed(">", self.quads, self.whole))

    def remaining(self) -> Any:
        """Loop over the elements beyond the vectors and the quad."""
        return cgutils.for_range_slice(self.builder, self.quads, self.length, _int(1), _I64)

    def has_pair(self) -> Any:
        """Context of code for the two elements beyond these, where there are."""
        pair = self.builder.and_(self.length, _int(2))
        return self.builder.if_then(self.builder.icmp_signed("!=", pair, _int(0)))

    def has_last(self) -> Any:
        """Context of code for the last element, where it is in no vector, no quad and no pair."""
        return self.builder.if_then(self.builder.trunc(self.length, ir.IntType(1)))

    def load_pair(self, place: Any) -> Any:
        """Two elements, as a vector that holds each of them twice."""
        return taken(self.builder, self.load(place, 2), 0, 1, 0, 1)

    def lanes(self, place: Any, n: int) -> Any:
        """The places of the elements of a vector."""
        return self.builder.add(splat(self.builder, place, n), ir.Constant(ir.VectorType(_I64, n), list(range(n))))

    def change(self, emit: Callable[[Any], Any]) -> None:
        """Replace every element x by the same function of it, given for vectors."""
        self.fill(self, lambda x, _: emit(x))

    def fill(self, source: _Row, emit: Callable[[Any, Any], Any], single: bool = False) -> None:
        """Write a function of every element of another row, or this, and its place; as float32 where `single`."""
        builder, real = self.builder, ir.FloatType() if single else _REAL

        def put(x: Any, place: Any, n: int) -> None:
            value = emit(x, source.lanes(place, x.type.count))
            kind = ir.VectorType(real, n)
            if n < value.type.count:
                value = taken(builder, value, *range(n))
            value = builder.fptrunc(value, kind) if single else value
            builder.store(value, builder.bitcast(self.at(place), kind.as_pointer()), align=4 if single else 8)

        with source.vectors() as (place, _):
            put(source.load(place), place, _WIDE)
        with source.has_quad():
            put(source.load(source.whole, _QUAD), source.whole, _QUAD)
        with source.has_pair():
            put(source.load_pair(source.quads), source.quads, 2)
        with source.has_last():
            place = builder.sub(source.length, _int(1))
            put(splat(builder, builder.load(source.at(place)), _QUAD), place, 1)

    def folded(self, start: float, join: Callable[[Any, Any], Any], but: Any = None) -> Any:
        """All elements joined: lane by lane, then the halves of these, then what is beyond the vectors in order.

        In place of the element at `but` there is `start`.
        """
        builder = self.builder

        def given(place: Any, n: int) -> Any:
            x = self.load(place, n)
            if but is None:
                return x
            others = builder.icmp_signed("!=", self.lanes(place, n), splat(builder, but, n))
            return builder.select(others, x, all_of(start, n))

        held = cgutils.alloca_once_value(builder, all_of(start, _WIDE))
        with self.vectors() as (place, _):
            builder.store(join(builder.load(held), given(place, _WIDE)), held)
        lanes = builder.load(held)
        quad = cgutils.alloca_once_value(builder, all_of(start, _QUAD))
        low, high = (taken(builder, lanes, *range(at, at + _QUAD)) for at in (0, _QUAD))
        builder.store(join(low, high), quad)
        with self.has_quad():
            builder.store(join(builder.load(quad), given(self.whole, _QUAD)), quad)
        lanes = builder.load(quad)
        a, b, c, d = (builder.extract_element(lanes, ir.Constant(_I32, j)) for j in range(_QUAD))
        total = cgutils.alloca_once_value(builder, join(join(a, b), join(c, d)))
        with self.remaining() as (place, _):
            x = builder.load(self.at(place))
            if but is not None:
                x = builder.select(builder.icmp_signed("!=", place, but), x, ir.Constant(_REAL, start))
            builder.store(join(builder.load(total), x), total)
        return builder.load(total)


def is_row(f: Any, dtype: Any = types.float64) -> bool:
    """Whether the type is that of a contiguous array of one dimension."""
    return isinstance(f, types.Array) and f.ndim == 1 and f.dtype == dtype and f.layout == "C"


@intrinsic
def exp_row(typingctx: Any, f: Any, top: Any) -> Any:
    """Overwrite every f[r] by exp(f[r] - top), which must not be above one."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def emit(x: Any) -> Any:
            return exponential(builder, builder.fsub(x, splat(builder, args[1], x.type.count)))

        _Row(context, builder, f, args[0]).change(emit)
        return context.get_dummy_value()

    return (types.void(f, types.float64), codegen) if is_row(f) else None


@intrinsic
def entropy_row(typingctx: Any, f: Any, tiny: Any) -> Any:
    """Overwrite every f[r] by x log x with x = [f[r]]_+; `tiny` is a positive normal number that stands for log 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def emit(x: Any) -> Any:
            n = x.type.count
            x = larger(builder, x, all_of(0.0, n))
            return builder.fmul(x, logarithm(builder, larger(builder, x, splat(builder, args[1], n))))

        _Row(context, builder, f, args[0]).change(emit)
        return context.get_dummy_value()

    return (types.void(f, types.float64), codegen) if is_row(f) else None


@intrinsic
def log1p_of(typingctx: Any, z: Any) -> Any:
    """log(1 + z) for z >= 0.

    In a vector, whose choices are no branches: which of them a number takes is not foreseen, and a wrong guess takes
    longer than the logarithm.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.extract_element(log1p(builder, splat(builder, args[0], _PAIR)), ir.Constant(_I32, 0))

    return types.float64(types.float64), codegen


@intrinsic
def log1p_total(typingctx: Any, z: Any, weight: Any) -> Any:
    """sum_r weight[r] log(1 + z[r]), z >= 0, for a whole number of vectors of eight."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, factor = _Row(context, builder, z, args[0]), _Row(context, builder, weight, args[1])
        held = cgutils.alloca_once_value(builder, all_of(0.0, _WIDE))
        with source.vectors() as (place, _):
            term = builder.fmul(factor.load(place), log1p(builder, source.load(place)))
            builder.store(builder.fadd(builder.load(held), term), held)
        return sum_lanes(builder, builder.load(held))

    return (types.float64(z, weight), codegen) if is_row(z) and is_row(weight) else None


@intrinsic
def largest_of(typingctx: Any, f: Any) -> Any:
    """Largest element; -inf of none."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _Row(context, builder, f, args[0]).folded(float("-inf"), lambda a, b: larger(builder, a, b))

    return (types.float64(f), codegen) if is_row(f) else None


@intrinsic
def total_of(typingctx: Any, f: Any) -> Any:
    """Sum of the elements."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _Row(context, builder, f, args[0]).folded(0.0, lambda a, b: builder.fadd(a, b))

    return (types.float64(f), codegen) if is_row(f) else None


@intrinsic
def longest_of(typingctx: Any, f: Any) -> Any:
    """Largest absolute value; 0 of none, nan where there is one."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def join(a: Any, b: Any) -> Any:
            a, b = absolute(builder, a), absolute(builder, b)
            first = builder.or_(builder.fcmp_ordered(">", a, b), builder.fcmp_unordered("uno", a, a))
            return builder.select(first, a, b)

        return _Row(context, builder, f, args[0]).folded(0.0, join)

    return (types.float64(f), codegen) if is_row(f) else None


@intrinsic
def sizes_of(typingctx: Any, f: Any) -> Any:
    """Sum of the absolute values."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def join(a: Any, b: Any) -> Any:
            return builder.fadd(a, absolute(builder, b))

        return _Row(context, builder, f, args[0]).folded(0.0, join)

    return (types.float64(f), codegen) if is_row(f) else None


@intrinsic
def others_of(typingctx: Any, f: Any, own: Any) -> Any:
    """Sum of the elements but f[own]."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _Row(context, builder, f, args[0]).folded(0.0, lambda a, b: builder.fadd(a, b), args[1])

    return (types.float64(f, types.int64), codegen) if is_row(f) else None


@intrinsic
def scale_row(typingctx: Any, f: Any, scale: Any, out: Any) -> Any:
    """Write scale f into `out`, which has the length of f and does not overlap it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = _Row(context, builder, out, args[2])

        def emit(x: Any, _: Any) -> Any:
            return builder.fmul(x, splat(builder, args[1], x.type.count))

        target.fill(_Row(context, builder, f, args[0]), emit)
        return context.get_dummy_value()

    return (types.void(f, types.float64, out), codegen) if is_row(f) and is_row(out) else None


@intrinsic
def scale_others(typingctx: Any, f: Any, scale: Any, own: Any, value: Any, out: Any) -> Any:
    """As ``scale_row``, but write `value` at the place `own`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = _Row(context, builder, out, args[4])

        def emit(x: Any, lanes: Any) -> Any:
            factor, place, apart = (splat(builder, arg, x.type.count) for arg in args[1:4])
            return builder.select(builder.icmp_signed("!=", lanes, place), builder.fmul(x, factor), apart)

        target.fill(_Row(context, builder, f, args[0]), emit)
        return context.get_dummy_value()

    known = is_row(f) and is_row(out)
    return (types.void(f, types.float64, types.int64, types.float64, out), codegen) if known else None


@intrinsic
def narrow_row(typingctx: Any, f: Any, least: Any, out: Any) -> Any:
    """Write f into `out`, float32 or float64 and no shorter than f; elements not above `least` become zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = _Row(context, builder, out, args[2])

        def emit(x: Any, _: Any) -> Any:
            n = x.type.count
            return builder.select(builder.fcmp_ordered(">", x, splat(builder, args[1], n)), x, all_of(0.0, n))

        target.fill(_Row(context, builder, f, args[0]), emit, single=out.dtype == types.float32)
        return context.get_dummy_value()

    known = is_row(f) and (is_row(out) or is_row(out, types.float32))
    return (types.void(f, types.float64, out), codegen) if known else None


@intrinsic
def add_row(typingctx: Any, f: Any, total: Any) -> Any:
    """Add f to `total`, which has its length and does not overlap it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, target = _Row(context, builder, f, args[0]), _Row(context, builder, total, args[1])
        with source.vectors() as (place, _):
            target.store(builder.fadd(target.load(place), source.load(place)), place)
        with source.has_quad():
            place = source.whole
            target.store(builder.fadd(target.load(place, _QUAD), source.load(place, _QUAD)), place)
        with source.remaining() as (place, _):
            added = builder.fadd(builder.load(target.at(place)), builder.load(source.at(place)))
            builder.store(added, target.at(place))
        return context.get_dummy_value()

    return (types.void(f, total), codegen) if is_row(f) and is_row(total) else None
