"""``dboost doctor``: what is found on a healthy machine and cluster, and each fault with its advice."""

from types import SimpleNamespace

import dboost
from pipelines.commands import doctor
from pipelines.commands.doctor import ADVICE, BAD, GOOD


class Cluster:
    """A client that answers what it is told to."""

    def __init__(self, answers, address="tcp://127.0.0.1:1"):
        self.answers = answers
        self.scheduler = SimpleNamespace(address=address)

    def run(self, function, *arguments):
        return self.answers

    def nthreads(self):
        return dict.fromkeys(self.answers, 1)

    def scheduler_info(self, n_workers):
        return {"workers": {name: {"memory_limit": size, "nthreads": 1} for name, size in self.answers.items()}}


def test_a_healthy_machine(prepared, tells):
    assert {one["state"] for one in tells("doctor", "--data", prepared)[-1]["findings"]} == {GOOD}


def test_threads():
    for answer, state, said in (
        ((2, 2, {}), GOOD, ""),
        ((9, 2, {}), ADVICE, "--nthreads 2"),
        ((2, 2, {"OMP_NUM_THREADS": "1"}), GOOD, ""),
        ((2, 2, {"OMP_NUM_THREADS": "8"}), ADVICE, "set these to 1"),
    ):
        (found,) = doctor.threads(Cluster({"tcp://10.0.0.1:4": answer}), None, None)
        assert found.state == state and said in found.advice


def test_a_worker_that_sees_other_data_makes_it_unfit(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"")
    there = doctor.state_of(str(tmp_path))
    for other, state in ((there, GOOD), (None, BAD)):
        (found,) = doctor.paths(Cluster({"one": there, "two": other}), None, str(tmp_path))
        assert found.state == state
    assert "two" in found.found


def test_memory_against_what_the_data_takes(prepared):
    data = dboost.ParquetData(prepared, split="train")
    for size, state, said in (
        (1 << 30, GOOD, ""),
        (300 << 20, ADVICE, "--memory-limit"),
        (1 << 10, BAD, "smaller row groups"),
    ):
        (found,) = doctor.memory(Cluster({"one": size}), data, None)
        assert found.state == state and said in found.advice
