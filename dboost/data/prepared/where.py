"""A filter of rows as a text: ``year >= 2020 and lang in ("en", "de")``.

Covers: reading it, which columns it names, and its form as an expression of Arrow. Does not cover: whose rows.

The text is parsed as an expression of Python of which only comparisons, ``and``, ``or``, ``not``, ``in`` and
``is None`` have a meaning. Nothing of it is ever run as Python.
"""

from __future__ import annotations

import ast
import operator
import re
from functools import reduce
from itertools import pairwise
from typing import Any

import pyarrow.compute as pc

from dboost.errors import UsageError

_COMPARE: dict[type[ast.cmpop], Any] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
HINT = 'such as year >= 2020 and lang in ("en", "de"); a column with an odd name is column("its name")'


def parsed(text: str) -> tuple[Any, tuple[str, ...]]:
    """The expression of Arrow, and the columns it names, sorted.

    Raises UsageError: The text has no meaning here.

    Examples
    --------
    >>> parsed('year >= 2020 and not lang == "en"')[1]
    ('lang', 'year')
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        single = re.search(r"(?<![=!<>])=(?!=)", text) is not None
        equals = "; two equals signs compare" if single else ""
        raise UsageError(f"where={text!r} cannot be read{equals}", hint=HINT) from None
    names: set[str] = set()
    return _expression(tree, names, text), tuple(sorted(names))


def _expression(node: ast.AST, names: set[str], text: str) -> Any:
    match node:
        case ast.BoolOp(op=op, values=values):
            join = operator.and_ if isinstance(op, ast.And) else operator.or_
            return reduce(join, [_expression(one, names, text) for one in values])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ~_expression(operand, names, text)
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [left, *others]
            pairs = zip(ops, pairwise(sides), strict=True)
            return reduce(operator.and_, [_comparison(op, *pair, names, text) for op, pair in pairs])
        case ast.Name() | ast.Call():
            return _column(node, names, text)
    raise _refused(node, text)


def _comparison(op: ast.cmpop, left: ast.AST, right: ast.AST, names: set[str], text: str) -> Any:
    if isinstance(op, ast.In | ast.NotIn):
        if not isinstance(right, ast.Tuple | ast.List | ast.Set) or not right.elts:
            raise _refused(right, text)
        inside = _column(left, names, text).isin([_value(one, text) for one in right.elts])
        return inside if isinstance(op, ast.In) else ~inside
    if isinstance(op, ast.Is | ast.IsNot):
        if not (isinstance(right, ast.Constant) and right.value is None):
            raise _refused(right, text)
        missing = _column(left, names, text).is_null()
        return missing if isinstance(op, ast.Is) else ~missing
    return _COMPARE[type(op)](_side(left, names, text), _side(right, names, text))


def _side(node: ast.AST, names: set[str], text: str) -> Any:
    if isinstance(node, ast.Name | ast.Call):
        return _column(node, names, text)
    return pc.scalar(_value(node, text))


def _column(node: ast.AST, names: set[str], text: str) -> Any:
    match node:
        case ast.Name(id=name):
            names.add(name)
            return pc.field(name)
        case ast.Call(func=ast.Name(id="column"), args=[ast.Constant(value=str(name))], keywords=[]):
            names.add(name)
            return pc.field(name)
    raise _refused(node, text)


def _value(node: ast.AST, text: str) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    raise _refused(node, text)


def _refused(node: ast.AST, text: str) -> UsageError:
    return UsageError(f"where={text!r}: {ast.unparse(node)!r} has no meaning here", hint=HINT)
