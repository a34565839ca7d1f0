"""What keeps runs in docs/measurements, and what counts in them, does what it says."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from perf.report.stored import load
from perf.training.held_up import BEHIND

SCRIPTS = Path(__file__).parents[2] / "docs" / "measurements"


def script(name, *words):
    """Run one and return what came of it."""
    return subprocess.run(
        [sys.executable, SCRIPTS / name, *words], capture_output=True, text=True, check=False, timeout=60
    )


def launch(name, started, seconds, *gpus):
    """What the scripts read of a launch record."""
    return {
        "launch": name,
        "started_at": started,
        "launch_seconds": seconds,
        "gpu_uuids": [[uuid] for uuid in gpus],
        "step_seconds": [[0.123456789]],
        "data": {"folder": "/home/ann/.cache/stackproof/images"},
    }


@pytest.fixture
def run(tmp_path):
    """Make a run of some launches."""

    def make(*records):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / "records.jsonl").write_text(lines, encoding="utf-8")
        options = {"cache_dir": "/home/ann/.cache/stackproof", "results": "/home/ann/results"}
        (tmp_path / "environment.json").write_text(
            json.dumps({"host": "n1", "options": options}), encoding="utf-8"
        )
        return tmp_path

    return make


@pytest.mark.parametrize(
    ("second", "status", "words"),
    [
        (launch("b", 2.0, 3.0, "G1"), 0, "1 pairs ran at the same time, 0 of them"),
        (launch("b", 2.0, 3.0, "G0", "G1"), 1, "a and b had G0 together"),
        (launch("b", 4.0, 3.0, "G0"), 0, "0 pairs ran at the same time, 0 of them"),
        (launch("b", 2.0, 3.0), 0, "1 launches on 1 GPUs; 0 pairs"),
    ],
)
def test_launches_that_had_a_gpu_together_are_named(run, second, status, words):
    """Side by side on GPUs of their own is what leases are for; one after the other on one GPU is no harm."""
    done = script("beside.py", run(launch("a", 1.0, 3.0, "G0"), second))
    assert (status, "") == (done.returncode, done.stderr)
    assert words in done.stdout


def test_older_records_are_counted_by_their_ranks(run):
    """Their started_at is behind the imports: added to the launch's length it lies behind the launch's end."""
    first, second = launch("a", 9.0, 12.0, "G0"), launch("b", 14.0, 4.0, "G0")
    folder = run(
        {**first, "startup_seconds": [{"until_read_back": 4.0}]},
        {**second, "startup_seconds": [{"rates": 3.0}]},
    )
    assert 1 == script("beside.py", folder).returncode
    assert 0 == script("beside.py", "--ranks", folder).returncode


PLAIN = {
    "variant": "v",
    "plan": "window",
    "mode": "synthetic",
    "strategy": "single",
    "gpus": 1,
    "flags": [],
    "first_step_seconds": 0.5,
    "window_seconds": 2.0,
    "median_step_seconds": 0.01,
    "total_steps": [250],
    "warmup_steps": 32,
    "clocks": ["host"],
    "phase_seconds": None,
    "operators": [],
    "line_profiles": [],
    "traces": [],
}


def begun(name, seconds, launcher, read_back, **start):
    """A launch of some seconds, its record read back after so many of its session's."""
    times = {"until_build": 0.25, "until_warm_up": 0.375, "until_read_back": read_back, **start}
    step = {"step_seconds": [[0.01] * 200]}
    return {**launch(name, 1.0, seconds), **PLAIN, **step, "launcher": launcher, "startup_seconds": [times]}


FORKS = [
    begun("a", 4.0, "fork", 2.5, data=0.25, devices=0.5, until_build=0.0),
    begun("b", 4.5, "fork", 3.75),
    begun("c", 12.0, "fork", 3.5),
    begun("d", 9.0, "fresh", 3.5, imports=5.0),
    begun("e", 11.0, "fresh", 3.5, imports=6.0),
    {**begun("f", 90.0, "fork", 3.5), "phase_seconds": [{"forward": [1.0]}]},
]


def test_a_launchs_parts_are_told_by_variant_and_launcher(run):
    """Medians; slowed launches, and a fork that waited for a new server, are left out."""
    done = script("launch_parts.py", run(*FORKS))

    assert (0, "") == (done.returncode, done.stderr)
    rest = "first step 0.50, window 2.00, whole"
    early = f"imports 0.00, devices 0.25, data before 0.12, behind 0.12, built 0.25, {rest} 4.25 s"
    late = f"imports 5.50, devices 0.00, data before 0.00, behind 0.25, built 0.12, {rest} 10.00 s"
    assert [f"v, fork: 2 launches, {early}", f"v, fresh: 2 launches, {late}"] == done.stdout.splitlines()


def test_what_launchers_cost_is_held_against_each_other(run):
    """The middle launch without a new server's start, which is told apart; what ten take; equal steps are equal."""
    done = script("launchers.py", run(*FORKS[:5]))

    assert (0, "") == (done.returncode, done.stderr)
    assert [
        "  fresh: 2 launches, 0 with a new server, 10.00 s, 20.0% timed; 10 take 100 s",
        "  fork: 3 launches, 1 with a new server (7.8 to 7.8 s longer), 4.25 s, 47.1% timed; 10 take 42 s",
        "  a launch, fork over fresh: 0.425",
        "  step, fork over fresh: 1.0000 (1.0000 to 1.0000)",
    ] == done.stdout.splitlines()[1:]


def test_how_ranks_began_is_told_and_by_which_clock_they_were_timed(run):
    """What no part names, and windows that were dropped; launches that don't say when they began are left out."""
    early = {"data": 0.25, "devices": 0.5, "until_build": 0.0}
    dropped = {**begun("b", 5.0, "fork", 3.0, **early), "total_steps": [450]}
    ranks = begun("c", 6.0, "fork", 3.0, **early)
    ranks["startup_seconds"].append({**ranks["startup_seconds"][0], "devices": 1.0})
    ranks.update(strategy="ddp", gpus=2, clocks=["events"] * 2, total_steps=[250] * 2)
    done = script("first_use.py", run(begun("a", 4.0, "fork", 2.5, **early), dropped, ranks, FORKS[1]))

    assert (0, "") == (done.returncode, done.stderr)
    assert [
        "ddp, 2 GPUs: 1 launches, first use 1.00 s (1.00 to 1.00), not named 1.75 s",
        "single, 1 GPUs: 2 launches, first use 0.50 s (0.50 to 0.50), not named 1.00 s",
        "one rank: 2 windows by host",
        "several ranks: 1 windows by events",
        "1 launches dropped a window",
    ] == done.stdout.splitlines()


def test_a_kept_run_is_shorter_and_names_no_path_of_its_machine(run, tmp_path):
    """Step times are rounded, the home folder stands as ~, and the suite can read what was kept."""
    done = script("pack.py", tmp_path / "kept", run(launch("a", 1.0, 3.0, "G0")))
    assert (0, "") == (done.returncode, done.stderr)
    (kept,) = map(json.loads, (tmp_path / "kept" / "records.jsonl").read_text().splitlines())
    assert [[0.1234568]] == kept["step_seconds"]
    assert "~/.cache/stackproof/images" == kept["data"]["folder"]
    environment = json.loads((tmp_path / "kept" / "environment.json").read_text())
    assert {"cache_dir": "~/.cache/stackproof", "results": "results"} == environment["options"]


def test_every_kept_run_is_whole_and_names_no_folder_of_its_machine():
    """Today's suite reads each record that is kept, and none says whose folders it came from."""
    folders = sorted(path.parent for path in SCRIPTS.rglob("records.jsonl"))
    assert folders
    for folder in folders:
        text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.json*"))
        assert [] == re.findall(r"[\"' ](?:/root|/home|/tmp|/opt|/work)/[^\"' ]*", text), folder
        lines = (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(lines) == len(load(folder).records)


def test_a_trace_is_told_by_what_its_device_did(tmp_path):
    """Two steps of 1 ms, in each a kernel of 0.2 ms and a copy of 0.05; ranges and operators are no work."""
    events = []
    for begin in (0.0, 1000.0):
        events += [
            {"ph": "X", "cat": "user_annotation", "name": "step", "ts": begin, "dur": 1000.0},
            {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "ts": begin, "dur": 500.0},
            {
                "ph": "X",
                "cat": "kernel",
                "name": "gemm",
                "ts": begin + 100,
                "dur": 200.0,
                "args": {"device": 0},
            },
            {"ph": "X", "cat": "gpu_memcpy", "name": "HtoD", "ts": begin, "dur": 50.0, "args": {"device": 0}},
        ]
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode()))
    done = script("traced.py", str(path))

    assert (0, "") == (done.returncode, done.stderr)
    assert [
        "trace.json.gz",
        "2 steps of 1 ms, device busy 25.0%, 0.25 ms and 2 kernels, copies and fills a step",
        "  device 0: busy 25.0%, 0.25 ms and 2 a step, NCCL 0 ms",
        "   80.0%      1 a step  gemm",
        "   20.0%      1 a step  HtoD",
    ] == done.stdout.splitlines()


def test_each_device_of_a_trace_is_told_with_nccls_part(tmp_path):
    """DataParallel has several in one trace, and one that waits for the others in NCCL is busy all the while."""
    events = [{"ph": "X", "cat": "user_annotation", "name": "step", "ts": 0.0, "dur": 1000.0}]
    for device, name, length in (
        (0, "gemm", 200.0),
        (1, "gemm", 100.0),
        (1, "ncclDevKernel_AllReduce", 400.0),
    ):
        begin = 100.0 if name == "gemm" else 500.0
        events.append(
            {"ph": "X", "cat": "kernel", "name": name, "ts": begin, "dur": length, "args": {"device": device}}
        )
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode()))

    assert [
        "  device 0: busy 20.0%, 0.2 ms and 1 a step, NCCL 0 ms",
        "  device 1: busy 50.0%, 0.5 ms and 2 a step, NCCL 0.4 ms",
    ] == [line for line in script("traced.py", str(path)).stdout.splitlines() if "device " in line][1:]


def test_a_trace_without_a_device_has_nothing_to_tell(tmp_path):
    """A CPU's trace, in one sentence."""
    events = [{"ph": "X", "cat": "user_annotation", "name": "step", "ts": 0.0, "dur": 1000.0}]
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode()))
    done = script("traced.py", str(path))

    assert (0, "") == (done.returncode, done.stderr)
    assert "no work of a device: nothing to tell" in done.stdout


def test_launches_of_one_rank_are_told_apart_by_what_was_queued(tmp_path):
    """Short steps alone; a tenth of a step is the border that the worker's clock goes by."""
    plain = {"device": "cuda", "plan": "window", "mode": "full", "variant": "v", "median_step_seconds": 0.002}
    others = [
        {"drain_seconds": [0.00002]},
        {"drain_seconds": [0.0001]},
        {"drain_seconds": [0.002]},
        {"drain_seconds": [0.01], "median_step_seconds": 0.02},
        {"drain_seconds": [0.01], "mode": "io"},
        {"drain_seconds": [0.01, 0.01]},
    ]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps({**plain, **one}) + "\n" for one in others))
    found = script("queued.py", "--below", "5", tmp_path).stdout.splitlines()

    assert [
        "v: 3 launches, least ahead 0.010 0.050 1.000, furthest 0.010 0.050 1.000",
        "2 launches had queued 0.010 to 0.050 of a step, 1 had 1.000 to 1",
    ] == found
    assert f"TENTH = {BEHIND}" in (SCRIPTS / "queued.py").read_text(encoding="utf-8")


def test_ratios_of_several_runs_are_told_as_one(tmp_path):
    """Each file's pairs and all of them, with the interval that order statistics give."""
    for name, ratios in (("a", (1.0, 1.1, 1.2, 1.3, 1.4, 1.5)), ("b", (0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5))):
        (tmp_path / name).write_text("".join(f"{ratio}\n" for ratio in ratios), encoding="ascii")
    done = script("pooled.py", tmp_path / "a", tmp_path / "b")

    assert (0, "") == (done.returncode, done.stderr)
    assert [
        f"{tmp_path / 'a'}: 6 pairs, 1.2500 (1.0000 to 1.5000), spread 18.7%, neighbours 1.00",
        f"{tmp_path / 'b'}: 7 pairs, 1.2000 (0.9000 to 1.5000), spread 21.6%, neighbours 1.00",
        "all: 13 pairs, 1.2000 (1.0000 to 1.4000), spread 19.6%, neighbours 0.43",
    ] == done.stdout.splitlines()


def memory(whole: int, window: int, **more: object) -> dict[str, object]:
    """Two ranks' peaks in MiB, of which the second one's are alike."""
    peaks = {"peak_memory_bytes": [{"cuda:0": whole * 2**20}, {"cuda:1": window * 2**20}]}
    windows = {"window_peak_memory_bytes": [{f"cuda:{rank}": window * 2**20} for rank in (0, 1)]}
    names = {"strategy": "ddp", "workload": "mnist_cnn", "mode": "full", "parameters": 2**20}
    return {**names, **peaks, **windows, **more}


def test_peaks_of_launches_are_held_against_those_of_their_windows(tmp_path):
    """Rank by rank; a silent DDP by itself, and a loader alone not at all."""
    records = [memory(30, 20), memory(22, 20, ddp_switches=["nosync"]), memory(90, 20, mode="io")]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    found = script("peaks.py", tmp_path).stdout.splitlines()

    assert [
        "ddp, mnist_cnn: 2 ranks or devices, gradients 4.0 MiB, 1 alike, 1 above by 10.0 to 10.0 MiB",
        "ddp that stays silent, mnist_cnn: 2 ranks or devices, gradients 4.0 MiB, 2 alike",
    ] == found


def test_shares_of_waiting_are_told_on_both_sides_of_the_border(tmp_path):
    """Of the rank that waits most; data on the device and profiled launches left out."""
    base = {"mode": "full", "loader": "native", "device": "cuda", "window_seconds_per_rank": [2.0, 2.0]}
    others = [{"mode": "synthetic"}, {"phase_seconds": [{}]}, {"loader": "resident"}, {"device": "cpu"}]
    records = [
        *({**base, "wait_seconds": waits} for waits in ([0.1, 0.2], [0.36, 0.0], [0.6, 0.1], [1.0, 1.8])),
        *({**base, "wait_seconds": [0.48, 0.0], **other} for other in others),
    ]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))

    assert [
        "cpu: 1 launches waited for up to 24.0%",
        "cuda: 4 launches waited for up to 18.0%, the others for 30.0% and more",
    ] == script("waited.py", tmp_path).stdout.splitlines()
