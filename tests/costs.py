"""What the tests cost: the slowest items, and processor seconds by folder beside their budget.

Covers: measuring each item, in this process or in those of xdist, and the lines at the end of a run. Does not cover:
budgets that do not depend on the machine (``test_budgets.py``).
"""

from __future__ import annotations

import resource
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

BUDGETS = tomllib.loads((Path(__file__).parent / "budgets.toml").read_text(encoding="utf-8"))
SLOWEST = 10
_PROPERTY = "processor_seconds"


def folder(nodeid: str) -> str:
    """The folder of tests that an item is in; "tests" for files in none."""
    parts = nodeid.partition("::")[0].split("/")
    return parts[1] if len(parts) > 2 else "tests"


def processor_seconds() -> float:
    """Of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class Costs:
    """The plugin: seconds travel with the reports of items, as xdist sends these to the process that prints."""

    def __init__(self) -> None:
        self.by_item: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """An item begins."""
        item.stash[_BEGAN] = processor_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """An item ends."""
        try:
            return (yield)
        finally:
            item.user_properties.append((_PROPERTY, processor_seconds() - item.stash[_BEGAN]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A report has come, maybe from another process."""
        if report.when == "teardown":
            self.by_item[report.nodeid] = dict(report.user_properties).get(_PROPERTY, 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """The slowest items, and each folder beside its budget."""
        if hasattr(config, "workerinput") or len(self.by_item) < 2 * SLOWEST:
            return
        terminalreporter.section(f"the {SLOWEST} items that took the most of the processor")
        for name, seconds in sorted(self.by_item.items(), key=lambda pair: -pair[1])[:SLOWEST]:
            terminalreporter.write_line(f"{seconds:7.2f} s  {name}")
        terminalreporter.section("processor seconds by folder")
        spent, items = Counter[str](), Counter(map(folder, self.by_item))
        for name, seconds in self.by_item.items():
            spent[folder(name)] += seconds
        short = config.option.markexpr == "not full"
        for name, seconds in spent.most_common():
            budget = BUDGETS["seconds"].get(name, 0) if short else 0
            beside = f" of {budget:4d}" if short else ""
            above = "   above its budget in tests/budgets.toml" if short and seconds > budget else ""
            terminalreporter.write_line(f"{seconds:7.1f}{beside} s  {items[name]:5d} items  {name}{above}")
        terminalreporter.write_line(f"{sum(spent.values()):7.1f} s in all, {len(self.by_item)} items")


_BEGAN = pytest.StashKey[float]()
