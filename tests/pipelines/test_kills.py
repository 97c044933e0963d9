"""SIGKILL at any instant of a run: it goes on to the same model and predictions, and does no stage twice."""

import pytest

from lab.campaign.command import Tally
from lab.run_kills import trials


@pytest.mark.full
@pytest.mark.parametrize("part", ["fit", "cv", "train", "retrain"])
def test_killed_work_goes_on_to_the_same_end(part, tmp_path):
    tally = Tally()
    trials(part, 1, tmp_path, tally)
    assert (tally.tried, tally.failed) == (1, 0)
