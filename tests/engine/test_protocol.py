"""Everything that stands for an engine, or for what an engine remembers, has all of its members.

Engines are checked by mypy, as a user's would be: the tests run it on an engine that is whole and on one that is not.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dboost.engine import views
from dboost.engine.base import Engine
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.defaults import EngineDefaults
from dboost.engine.local import LocalEngine
from dboost.engine.memo import Memo
from dboost.passes.centring import Centres

ROOT = Path(__file__).resolve().parents[2]
MEMOS = [value for value in vars(views).values() if inspect.isclass(value) and hasattr(value, "forget")]

PROGRAM = """
from dboost.boosting.fit import Fitting
from dboost.boosting.planned import Planned
from dboost.problem.state import FitSettings
from dboost.boosting.systems import StepwiseSystem
from dboost.boosting.systems import System
from dboost.data.planned import Plan
from dboost.engine.base import Engine
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.defaults import EngineDefaults
from dboost.engine.local import LocalEngine
from dboost.engine.views import EngineView
from dboost.hypotheses.base import Chosen, Family, Pool
from dboost.hypotheses.listed import ListedFamily, ListedPool, ListedSet

class Partial:
    n_workers = 1
    bytes_moved = 0

    def set_plan(self, items: object, rows: object, run_id: str) -> None: ...

def whole(local: LocalEngine, dask: DaskEngine, view: EngineView) -> list[Engine]:
    return [local, dask, view]

def planned(plan: Plan) -> Planned:
    return plan

def system(stepwise: StepwiseSystem) -> System:
    return stepwise

def family(listed: ListedFamily, pool: ListedPool, chosen: ListedSet) -> tuple[Family, Pool, Chosen]:
    return listed, pool, chosen

def partial(plan: Plan, settings: FitSettings) -> Fitting:
    return Fitting(plan, Partial(), settings)

class NoSums(EngineDefaults):
    pass

NoSums()
"""


def members(kind):
    """Public names of a class, and what makes it a context manager."""
    own = {name for cls in kind.__mro__[:-1] for name in (*vars(cls), *getattr(cls, "__annotations__", {}))}
    return {name for name in own if not name.startswith("_")} | ({"__enter__", "__exit__"} & own)


@pytest.mark.full
def test_an_incomplete_engine_does_not_pass_mypy(tmp_path):
    file = tmp_path / "engines.py"
    file.write_text(PROGRAM)
    settings = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, str(file)], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    lines = PROGRAM.splitlines()
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 2, done.stdout + done.stderr
    assert f":{1 + lines.index('    return Fitting(plan, Partial(), settings)')}: " in errors[0]
    assert '"Partial"; expected "Engine"' in errors[0]
    assert f":{1 + lines.index('NoSums()')}: " in errors[1] and '"map_reduce"' in errors[1]


def test_an_engine_must_give_nothing_but_its_sums():
    assert EngineDefaults.__abstractmethods__ == {"map_reduce"}
    assert members(Engine) <= members(EngineDefaults)


def test_every_method_takes_the_arguments_of_the_protocol():
    view = views.EngineView(LocalEngine(1), Centres(np.zeros(0, np.int64), np.zeros(0), "none"))
    for kind in [LocalEngine, DaskEngine, view, EngineDefaults]:
        for name in members(Engine):
            asked = getattr(Engine, name, None)
            # a view hands on what a pass is asked for beside its shards
            if inspect.isfunction(asked) and not name.startswith("_") and (kind, name) != (view, "map_reduce"):
                wanted = [p.kind for p in inspect.signature(asked).parameters.values()][kind is view :]
                assert [p.kind for p in inspect.signature(getattr(kind, name)).parameters.values()] == wanted, name


def test_every_memo_has_every_member():
    assert len(MEMOS) == 2
    for kind in MEMOS:
        assert members(Memo) <= members(kind)
