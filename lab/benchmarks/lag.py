"""``python -m lab bench certificate``: time to a certified gap of 1e-4 against time to a true 1e-6, of our solver."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

from lab import tables
from lab.benchmarks import output
from lab.benchmarks.against import measure_all
from lab.benchmarks.suite import kept_and_shown, options_of, problems_of


def run(out: Path, quick: bool, settings: Any) -> int:
    """Measure every problem that is asked for, without peers."""
    options = options_of(settings, quick, peers=("none",))
    began = time.perf_counter()
    failed: dict[str, str] = {}
    say = partial(print, " ", flush=True)
    records = list(measure_all(problems_of(settings), options, say, failed))
    seconds = time.perf_counter() - began

    def show() -> None:
        output.write(out, records, options, seconds, (), failed)
        text = output.certificate(records)
        print(text)
        tables.write(out / "certificate.md", "The certificate", [text])

    return kept_and_shown(out, records, options, seconds, failed, show)
