"""Mutants: small changes of the code, drawn by a seed, and how one is put in the place of what it changes.

Covers: the places of a module that can be changed, drawing, the changed code of functions. Does not cover: running
tests against them (``command``).
"""

from __future__ import annotations

import ast
import functools
import importlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PARTS = {
    "losses": ("dboost/losses",),
    "penalties": ("dboost/penalties", "dboost/bounds"),
    "certificate": ("dboost/certificate", "dboost/problem"),
    "solvers": ("dboost/solvers", "dboost/boosting"),
    "data": ("dboost/data", "dboost/files"),
    "pipelines": ("pipelines",),
}
"""Folders from which an equal number of mutants is drawn."""
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
IDENTITIES = {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}


@dataclass(frozen=True)
class Mutant:
    """One change of one place."""

    # Of ``PARTS``, and the file relative to the checkout.
    part: str
    file: str
    # Which of the places of the file that can be changed.
    site: int
    line: int
    # What was there and what is there now.
    change: str


class Changes(ast.NodeTransformer):
    """Walks the places of a module that can be changed, and changes one of them.

    `chosen`: which place; -1 changes none.
    """

    def __init__(self, chosen: int = -1) -> None:
        self.chosen = chosen
        self.found: list[tuple[int, str]] = []

    def _place(self, node: Any, new: Any) -> Any:
        self.found.append((node.lineno, f"{ast.unparse(node)} -> {ast.unparse(new)}"[:100]))
        return ast.copy_location(new, node) if len(self.found) - 1 == self.chosen else node

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Another comparison."""
        self.generic_visit(node)
        swapped = {**COMPARISONS, **IDENTITIES}.get(type(node.ops[0]))
        if swapped is None or len(node.ops) > 1:
            return node
        return self._place(node, ast.Compare(node.left, [swapped()], node.comparators))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """Another operation, but for the | of types."""
        self.generic_visit(node)
        swapped = ARITHMETIC.get(type(node.op))
        return node if swapped is None else self._place(node, ast.BinOp(node.left, swapped(), node.right))

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """`and` for `or`."""
        self.generic_visit(node)
        return self._place(node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """Without `not`, without a minus."""
        self.generic_visit(node)
        return self._place(node, node.operand) if isinstance(node.op, ast.Not | ast.USub) else node

    def visit_Constant(self, node: ast.Constant) -> Any:
        """Another number or truth value; texts stay."""
        if isinstance(node.value, bool):
            return self._place(node, ast.Constant(not node.value))
        if isinstance(node.value, int | float):
            return self._place(node, ast.Constant(node.value + 1 if node.value in (0, 1) else node.value * 2))
        return node

    def visit_If(self, node: ast.If) -> Any:
        """The other branch; what is for type checkers only is left alone."""
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return node
        self.generic_visit(node)
        self.found.append((node.lineno, f"if {ast.unparse(node.test)} -> if not"[:100]))
        if len(self.found) - 1 == self.chosen:
            node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        return node

    def _signature(self, node: Any) -> Any:
        # annotations and decorators are no behaviour of their own, default values are
        node.args.defaults = [self.visit(one) for one in node.args.defaults]
        node.args.kw_defaults = [one if one is None else self.visit(one) for one in node.args.kw_defaults]
        node.body = [self.visit(one) for one in node.body]
        return node

    visit_FunctionDef = _signature
    visit_AsyncFunctionDef = _signature

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """The value only."""
        if node.value is not None:
            node.value = self.visit(node.value)
        return node


def changed(source: str, site: int) -> ast.Module:
    """A module with one place changed."""
    tree: ast.Module = Changes(site).visit(ast.parse(source))
    return ast.fix_missing_locations(tree)


def draw(count: int, seed: int) -> list[Mutant]:
    """Mutants of all parts in equal numbers, in an order that mixes them."""
    rng = random.Random(seed)
    drawn: list[Mutant] = []
    for part, folders in PARTS.items():
        places = []
        for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
            walk = Changes()
            walk.visit(ast.parse(path.read_text(encoding="utf-8")))
            file = path.relative_to(ROOT).as_posix()
            places += [Mutant(part, file, site, *found) for site, found in enumerate(walk.found)]
        drawn += rng.sample(places, count // len(PARTS))
    rng.shuffle(drawn)
    return drawn


def replaced(mutant: Mutant) -> list[tuple[FunctionType, CodeType]]:
    """Functions and their changed code; empty where the place is in no function that can be replaced."""
    module = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    # the folder pipelines has two names, under which it is loaded twice
    names = (module, f"dboost_{module}") if module.startswith("pipelines") else (module,)
    loaded = [importlib.import_module(name) for name in names]
    path = ROOT / mutant.file
    source = path.read_text(encoding="utf-8")
    new = compile(changed(source, mutant.site), str(path), "exec")
    old = compile(ast.parse(source), str(path), "exec")
    codes = dict(_codes(old))
    pairs = {name: code for name, code in _codes(new) if name in codes and not _same(codes[name], code)}
    found = []
    for one in loaded:
        for name, code in pairs.items():
            value: Any = one
            for piece in name.split("."):
                value = vars(value).get(piece) if hasattr(value, "__dict__") else None
            value = getattr(value, "__func__", getattr(value, "fget", getattr(value, "func", value)))
            if isinstance(value, FunctionType) and not value.__closure__ and not hasattr(value, "__wrapped__"):
                found.append((value, code))
    return found if len(pairs) == 1 else []


def _codes(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """Functions of a module and of its classes, not those inside functions."""
    for one in code.co_consts:
        if isinstance(one, CodeType) and "<locals>" not in one.co_qualname and "<" not in one.co_name:
            if one.co_flags & 0x2:  # CO_NEWLOCALS: a function, where a class has none
                yield one.co_qualname, one
            else:
                yield from _codes(one)


def _same(one: CodeType, other: CodeType) -> bool:
    return one.co_code == other.co_code and one.co_names == other.co_names and one.co_consts == other.co_consts


def function_of(mutant: Mutant, root: Path) -> tuple[str, set[int]]:
    """Name of the function of a module or class that a mutant is in ("" for none), and lines where it may begin.

    A function begins at its first decorator for Python, also one that is inside.
    """
    for node in _functions(root / mutant.file):
        if first_line(node) <= mutant.line <= (node.end_lineno or 0):
            inside = [one for one in ast.walk(node) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
            return node.name, {first_line(one) for one in inside}
    return "", set()


@functools.cache
def mentions(root: Path) -> dict[str, list[tuple[str, str, set[int]]]]:
    """For each name the functions that mention it: their names, their files, and lines where they may begin."""
    found: dict[str, list[tuple[str, str, set[int]]]] = {}
    for path in sorted(path for folder in ("dboost", "pipelines") for path in (root / folder).rglob("*.py")):
        for node in _functions(path):
            named = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            named |= {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
            for name in named:
                place = node.name, path.relative_to(root).as_posix(), {first_line(node)}
                found.setdefault(name, []).append(place)
    return found


@functools.cache
def _functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions of a module and of its classes, not those inside functions."""
    todo: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    found: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    while todo:
        for node in ast.iter_child_nodes(todo.pop()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.append(node)
            elif not isinstance(node, ast.expr):
                todo.append(node)
    return found


def first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Where Python says that a function begins."""
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])
