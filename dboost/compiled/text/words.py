"""Words of an ASCII document: eight bytes at a time, and as the places where a word begins or ends."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dboost.compiled.kept import njit

# Bytes that are read, and never used, behind the last one of a text: buffers of our own have so many more.
SLACK = 64

# Sums below never carry from one byte into the next, because bytes of ASCII are less than 128: adding 128 - c sets the
# highest bit of exactly the bytes that are at least c.
_HIGH = np.uint64(0x8080808080808080)
_FROM_A, _PAST_Z = np.uint64(0x3F3F3F3F3F3F3F3F), np.uint64(0x2525252525252525)
_FROM_LOW_A, _PAST_LOW_Z = np.uint64(0x1F1F1F1F1F1F1F1F), np.uint64(0x0505050505050505)
_FROM_0, _PAST_9 = np.uint64(0x5050505050505050), np.uint64(0x4646464646464646)
_UNDERSCORES, _ALL_BUT_HIGH = np.uint64(0x5F5F5F5F5F5F5F5F), np.uint64(0x7F7F7F7F7F7F7F7F)
# Multiplying by it brings the lowest bit of each of eight bytes together in the highest byte, in their order.
_GATHER = np.uint64(0x0102040810204080)
# What tells an upper-case letter of ASCII from its lower-case one.
_CASE_SHIFT = np.uint64(2)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Address of a byte of a uint8 array, as that of eight bytes."""
    from numba.np.arrayobj import make_array

    data = make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), ir.PointerType(ir.IntType(64)))


@intrinsic
def load_word(typingctx: Any, array: Any, index: Any) -> Any:
    """Eight bytes of a uint8 array from `index` on, the first one lowest, as uint64; nothing is checked."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        loaded = builder.load(_pointer(context, builder, signature.args[0], *args))
        loaded.align = 1
        return loaded

    return types.uint64(array, types.int64), codegen


@intrinsic
def store_word(typingctx: Any, array: Any, index: Any, word: Any) -> Any:
    """Write eight bytes to a uint8 array from `index` on; nothing is checked."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        stored = builder.store(args[2], _pointer(context, builder, signature.args[0], args[0], args[1]))
        stored.align = 1
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), codegen


@intrinsic
def lowest_bit(typingctx: Any, word: Any) -> Any:
    """Number of the lowest bit of a uint64 that is set; it must not be zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@njit(nogil=True, cache=True)
def not_ascii(data, offsets, out):
    """Set out[d], bool, to whether document d has a byte beyond ASCII; return how many have."""
    found = 0
    for d in range(out.shape[0]):
        begin, end = offsets[d], offsets[d + 1]
        seen = np.uint64(0)
        p = begin
        while p + 8 <= end:
            seen |= load_word(data, p)
            p += 8
        while p < end:
            seen |= np.uint64(data[p])
            p += 1
        out[d] = (seen & _HIGH) != np.uint64(0)
        found += out[d]
    return found


@njit(nogil=True, cache=True)
def word_edges(data, begin, end, fold, low, edges):
    """Where words begin and end in data[begin:end], which is ASCII: runs of letters, digits and underscores.

    `fold`: whether letters become lower-case. `low`: filled with the text, from its beginning on; at least end - begin
    + ``SLACK`` long. `edges`: filled with begin and end of each word in turn, counted in `low`; at least end - begin +
    2 long. Two per word.
    """
    n = end - begin
    count = 0
    before = np.uint64(0)
    for block in range(0, n, 64):
        mask = np.uint64(0)
        for j in range(8):
            at = block + 8 * j
            if at + 8 <= n:
                x = load_word(data, begin + at)
            elif at < n:
                x = np.uint64(0)
                for i in range(n - at):
                    x |= np.uint64(data[begin + at + i]) << np.uint64(8 * i)
            else:
                break
            upper = (x + _FROM_A) & ~(x + _PAST_Z) & _HIGH
            folded = x | (upper >> _CASE_SHIFT)
            letter = (folded + _FROM_LOW_A) & ~(folded + _PAST_LOW_Z)
            digit = (x + _FROM_0) & ~(x + _PAST_9)
            underscore = ~((x ^ _UNDERSCORES) + _ALL_BUT_HIGH)
            # Without folding, a letter is one when it is one after folding.
            store_word(low, at, folded if fold else x)
            bits = ((letter | digit | underscore) & _HIGH) >> np.uint64(7)
            mask |= ((bits * _GATHER) >> np.uint64(56)) << np.uint64(8 * j)
        change = mask ^ ((mask << np.uint64(1)) | before)
        before = mask >> np.uint64(63)
        while change != np.uint64(0):
            edges[count] = block + lowest_bit(change)
            count += 1
            change &= change - np.uint64(1)
    if count & 1:
        edges[count] = n
        count += 1
    return count


@njit(nogil=True, cache=True)
def words_beyond_ascii(data, begins, is_word, text, offsets, words):
    """Words of documents in any script: runs of two or more word characters, one run after the other.

    `data`: valid UTF-8, lower-cased already.
    `begins`, (documents + 1,): where each document begins and ends.
    `is_word`, (0x110000,): whether a code point is a word character.
    `text`: filled with the words; as long as the documents.
    `offsets`: filled with where each word begins and ends; half as many as there are bytes, and 2 more.
    `words`, (documents + 1,): filled with where the words of each document begin, counted in words.
    Returns number of words.
    """
    at = np.int64(0)
    n = np.int64(0)
    offsets[0] = 0
    words[0] = 0
    for d in range(begins.shape[0] - 1):
        p, end = begins[d], begins[d + 1]
        characters = 0
        while True:
            size = 1
            inside = False
            if p < end:
                lead = np.int64(data[p])
                point = lead
                if lead >= 0xF0:
                    size, point = 4, lead & 0x07
                elif lead >= 0xE0:
                    size, point = 3, lead & 0x0F
                elif lead >= 0xC0:
                    size, point = 2, lead & 0x1F
                for i in range(1, size):
                    point = (point << 6) | (np.int64(data[p + i]) & 0x3F)
                inside = is_word[point]
            if inside:
                for i in range(size):
                    text[at + i] = data[p + i]
                at += size
                characters += 1
            else:
                if characters >= 2:
                    n += 1
                    offsets[n] = at
                else:
                    at = offsets[n]
                characters = 0
                if p >= end:
                    break
            p += size
        words[d + 1] = n
    return n
