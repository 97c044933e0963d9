"""A digest of all that the code of a compiled loop comes from, which is the same in every process and on every machine.

Covers: the bytecode of a loop, the options it is compiled with, and everything that it names: other loops, functions
that write machine code, overloads, constants. Does not cover: the types it is compiled for and the processor, which
``kept`` adds.

Comments, docstrings, lines and the place of a file are left out, since no code comes from them. What belongs to Python
itself, NumPy or numba goes in by its name: their versions stand for what it does.
"""

from __future__ import annotations

import hashlib
import re
import sys
import types as python
from collections.abc import Iterable
from typing import Any

import numpy as np
from numba.core import extending
from numba.core.dispatcher import Dispatcher
from numba.core.typing.templates import builtin_registry

_BY_NAME = frozenset({"numba", "llvmlite", "numpy", *sys.stdlib_module_names})
# What a class has that says nothing of what it does.
_NO_CONTENT = frozenset({"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__new__"})
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_CODE = (
    "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags", "co_code", "co_names", "co_varnames",
    "co_freevars", "co_cellvars", "co_exceptiontable",
)  # fmt: skip


def digest(of: Any) -> str:
    """A digest of what has a stable ``repr``."""
    return hashlib.sha256(repr(of).encode()).hexdigest()


def root_of(module: str | None) -> str:
    """The first part of a module's name: to whom it belongs."""
    return (module or "").partition(".")[0]


def content(loop: Any, others: Iterable[str] = ()) -> str:
    """The digest of a loop.

    `loop`: a function that numba compiles. `others`: roots of modules beside the loop's own whose overloads the loop
    may run, since it is given their types. What else a process has registered does not change the digest.
    """
    return _Walk(frozenset({root_of(loop.__module__), *others})).digest_from(loop)


_overloaded: dict[int, list[Any]] = {}
_registered = 0


def _templates() -> dict[int, list[Any]]:
    """Overloads by the identity of the function that they are written for."""
    global _registered
    known = builtin_registry.globals
    for stub, kind in known[_registered:]:
        for template in getattr(kind, "templates", ()):
            if hasattr(template, "_overload_func"):
                _overloaded.setdefault(id(stub), []).append(template)
    _registered = len(known)
    return _overloaded


def _name(function: Any) -> str:
    """The name of a function, with those of what it was made with: one function may have made several."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    made_with = [f"{one.__module__}.{one.__qualname__}" for one in cells if hasattr(one, "__qualname__")]
    return f"{function.__module__}.{function.__qualname__}{made_with}"


def _owners(function: Any) -> set[str]:
    """Roots of the modules that a function belongs to: its own, and of what it was made with, however far."""
    owners, left = set(), [function]
    while left:
        one = left.pop()
        one = getattr(one, "py_func", one)
        if root_of(one.__module__) not in _BY_NAME:
            owners.add(root_of(one.__module__))
            made_with = (cell.cell_contents for cell in getattr(one, "__closure__", None) or ())
            left += [inner for inner in made_with if isinstance(inner, Dispatcher | python.FunctionType | type)]
    return owners


class _Walk:
    """What can be reached from a loop, each part once, in the order in which it is met.

    `roots`: whose overloads, and whose members of sets, belong to it.
    """

    def __init__(self, roots: frozenset[str]) -> None:
        self._roots = roots
        self._number: dict[int, int] = {}
        self._found: list[Any] = []

    def digest_from(self, loop: Any) -> str:
        self._reference(loop)
        said = hashlib.sha256()
        for part in self._found:  # which grows meanwhile
            said.update(self._part(part).encode())
        return said.hexdigest()

    def _reference(self, part: Any) -> str:
        """The number of a part, which is put down to be looked at when it is met for the first time."""
        if id(part) not in self._number:
            self._number[id(part)] = len(self._found)
            self._found.append(part)
        return f"#{self._number[id(part)]}"

    def _part(self, part: Any) -> str:
        if isinstance(part, type):
            return self._of_class(part)
        return self._of_function(part)

    def _of_class(self, part: type) -> str:
        held = {name: value for name, value in vars(part).items() if name not in _NO_CONTENT}
        bases = [self.value(base) for base in part.__bases__]
        return f"class {part.__module__}.{part.__qualname__}({bases}){self.value(held)}"

    def _of_function(self, part: Any) -> str:
        cells = [self._cell(cell) for cell in part.__closure__ or ()]
        said = [self._code(part.__code__, part.__globals__, part.__doc__), self.value(part.__defaults__), cells]
        return f"def {said}{self.value(part.__kwdefaults__)}{self._overloads(part)}"

    def _cell(self, cell: Any) -> str:
        try:
            return self.value(cell.cell_contents)
        except ValueError:  # nothing was put into it yet
            return "empty"

    def _code(self, code: python.CodeType, names: dict[str, Any], doc: str | None = None) -> str:
        # a docstring stands where there is None without it
        constants = (None, *code.co_consts[1:]) if doc is not None and code.co_consts[:1] == (doc,) else code.co_consts
        said = [repr(getattr(code, field)) for field in _CODE]
        for one in constants:
            said.append(self._code(one, names) if isinstance(one, python.CodeType) else self.value(one))
        for name in code.co_names:
            if name in names:
                value = names[name]
                said.append(self._of_module(value, code) if isinstance(value, python.ModuleType) else self.value(value))
        return f"code {said}"

    def _of_module(self, module: python.ModuleType, code: python.CodeType) -> str:
        if root_of(module.__name__) in _BY_NAME:
            return module.__name__
        # which of its names are meant is known only when the code runs, so all that could be are
        return f"{module.__name__}{[self.value(getattr(module, name, None)) for name in code.co_names]}"

    def _overloads(self, stub: Any) -> str:
        """What numba compiles in place of a function that is called in a loop."""
        found = []
        for template in _templates().get(id(stub), ()):
            body = template._overload_func
            if _owners(body) <= self._roots:
                options = self.value((template._jit_options, template._inline.value))
                found.append((_name(body), options, body))
        # modules are imported in any order
        ordered = sorted(found, key=lambda one: one[:2])
        return f"{[(name, options, self._reference(body)) for name, options, body in ordered]}"

    def value(self, value: Any) -> str:
        """What stands for a value: a number, a text, or a reference to a part that is looked at later."""
        if isinstance(value, Dispatcher):
            return f"njit{self.value(value.targetoptions)}{self._reference(value.py_func)}"
        if isinstance(value, extending._Intrinsic):
            return f"intrinsic{self._reference(value._defn)}"
        if isinstance(value, python.FunctionType | type):
            if root_of(value.__module__) in _BY_NAME:
                return f"{value.__module__}.{value.__qualname__}"
            return self._reference(value)
        if isinstance(value, staticmethod | classmethod | property | python.MethodType):
            inner = (value.fget, value.fset) if isinstance(value, property) else (value.__func__,)
            return f"{type(value).__name__}{[self.value(one) for one in inner]}"
        if isinstance(value, tuple | list):
            return f"{type(value).__name__}{[self.value(one) for one in value]}"
        if isinstance(value, dict | python.MappingProxyType):
            ordered = sorted(value.items(), key=lambda pair: repr(pair[0]) if isinstance(pair[0], str) else "")
            return f"dict{[(self.value(key), self.value(held)) for key, held in ordered]}"
        if isinstance(value, set | frozenset):
            return self._of_set(value)
        if isinstance(value, np.ndarray):
            return f"{value.dtype.str}{value.shape}{hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
        return f"{type(value).__name__} {_ADDRESS.sub('', repr(value))}"

    def _of_set(self, value: Any) -> str:
        """The members of a set; classes and functions of others, who may add theirs to one of ours, are left out."""
        ours = [one for one in value if not callable(one) or root_of(one.__module__) in self._roots]
        ordered = sorted(ours, key=lambda one: f"{one.__module__}.{one.__qualname__}" if callable(one) else repr(one))
        return f"set{[self.value(one) for one in ordered]}"
