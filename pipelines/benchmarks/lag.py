"""``dboost bench certificate``: time to a certified gap of 1e-4 against time to a true 1e-6, our solver alone."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from .. import tables
from . import output
from .against import measure_all
from .suite import options_of, problems_of


def run(out: Path, quick: bool, settings: Any) -> int:
    """Measure every problem that is asked for, without peers."""
    options = options_of(settings, quick, peers=("none",))
    began = time.perf_counter()
    records = list(measure_all(problems_of(settings), options, lambda line: print(f"  {line}", flush=True)))
    output.write(out, records, options, time.perf_counter() - began, ())
    text = output.certificate(records)
    print(text)
    tables.write(out / "certificate.md", "The certificate", [text])
    return 0
