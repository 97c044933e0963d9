"""The page on the way of one fit names functions that exist, in the order and the depth in which a fit calls them."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path

import numpy as np

import dboost
from tests.test_readme import blocks

PAGE = "docs/how/a_fit.md"


def named() -> list[tuple[int, str, str]]:
    """The indent, module and name of each line of the page's first block."""
    found = []
    for line in blocks(PAGE)[0].text.splitlines():
        name, module, *_ = line.split()
        found.append((line.index(name), f"dboost.{module}", name))
    return found


def code_of(module: str, name: str) -> object:
    found: object = importlib.import_module(module)
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    return inspect.unwrap(found).__code__  # type: ignore[arg-type]


def test_a_fit_calls_what_the_page_names_in_its_order_and_depth():
    page = named()
    code = [code_of(module, name) for _, module, name in page]
    assert len(set(code)) == len(page) > 20
    stack: list[object] = []
    calls: list[tuple[object, set[object]]] = []

    def seen(frame, event, _):
        if frame.f_code not in code:
            return
        if event == "call":
            calls.append((frame.f_code, set(stack)))
            stack.append(frame.f_code)
        elif event == "return":
            stack.pop()

    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 8))
    y = X[:, 0] + 0.3 * rng.normal(size=80) > 0
    model = dboost.BoostedClassifier(alpha=0.05, penalty="l1")
    model.fit(X, y)
    sys.setprofile(seen)
    try:
        model.fit(X, y)
    finally:
        sys.setprofile(None)
    assert model.stop_reason_ == "tol"
    at = 0
    for called, above in calls:
        # each line is called below the nearest line before it that begins further to the left
        if at < len(page) and called is code[at]:
            parents = [code[other] for other in range(at) if page[other][0] < page[at][0]]
            at += not parents or parents[-1] in above
    assert at == len(page), f"not called below its line, after those before it: {page[at][1:]}"
    assert (Path(__file__).parents[1] / PAGE).read_text().count(":pyobject: Loop.advance") == 1
