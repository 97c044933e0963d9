"""Sums over a stored column without gaps beside arrays of the examples: the inner loops of one output on dense tables.

The compiler may not reorder a sum, and so makes scalar code of it. Here the vectors are emitted: several sums run side
by side, since an addition takes four cycles while two can start in each, and are then added in one order whatever the
processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dboost.compiled.vectors.emit import Table, add_product, cast, each, integer, sum_lanes, sum_pairwise

# Sums that run side by side, each a vector of 32 bytes.
_TOGETHER = 4
_BYTES = 32

# The factors of the terms of each sum, n examples at a time from a place on.
_Factors = Callable[[Any, int], list[tuple[Any, Any]]]


def _sums(builder: Any, count: Any, kind: Table, factors: _Factors, how_many: int) -> list[Any]:
    """Sums of products over `count` examples, in the numbers of the table `kind`."""
    width = _BYTES // kind.nbytes
    step = _TOGETHER * width
    none = ir.Constant(kind.type(width), None)
    held = [[cgutils.alloca_once_value(builder, none) for _ in range(_TOGETHER)] for _ in range(how_many)]
    whole = builder.sub(count, builder.srem(count, integer(step)))
    with each(builder, integer(0), whole, step) as (i, _):
        for lane in range(_TOGETHER):
            terms = factors(builder.add(i, integer(lane * width)), width)
            for total, (a, b) in zip(held, terms, strict=True):
                builder.store(add_product(builder, a, b, builder.load(total[lane])), total[lane])
    found = []
    for total in held:
        lanes = sum_pairwise(builder, [builder.load(lane) for lane in total])
        found.append(cgutils.alloca_once_value(builder, sum_lanes(builder, lanes)))
    with each(builder, whole, count) as (i, _):
        for last, (a, b) in zip(found, factors(i, 1), strict=True):
            x, y = (builder.extract_element(v, ir.Constant(ir.IntType(32), 0)) for v in (a, b))
            builder.store(add_product(builder, x, y, builder.load(last)), last)
    return [builder.load(last) for last in found]


@intrinsic
def span_product(typingctx: Any, values: Any, start: Any, v: Any) -> Any:
    """sum_i values[start + i] v[i] over all of v, in the type of v."""
    signature = v.dtype(values, types.intp, v)

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        X, V = Table(context, builder, values, args[0]), Table(context, builder, v, args[2])

        def factors(i: Any, n: int) -> list[tuple[Any, Any]]:
            x = cast(builder, X.load(builder.add(args[1], i), n), V.type(n))
            return [(x, V.load(i, n))]

        return _sums(builder, V.length, V, factors, 1)[0]

    return signature, codegen


@intrinsic
def span_curvature(typingctx: Any, values: Any, start: Any, u: Any, h: Any) -> Any:
    """sum_i x_i u[i] and sum_i x_i**2 h[i] with x_i = values[start + i], over all of u and h, both float64."""
    signature = types.UniTuple(types.float64, 2)(values, types.intp, u, h)

    def codegen(context: Any, builder: Any, given: Any, args: Any) -> Any:
        X = Table(context, builder, values, args[0])
        U, H = Table(context, builder, u, args[2]), Table(context, builder, h, args[3])

        def factors(i: Any, n: int) -> list[tuple[Any, Any]]:
            x = cast(builder, X.load(builder.add(args[1], i), n), U.type(n))
            return [(x, U.load(i, n)), (builder.fmul(x, x), H.load(i, n))]

        return context.make_tuple(builder, given.return_type, _sums(builder, U.length, U, factors, 2))

    return signature, codegen
