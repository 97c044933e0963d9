"""Everything that stands for an engine, or for what an engine remembers, has all of its members."""

from __future__ import annotations

import inspect
from pathlib import Path

from dboost.engine import views
from dboost.engine.base import Engine
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.defaults import EngineDefaults
from dboost.engine.local import LocalEngine
from dboost.engine.memo import Memo

ROOT = Path(__file__).resolve().parents[2]
MEMOS = [value for value in vars(views).values() if inspect.isclass(value) and hasattr(value, "forget")]


def members(kind):
    """Public names of a class, and what makes it a context manager."""
    own = {name for cls in kind.__mro__[:-1] for name in (*vars(cls), *getattr(cls, "__annotations__", {}))}
    return {name for name in own if not name.startswith("_")} | ({"__enter__", "__exit__"} & own)


def test_an_engine_must_give_nothing_but_its_sums():
    assert EngineDefaults.__abstractmethods__ == {"map_reduce"}
    assert members(Engine) <= members(EngineDefaults)


def test_every_method_takes_the_arguments_of_the_protocol():
    for kind in [LocalEngine, DaskEngine, views.EngineView, EngineDefaults]:
        for name in members(Engine):
            asked = getattr(Engine, name, None)
            if inspect.isfunction(asked) and not name.startswith("_"):
                wanted = [p.kind for p in inspect.signature(asked).parameters.values()]
                assert [p.kind for p in inspect.signature(getattr(kind, name)).parameters.values()] == wanted, name


def test_every_memo_has_every_member():
    assert len(MEMOS) == 2
    for kind in MEMOS:
        assert members(Memo) <= members(kind)
