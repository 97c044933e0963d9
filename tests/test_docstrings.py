"""What public names say of themselves: examples that run, and the sections that a reader looks for.

Covers: every example in the modules of ``dboost``; summary, parameters, results and an example of every public name.
Does not cover: whether the sentences are true.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import typing
import warnings
from pathlib import Path
from typing import Any

import pytest

import dboost
from dboost.errors import DboostError, DboostWarning

ROOT = Path(__file__).resolve().parent.parent


def modules_with_examples() -> list[str]:
    paths = sorted(path for path in (ROOT / "dboost").rglob("*.py") if ">>>" in path.read_text(encoding="utf-8"))
    return [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name.startswith("dboost.plots"):
        pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DboostWarning)
        found = doctest.testmod(module)
    assert found.attempted > 0 and found.failed == 0
    if name.startswith("dboost.plots"):
        importlib.import_module("matplotlib.pyplot").close("all")


def public() -> list[tuple[str, Any]]:
    """Classes and functions that ``__all__`` of dboost and of its public parts names; each once."""
    found: dict[int, tuple[str, Any]] = {}
    for part in (dboost, dboost.plots, dboost.losses, dboost.penalties, dboost.hypotheses):
        for name in part.__all__:
            value = getattr(part, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                found.setdefault(id(value), (f"{part.__name__}.{name}", value))
    for name, value in vars(dboost.metrics).items():
        if inspect.isfunction(value) and not name.startswith("_") and value.__module__ == dboost.metrics.__name__:
            found.setdefault(id(value), (f"dboost.metrics.{name}", value))
    return list(found.values())


def sections(text: str) -> set[str]:
    return set(re.findall(r"^(\w[\w ]*)\n-{3,}$", text, flags=re.M))


def lacking(value: Any) -> set[str]:
    """What the docstring of a public name does not have."""
    text = inspect.getdoc(value) or ""
    missing = set() if text.split("\n")[0].strip() else {"summary"}
    has = sections(text)
    if getattr(value, "_is_protocol", False):
        # A protocol is not called: its members say what they take, and what implements it has the examples.
        return missing
    if inspect.isclass(value) and issubclass(value, BaseException):
        # Errors share the parameters of their base, which says them.
        return missing if value is not DboostError else missing | ({"Parameters"} - has)
    names = [name for name in inspect.signature(value).parameters if name not in ("args", "kwargs")]
    if names and "Parameters" not in has:
        missing.add("Parameters")
    if "Parameters" in has and not re.search(r"^others?$", text, flags=re.M):
        missing |= {f"parameter {name}" for name in names if not re.search(rf"\b{name}\b", text)}
    if inspect.isfunction(value) and typing.get_type_hints(value).get("return") not in (None, type(None)):
        missing |= {"Returns"} - has
    if inspect.isclass(value) and hasattr(value, "fit") and hasattr(value, "get_params"):
        missing |= {"Attributes"} - has
    return missing if ">>>" in text else missing | {"an example"}


def test_public_names_say_what_they_take_and_give() -> None:
    assert not {name: sorted(lacking(value)) for name, value in public() if lacking(value)}
