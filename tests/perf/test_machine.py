from __future__ import annotations

import json
import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf import machine
from perf.machine import (
    CgroupMount,
    cgroup_folders,
    cgroup_mounts,
    cgroup_paths,
    cores_allowed,
    cpu_model,
    cpu_quota,
    quota_v1,
    quota_v2,
    suite_facts,
    system_facts,
    telling_variables,
)

V2_MOUNTINFO = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNTINFO = (
    "33 25 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "34 25 0:30 / /sys/fs/cgroup/memory rw,nosuid shared:10 - cgroup cgroup rw,memory\n"
)


@pytest.fixture
def root(tmp_path):
    """Return a function that lays files below a root folder."""

    def lay(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return lay


def test_the_quota_of_a_v2_cgroup_is_found(root):
    """Quota over period is cores."""
    files = {
        "proc/self/cgroup": "0::/job/step\n",
        "proc/self/mountinfo": V2_MOUNTINFO,
        "sys/fs/cgroup/job/step/cpu.max": "350000 100000\n",
    }
    assert 3.5 == cpu_quota(root(files))


def test_the_smallest_quota_of_all_parents_holds(root):
    """A container's own group is often unlimited below a limited one."""
    files = {
        "proc/self/cgroup": "0::/job/step\n",
        "proc/self/mountinfo": V2_MOUNTINFO,
        "sys/fs/cgroup/job/step/cpu.max": "max 100000\n",
        "sys/fs/cgroup/job/cpu.max": "200000 100000\n",
        "sys/fs/cgroup/cpu.max": "800000 100000\n",
    }
    assert 2.0 == cpu_quota(root(files))


def test_the_quota_of_a_v1_cgroup_is_found(root):
    """In v1 the CPU controller has a path of its own; other controllers' paths don't count."""
    files = {
        "proc/self/cgroup": "9:memory:/other\n4:cpu,cpuacct:/slurm/job_1\n0::/\n",
        "proc/self/mountinfo": V1_MOUNTINFO,
        "sys/fs/cgroup/cpu,cpuacct/slurm/job_1/cpu.cfs_quota_us": "400000\n",
        "sys/fs/cgroup/cpu,cpuacct/slurm/job_1/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_period_us": "100000\n",
    }
    assert 4.0 == cpu_quota(root(files))


def test_without_cgroups_there_is_no_quota(root, tmp_path):
    """Neither missing files nor empty ones are a limit."""
    assert cpu_quota(tmp_path) is None
    assert cpu_quota(root({"proc/self/cgroup": "", "proc/self/mountinfo": ""})) is None


def test_a_mount_that_shows_a_part_of_the_hierarchy_is_read_from_its_top():
    """A container sees its own group as the mount's root; a path outside of it has the mount's top to go by."""
    mount = CgroupMount("/docker/abc", "/sys/fs/cgroup", 2, frozenset())
    assert ["/sys/fs/cgroup/x", "/sys/fs/cgroup"] == cgroup_folders(mount, "/docker/abc/x")
    assert ["/sys/fs/cgroup"] == cgroup_folders(mount, "/docker/abc")
    assert ["/sys/fs/cgroup"] == cgroup_folders(mount, "/docker/abcdef")
    assert ["/sys/fs/cgroup"] == cgroup_folders(mount, "/../elsewhere")


def test_mounts_are_read_with_their_escapes():
    """A blank in a path is an octal escape in mountinfo; lines of other file systems are skipped."""
    text = (
        "24 1 8:1 / / rw - ext4 /dev/sda rw\n"
        + V2_MOUNTINFO.replace("/sys/fs/cgroup", "/a\\040b\\134c")
        + "broken line\n"
    )
    assert [CgroupMount("/", "/a b\\c", 2, frozenset({"rw", "nsdelegate"}))] == cgroup_mounts(text)


def test_cgroup_paths_are_read_by_controller():
    """Each controller of a v1 line has the line's path, a path may hold colons, v2 is the empty name."""
    assert {"cpu": "/a:b", "cpuacct": "/a:b", "": "/c"} == cgroup_paths(
        "4:cpu,cpuacct:/a:b\n0::/c\nnonsense\n"
    )


@settings(deadline=None)  # A shared machine may be slow.
@given(st.integers(1, 10**7), st.integers(1, 10**6))
def test_quota_over_period_is_cores_in_both_versions(quota, period):
    """The two versions say the same in other words."""
    assert quota / period == quota_v2(f"{quota} {period}\n") == quota_v1(f"{quota}\n", f"{period}\n")


@settings(deadline=None)  # As above.
@given(st.text(), st.text())
def test_any_text_is_a_quota_or_none(first, second):
    """A file that can't be understood is no limit, and no error."""
    for cores in (quota_v2(first), quota_v1(first, second)):
        assert cores is None or cores > 0


@pytest.mark.parametrize(("quota", "expected"), [(None, 4), (3.5, 3), (0.5, 1), (8.0, 4)])
def test_cores_allowed_are_the_affinity_limited_by_the_quota(monkeypatch, quota, expected):
    """A part of a core is not a core to plan with, but there is always one."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 5})
    monkeypatch.setattr(machine, "cpu_quota", lambda root: quota)
    assert expected == cores_allowed()


def test_this_machines_cores_are_at_most_its_affinity():
    """The real files of this machine are read."""
    assert 1 <= cores_allowed() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "processor\t: 0\nmodel name\t: AMD EPYC 7763 64-Core Processor\nmodel name\t: x\n",
            "AMD EPYC 7763 64-Core Processor",
        ),
        ("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n", "POWER9, altivec supported"),
        ("processor\t: 0\nCPU implementer\t: 0x41\n", None),
        ("", None),
    ],
)
def test_the_cpu_model_is_read_on_x86_and_power(text, expected):
    """ARM says nothing here, which is null and not a guess."""
    assert expected == cpu_model(text)


def test_only_telling_variables_are_kept_and_no_secret():
    """Scheduler and tuning variables stand in the record; tokens and whatever else a user exports do not."""
    environ = {
        "SLURM_JOB_ID": "7",
        "LSB_JOBID": "8",
        "PBS_JOBID": "9",
        "NCCL_P2P_DISABLE": "1",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "SLURM_JWT": "eyJ",
        "NCCL_API_KEY": "k",
        "HOME": "/home/u",
        "AWS_SECRET_ACCESS_KEY": "s",
    }
    kept = {"SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID", "NCCL_P2P_DISABLE", "CUDA_VISIBLE_DEVICES"}
    assert {name: environ[name] for name in kept} == telling_variables(environ)


def test_system_facts_are_json_and_name_this_machine():
    """What environment.json takes can be written, and has the facts of the machine and of the suite."""
    facts = system_facts({"SLURM_JOB_ID": "7"})
    assert facts == json.loads(json.dumps(facts, allow_nan=False))
    assert ({"SLURM_JOB_ID": "7"}, os.cpu_count(), os.uname().release) == (
        facts["variables"],
        facts["cores"],
        facts["kernel"],
    )
    assert facts["memory_bytes"] > 0
    assert {"version", "commit", "changed"} == set(facts["suite"])


@pytest.fixture
def repository(root):
    """Make a git repository with one commit and a version, or skip where there is no git."""
    folder = root({"pyproject.toml": '[project]\nname = "x"\nversion = "1.2.3"\n'})
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    identity = ["-c", "user.name=n", "-c", "user.email=e@x"]

    def git(*arguments):
        done = subprocess.run(
            ["git", *identity, *arguments],
            check=False,
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
        )
        assert 0 == done.returncode, done.stderr
        return done.stdout.strip()

    try:
        git("init", "-q")
    except FileNotFoundError:
        pytest.skip("there is no git")
    git("add", "pyproject.toml")
    git("commit", "-q", "-m", "m")
    return folder, git("rev-parse", "HEAD")


def test_the_suite_says_its_version_commit_and_whether_it_was_changed(repository):
    """A record can be traced to the code that made it, and says so if it can't."""
    folder, commit = repository
    assert {"version": "1.2.3", "commit": commit, "changed": False} == suite_facts(folder)
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1.2.4"\n')
    assert {"version": "1.2.4", "commit": commit, "changed": True} == suite_facts(folder)


def test_an_unpacked_suite_has_no_commit(root, repository):
    """A folder below somebody else's repository does not take that one's commit for its own."""
    folder, _ = repository
    (folder / "inner").mkdir()
    assert {"version": None, "commit": None, "changed": None} == suite_facts(folder / "inner")
