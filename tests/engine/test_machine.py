"""Cores and memory inside containers."""

from __future__ import annotations

from dboost.engine.machine import available_cores, available_memory


def test_without_a_container(tmp_path):
    assert available_cores(tmp_path) >= 1
    assert available_memory(tmp_path) > 2**26


def test_cgroup_2(tmp_path):
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    (tmp_path / "memory.max").write_text(f"{2**26}\n")
    assert available_cores(tmp_path) == 1
    assert available_memory(tmp_path) == 2**26
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert available_cores(tmp_path) == available_cores(tmp_path / "none")
    assert available_memory(tmp_path) == available_memory(tmp_path / "none")


def test_the_groups_around_a_process_count_as_its_own(tmp_path):
    own = tmp_path / "own"
    group = tmp_path / "cgroup" / "service" / "worker"
    group.mkdir(parents=True)
    own.write_text("0::/service/worker\n")
    none = available_cores(tmp_path / "cgroup", own)
    (group / "cpu.max").write_text("max 100000\n")
    assert available_cores(tmp_path / "cgroup", own) == none
    (group.parent / "cpu.max").write_text("90000 100000\n")
    assert available_cores(tmp_path / "cgroup", own) == 1
    # version 1 says in which group of which controllers a process is
    own.write_text("5:memory:/other\n4:cpu,cpuacct:/service\nunreadable\n")
    earlier = tmp_path / "cgroup 1" / "cpu" / "service"
    earlier.mkdir(parents=True)
    (earlier / "cpu.cfs_quota_us").write_text("-1\n")
    (earlier / "cpu.cfs_period_us").write_text("100000\n")
    assert available_cores(tmp_path / "cgroup 1", own) == none
    (earlier / "cpu.cfs_quota_us").write_text("50000\n")
    assert available_cores(tmp_path / "cgroup 1", own) == 1
