"""Everything that stands for an engine, or for what an engine remembers, has all of its members."""

from __future__ import annotations

import inspect

import pytest

from dboost.boosting.cross_validation import LeftEngine
from dboost.engine.base import Engine
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.engine.memo import Memo
from dboost.passes import folds
from dboost.problem.centred import CentredEngine

MEMOS = [value for value in vars(folds).values() if inspect.isclass(value) and hasattr(value, "forget")]


def members(kind):
    """Public names of a class, and what makes it a context manager."""
    own = {name for cls in kind.__mro__[:-1] for name in (*vars(cls), *getattr(cls, "__annotations__", {}))}
    return {name for name in own if not name.startswith("_")} | ({"__enter__", "__exit__"} & own)


@pytest.mark.parametrize("kind", [LocalEngine, DaskEngine, LeftEngine, CentredEngine])
def test_every_engine_has_every_member_of_the_protocol(kind):
    # what an engine sets when it is opened, and not in its class, is looked for in the source of that
    found = members(kind) | {name for name in members(Engine) if f"self.{name} =" in inspect.getsource(kind.__init__)}
    assert members(Engine) <= found


@pytest.mark.parametrize("kind", [LocalEngine, DaskEngine, LeftEngine, CentredEngine])
def test_every_method_takes_the_arguments_of_the_protocol(kind):
    for name in members(Engine):
        asked = getattr(Engine, name, None)
        if inspect.isfunction(asked) and not name.startswith("_"):
            wanted = [p.kind for p in inspect.signature(asked).parameters.values()]
            assert [p.kind for p in inspect.signature(getattr(kind, name)).parameters.values()] == wanted, name


def test_every_memo_has_every_member():
    assert len(MEMOS) == 2
    for kind in MEMOS:
        assert members(Memo) <= members(kind)
