"""The parts of the cluster that need no Slurm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slurm import cgroups, config, files, packages, processes
from tests.slurm.cluster import Cluster, sweep
from tests.slurm.ports import free_ports
from tests.slurm.recording import RECORDED, read, text_of

HERE = Path(__file__).resolve().parent


def layout(root, **changes):
    fields = {
        "host": "host",
        "user": "root",
        "controller": 1,
        "database": 2,
        "accounting": 3,
        "nodes": (4, 5),
    }
    return config.Layout(root=Path(root), **{**fields, **changes})


def finished(name="sleeper"):
    """Return what is noted of a process that has ended."""
    process = subprocess.Popen(["true"])
    running = processes.identify(name, process.pid)
    process.wait()
    return running


def test_every_path_lies_in_the_folder():
    """No daemon reads or writes a file of a Slurm that the machine has in production."""
    where = layout("/tmp/c")
    texts = [
        config.slurm_conf(where),
        config.slurmdbd_conf(where, "p"),
        config.gres_conf(where),
        config.cgroup_conf(where),
    ]
    keys = ("Location", "File", "Dir", "Mountpoint", "Info", "Loc", "AccountingStoragePass")
    for text in texts:
        for line in text.splitlines():
            key, _, value = line.partition("=")
            if key.endswith(keys) and "/" in value:
                assert "/tmp/c/" in value, line
    # Left out, each of these is a path of the machine's own.
    wanted = {
        "StateSaveLocation",
        "SlurmctldPidFile",
        "SlurmctldLogFile",
        "SlurmdSpoolDir",
        "SlurmdPidFile",
        "SlurmdLogFile",
        "AuthInfo",
    }
    assert wanted <= {line.partition("=")[0] for line in texts[0].splitlines()}


def test_each_node_has_its_own_port():
    """Both nodes are this machine, and differ by port."""
    lines = [line for line in config.slurm_conf(layout("/tmp/c")).splitlines() if line.startswith("NodeName")]
    assert ["Port=4", "Port=5"] == [line.split()[3] for line in lines]


def test_a_cluster_on_gpus_is_one_node_with_their_devices(tmp_path):
    """Two slurmd on a host would each number its GPUs from 0, so that two jobs would get one card."""
    where = layout(
        tmp_path / "c", nodes=(4,), names=("n1",), cpus=32, memory=9000, gpus=2, devices="/dev/nvidia"
    )
    files.write_files(where)

    (line,) = [one for one in config.slurm_conf(where).splitlines() if one.startswith("NodeName")]
    assert "CPUs=32 RealMemory=9000 Gres=gpu:2" in line
    assert "PartitionName=DEFAULT Nodes=n1 " in config.slurm_conf(where)
    assert ["/dev/nvidia0", "/dev/nvidia1"] == [str((where.root / f"n1/gpu{g}").readlink()) for g in (0, 1)]
    assert where == files.read_layout(where.root)


def test_a_gpu_that_is_not_there_is_refused_before_anything_is_made(tmp_path):
    """The sentence names the first device file that is missing."""
    if Path("/dev/nvidia15").exists():
        pytest.skip("this machine has 16 GPUs")
    with pytest.raises(FileNotFoundError, match="fewer than 16 NVIDIA GPUs"):
        Cluster.create(tmp_path / "c", accounting=False, gpus=16)
    assert not (tmp_path / "c").exists()


def test_without_accounting_no_database_is_named():
    """The configuration without accounting asks for none."""
    text = config.slurm_conf(layout("/tmp/c", with_accounting=False))
    assert "AccountingStorageType=accounting_storage/none" in text
    assert "slurmdbd" not in text


def test_without_control_groups_none_is_mounted():
    """Where memory can't be limited, slurmd is sent to an empty folder instead of /sys/fs/cgroup."""
    assert "CgroupMountpoint=/tmp/c/cgroup" in config.cgroup_conf(layout("/tmp/c"))
    assert "ConstrainRAMSpace=yes" in config.cgroup_conf(layout("/tmp/c", cgroup=True))


def test_ports_differ():
    """Every daemon gets a port of its own."""
    assert 5 == len(set(free_ports(5)))


def test_missing_programs_are_named_by_package(tmp_path, monkeypatch):
    """Whoever lacks a program is told what to install."""
    monkeypatch.setattr(packages, "search_path", lambda path=None: str(tmp_path))
    every = ["mariadb-server", "munge", "slurm-client", "slurmctld", "slurmd", "slurmdbd"]
    assert every == packages.missing()
    assert "mariadb-server" not in packages.missing(accounting=False)
    assert "apt-get install --no-install-recommends munge" in packages.sentence(["munge"])
    for name in packages.PACKAGES:
        (tmp_path / name).touch(mode=0o755)
    assert [] == packages.missing()


def test_groups_of_somebody_else_are_left_alone(tmp_path):
    """Where a control group of a node's name exists, none is claimed and none is touched."""
    if os.geteuid() != 0:
        pytest.skip("only root claims control groups")
    (tmp_path / "freezer").mkdir()
    other = tmp_path / "memory" / "slurm_n2"
    other.mkdir(parents=True)
    assert not cgroups.claim(["n1", "n2"], tmp_path)
    assert [other] == list((tmp_path / "memory").iterdir())


def test_groups_are_removed_deepest_first(tmp_path):
    """Groups of a job that is left over go with those of their node, and other nodes' stay."""
    (tmp_path / "memory" / "slurm_n1" / "uid_0" / "job_1").mkdir(parents=True)
    other = tmp_path / "memory" / "slurm_n10"
    other.mkdir()
    assert [] == cgroups.release(["n1"], tmp_path)
    assert [other] == list((tmp_path / "memory").iterdir())


def test_process_with_a_number_used_again_is_not_ended(tmp_path):
    """A process that bears a daemon's number, but started at another time, is left alone."""
    (tmp_path / "pids").mkdir()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        noted = processes.identify("slurmctld", stranger.pid)
        processes.stop(processes.Running("slurmctld", noted.pid, noted.created - 100.0), tmp_path)
        assert stranger.poll() is None
        processes.stop(noted, tmp_path)
        assert noted.process() is None
        stranger.wait()


def test_cluster_whose_owner_was_killed_is_swept(tmp_path):
    """A folder whose owner is gone is removed; one whose owner lives, and one without owner, stay."""
    for name in ("c-gone", "c-alive", "c-kept"):
        (tmp_path / name).mkdir()
    gone = Cluster.create(tmp_path / "c-gone")
    processes.note(finished("owner"), gone.root)
    alive = Cluster.create(tmp_path / "c-alive", owner=os.getpid())
    kept = Cluster.create(tmp_path / "c-kept")
    try:
        assert [gone.root] == sweep(tmp_path, "c-")
        assert [alive.root, kept.root] == sorted(tmp_path.iterdir())
    finally:
        alive.remove()
        kept.remove()


def test_folder_that_is_in_use_is_refused(tmp_path):
    """A cluster is never written over files that are there."""
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(FileExistsError, match="is not empty"):
        Cluster.create(tmp_path)


def test_down_needs_a_cluster(tmp_path):
    """The command to stop a cluster names what it misses, and removes nothing."""
    (tmp_path / "thesis.tex").touch()
    command = [sys.executable, str(HERE / "up.py"), "down", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (1, f"up.py: {tmp_path} holds no cluster: cluster.json is missing there.\n") == (
        done.returncode,
        done.stderr,
    )
    assert (tmp_path / "thesis.tex").exists()


def test_recording_is_read_back():
    """What was written down is what is read, trailing blanks and empty lines included."""
    answers = [
        (
            ["scontrol", "show", "job", "1"],
            subprocess.CompletedProcess([], 0, "JobId=1\n   Power=\n   \n\n", ""),
        ),
        (["squeue", "--format=%i|%T"], subprocess.CompletedProcess([], 1, "", "slurm_load_jobs error\n")),
        (["scancel", "1"], subprocess.CompletedProcess([], 0, "", "")),
    ]
    back = read(text_of("A job.", "slurm-wlm 22.05.8", answers, {}))
    assert [command for command, _ in answers] == [command for command, _ in back]
    for (_, expected), (_, actual) in zip(answers, back, strict=True):
        assert (expected.returncode, expected.stdout, expected.stderr) == (
            actual.returncode,
            actual.stdout,
            actual.stderr,
        )


def test_every_recording_can_be_read():
    """Each recorded file holds commands with their outputs, and says where they come from."""
    files = sorted(RECORDED.glob("*/*.txt"))
    assert {"lsf", "slurm-22.05.8"} <= {path.parent.name for path in files}
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert text.splitlines()[1].startswith(("# Recorded from ", "# NOT recorded")), path
        assert read(text), path
