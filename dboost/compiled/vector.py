"""Sums of scaled rows of a table, held in vector registers: the inner loops of every pass over sparse data.

A table has one row per feature or per example and one column per output; the rows that a stored row or column names are
summed (``gather``), added to (``scatter``), or moved by a curvature (``push``). The loops are emitted as vector code:
from a plain loop over a few outputs the compiler makes scalar code, or vector code behind a check for overlap in every
row, both several times slower. Rows are padded to whole vectors (``padded``), at most 48 outputs stay in registers at a
time, and several sums run side by side where there are few outputs, because an addition takes four cycles while two can
start in each. The order of the additions depends on the range alone: a column has the same sums in any selection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

_QUAD = 4
# Quads of outputs whose sums stay in registers, and quads of a group where there are more than these.
_MOST = 12
_GROUP = 8
# Rows that are asked from memory before they are needed.
_AHEAD = 8
_LINE = 64
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
# Multiplications may be fused with additions.
_FUSED = ("contract",)


def width(k: int) -> int:
    """Columns of a table for k outputs: 1, or k rounded up to a multiple of 4."""
    return k if k == 1 else -(-k // _QUAD) * _QUAD


def padded(table: NDArray[Any], dtype: Any = None) -> NDArray[Any]:
    """The table with ``width`` columns, zeros beyond its own; itself if it has that shape, layout and dtype."""
    wanted = np.dtype(dtype or table.dtype)
    columns = width(table.shape[1])
    if table.shape[1] == columns and table.dtype == wanted and table.flags.c_contiguous:
        return table
    out = np.zeros((table.shape[0], columns), wanted)
    out[:, : table.shape[1]] = table
    return out


def _int(n: int) -> Any:
    return ir.Constant(_I64, n)


class _Table:
    """Rows of whole vectors in memory: a C-contiguous table of float32 or float64, or a single row."""

    def __init__(self, context: Any, builder: Any, ty: Any, value: Any) -> None:
        array = context.make_array(ty)(context, builder, value=value)
        self.builder = builder
        self.data = array.data
        self.single = ty.dtype == types.float32
        self.real = ir.FloatType() if self.single else ir.DoubleType()
        self.nbytes = 4 if self.single else 8
        self.length = builder.extract_value(array.shape, ty.ndim - 1)

    def vectors(self, quads: int) -> list[tuple[int, int]]:
        """Place and length of the vectors that cover so many quads of a row."""
        wide = 8 if self.single else 4
        places = [(c, wide) for c in range(0, _QUAD * quads - wide + 1, wide)]
        done = len(places) * wide
        return places if done == _QUAD * quads else [*places, (done, _QUAD)]

    def type(self, n: int) -> Any:
        return ir.VectorType(self.real, n)

    def row(self, i: Any, column: Any) -> Any:
        return self.builder.add(self.builder.mul(i, self.length), column)

    def _at(self, offset: Any, n: int) -> Any:
        return self.builder.bitcast(self.builder.gep(self.data, [offset]), self.type(n).as_pointer())

    def load(self, offset: Any, n: int) -> Any:
        return self.builder.load(self._at(offset, n), align=self.nbytes)

    def store(self, value: Any, offset: Any, n: int) -> None:
        self.builder.store(value, self._at(offset, n), align=self.nbytes)

    def prefetch(self, offset: Any, quads: int) -> None:
        """Ask for part of a row, to be read soon."""
        builder = self.builder
        pointer = _I8.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, _I32, _I32, _I32])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        start = builder.bitcast(builder.gep(self.data, [offset]), pointer)
        read, keep, data = (ir.Constant(_I32, n) for n in (0, 3, 1))
        for at in range(0, _QUAD * quads * self.nbytes, _LINE):
            builder.call(call, [builder.gep(start, [_int(at)]), read, keep, data])


def _reader(context: Any, builder: Any, ty: Any, value: Any) -> Callable[[Any], Any]:
    """p -> element p of a one-dimensional array; integers as int64."""
    array = context.make_array(ty)(context, builder, value=value)

    def read(p: Any) -> Any:
        x = builder.load(builder.gep(array.data, [p]))
        return builder.sext(x, _I64) if isinstance(x.type, ir.IntType) and x.type.width < 64 else x

    return read


def _cast(builder: Any, x: Any, real: Any) -> Any:
    if x.type == real:
        return x
    return builder.fpext(x, real) if isinstance(real, ir.DoubleType) else builder.fptrunc(x, real)


def _splat(builder: Any, x: Any, n: int) -> Any:
    ty = ir.VectorType(x.type, n)
    empty = ir.Constant(ty, ir.Undefined)
    one = builder.insert_element(empty, x, ir.Constant(_I32, 0))
    return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(_I32, n), [0] * n))


def _add_product(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return builder.fadd(builder.fmul(a, b, flags=_FUSED), c, flags=_FUSED)


def _sum_pairwise(builder: Any, terms: list[Any]) -> Any:
    while len(terms) > 1:
        terms = [builder.fadd(a, b) for a, b in zip(terms[::2], terms[1::2], strict=True)]
    return terms[0]


def _sum_lanes(builder: Any, v: Any) -> Any:
    """Sum of the elements of a vector, halves first."""
    n = v.type.count
    while n > 1:
        half = n // 2
        empty = ir.Constant(ir.VectorType(v.type.element, n), ir.Undefined)
        low, high = (ir.Constant(ir.VectorType(_I32, half), list(range(at, at + half))) for at in (0, half))
        v = builder.fadd(builder.shuffle_vector(v, empty, low), builder.shuffle_vector(v, empty, high))
        n = half
    return builder.extract_element(v, ir.Constant(_I32, 0))


def _each(builder: Any, start: Any, stop: Any, step: int = 1) -> Any:
    return cgutils.for_range_slice(builder, start, stop, _int(step), _I64)


def _groups(builder: Any, length: Any) -> tuple[Any, Any]:
    """Number of full groups of a row of `length`, and the quads that remain: 1 to the most that registers hold."""
    quads = builder.udiv(length, _int(_QUAD))
    beyond = builder.add(builder.sub(quads, _int(_MOST + 1)), _int(_GROUP))
    count = builder.select(builder.icmp_signed(">", quads, _int(_MOST)), builder.udiv(beyond, _int(_GROUP)), _int(0))
    return count, builder.sub(quads, builder.mul(count, _int(_GROUP)))


def _by_quads(builder: Any, quads: Any, emit: Callable[[int], None]) -> None:
    """Code for every number of quads that registers hold, and a jump to the one that is asked for."""
    end = builder.append_basic_block("done")
    switch = builder.switch(quads, end)
    for n in range(1, _MOST + 1):
        block = builder.append_basic_block(f"quads{n}")
        switch.add_case(_int(n), block)
        builder.position_at_end(block)
        emit(n)
        builder.branch(end)
    builder.position_at_end(end)


def _by_columns(builder: Any, length: Any, emit: Callable[[Any, int], None]) -> None:
    """Call emit(first column, quads) for the groups of columns that make up a row."""
    count, rest = _groups(builder, length)
    with _each(builder, _int(0), count) as (g, _):
        emit(builder.mul(g, _int(_QUAD * _GROUP)), _GROUP)
    first = builder.mul(count, _int(_QUAD * _GROUP))
    _by_quads(builder, rest, lambda quads: emit(first, quads))


@intrinsic
def _gather(typingctx: Any, index: Any, value: Any, start: Any, stop: Any, table: Any, out: Any) -> Any:
    signature = types.void(index, value, types.intp, types.intp, table, out)

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        rows = _reader(context, builder, index, args[0])
        values = _reader(context, builder, value, args[1])
        first, end = args[2], args[3]
        T, result = _Table(context, builder, table, args[4]), _Table(context, builder, out, args[5])
        last = builder.sub(end, _int(1))

        def emit(column: Any, quads: int) -> None:
            places = result.vectors(quads)
            lanes = 4 if len(places) <= 2 else 2 if len(places) <= 4 else 1
            sums = [[cgutils.alloca_once(builder, result.type(n)) for _, n in places] for _ in range(lanes)]
            for held in sums:
                for total, (_, n) in zip(held, places, strict=True):
                    builder.store(ir.Constant(result.type(n), None), total)

            def term(p: Any, lane: int) -> None:
                soon = builder.add(p, _int(_AHEAD))
                soon = builder.select(builder.icmp_signed("<", soon, last), soon, last)
                T.prefetch(T.row(rows(soon), column), quads)
                row, x = T.row(rows(p), column), _cast(builder, values(p), result.real)
                for (c, n), total in zip(places, sums[lane], strict=True):
                    v = T.load(builder.add(row, _int(c)), n)
                    if T.real != result.real:
                        v = builder.fpext(v, result.type(n))
                    builder.store(_add_product(builder, _splat(builder, x, n), v, builder.load(total)), total)

            whole = builder.sub(end, builder.srem(builder.sub(end, first), _int(lanes)))
            with _each(builder, first, whole, lanes) as (p, _):
                for lane in range(lanes):
                    term(builder.add(p, _int(lane)), lane)
            with _each(builder, whole, end) as (p, _):
                term(p, 0)
            for j, (c, n) in enumerate(places):
                at = builder.add(column, _int(c))
                total = _sum_pairwise(builder, [builder.load(lane[j]) for lane in sums])
                result.store(builder.fadd(result.load(at, n), total), at, n)

        _by_columns(builder, T.length, emit)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _scatter(typingctx: Any, index: Any, value: Any, start: Any, stop: Any, z: Any, table: Any) -> Any:
    signature = types.void(index, value, types.intp, types.intp, z, table)

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        rows = _reader(context, builder, index, args[0])
        values = _reader(context, builder, value, args[1])
        added, T = _Table(context, builder, z, args[4]), _Table(context, builder, table, args[5])

        def emit(column: Any, quads: int) -> None:
            places = T.vectors(quads)
            held = [added.load(builder.add(column, _int(c)), n) for c, n in places]
            with _each(builder, args[2], args[3]) as (p, _):
                row, x = T.row(rows(p), column), _cast(builder, values(p), T.real)
                for (c, n), term in zip(places, held, strict=True):
                    at = builder.add(row, _int(c))
                    T.store(_add_product(builder, _splat(builder, x, n), term, T.load(at, n)), at, n)

        _by_columns(builder, T.length, emit)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _push(
    typingctx: Any, index: Any, value: Any, start: Any, stop: Any, h: Any, rank_one: Any, delta: Any, table: Any
) -> Any:
    signature = types.void(index, value, types.intp, types.intp, h, rank_one, delta, table)

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        rows = _reader(context, builder, index, args[0])
        values = _reader(context, builder, value, args[1])
        tied = _reader(context, builder, rank_one, args[5])
        H, step = _Table(context, builder, h, args[4]), _Table(context, builder, delta, args[6])
        T = _Table(context, builder, table, args[7])
        first, end = args[2], args[3]

        def dot(row: Any, column: Any, quads: int) -> Any:
            """sum_r h_r delta_r over a group of columns."""
            total = ir.Constant(T.real, 0.0)
            by_length: dict[int, Any] = {}
            for c, n in T.vectors(quads):
                a = H.load(builder.add(row, _int(c)), n)
                b = step.load(builder.add(column, _int(c)), n)
                by_length[n] = _add_product(builder, a, b, by_length[n]) if n in by_length else builder.fmul(a, b)
            for v in by_length.values():
                total = builder.fadd(total, _sum_lanes(builder, v))
            return total

        def move(row: Any, column: Any, quads: int, x: Any, t: Any) -> None:
            for c, n in T.vectors(quads):
                at = builder.add(row, _int(c))
                b = builder.fsub(step.load(builder.add(column, _int(c)), n), _splat(builder, t, n))
                xh = builder.fmul(_splat(builder, x, n), H.load(at, n))
                T.store(_add_product(builder, xh, b, T.load(at, n)), at, n)

        def ahead(p: Any) -> Any:
            soon = builder.add(p, _int(_AHEAD))
            return builder.select(builder.icmp_signed("<", soon, last), soon, last)

        last = builder.sub(end, _int(1))
        count, rest = _groups(builder, T.length)
        after = builder.mul(count, _int(_QUAD * _GROUP))

        def emit(quads: int) -> None:
            with _each(builder, first, end) as (p, _):
                soon = T.row(rows(ahead(p)), after)
                H.prefetch(soon, quads)
                T.prefetch(soon, quads)
                i = rows(p)
                x, row = _cast(builder, values(p), T.real), T.row(i, _int(0))
                total = cgutils.alloca_once(builder, T.real)
                builder.store(dot(builder.add(row, after), after, quads), total)
                with _each(builder, _int(0), count) as (g, _):
                    column = builder.mul(g, _int(_QUAD * _GROUP))
                    builder.store(
                        builder.fadd(builder.load(total), dot(builder.add(row, column), column, _GROUP)), total
                    )
                t = builder.fmul(_cast(builder, tied(i), T.real), builder.load(total))
                move(builder.add(row, after), after, quads, x, t)
                with _each(builder, _int(0), count) as (g, _):
                    column = builder.mul(g, _int(_QUAD * _GROUP))
                    move(builder.add(row, column), column, _GROUP, x, t)

        _by_quads(builder, rest, emit)
        return context.get_dummy_value()

    return signature, codegen


@njit(nogil=True, cache=True)
def gather(index, value, start, stop, table, out):
    """out += sum_p value[p] table[index[p]] for p in start..stop - 1; `out` has the width of the table.

    Both are of the same type, or a table of float32 is summed in float64.
    """
    if table.shape[1] > 1:
        _gather(index, value, start, stop, table, out)
        return
    real = out.dtype.type
    a = b = c = d = real(0)
    whole = stop - (stop - start) % 4
    for p in range(start, whole, 4):
        a += real(value[p]) * table[index[p], 0]
        b += real(value[p + 1]) * table[index[p + 1], 0]
        c += real(value[p + 2]) * table[index[p + 2], 0]
        d += real(value[p + 3]) * table[index[p + 3], 0]
    for p in range(whole, stop):
        a += real(value[p]) * table[index[p], 0]
    out[0] += (a + b) + (c + d)


@njit(nogil=True, cache=True)
def scatter(index, value, start, stop, z, table):
    """table[index[p]] += value[p] z for p in start..stop - 1; `z` has the width and dtype of the table."""
    if table.shape[1] > 1:
        _scatter(index, value, start, stop, z, table)
        return
    u = z[0]
    for p in range(start, stop):
        table[index[p], 0] += value[p] * u


@njit(nogil=True, cache=True)
def push(index, value, start, stop, h, rank_one, delta, table):
    """table[i] += value[p] H_i delta with i = index[p] and H_i = diag(h_i) - rank_one_i h_i h_i', p in start..stop - 1.

    `h`, `delta` and the table have the same width and dtype.
    """
    if table.shape[1] > 1:
        _push(index, value, start, stop, h, rank_one, delta, table)
        return
    u = delta[0]
    for p in range(start, stop):
        i = index[p]
        table[i, 0] += table.dtype.type(value[p]) * (h[i, 0] * (u - table.dtype.type(rank_one[i]) * h[i, 0] * u))
