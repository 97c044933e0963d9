"""Shared fixtures, and the rule that no data test is lost silently in continuous integration."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

DATA_VARIABLE = "DBOOST_DATA_HOME"


@pytest.fixture(scope="session")
def data_home() -> Path:
    """Folder of the real data sets; the test is skipped where there is none."""
    home = os.environ.get(DATA_VARIABLE)
    if not home:
        pytest.skip(f"{DATA_VARIABLE} is not set")
    return Path(home)


def lost_in_ci(reason: str, environ: dict[str, str]) -> bool:
    """Whether a skip with this reason is a failure: data was promised and the test did not use it."""
    return environ.get("CI") == "true" and bool(environ.get(DATA_VARIABLE)) and DATA_VARIABLE in reason


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple) and lost_in_ci(report.longrepr[2], dict(os.environ)):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: skipped in CI although {DATA_VARIABLE} is set ({report.longrepr[2]})"
    return report
