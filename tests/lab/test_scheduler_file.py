"""The address of a scheduler is read once all of its file is there."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lab.scheduler_file import address_in

WHOLE = '{"type": "Scheduler", "address": "tcp://127.0.0.1:8786"}'


@pytest.mark.parametrize("part", ["", WHOLE[:30]], ids=["empty", "cut"])
def test_a_file_that_is_not_whole_is_read_again(part: str, tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text(part)
    later = threading.Timer(0.2, file.write_text, [WHOLE])
    later.start()
    assert address_in(file, 20.0) == "tcp://127.0.0.1:8786"
    later.join()


def test_a_file_that_never_comes_is_told(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match=r"scheduler\.json: no scheduler has written"):
        address_in(tmp_path / "scheduler.json", 0.1)
