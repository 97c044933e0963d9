"""Values on their way to workers.

Covers: pickling what the tasks of a pass share once, as bytes that the scheduler passes on without looking at them;
leaving out constants, which the workers have already.
Does not cover: which tasks get what (``dask``), or where constants are held (``holdings``).

A class whose instances are large and travel with many passes says so with the class attribute ``sent_once = True``.
Its instances must not change. In bytes they are a number only; the values are given again when the bytes are read.
"""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Sequence
from typing import Any

import cloudpickle

_PROTOCOL = 5
_given = threading.local()


class Blob:
    """Pickled bytes."""

    __slots__ = ("data",)

    def __init__(self, data: Any) -> None:
        self.data = data if isinstance(data, bytes) else memoryview(data)

    @property
    def nbytes(self) -> int:
        """Number of bytes."""
        return len(self.data)

    def __sizeof__(self) -> int:
        # The scheduler weighs results by this number.
        return len(self.data) + 64

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        # Beside the message, not inside, so that it is not copied at each stop.
        return Blob, (pickle.PickleBuffer(self.data) if protocol >= _PROTOCOL else bytes(self.data),)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream, protocol=_PROTOCOL)
        self.constants: list[Any] = []

    def reducer_override(self, value: Any) -> Any:
        if getattr(type(value), "sent_once", False) is True:
            for place, known in enumerate(self.constants):
                if known is value:
                    return _constant, (place,)
            self.constants.append(value)
            return _constant, (len(self.constants) - 1,)
        return super().reducer_override(value)


def _constant(place: int) -> Any:
    return _given.constants[place]


def pack(value: Any) -> tuple[Blob, list[Any]]:
    """Return the value as bytes, and the constants that were left out of them."""
    stream = io.BytesIO()
    pickler = _Pickler(stream)
    pickler.dump(value)
    return Blob(stream.getvalue()), pickler.constants


def unpack(blob: Blob, constants: Sequence[Any] = ()) -> Any:
    """Return the value; `constants` are those that `pack` left out, in the same order."""
    _given.constants = constants
    try:
        return pickle.loads(blob.data)
    finally:
        del _given.constants


def pack_whole(value: Any) -> Blob:
    """Return a value as bytes with everything in it, itself included where it is a constant."""
    return Blob(cloudpickle.dumps(value, protocol=_PROTOCOL))
