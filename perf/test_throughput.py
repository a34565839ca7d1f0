"""Whether it is fast enough here, and whether the work was done that the number stands for."""

from __future__ import annotations

from typing import Any

import pytest

from perf.catalogue import variants
from perf.suite.judge import Judge
from perf.suite.settings import optimizations_in_force
from perf.suite.source import Measurement
from perf.workloads import WORKLOADS


@pytest.fixture(scope="session", params=variants(mode=("full",)))
def training(request: pytest.FixtureRequest, bench: Any) -> Measurement:
    """A variant that trains on its real loader."""
    return bench.measure(request.param)  # type: ignore[no-any-return]


def test_throughput_is_not_below_its_floor(training: Measurement, limits: Judge) -> None:
    """Steady samples/s is not below what this system is known to do."""
    limits.floor(training, "throughput")


def test_peak_memory_is_not_above_its_ceiling(training: Measurement, limits: Judge) -> None:
    """The peak of a device's allocated memory is not above what this system is known to need."""
    if training.member.variant.device == "cpu":
        pytest.skip("nobody counts what torch allocates on a CPU")
    limits.floor(training, "peak_memory")


def test_loss_falls(training: Measurement) -> None:
    """The mean loss of the last tenth of all steps is below that of the first tenth."""
    for launch in training.launches:
        assert launch.losses_finite
        assert launch.loss_last is not None
        assert launch.loss_first is not None
        assert launch.loss_last < launch.loss_first, (
            f"launch {launch.launch} of {launch.variant} on {launch.host[0]} learned nothing: its steps may skip work; "
            "look at what the stack changes in loss, backward pass and optimizer"
        )


def test_parameters_are_the_workloads_and_equal_on_all_ranks(training: Measurement) -> None:
    """Every rank trained the published number of parameters and ended with the same ones, bit for bit."""
    for launch in training.launches:
        assert WORKLOADS[launch.workload].parameters == launch.parameters
        assert launch.parameters_digests[0] is not None
        assert 1 == len(set(launch.parameters_digests))


def test_settings_are_in_force(training: Measurement) -> None:
    """What was asked for was read back: wrapper, world size, backend, workers, threads, precision, optimizations."""
    variant = training.member.variant
    for launch in training.launches:
        for rank, effective in enumerate(launch.effective):
            assert {"single": None, "dp": "DataParallel", "ddp": "DistributedDataParallel"}[
                variant.strategy
            ] == (effective["strategy"]), f"rank {rank}"
            assert variant.ranks_per_node * variant.nodes == effective["world_size"]
            assert variant.backend == effective["backend"]
            assert (
                launch.workers * (variant.gpus if variant.strategy == "dp" else 1)
                == effective["loader"]["workers"]
            )
            assert launch.threads[rank]["torch"] == effective["threads"]
            assert set(variant.optimizations) <= optimizations_in_force(effective)
            if variant.precision == "fp32":
                assert {"matmul": False, "convolution": False} == effective["tf32"]
                assert "float32" == effective["activation_dtype"]


def test_no_two_ranks_train_on_the_same_samples(training: Measurement) -> None:
    """Every rank's first sample is another one."""
    for launch in training.launches:
        if any("first_batch" not in effective for effective in launch.effective):
            pytest.skip("these records are older than the digest of a rank's first sample")
        first = [effective["first_batch"]["sample"] for effective in launch.effective]
        assert len(first) == len(set(first)), "two ranks got the same first sample: are their seeds the same?"


def test_data_were_there_before_the_launch(training: Measurement) -> None:
    """Records say where samples came from: files that were staged or packaged, or made here; nothing is downloaded."""
    for launch in training.launches:
        assert launch.data.get("kind"), "the record does not say what its data are"
        assert not any("://" in str(value) for value in launch.data.values()), launch.data


def test_window_holds_the_samples_that_were_delivered(training: Measurement) -> None:
    """A window's samples are its steps times the batch on every device: whole batches."""
    variant = training.member.variant
    for launch in training.launches:
        steps = sum(len(rank) for rank in launch.step_seconds)
        full = steps * launch.batch_size * (variant.gpus if variant.strategy == "dp" else 1)
        # Windows of records up to 2026-11-29 hold the partial batches at their epochs' ends.
        assert 0.9 * full < launch.samples <= full
