"""Code that goes into the loops that use it: vector code for rows of tables, and how small functions are inlined.

The emitters are what the loops of ``vector`` are made of: rows in registers, whole vectors at a time. From a plain loop
over a few outputs the compiler makes scalar code, or vector code behind a check for overlap in every row, both several
times slower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

QUAD = 4
# Quads of outputs whose sums stay in registers, and quads of a group where there are more than these.
MOST = 12
GROUP = 8
_LINE = 64
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
# Multiplications may be fused with additions.
_FUSED = ("contract",)


INLINED = {"error_model": "numpy", "fastmath": False, "forceinline": True}
"""How small functions are compiled that a loop calls in every turn: into the loop, and never raising.

A call counts the references to its arrays, which takes as long as a row of twenty outputs; so does a loop that an
error might leave. What is not said here a compiled function takes over from whoever happens to call it first.
"""


def integer(n: int) -> Any:
    """A constant int64."""
    return ir.Constant(_I64, n)


class Table:
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
        """Place and length of the vectors that cover so many quads of a row, or the one number of a row of none."""
        if quads == 0:
            return [(0, 1)]
        places, done = [], 0
        # as long as a line of the cache; a processor with shorter registers takes two of them
        for n in (16, 8, 4) if self.single else (8, 4):
            while QUAD * quads - done >= n:
                places.append((done, n))
                done += n
        return places

    def registers(self, quads: int) -> int:
        """How many registers of 32 bytes hold so many quads of a row."""
        return -(-QUAD * quads * self.nbytes // 32)

    def type(self, n: int) -> Any:
        """The type of n numbers of the table."""
        return ir.VectorType(self.real, n)

    def row(self, i: Any, column: Any) -> Any:
        """Offset of a number from the first of the table."""
        return self.builder.add(self.builder.mul(i, self.length), column)

    def _at(self, offset: Any, n: int) -> Any:
        return self.builder.bitcast(self.builder.gep(self.data, [offset]), self.type(n).as_pointer())

    def load(self, offset: Any, n: int) -> Any:
        """A vector of n numbers."""
        return self.builder.load(self._at(offset, n), align=self.nbytes)

    def store(self, value: Any, offset: Any, n: int) -> None:
        """Write a vector of n numbers."""
        self.builder.store(value, self._at(offset, n), align=self.nbytes)

    def prefetch(self, offset: Any, quads: int) -> None:
        """Ask for part of a row, to be read soon."""
        start = self.builder.bitcast(self.builder.gep(self.data, [offset]), _I8.as_pointer())
        for at in range(0, QUAD * quads * self.nbytes, _LINE):
            prefetch(self.builder, self.builder.gep(start, [integer(at)]))


def prefetch(builder: Any, pointer: Any, write: bool = False) -> None:
    """Ask memory for the line of a cache at a pointer to a byte, to be read, or to be written, soon."""
    kind = ir.FunctionType(ir.VoidType(), [_I8.as_pointer(), _I32, _I32, _I32])
    call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    keep, data = 3, 1
    builder.call(call, [pointer, *(ir.Constant(_I32, n) for n in (int(write), keep, data))])


def reader(context: Any, builder: Any, ty: Any, value: Any) -> Callable[[Any], Any]:
    """p -> element p of a one-dimensional array; integers as int64."""
    array = context.make_array(ty)(context, builder, value=value)

    def read(p: Any) -> Any:
        x = builder.load(builder.gep(array.data, [p]))
        return builder.sext(x, _I64) if isinstance(x.type, ir.IntType) and x.type.width < 64 else x

    return read


def cast(builder: Any, x: Any, real: Any) -> Any:
    """A number, or a vector of them, as float32 or float64, which `real` is."""
    if x.type == real:
        return x
    number = real.element if isinstance(real, ir.VectorType) else real
    return builder.fpext(x, real) if isinstance(number, ir.DoubleType) else builder.fptrunc(x, real)


def splat(builder: Any, x: Any, n: int) -> Any:
    """A vector of n times x."""
    ty = ir.VectorType(x.type, n)
    empty = ir.Constant(ty, ir.Undefined)
    one = builder.insert_element(empty, x, ir.Constant(_I32, 0))
    return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(_I32, n), [0] * n))


def add_product(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once where the processor can."""
    return builder.fadd(builder.fmul(a, b, flags=_FUSED), c, flags=_FUSED)


def sum_pairwise(builder: Any, terms: list[Any]) -> Any:
    """Sum of 1, 2 or 4 vectors, neighbours first."""
    while len(terms) > 1:
        terms = [builder.fadd(a, b) for a, b in zip(terms[::2], terms[1::2], strict=True)]
    return terms[0]


def sum_lanes(builder: Any, v: Any) -> Any:
    """Sum of the elements of a vector, halves first."""
    n = v.type.count
    while n > 1:
        half = n // 2
        empty = ir.Constant(ir.VectorType(v.type.element, n), ir.Undefined)
        low, high = (ir.Constant(ir.VectorType(_I32, half), list(range(at, at + half))) for at in (0, half))
        v = builder.fadd(builder.shuffle_vector(v, empty, low), builder.shuffle_vector(v, empty, high))
        n = half
    return builder.extract_element(v, ir.Constant(_I32, 0))


def each(builder: Any, start: Any, stop: Any, step: int = 1) -> Any:
    """Context of a loop; yields its index first."""
    return cgutils.for_range_slice(builder, start, stop, integer(step), _I64)


def groups(builder: Any, length: Any) -> tuple[Any, Any]:
    """Number of full groups of a row of `length`, and the quads that remain: as many as registers hold, or none."""
    quads = builder.udiv(length, integer(QUAD))
    beyond = builder.add(builder.sub(quads, integer(MOST + 1)), integer(GROUP))
    count = builder.select(
        builder.icmp_signed(">", quads, integer(MOST)), builder.udiv(beyond, integer(GROUP)), integer(0)
    )
    return count, builder.sub(quads, builder.mul(count, integer(GROUP)))


def by_quads(builder: Any, quads: Any, emit: Callable[[int], None]) -> None:
    """Code for every number of quads that registers hold, and a jump to the one that is asked for.

    Rows of no quad have one number.
    """
    end = builder.append_basic_block("done")
    switch = builder.switch(quads, end)
    for n in range(MOST + 1):
        block = builder.append_basic_block(f"quads{n}")
        switch.add_case(integer(n), block)
        builder.position_at_end(block)
        emit(n)
        builder.branch(end)
    builder.position_at_end(end)


def by_columns(builder: Any, length: Any, emit: Callable[[Any, int], None]) -> None:
    """Call emit(first column, quads) for the groups of columns that make up a row."""
    count, rest = groups(builder, length)
    with each(builder, integer(0), count) as (g, _):
        emit(builder.mul(g, integer(QUAD * GROUP)), GROUP)
    first = builder.mul(count, integer(QUAD * GROUP))
    by_quads(builder, rest, lambda quads: emit(first, quads))
