"""``python -m perf.training.worker`` in processes of its own, on the CPU, with the real workload made small."""

from __future__ import annotations

import base64
import math
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import line_profiler
import pytest

from perf.profiles import PROFILES
from perf.training.phases import PHASES
from perf.verdict.machine import RATES
from tests.perf.training.processes import MNIST, Done, mnist, start

SMOKE = PROFILES["smoke"].sizes_for("cpu", "window")

LAUNCHES: dict[str, dict[str, Any]] = {
    # A single rank on the real loader, with one worker, as long as profile smoke trains.
    "full": {
        "batch_size": MNIST.batch_size,
        "workers": 1,
        "warmup_steps": SMOKE.warmup_steps,
        "timed_steps": SMOKE.timed_steps,
    },
    # Batches that already lie on the device, torch's own precision, every phase timed.
    "synthetic": {"mode": "synthetic", "precision": "default", "phases": True},
    # The loader alone: one whole epoch of 512 samples and 10 batches of another.
    "audit": {
        "mode": "io",
        "plan": "audit",
        "epochs": 2,
        "epoch_samples": 512,
        "later_epoch_batches": 10,
        "warmup_steps": 0,
        "timed_steps": 0,
        "workers": 1,
    },
    # Two epochs of 40 steps and a window that spans both; the queue of two workers is warm after 8 steps.
    "epochs": {
        "plan": "epochs",
        "epochs": 2,
        "batch_size": 8,
        "epoch_samples": 320,
        "timed_steps": 50,
        "workers": 2,
        "validate_samples": 200,
        "line_profile": True,
    },
    # The machine's own rates, each in an instant.
    "rates": {
        "workload": "machine",
        "variant": "machine-single-1cpu",
        "plan": "rates",
        "min_seconds": 0.01,
        "timed_steps": 0,
        "warmup_steps": 0,
    },
    # Two ranks over gloo, started by torchrun; each would like another number of steps for its half second.
    "ddp": {
        "strategy": "ddp",
        "backend": "gloo",
        "ranks_per_node": 2,
        "variant": "mnist_cnn-ddp-2cpu-gloo-fp32-native0",
        "epoch_samples": 4096,
        "warmup_steps": 20,
        "min_seconds": 0.5,
    },
}
"""What the processes of this module are asked for. Each is launched once, and only if a selected test needs it."""


@pytest.fixture(scope="module")
def launches(request, tmp_path_factory, cache) -> dict[str, Done]:
    """The launches that the selected tests of this module ask for, two at a time, since most of one is its start."""
    asked = {
        name for item in request.session.items if item.path == request.path for name in item.fixturenames
    }
    specs = {
        name: mnist(tmp_path_factory.mktemp(name), cache, **changes)
        for name, changes in LAUNCHES.items()
        if name in asked
    }
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(specs, pool.map(start, specs.values()), strict=True))


@pytest.fixture(scope="module")
def full(launches) -> Done:
    return launches["full"]


@pytest.fixture(scope="module")
def synthetic(launches) -> Done:
    return launches["synthetic"]


@pytest.fixture(scope="module")
def audit(launches) -> Done:
    return launches["audit"]


@pytest.fixture(scope="module")
def epochs(launches) -> Done:
    return launches["epochs"]


@pytest.fixture(scope="module")
def rates(launches) -> Done:
    return launches["rates"]


@pytest.fixture(scope="module")
def ddp(launches) -> Done:
    return launches["ddp"]


# --- rates


def test_a_machine_is_measured_without_a_workload(rates):
    """The card of a CPU, a few repetitions each, and no step."""
    assert 0 == rates.status, rates.stderr
    record = rates.record()
    assert set(RATES["single", "cpu"]) == set(record.rates)
    assert all(rate.value and rate.value > 0 for rate in record.rates.values())
    assert [] == record.step_seconds
    assert "done" == rates.phase()


# --- full: as large as in smoke


def test_a_launch_ends_with_its_record(full):
    """Exit status 0, one record, the phase ``done``, and no stack dumped."""
    assert 0 == full.status, full.stderr
    assert ["rank-0.json", "spec.json", "stack-0.txt", "state-0.json"] == sorted(
        p.name for p in full.folder.iterdir()
    )
    assert "done" == full.phase()
    assert not (full.folder / "stack-0.txt").read_text(encoding="utf-8")


def test_steps_and_window_agree(full):
    """The sum of the steps is the window within 1 %, which is what makes a launch valid."""
    record = full.record()
    steps = SMOKE.warmup_steps + SMOKE.timed_steps

    assert (SMOKE.warmup_steps, SMOKE.timed_steps, steps, SMOKE.timed_steps * 64) == (
        record.warmup_steps,
        len(record.step_seconds),
        record.total_steps,
        record.window_samples,
    )
    assert pytest.approx(sum(record.step_seconds), rel=0.01) == record.window_seconds


def test_the_loss_falls_in_a_smoke_sized_launch(full):
    """Its steps are enough for the mean of the last tenth to lie below that of the first."""
    record = full.record()

    assert record.losses_finite is True
    assert record.loss_last < record.loss_first < 2 * math.log(10)


def test_settings_were_read_back(full):
    """Threads, workers, precision and the workload's own optimizer are in the record."""
    effective = full.record().effective

    assert (1, 1, 64) == (
        effective["threads"],
        effective["loader"]["workers"],
        effective["loader"]["batch_size"],
    )
    assert ("Adadelta", "float32", None) == (
        effective["optimizer"],
        effective["activation_dtype"],
        effective["strategy"],
    )
    assert {"matmul": False, "convolution": False} == effective["tf32"]


def test_times_are_plausible_parts_of_the_launch(full):
    """Starting, the first step and waiting are measured, each within what holds it."""
    record = full.record()

    assert {"imports", "interpreter", "devices", "process_group", "until_warm_up", "until_read_back"} <= set(
        record.startup_seconds
    )
    assert 0 < record.startup_seconds["interpreter"]
    assert 0 < record.wait_seconds < record.window_seconds
    assert 0 < record.first_step_seconds <= record.epochs[0].seconds
    assert 0 < record.epochs[0].first_batch_seconds < record.first_step_seconds
    assert record.telemetry["children_cpu_seconds"] > 0


def test_the_work_is_named(full):
    """Parameters, their digest, the data's provenance and the stack."""
    record = full.record()

    assert (MNIST.parameters, 32) == (record.parameters, len(record.parameters_digest))
    assert record.data["kind"] in {"mnist", "fashion-mnist", "generated", "mnist-format (unverified)"}
    assert {"torch", "torchvision", "python", "numpy"} <= set(record.stack)
    assert os.uname().nodename == record.host


# --- synthetic, in precision default, in phases


def test_synthetic_has_no_waits(synthetic):
    """A batch of the ring costs microseconds; the epoch would be as long as the real one."""
    record = synthetic.record()

    assert 0 == synthetic.status, synthetic.stderr
    assert 0.0 == record.wait_seconds
    assert record.loss_last < record.loss_first


def test_precision_default_reads_back_what_torch_does(synthetic):
    """Nothing was asked for, and what is in force is recorded all the same."""
    effective = synthetic.record().effective

    assert {"matmul", "convolution"} == set(effective["tf32"]) == set(effective["product_error"])
    assert "float32" == effective["activation_dtype"]


def test_phases_add_up_to_the_steps(synthetic):
    """Every step has all five phases; together they are nearly the step."""
    record = synthetic.record()

    # One rank alone has nobody to talk to.
    assert {**dict.fromkeys(PHASES, 20), "communication": 0} == {
        phase: len(s) for phase, s in record.phase_seconds.items()
    }
    in_phases = sum(sum(seconds[-12:]) for seconds in record.phase_seconds.values())
    assert 0.5 * record.window_seconds < in_phases <= record.window_seconds


# --- audit


def test_an_audit_counts_every_sample(audit):
    """The first epoch delivered each sample once, in as many batches as it takes; the second was cut."""
    assert 0 == audit.status, audit.stderr
    first, second = audit.record().epochs

    assert (32, 512, 512, True) == (first.batches, first.samples, first.distinct, first.complete)
    assert (10, 160, 160, False) == (second.batches, second.samples, second.distinct, second.complete)
    assert b"\xff" * 64 == zlib.decompress(base64.b64decode(first.seen))
    assert first.order != second.order


def test_an_audit_has_no_window(audit):
    """Its batches are counted, however few an epoch has; nothing is timed and nothing trained."""
    record = audit.record()

    assert ([], 0.0, 42) == (record.step_seconds, record.window_seconds, record.total_steps)
    assert record.loss_last is record.parameters_digest is None


# --- epochs, with two loader workers and a line profile


def test_epochs_are_whole_and_validated(epochs):
    """Each epoch has all its samples and a validation that knows more than chance."""
    assert 0 == epochs.status, epochs.stderr
    for epoch in epochs.record().epochs:
        assert (40, 320, True, 200) == (
            epoch.batches,
            epoch.samples,
            epoch.complete,
            epoch.validation_samples,
        )
        assert epoch.validation_accuracy > 0.2
        assert epoch.validation_loss > 0
        assert epoch.validation_seconds > 0


def test_a_window_over_two_epochs_holds_only_steps(epochs):
    """The end and the start of the loader's workers lie outside: the steps still sum to the window."""
    record = epochs.record()

    assert 50 == len(record.step_seconds)
    assert 80 == record.total_steps
    assert pytest.approx(sum(record.step_seconds), rel=0.02) == record.window_seconds
    assert pytest.approx(0.7**2) == record.effective["optimizer_flags"]["lr"]


def test_the_line_profile_is_of_the_training_loop(epochs):
    """line_profiler's file lies beside the record and counts each of the 80 steps."""
    name = epochs.record().line_profile
    stats = line_profiler.load_stats(str(epochs.folder / name))
    ((place, lines),) = stats.timings.items()

    assert "train" == place[2]
    assert 80 in {hits for _, hits, _ in lines}


# --- two ranks


def test_two_ranks_end_with_the_same_parameters(ddp):
    """Each rank leaves its own record; parameters are equal bit for bit though each saw other samples."""
    assert 0 == ddp.status, ddp.stderr
    records = [ddp.record(rank) for rank in (0, 1)]

    assert [(0, 2, 0), (1, 2, 1)] == [(r.rank, r.world_size, r.local_rank) for r in records]
    assert records[0].parameters_digest == records[1].parameters_digest
    assert records[0].loss_last != records[1].loss_last
    assert 2 == len({record.pid for record in records})
    assert ["done", "done"] == [ddp.phase(rank) for rank in (0, 1)]


def test_two_ranks_take_the_same_steps(ddp):
    """They agreed on the length of the window, and both trained on a falling loss."""
    records = [ddp.record(rank) for rank in (0, 1)]

    assert 1 == len({len(record.step_seconds) for record in records})
    assert 1 == len({record.total_steps for record in records})
    assert len(records[0].step_seconds) >= 12
    for record in records:
        assert record.loss_last < record.loss_first
        assert pytest.approx(sum(record.step_seconds), rel=0.01) == record.window_seconds


def test_two_ranks_run_as_ddp(ddp):
    """Wrapper, world size, backend, sampler and buckets were read back on both; torchrun's threads are overruled."""
    for rank in (0, 1):
        effective = ddp.record(rank).effective
        assert ("DistributedDataParallel", 2, "gloo", 1, "DistributedSampler") == (
            effective["strategy"],
            effective["world_size"],
            effective["backend"],
            effective["threads"],
            effective["loader"]["sampler"],
        )
        assert 4 * MNIST.parameters == sum(effective["ddp"]["bucket_bytes"])


# --- what ends without a record
