from __future__ import annotations

import dataclasses
import resource
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.launch.preflight import Demand, NodeFacts, check, collect, free_port, stopping
from perf.launch.stack import Stack
from perf.launch.telemetry.reading import GpuReading

MIB = 2**20
GPUS = tuple({"index": i, "name": "H100", "uuid": f"u{i}", "memory_bytes": 80 * 2**30} for i in range(2))


def facts(**changes):
    """Return the facts of a node with two GPUs and enough of everything; keywords replace fields."""
    fields = {"cores": 8, "gpus": GPUS, "shared_memory_free": 1024 * MIB, "open_files": 4096, "port": 40000}
    return NodeFacts(**{**fields, **changes})


def demand(variant="v", **changes):
    """Return what a DDP variant with two GPUs needs; keywords replace fields."""
    fields = {
        "device": "cuda",
        "strategy": "ddp",
        "gpus": 2,
        "ranks": 2,
        "cores": 8,
        "promised": True,
        "workers": 6,
        "batch_bytes": 10 * MIB,
    }
    return Demand(variant, **{**fields, **changes})


def refused(demands, node):
    """Return name and variants of each check that is not ok."""
    return [(finding.name, finding.variants) for finding in check(demands, node) if not finding.ok]


def test_a_fit_node_stops_nothing():
    """Every check is ok, and each says what it found."""
    findings = check([demand()], facts())
    assert all(finding.ok and finding.sentence for finding in findings)
    assert {"distinct GPUs", "cores", "/dev/shm", "open files", "port"} == {
        finding.name for finding in findings
    }
    assert stopping(findings, "v") is None


def test_one_card_under_two_numbers_stops_gpu_launches_only():
    """Ranks on one card would share it; what runs on the CPU may go on."""
    node = facts(gpus=(GPUS[0], {**GPUS[1], "uuid": "u0"}))
    findings = check([demand(), demand("cpu", device="cpu", gpus=0)], node)
    finding = stopping(findings, "v")
    assert "GPUs 0 and 1 are the same card (u0)." == finding.sentence
    assert "CUDA_VISIBLE_DEVICES" in finding.remedy
    assert stopping(findings, "cpu") is None


def test_gpus_without_uuid_are_not_taken_for_one_card():
    """An older torch gives no UUID, which is no proof of anything."""
    (finding,) = [
        f
        for f in check([demand()], facts(gpus=({"uuid": None}, {"uuid": None})))
        if f.name == "distinct GPUs"
    ]
    assert finding.ok
    assert "2 of 2 GPUs give no UUID" in finding.sentence


def test_a_node_without_gpus_says_so_and_stops_no_cpu_launch():
    """None is not taken for several different ones."""
    findings = check([demand(device="cpu", gpus=0)], facts(gpus=()))
    assert "No GPU is visible to the stack's torch." == findings[0].sentence
    assert stopping(findings, "v") is None


def test_a_variant_that_needs_more_gpus_than_there_are_is_stopped():
    """Others that need fewer go on."""
    assert [("GPUs", ("big",))] == refused([demand(), demand("big", gpus=4)], facts())


def test_a_default_variant_that_does_not_fit_the_cores_is_stopped_and_an_explicit_one_is_not():
    """The first was promised its cores; the second asked for more than there are, and is flagged."""
    findings = check([demand("default", cores=9), demand("explicit", cores=9, promised=False)], facts())
    assert "keeps 9 cores busy" in stopping(findings, "default").sentence
    assert "--cpus-per-task" in stopping(findings, "default").remedy
    assert stopping(findings, "explicit") is None
    assert any("oversubscribed" in finding.sentence for finding in findings)


def test_shared_memory_that_is_too_small_is_told_with_what_is_needed():
    """Workers, batches and their size give the need."""
    findings = check([demand()], facts(shared_memory_free=64 * MIB))
    expected = "v needs 180.0 MiB of /dev/shm (6 loader workers x 3 batches x 10.0 MiB), 64.0 MiB are free."
    assert expected == stopping(findings, "v").sentence
    assert "--shm-size" in stopping(findings, "v").remedy


def test_without_shared_memory_only_loaders_with_workers_are_stopped():
    """A loader in the rank itself passes nothing through it."""
    demands = [demand(), demand("plain", workers=0)]
    assert [("/dev/shm", ("v",))] == refused(demands, facts(shared_memory_free=None))
    assert [] == refused([demands[1]], facts(shared_memory_free=None))


def test_a_low_limit_of_open_files_is_told_with_the_command_that_raises_it():
    """The default of 1024 is enough for few workers, and not for very many."""
    findings = check([demand(workers=200)], facts(open_files=1024, shared_memory_free=2**40))
    finding = stopping(findings, "v")
    assert "may open 1656 files" in finding.sentence
    assert "`ulimit -n 4096`" in finding.remedy
    assert [] == refused([demand(workers=6)], facts(open_files=1024))
    assert [] == refused([demand(workers=200)], facts(open_files=None, shared_memory_free=2**40))


def test_without_a_port_ddp_is_stopped():
    """Launches of one process meet nobody."""
    demands = [demand(), demand("single", strategy="single")]
    assert [("port", ("v",))] == refused(demands, facts(port=None, port_problem="none left"))


@given(st.integers(0, 64), st.integers(0, 2**34), st.integers(0, 2**34))
def test_shared_memory_is_refused_exactly_when_it_is_too_small(workers, batch, free):
    """The limit is workers x 3 batches, and to have just enough is enough."""
    names = [
        name
        for name, _ in refused([demand(workers=workers, batch_bytes=batch)], facts(shared_memory_free=free))
    ]
    assert (workers * 3 * batch > free) == ("/dev/shm" in names)


@pytest.mark.parametrize(
    ("changes", "gpus", "workers", "batch"),
    [
        ({"strategy": "ddp", "ranks_per_node": 2, "gpus": 2, "device": "cuda"}, 2, 6, 64),
        ({"strategy": "dp", "ranks_per_node": 1, "gpus": 2, "device": "cuda"}, 2, 6, 128),
        ({"strategy": "single", "ranks_per_node": 1, "gpus": 1, "device": "cuda"}, 1, 3, 64),
        ({"strategy": "ddp", "ranks_per_node": 2, "gpus": 0, "device": "cpu"}, 0, 6, 64),
    ],
)
def test_the_demand_of_a_spec_counts_devices_workers_and_batches(make_spec, changes, gpus, workers, batch):
    """DataParallel has one loader for all its GPUs, DDP one a rank; as many workers either way."""
    found = Demand.of(make_spec(workers=3, cores=100, **changes), sample_bytes=10)
    assert (gpus, workers, batch * 10, True) == (found.gpus, found.workers, found.batch_bytes, found.promised)


def test_this_node_is_read(monkeypatch):
    """The collector finds cores, limits, a port and the GPUs that the stack's torch saw."""
    monkeypatch.setattr(
        resource, "getrlimit", lambda number: (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    node = collect(Stack("s", "/p", {"gpus": [{"uuid": "u0"}]}))
    assert node.cores >= 1
    assert ({"uuid": "u0"},) == node.gpus
    assert node.open_files is None
    assert (True, "") == (node.port is not None, node.port_problem)


def test_a_free_port_can_be_bound():
    """The port that was found is free."""
    port, _ = free_port()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))


def test_a_node_without_ports_says_why(monkeypatch):
    """The system's own words are kept."""

    def refuse(*arguments):
        raise OSError(99, "Cannot assign requested address")

    monkeypatch.setattr(socket, "socket", refuse)
    assert (None, "Cannot assign requested address") == free_port()


CARD = GpuReading("u0", 0, memory_used_bytes=3 * 2**30, utilization_percent=80.0)


@pytest.mark.parametrize(
    ("node", "planned", "name", "said", "remedy"),
    [
        ({"tasks_left": 100}, {"tasks": 200}, "processes", "you may start 100 more", "ulimit -u"),
        ({"cpu_seconds": 600}, {"cpu_seconds": 2400.0}, "CPU time", "allowed are 600", "login node"),
        (
            {"locked_memory": 64 * MIB},
            {"nodes": 2, "backend": "nccl"},
            "locked memory",
            "limited to 64.0 MiB here",
            "ulimit -l unlimited",
        ),
        (
            {"cards": (CARD,)},
            {},
            "free GPUs",
            "has 3072.0 MiB in use before anything was launched",
            "nvidia-smi",
        ),
        (
            {"versions": {"torch": "2.9", "nccl": None}},
            {"backend": "nccl"},
            "stack",
            "has no NCCL",
            "--stack",
        ),
    ],
)
def test_a_limit_or_a_neighbour_stops_a_launch_with_a_remedy(node, planned, name, said, remedy):
    """Sentence and remedy say what is too little, and what to do."""
    finding = stopping(check([demand(**planned)], facts(**node)), "v")

    assert name == finding.name
    assert said in finding.sentence
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    ("node", "planned"),
    [
        ({"tasks_left": 200}, {"tasks": 200}),
        ({"cpu_seconds": None, "tasks_left": None, "locked_memory": None}, {"cpu_seconds": 1e9, "nodes": 2}),
        ({"locked_memory": 64 * MIB}, {"nodes": 1, "backend": "nccl"}),
        ({"locked_memory": 64 * MIB}, {"nodes": 2, "backend": "gloo"}),
        ({"cards": (dataclasses.replace(CARD, memory_used_bytes=4 * MIB),)}, {}),
        ({"cards": (dataclasses.replace(CARD, reserved_counted=True),)}, {}),
        ({"cards": (CARD,)}, {"gpus": 0, "device": "cpu"}),
        ({"versions": {"torch": "2.9", "nccl": "2.28.9"}}, {"backend": "nccl"}),
    ],
)
def test_what_is_enough_or_not_known_stops_nothing(node, planned):
    """Exactly enough is enough; an idle card, or one on which the driver's own part can't be told, is free."""
    assert stopping(check([demand(**planned)], facts(**node)), "v") is None


def test_what_the_worker_sees_is_told():
    """Versions are in the preflight's words."""
    findings = check([demand()], facts(versions={"torch": "2.9", "cuda": "13.0", "hip": None}))

    assert "The worker sees torch 2.9, cuda 13.0." in [f.sentence for f in findings]
