"""Sums of scaled rows of a table, held in vector registers: the inner loops of every pass over sparse data.

A table has one row per feature or per example and one column per output; the rows that a stored row or column names are
summed (``gather``), added to (``scatter``), or moved by a curvature (``push``). Rows are padded to whole vectors
(``padded``), at most 48 outputs stay in registers at a time, and several sums run side by side where there are few
outputs, because an addition takes four cycles while two can start in each. The order of the additions depends on the
range alone: a column has the same sums in any selection.

All are emitted into the loops that use them: on text, whose rows and columns hold a value or two of the features that
count, a compiled function, which counts the references to its arrays, took ten times as long as the sum. What one of
them writes the next one reads in the same vectors, as in ``lanes``; numbers written one by one would hold it up until
they have reached the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from dboost.compiled.vectors.emit import (
    GROUP,
    QUAD,
    Table,
    add_product,
    by_columns,
    by_quads,
    cast,
    each,
    groups,
    integer,
    reader,
    splat,
    sum_lanes,
    sum_pairwise,
)

# Rows that are asked from memory before they are needed.
_AHEAD = 8


def width(k: int) -> int:
    """Columns of a table for k outputs: 1, or k rounded up to a multiple of 4."""
    return k if k == 1 else -(-k // QUAD) * QUAD


def padded(table: NDArray[Any], dtype: Any = None) -> NDArray[Any]:
    """The table with ``width`` columns, zeros beyond its own; itself if it has that shape, layout and dtype."""
    wanted = np.dtype(dtype or table.dtype)
    columns = width(table.shape[1])
    if table.shape[1] == columns and table.dtype == wanted and table.flags.c_contiguous:
        return table
    out = np.zeros((table.shape[0], columns), wanted)
    out[:, : table.shape[1]] = table
    return out


@intrinsic
def gather(typingctx: Any, index: Any, value: Any, start: Any, stop: Any, table: Any, base: Any, out: Any) -> Any:
    """out = base + sum_p value[p] table[index[p]] for p in start..stop - 1; all of the width of the table.

    All are of the same type, or a table of float32 is summed in float64.
    """
    signature = types.void(index, value, types.intp, types.intp, table, base, out)

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        rows = reader(context, builder, index, args[0])
        values = reader(context, builder, value, args[1])
        first, end = args[2], args[3]
        T, result = Table(context, builder, table, args[4]), Table(context, builder, out, args[6])
        begin = Table(context, builder, base, args[5])
        last = builder.sub(end, integer(1))

        def emit(column: Any, quads: int) -> None:
            places = result.vectors(quads)
            lanes = 4 if result.registers(quads) <= 2 else 2 if result.registers(quads) <= 4 else 1
            sums = [[cgutils.alloca_once(builder, result.type(n)) for _, n in places] for _ in range(lanes)]
            for held in sums:
                for total, (_, n) in zip(held, places, strict=True):
                    builder.store(ir.Constant(result.type(n), None), total)

            def term(p: Any, lane: int) -> None:
                soon = builder.add(p, integer(_AHEAD))
                soon = builder.select(builder.icmp_signed("<", soon, last), soon, last)
                if quads:
                    T.prefetch(T.row(rows(soon), column), quads)
                row, x = T.row(rows(p), column), cast(builder, values(p), result.real)
                for (c, n), total in zip(places, sums[lane], strict=True):
                    v = T.load(builder.add(row, integer(c)), n)
                    if T.real != result.real:
                        v = builder.fpext(v, result.type(n))
                    builder.store(add_product(builder, splat(builder, x, n), v, builder.load(total)), total)

            whole = builder.sub(end, builder.srem(builder.sub(end, first), integer(lanes)))
            with each(builder, first, whole, lanes) as (p, _):
                for lane in range(lanes):
                    term(builder.add(p, integer(lane)), lane)
            with each(builder, whole, end) as (p, _):
                term(p, 0)
            for j, (c, n) in enumerate(places):
                at = builder.add(column, integer(c))
                total = sum_pairwise(builder, [builder.load(lane[j]) for lane in sums])
                result.store(builder.fadd(begin.load(at, n), total), at, n)

        by_columns(builder, T.length, emit)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def scatter(typingctx: Any, index: Any, value: Any, start: Any, stop: Any, z: Any, table: Any, shift: Any) -> Any:
    """table[shift + index[p]] += value[p] z for p in start..stop - 1; `z` has the width and dtype of the table."""
    signature = types.void(index, value, types.intp, types.intp, z, table, types.intp)

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        rows = reader(context, builder, index, args[0])
        values = reader(context, builder, value, args[1])
        added, T = Table(context, builder, z, args[4]), Table(context, builder, table, args[5])

        def emit(column: Any, quads: int) -> None:
            places = T.vectors(quads)
            held = [added.load(builder.add(column, integer(c)), n) for c, n in places]
            with each(builder, args[2], args[3]) as (p, _):
                row, x = T.row(builder.add(rows(p), args[6]), column), cast(builder, values(p), T.real)
                for (c, n), term in zip(places, held, strict=True):
                    at = builder.add(row, integer(c))
                    T.store(add_product(builder, splat(builder, x, n), term, T.load(at, n)), at, n)

        by_columns(builder, T.length, emit)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add(typingctx: Any, source: Any, i: Any, table: Any, place: Any) -> Any:
    """table[place] += source[i], of one width and dtype."""
    signature = types.void(source, types.intp, table, types.intp)

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        given, T = Table(context, builder, source, args[0]), Table(context, builder, table, args[2])

        def emit(column: Any, quads: int) -> None:
            row, target = given.row(args[1], column), T.row(args[3], column)
            for c, n in T.vectors(quads):
                at = builder.add(target, integer(c))
                T.store(builder.fadd(T.load(at, n), given.load(builder.add(row, integer(c)), n)), at, n)

        by_columns(builder, T.length, emit)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def scale(typingctx: Any, x: Any, row: Any, out: Any) -> Any:
    """out = x row, of one width and dtype."""
    signature = types.void(types.float64, row, out)

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        given, result = Table(context, builder, row, args[1]), Table(context, builder, out, args[2])
        factor = cast(builder, args[0], result.real)

        def emit(column: Any, quads: int) -> None:
            for c, n in result.vectors(quads):
                at = builder.add(column, integer(c))
                result.store(builder.fmul(splat(builder, factor, n), given.load(at, n)), at, n)

        by_columns(builder, result.length, emit)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def bend(typingctx: Any, h: Any, i: Any, tied: Any, z: Any, total: Any) -> Any:
    """z = H_i z with H_i = diag(h_i) - tied h_i h_i', which is also added to `total`.

    `h` and `z` have the same width and dtype, `total` has the width and is float64.
    """
    signature = types.void(h, types.intp, types.float64, z, total)

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        H, moved = Table(context, builder, h, args[0]), Table(context, builder, z, args[3])
        sums = Table(context, builder, total, args[4])
        row = H.row(args[1], integer(0))
        dot = cgutils.alloca_once_value(builder, ir.Constant(moved.real, 0.0))

        def diagonal(column: Any, quads: int) -> None:
            by_length: dict[int, Any] = {}
            for c, n in moved.vectors(quads):
                at = builder.add(column, integer(c))
                v = builder.fmul(moved.load(at, n), H.load(builder.add(row, at), n))
                moved.store(v, at, n)
                by_length[n] = builder.fadd(by_length[n], v) if n in by_length else v
            for v in by_length.values():
                builder.store(builder.fadd(builder.load(dot), sum_lanes(builder, v)), dot)

        def rank_one(column: Any, quads: int) -> None:
            for c, n in moved.vectors(quads):
                at = builder.add(column, integer(c))
                taken = builder.fmul(splat(builder, share, n), H.load(builder.add(row, at), n))
                v = builder.fsub(moved.load(at, n), taken)
                moved.store(v, at, n)
                wide = builder.fpext(v, sums.type(n)) if moved.real != sums.real else v
                sums.store(builder.fadd(sums.load(at, n), wide), at, n)

        by_columns(builder, moved.length, diagonal)
        share = builder.fmul(cast(builder, args[2], moved.real), builder.load(dot))
        by_columns(builder, moved.length, rank_one)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def push(
    typingctx: Any, index: Any, value: Any, start: Any, stop: Any, h: Any, rank_one: Any, delta: Any, table: Any
) -> Any:
    """table[i] += value[p] H_i delta with i = index[p] and H_i = diag(h_i) - rank_one_i h_i h_i', p in start..stop - 1.

    `h`, `delta` and the table have the same width and dtype.
    """
    signature = types.void(index, value, types.intp, types.intp, h, rank_one, delta, table)

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        rows = reader(context, builder, index, args[0])
        values = reader(context, builder, value, args[1])
        tied = reader(context, builder, rank_one, args[5])
        H, step = Table(context, builder, h, args[4]), Table(context, builder, delta, args[6])
        T = Table(context, builder, table, args[7])
        first, end = args[2], args[3]

        def dot(row: Any, column: Any, quads: int) -> Any:
            """sum_r h_r delta_r over a group of columns."""
            total = ir.Constant(T.real, 0.0)
            by_length: dict[int, Any] = {}
            for c, n in T.vectors(quads):
                a = H.load(builder.add(row, integer(c)), n)
                b = step.load(builder.add(column, integer(c)), n)
                by_length[n] = add_product(builder, a, b, by_length[n]) if n in by_length else builder.fmul(a, b)
            for v in by_length.values():
                total = builder.fadd(total, sum_lanes(builder, v))
            return total

        def move(row: Any, column: Any, quads: int, x: Any, t: Any) -> None:
            for c, n in T.vectors(quads):
                at = builder.add(row, integer(c))
                b = builder.fsub(step.load(builder.add(column, integer(c)), n), splat(builder, t, n))
                xh = builder.fmul(splat(builder, x, n), H.load(at, n))
                T.store(add_product(builder, xh, b, T.load(at, n)), at, n)

        def ahead(p: Any) -> Any:
            soon = builder.add(p, integer(_AHEAD))
            return builder.select(builder.icmp_signed("<", soon, last), soon, last)

        last = builder.sub(end, integer(1))
        count, rest = groups(builder, T.length)
        after = builder.mul(count, integer(QUAD * GROUP))

        def emit(quads: int) -> None:
            with each(builder, first, end) as (p, _):
                if quads:
                    soon = T.row(rows(ahead(p)), after)
                    H.prefetch(soon, quads)
                    T.prefetch(soon, quads)
                i = rows(p)
                x, row = cast(builder, values(p), T.real), T.row(i, integer(0))
                total = cgutils.alloca_once(builder, T.real)
                builder.store(dot(builder.add(row, after), after, quads), total)
                with each(builder, integer(0), count) as (g, _):
                    column = builder.mul(g, integer(QUAD * GROUP))
                    builder.store(
                        builder.fadd(builder.load(total), dot(builder.add(row, column), column, GROUP)), total
                    )
                t = builder.fmul(cast(builder, tied(i), T.real), builder.load(total))
                move(builder.add(row, after), after, quads, x, t)
                with each(builder, integer(0), count) as (g, _):
                    column = builder.mul(g, integer(QUAD * GROUP))
                    move(builder.add(row, column), column, GROUP, x, t)

        by_quads(builder, rest, emit)
        return context.get_dummy_value()

    return signature, codegen
