"""Who is let in, what listens where, and whether a secret is in anything that is printed or written.

Covers: the tests that show it, counted one by one: four wrong clients of a TLS cluster, sockets beyond loopback,
secrets in messages, logs, run folders, models, checkpoints and objects of a store.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from lab.campaign.tally import Tally

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("tests/test_redact.py", "tests/pipelines/test_tls.py", "tests/pipelines/test_stores.py")
LIMIT = 900
"""Seconds for all of them."""


def run(count: int, folder: Path, tally: Tally) -> None:
    """Run the tests, and count each; one that is skipped shows nothing."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *TESTS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
    if not report.exists():
        tally.broke(f"the tests did not run: {done.stdout[-300:]} {done.stderr[-300:]}")
        return
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        wrong = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        tally.check(not wrong, str(case.get("classname")).rpartition(".")[2], f"{name}: {wrong}")
