"""The table of terms: every distinct term has a number, in the order in which terms were first met.

Open addressing with linear probing. A slot holds the upper half of a term's hash and its number; a term is kept whole,
its first 16 bytes in its record and all of them in one long array, and compared byte for byte when hashes agree, so
that no two terms are ever taken for one.

A table has three arrays:

- ``slots``, uint64, a power of two: upper 32 bits of the hash, and the number plus 1; 0 where the slot is free;
- ``records``, uint64, 4 per term: bytes 0 to 7, bytes 8 to 15 (zeros past the end), place in ``arena``, length;
- ``arena``, uint8: the terms one after the other, and ``SLACK`` bytes behind them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.kept import njit
from dboost.compiled.text.words import SLACK, load_word
from dboost.compiled.vectors.new_arrays import new_arrays

RECORD = 4
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_UPPER = np.uint64(0xFFFFFFFF00000000)
_LOWER = np.uint64(0x00000000FFFFFFFF)
# Odd constants of xxHash and splitmix64.
_ONE, _TWO, _THREE = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0xBF58476D1CE4E5B9)
_HALF = np.uint64(32)


@njit(nogil=True, cache=True, inline="always")
def term_words(text, begin, length):
    """The first 16 bytes of a term as two numbers, with zeros past its end."""
    # Without a branch, because the lengths of words cannot be predicted. Shifting by 64 is not defined, twice by 32 is.
    half = np.uint64(4 * min(length, 8))
    first = load_word(text, begin) & ~((_ALL << half) << half)
    half = np.uint64(4 * min(max(length - 8, 0), 8))
    second = load_word(text, begin + 8) & ~((_ALL << half) << half)
    return first, second


@njit(nogil=True, cache=True, inline="always")
def term_hash(text, begin, length, first, second):
    """A hash of all bytes of a term and of its length."""
    h = (first ^ (np.uint64(length) * _TWO)) * _ONE
    h ^= h >> _HALF
    h = (h ^ second) * _TWO
    at = np.int64(16)
    while at < length:
        w, _ = term_words(text, begin + at, min(length - at, 8))
        h ^= h >> _HALF
        h = (h ^ w) * _ONE
        at += 8
    h ^= h >> np.uint64(29)
    h *= _THREE
    return h ^ (h >> _HALF)


@njit(nogil=True, cache=True)
def _same_rest(text, begin, arena, start, length):
    """Whether bytes from the 16th on agree."""
    for i in range(16, length):
        if text[begin + i] != arena[start + i]:
            return False
    return True


@njit(nogil=True, cache=True, inline="always")
def find(slots, records, arena, text, begin, length, first, second, h):
    """The number of a term, or -1 - (the free slot where it belongs)."""
    # Unsigned numbers are indices that are not looked at for their sign.
    last = np.uint64(slots.shape[0] - 1)
    tag = h & _UPPER
    at = (h >> _HALF) & last
    while True:
        slot = slots[at]
        if slot == np.uint64(0):
            return -1 - np.int64(at)
        if (slot & _UPPER) == tag:
            number = (slot & _LOWER) - np.uint64(1)
            r = np.uint64(RECORD) * number
            if (
                records[r] == first
                and records[r + np.uint64(1)] == second
                and records[r + np.uint64(3)] == np.uint64(length)
                and (length <= 16 or _same_rest(text, begin, arena, np.int64(records[r + np.uint64(2)]), length))
            ):
                return np.int64(number)
        at = (at + np.uint64(1)) & last


@njit(nogil=True, cache=True, inline="always")
def add_term(slots, records, arena, number, used, text, begin, length, first, second, h, free):
    """Enter a term that is not there into a table that has room for it.

    `number`: its number: that of the terms so far. `used`: bytes of the arena so far. `free`: its slot.
    """
    slots[free] = (h & _UPPER) | np.uint64(number + 1)
    r = RECORD * number
    records[r] = first
    records[r + 1] = second
    records[r + 2] = np.uint64(used)
    records[r + 3] = np.uint64(length)
    for i in range(length):
        arena[used + i] = text[begin + i]


@njit(nogil=True, cache=True)
def _move_slots(old, new):
    """Enter what is in some slots into others, which are empty."""
    last = np.uint64(new.shape[0] - 1)
    for slot in old:
        if slot != np.uint64(0):
            at = (slot >> _HALF) & last
            while new[at] != np.uint64(0):
                at = (at + np.uint64(1)) & last
            new[at] = slot


@njit(nogil=True, cache=True)
def _enter(slots, records, arena, number, used, text, offsets, adds, numbers):
    for i in range(numbers.shape[0]):
        begin = offsets[i]
        length = offsets[i + 1] - begin
        first, second = term_words(text, begin, length)
        h = term_hash(text, begin, length, first, second)
        found = find(slots, records, arena, text, begin, length, first, second, h)
        if found < 0 and adds:
            add_term(slots, records, arena, number, used, text, begin, length, first, second, h, -1 - found)
            found = number
            number += 1
            used += length
        numbers[i] = max(found, -1)
    return number, used


def _zeros(length: int, dtype: Any, old: NDArray[Any]) -> NDArray[Any]:
    """An array that begins with what is in another one."""
    (grown,) = new_arrays((length, dtype))
    grown[: old.shape[0]] = old
    grown[old.shape[0] :] = 0
    return grown


class Terms:
    """The table, and how full it is.

    `room`: terms that fit before it grows.
    """

    def __init__(self, room: int = 256) -> None:
        nothing = np.zeros(0, np.uint64)
        self.slots = nothing
        self.records = nothing
        self.arena = np.zeros(0, np.uint8)
        self.number = 0
        self.used = 0
        self.make_room(room, 8 * room)

    def make_room(self, terms: int, size: int) -> None:
        """Let so many more terms fit, of so many bytes in all."""
        terms += self.number
        if 2 * terms > self.slots.shape[0]:
            slots = _zeros(1 << max(2 * terms - 1, 1).bit_length(), np.uint64, self.slots[:0])
            _move_slots(self.slots, slots)
            self.slots = slots
        if RECORD * terms > self.records.shape[0]:
            self.records = _zeros(RECORD * self.slots.shape[0] // 2, np.uint64, self.records)
        size += self.used + SLACK
        if size > self.arena.shape[0]:
            self.arena = _zeros(max(size, 2 * self.arena.shape[0]), np.uint8, self.arena)

    def enter(self, text: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """Enter terms that are not there yet.

        `text`: the terms one after the other, and ``SLACK`` bytes behind them. `offsets`: (terms + 1,). Returns
        (terms,): number of each.
        """
        numbers = np.empty(offsets.shape[0] - 1, np.int32)
        self.make_room(numbers.shape[0], int(offsets[-1] - offsets[0]))
        self.number, self.used = _enter(
            self.slots, self.records, self.arena, self.number, self.used, text, offsets, True, numbers
        )
        return numbers

    def look_up(self, text: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """Number of each term as for ``enter``, or -1 where it is not there; nothing is entered."""
        numbers = np.empty(offsets.shape[0] - 1, np.int32)
        _enter(self.slots, self.records, self.arena, self.number, self.used, text, offsets, False, numbers)
        return numbers

    def hashes(self) -> NDArray[np.uint32]:
        """Half of the hash of each term, which is the same in every table; shape (terms,)."""
        used = self.slots[self.slots != 0]
        found = np.empty(self.number, np.uint32)
        found[(used & _LOWER) - np.uint64(1)] = used >> _HALF
        return found

    def offsets(self) -> NDArray[np.int64]:
        """Where each term begins in ``arena``, and the end of the last one; shape (terms + 1,)."""
        found = np.empty(self.number + 1, np.int64)
        found[:-1] = self.records[2 : RECORD * self.number : RECORD]
        found[-1] = self.used
        return found
