from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.launch.telemetry import cgroup

V2 = {
    "proc/self/cgroup": "0::/job/step\n",
    "proc/self/mountinfo": "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
    "sys/fs/cgroup/job/step/memory.max": "max\n",
    "sys/fs/cgroup/job/memory.max": "68719476736\n",
    "sys/fs/cgroup/job/step/memory.current": "1073741824\n",
    "sys/fs/cgroup/job/step/memory.peak": "2147483648\n",
    "sys/fs/cgroup/job/step/cpu.stat": "usage_usec 5\nnr_throttled 3\nthrottled_usec 2500000\n",
    "sys/fs/cgroup/job/step/cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull total=9\n",
    "proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=250000\n",
}
V1 = {
    "proc/self/cgroup": "9:memory:/slurm/job_1\n4:cpu,cpuacct:/slurm/job_1\n",
    "proc/self/mountinfo": (
        "33 25 0:29 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
        "34 25 0:30 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory\n"
    ),
    "sys/fs/cgroup/memory/slurm/job_1/memory.limit_in_bytes": "34359738368\n",
    "sys/fs/cgroup/memory/slurm/memory.limit_in_bytes": "9223372036854771712\n",
    "sys/fs/cgroup/memory/slurm/job_1/memory.usage_in_bytes": "1048576\n",
    "sys/fs/cgroup/memory/slurm/job_1/memory.max_usage_in_bytes": "4194304\n",
    "sys/fs/cgroup/cpu/slurm/job_1/cpu.stat": "nr_periods 9\nnr_throttled 1\nthrottled_time 1500000000\n",
}


@pytest.fixture
def lay(tmp_path):
    """Return a function that lays files below a root folder."""

    def lay(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return lay


def test_a_v2_group_is_read_with_its_parents_limit(lay):
    """The smallest limit of all parents holds; use and peak are the group's own."""
    root = lay(V2)
    folders = cgroup.find_folders(root)

    assert 64 * 2**30 == cgroup.memory_limit(folders)
    assert (2**30, 2**31) == cgroup.memory_used(folders)
    assert 2.5 == cgroup.throttled_seconds(folders)


def test_pressure_is_the_groups_and_else_the_nodes(lay):
    """A group without a file of its own for a resource leaves the node's; what neither has is not there."""
    root = lay(V2)

    assert {"cpu": 1.5, "memory": 0.25} == cgroup.pressure_seconds(cgroup.find_folders(root), root)


def test_a_v1_group_is_read_by_its_own_names(lay):
    """In v1 no limit is a very large number, and throttled time is in nanoseconds."""
    folders = cgroup.find_folders(lay(V1))

    assert 32 * 2**30 == cgroup.memory_limit(folders)
    assert (2**20, 2**22) == cgroup.memory_used(folders)
    assert 1.5 == cgroup.throttled_seconds(folders)


def test_without_cgroups_nothing_is_known(tmp_path):
    """No limit, no use, no throttling: null each."""
    folders = cgroup.find_folders(tmp_path)

    assert (None, (None, None), None) == (
        cgroup.memory_limit(folders),
        cgroup.memory_used(folders),
        cgroup.throttled_seconds(folders),
    )
    assert {} == cgroup.pressure_seconds(folders, tmp_path)
    assert (None, None) == cgroup.node_cpu_seconds(tmp_path)


def test_busy_time_leaves_out_idling_and_what_was_stolen():
    """Idle and iowait are no work; guest time is in user already; steal is told apart."""
    text = "cpu  100 10 40 5000 300 5 5 20 60 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n"

    assert (1.6, 0.2) == cgroup.parse_stat(text, 100)
    assert (None, None) == cgroup.parse_stat("cpu 1 2\n", 100)


@given(st.text())
def test_any_text_is_read_without_an_error(text):
    """Files of other kernels may hold anything; a number that is not there is None."""
    assert cgroup.parse_pressure(text) is None or cgroup.parse_pressure(text) >= 0
    assert cgroup.parse_throttled(text) is None or cgroup.parse_throttled(text) >= 0
    cgroup.parse_stat(text, 100)
