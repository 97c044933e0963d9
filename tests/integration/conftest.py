"""Tests against servers and programs that ``make test`` does without: only ``make integration`` collects them."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("DBOOST_INTEGRATION") else ["test_*.py"]
