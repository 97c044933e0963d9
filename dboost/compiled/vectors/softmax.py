"""Softmax of one row of margins, all of it in registers: exponentials, residuals, curvature.

Passes spend most of their arithmetic here. A row is short, so what takes time is not the work but the waiting: one
function after the other, each through memory, took three times as long as the exponentials. Here the code of every
number of quads that registers hold is emitted straight, as in ``emit.by_quads``: the row is read once, written once,
and what follows from it is under way while the next one begins. Longer rows go through ``lanes``, one function after
the other.

The last vector of a row may hold places beyond it: these are neither read nor written, and count as scores of minus
infinity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dboost.compiled.vectors.emit import MOST, QUAD, by_quads, integer, splat, sum_lanes
from dboost.compiled.vectors.lane_math import all_of, exponential, larger, taken
from dboost.compiled.vectors.lanes import is_row

LONGEST = QUAD * MOST
"""Elements of the longest row."""

_BIT, _I32, _I64, _REAL = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.DoubleType()
_INFINITY = float("inf")
_FOUND = types.Tuple((types.float64, types.float64, types.float64, types.float64))


class _Vectors:
    """A row as the vectors that hold it, the last one perhaps in part.

    `data`: pointer to its first element. `length`: number of its elements: more than `QUAD` (quads - 1) and at most
    `QUAD` quads.
    """

    def __init__(self, builder: Any, data: Any, length: Any, quads: int) -> None:
        self.builder, self.data = builder, data
        self.places: list[tuple[int, int]] = []
        at = 0
        while at < QUAD * quads:
            n = min(2 * QUAD, QUAD * quads - at)
            self.places.append((at, n))
            at += n
        first, n = self.places[-1]
        beyond = builder.sub(length, integer(first))
        self.inside = builder.icmp_signed("<", self.numbers(0, n), splat(builder, beyond, n))

    def numbers(self, first: int, n: int) -> Any:
        """Places of the elements of a vector."""
        return ir.Constant(ir.VectorType(_I64, n), list(range(first, first + n)))

    def pointer(self, data: Any, first: int, kind: Any) -> Any:
        """Where the vector of a row begins that has the element `first`."""
        return self.builder.bitcast(self.builder.gep(data, [integer(first)]), kind.as_pointer())

    def read(self) -> list[Any]:
        """The vectors, minus infinity beyond the row."""
        builder, found = self.builder, []
        for first, n in self.places[:-1]:
            kind = ir.VectorType(_REAL, n)
            found.append(builder.load(self.pointer(self.data, first, kind), align=8))
        first, n = self.places[-1]
        kind = ir.VectorType(_REAL, n)
        arguments = [kind.as_pointer(), _I32, ir.VectorType(_BIT, n), kind]
        load = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, arguments), f"llvm.masked.load.v{n}f64.p0"
        )
        where = self.pointer(self.data, first, kind)
        found.append(builder.call(load, [where, ir.Constant(_I32, 8), self.inside, all_of(-_INFINITY, n)]))
        return found

    def write(self, data: Any, vectors: list[Any]) -> None:
        """Write the vectors into another row, and nothing beyond it."""
        builder = self.builder
        for (first, _), x in zip(self.places[:-1], vectors, strict=False):
            builder.store(x, self.pointer(data, first, x.type), align=8)
        (first, n), x = self.places[-1], vectors[-1]
        arguments = [x.type, x.type.as_pointer(), _I32, ir.VectorType(_BIT, n)]
        store = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), arguments), f"llvm.masked.store.v{n}f64.p0"
        )
        builder.call(store, [x, self.pointer(data, first, x.type), ir.Constant(_I32, 8), self.inside])

    def only_inside(self, vectors: list[Any]) -> list[Any]:
        """The vectors with zeros beyond the row."""
        last = vectors[-1]
        return [*vectors[:-1], self.builder.select(self.inside, last, all_of(0.0, last.type.count))]

    def apart(self, place: Any) -> list[Any]:
        """Which elements are the one at a place."""
        return [
            self.builder.icmp_signed("==", self.numbers(first, n), splat(self.builder, place, n))
            for first, n in self.places
        ]

    def chosen(self, where: list[Any], yes: list[Any], no: list[Any]) -> list[Any]:
        """The elements of `yes` where it is so, else those of `no`."""
        return [self.builder.select(*three) for three in zip(where, yes, no, strict=True)]

    def zeros(self) -> list[Any]:
        """As many zeros."""
        return [all_of(0.0, n) for _, n in self.places]

    def joined(self, vectors: list[Any], join: Callable[[Any, Any], Any]) -> Any:
        """One vector of a quad or two: neighbours joined, then the halves of whole vectors with a quad beyond them."""
        whole = [x for x in vectors if x.type.count == 2 * QUAD]
        rest = [x for x in vectors if x.type.count == QUAD]
        while len(whole) > 1:
            odd = whole[len(whole) & ~1 :]
            whole = [join(a, b) for a, b in zip(whole[::2], whole[1::2], strict=False)] + odd
        if not rest or not whole:
            return (whole or rest)[0]
        low, high = (taken(self.builder, whole[0], *range(at, at + QUAD)) for at in (0, QUAD))
        return join(join(low, high), rest[0])

    def largest(self, vectors: list[Any]) -> Any:
        """The largest element."""
        builder = self.builder
        x = self.joined(vectors, lambda a, b: larger(builder, a, b))
        n = x.type.count
        while n > 1:
            n //= 2
            low, high = (taken(builder, x, *range(at, at + n)) for at in (0, n))
            x = larger(builder, low, high)
        return builder.extract_element(x, ir.Constant(_I32, 0))

    def total(self, vectors: list[Any]) -> Any:
        """The sum of all elements."""
        return sum_lanes(self.builder, self.joined(vectors, self.builder.fadd))


class _Softmax:
    """What the functions share: exp(f - max), and which element is the label's."""

    def __init__(self, vectors: _Vectors, builder: Any) -> None:
        given = vectors.read()
        self.vectors = vectors
        self.top = vectors.largest(given)
        less = [builder.fsub(x, splat(builder, self.top, x.type.count)) for x in given]
        # the least that `exponential` gives is no zero
        self.exps = vectors.only_inside([exponential(builder, x) for x in less])

    def parts(self, place: Any) -> tuple[list[Any], Any, Any]:
        """Which element is at a place; it, and the sum of the others."""
        where, zeros = self.vectors.apart(place), self.vectors.zeros()
        own = self.vectors.total(self.vectors.chosen(where, self.exps, zeros))
        return where, own, self.vectors.total(self.vectors.chosen(where, zeros, self.exps))


def _row(context: Any, builder: Any, ty: Any, value: Any) -> tuple[Any, Any]:
    array = context.make_array(ty)(context, builder, value=value)
    return array.data, builder.extract_value(array.shape, 0)


def _each_length(builder: Any, data: Any, length: Any, emit: Callable[[_Vectors], None]) -> None:
    """Code for rows of every length."""
    quads = builder.udiv(builder.add(length, integer(QUAD - 1)), integer(QUAD))
    by_quads(builder, quads, lambda n: emit(_Vectors(builder, data, length, n)) if n else None)


@intrinsic
def softmax_parts(typingctx: Any, f: Any, own: Any) -> Any:
    """(e_own, sum of the other e_r, max, f_own) with e_r = exp(f_r - max); f has 1 to `LONGEST` elements."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, length = _row(context, builder, f, args[0])
        held = [cgutils.alloca_once(builder, _REAL) for _ in range(3)]

        def emit(vectors: _Vectors) -> None:
            found = _Softmax(vectors, builder)
            _, mine, others = found.parts(args[1])
            for place, value in zip(held, (mine, others, found.top), strict=True):
                builder.store(value, place)

        _each_length(builder, data, length, emit)
        values = [*(builder.load(place) for place in held), builder.load(builder.gep(data, [args[1]]))]
        return context.make_tuple(builder, signature.return_type, values)

    return (_FOUND(f, types.int64), codegen) if is_row(f) else None


@intrinsic
def softmax_residual(typingctx: Any, f: Any, own: Any, weight: Any, out: Any) -> Any:
    """Write weight (1[r = own] - q_r) into `out`, with q the softmax of f; returns what ``softmax_parts`` does.

    1 - q of the label is the sum of the others. `out` has the length of f and does not overlap it.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, length = _row(context, builder, f, args[0])
        target, _ = _row(context, builder, out, args[3])
        mine_before = builder.load(builder.gep(data, [args[1]]))
        held = [cgutils.alloca_once(builder, _REAL) for _ in range(3)]

        def emit(vectors: _Vectors) -> None:
            found = _Softmax(vectors, builder)
            where, mine, others = found.parts(args[1])
            t = builder.fdiv(args[2], builder.fadd(mine, others))
            minus, apart = builder.fneg(t), builder.fmul(t, others)
            scaled = [builder.fmul(x, splat(builder, minus, x.type.count)) for x in found.exps]
            alone = [splat(builder, apart, n) for _, n in vectors.places]
            vectors.write(target, vectors.chosen(where, alone, scaled))
            for place, value in zip(held, (mine, others, found.top), strict=True):
                builder.store(value, place)

        _each_length(builder, data, length, emit)
        values = [*(builder.load(place) for place in held), mine_before]
        return context.make_tuple(builder, signature.return_type, values)

    known = is_row(f) and is_row(out)
    return (_FOUND(f, types.int64, types.float64, out), codegen) if known else None


@intrinsic
def softmax_scaled(typingctx: Any, f: Any, weight: Any, out: Any) -> Any:
    """Write weight q_r into `out`, with q the softmax of f, of 1 to `LONGEST` elements; `out` does not overlap it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, length = _row(context, builder, f, args[0])
        target, _ = _row(context, builder, out, args[2])

        def emit(vectors: _Vectors) -> None:
            found = _Softmax(vectors, builder)
            t = builder.fdiv(args[1], vectors.total(found.exps))
            vectors.write(target, [builder.fmul(x, splat(builder, t, x.type.count)) for x in found.exps])

        _each_length(builder, data, length, emit)
        return context.get_dummy_value()

    known = is_row(f) and is_row(out)
    return (types.void(f, types.float64, out), codegen) if known else None
