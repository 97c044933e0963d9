"""Eight scaled rows of a table added to another one at once: the inner loop of a factorisation.

The row is read and written once for the eight. The compiler makes scalar code of the same loop, as it cannot tell that
the nine rows do not overlap.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from dboost.compiled.vectors.emit import Table, add_product, each, integer, reader, splat

EIGHT = 8


@intrinsic
def add_eight(typingctx: Any, table: Any, i: Any, first: Any, scale: Any, start: Any, stop: Any) -> Any:
    """table[i, q] += sum_p scale[p] table[first + p, q] for p in 0..7 and q in start..stop - 1; i is none of the eight.

    The table is C-contiguous and float64, as `scale` is.
    """
    if not (isinstance(table, types.Array) and table.layout == "C" and table.dtype == types.float64):
        return None
    signature = types.void(table, types.intp, types.intp, scale, types.intp, types.intp)

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        T = Table(context, builder, table, args[0])
        factor = reader(context, builder, scale, args[3])
        target = T.row(args[1], integer(0))
        rows = [T.row(builder.add(args[2], integer(p)), integer(0)) for p in range(EIGHT)]
        factors = [factor(integer(p)) for p in range(EIGHT)]
        begin, end = args[4], args[5]
        whole = builder.sub(end, builder.srem(builder.sub(end, begin), integer(EIGHT)))

        def change(q: Any, n: int) -> None:
            at = builder.add(target, q)
            total = T.load(at, n)
            for x, row in zip(factors, rows, strict=True):
                total = add_product(builder, splat(builder, x, n), T.load(builder.add(row, q), n), total)
            T.store(total, at, n)

        with each(builder, begin, whole, EIGHT) as (q, _):
            change(q, EIGHT)
        with each(builder, whole, end) as (q, _):
            change(q, 1)
        return context.get_dummy_value()

    return signature, codegen
