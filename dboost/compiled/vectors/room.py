"""New arrays, and the lesser and the greater of two numbers, written into the loop that asks for them.

Of ``np.empty``, ``np.zeros``, ``min`` and ``max`` numba makes functions, one for each kind of arguments, which it
compiles beside the loop: half of what a small first fit compiled. What is here gives the same bits.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import _empty_nd_impl


@intrinsic
def room(typingctx: Any, n: Any, dtype: Any) -> Any:
    """An array of n numbers that are not set."""
    array = types.Array(dtype.dtype, 1, "C")

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        return _empty_nd_impl(context, builder, array, [args[0]])._getvalue()

    return array(types.intp, dtype), codegen


@intrinsic
def zeros(typingctx: Any, n: Any, dtype: Any) -> Any:
    """An array of n zeros."""
    array = types.Array(dtype.dtype, 1, "C")

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        made = _empty_nd_impl(context, builder, array, [args[0]])
        cgutils.memset(builder, made.data, builder.mul(made.nitems, made.itemsize), 0)
        return made._getvalue()

    return array(types.intp, dtype), codegen


@intrinsic
def lesser(typingctx: Any, a: Any, b: Any) -> Any:
    """``min(a, b)`` of two numbers; a where b is nan or equal."""
    return _chosen(typingctx, a, b, "<")


@intrinsic
def greater(typingctx: Any, a: Any, b: Any) -> Any:
    """``max(a, b)`` of two numbers; a where b is nan or equal."""
    return _chosen(typingctx, a, b, ">")


def _chosen(typingctx: Any, a: Any, b: Any, word: str) -> Any:
    common = typingctx.unify_types(a, b)
    if not isinstance(common, types.Integer | types.Float):
        return None

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        first, second = args
        if isinstance(common, types.Float):
            better = builder.fcmp_ordered(word, second, first)
        else:
            better = (builder.icmp_signed if common.signed else builder.icmp_unsigned)(word, second, first)
        return builder.select(better, second, first)

    return common(common, common), codegen
