"""What feeds a launch: steps of an epoch, and loader workers whose queue leaves steps to time."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from perf.catalogue import GROUPS
from perf.contract import PREFETCH_ROUNDS, LaunchSpec
from perf.profiles import PROFILES
from perf.suite.feeding import batches_an_epoch, queued_steps, share_for, workers_for
from perf.suite.plan import Context, build_spec
from perf.variants import Variant


@pytest.mark.parametrize(
    ("samples", "ranks", "batch", "expected"),
    [
        (60_000, 1, 64, 938),
        (60_000, 2, 64, 469),
        (50_000, 1, 64, 782),
        (50_000, 2, 64, 391),
        (50_000, 2, 128, 196),
    ],
)
def test_the_sources_counts_of_steps(samples, ranks, batch, expected):
    """938 steps for MNIST on one rank; the counts that the sources ask about for CIFAR-100."""
    assert expected == batches_an_epoch(samples, ranks, batch)


def whole_steps_of(spec: LaunchSpec) -> int:
    """Steps of an epoch on each rank that a window may hold: those of whole batches."""
    a_rank = -(-(spec.epoch_samples or spec.train_samples) // (spec.nodes * spec.ranks_per_node))
    return a_rank // (spec.batch_size * spec.devices_per_rank)


def queue_of(spec: LaunchSpec) -> int:
    """Steps that a rank leaves out of its window in each epoch, as `perf.training.session` has it."""
    if spec.mode == "synthetic":
        return 0
    return PREFETCH_ROUNDS * spec.workers * spec.devices_per_rank * (spec.prefetch or 2)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("devices", [1, 2, 4, 8])
@pytest.mark.parametrize("cores", [2, 4, 8, 16, 32, 64, 128, 256])
def test_every_epoch_that_is_planned_is_longer_than_its_loaders_queue(profile, cores, devices):
    """On each machine: else a rank times none of its steps and ends in an error, or the window is not filled."""
    context = Context("run", PROFILES[profile], cores, "/cache", None, devices=devices)
    there = {"cpu": cores, "cuda": devices}
    planned = [
        member
        for group in GROUPS.values()
        if profile in group.profiles
        for member in group.members
        if member.plan != "rates" and member.variant.devices_per_node <= there[member.variant.device]
    ]
    for member in planned:
        spec = build_spec(context, member, launch="l", round_number=0, out_dir=Path("/o"))
        whole, untimed = whole_steps_of(spec), max(1, queue_of(spec))

        if spec.timed_steps > 0:
            assert untimed < whole, member.id
        if spec.plan != "window":
            held = spec.epochs * (whole - untimed) - max(0, spec.warmup_steps - untimed)
            assert spec.timed_steps <= held or not spec.timed_steps, member.id


@pytest.mark.parametrize(
    ("group", "devices", "cores", "workers"),
    [
        # 938 steps an epoch: as many as the tutorials have.
        ("loader@mnist_cnn-gpu", 1, 16, 8),
        # 64 steps an epoch for 16 workers, 32 and 16 steps a rank.
        ("dp@unet3d-gpu", 2, 64, 4),
        ("weak_real@unet3d-gpu", 4, 128, 4),
        ("weak_real@unet3d-gpu", 8, 256, 2),
        # Epochs of 16 steps, of whose three 20 steps are timed.
        ("solution@unet3d_tiny-gpu", 1, 16, 2),
        # No more than the cores allow.
        ("dp@unet3d-gpu", 2, 8, 2),
    ],
)
def test_short_epochs_have_fewer_workers(group, devices, cores, workers):
    """So many that half of an epoch is left to be timed, and as many for all members of the group."""
    found = {
        share_for(member, PROFILES["full"], cores, devices).workers
        for member in GROUPS[group].members
        if member.variant.workers is None and member.variant.devices_per_node <= devices
    }

    assert {workers} == found


@pytest.mark.parametrize(
    ("group", "profile", "expected"),
    [
        ("epochs@mnist_cnn-gpu", "full", (60_000, 10_000)),
        # Epochs of images at 224 are a quarter of the data set, and so is what validates them.
        ("epochs@resnet152_224-gpu", "full", (12_800, 2_560)),
        ("epochs@mnist_cnn-cpu", "full", (4_096, 1_000)),
    ],
)
def test_a_validation_is_cut_as_its_epoch_is(group, profile, expected):
    """10,000 images at 224 took resnet152 10 s of an H200 after each of three epochs of 200 steps."""
    context = Context("run", PROFILES[profile], 16, "/cache", None)
    member = next(m for m in GROUPS[group].members if m.plan == "epochs")
    spec = build_spec(context, member, launch="l", round_number=0, out_dir=Path("/o"))

    assert expected == (
        spec.epoch_samples or spec.train_samples,
        spec.validate_samples or spec.validation_samples,
    )


def test_a_number_of_workers_that_is_asked_for_is_taken():
    """Of a sweep too, whose question it is; the worker says so where its epochs are too short."""
    member = next(m for m in GROUPS["workers@unet3d-gpu"].members if m.variant.workers == 8)

    assert 8 == share_for(member, PROFILES["full"], 32, 1).workers


@pytest.mark.parametrize(
    ("group", "held"), [("solution@unet3d_tiny-gpu", True), ("loader@mnist_cnn-gpu", False)]
)
def test_a_launch_says_whether_workers_were_held_back(group, held):
    """Else its idle cores would be taken for somebody's mistake."""
    context = Context("run", PROFILES["full"], 16, "/cache", None, devices=1)
    spec = build_spec(context, GROUPS[group].members[0], launch="l", round_number=0, out_dir=Path("/o"))

    assert held is spec.workers_held


def test_one_worker_is_the_fewest():
    """An epoch of two steps has one worker too; its launch then ends with what it lacks."""
    group = GROUPS["loader@mnist_cnn-gpu"]
    member = next(m for m in group.members if m.variant.mode == "full")
    full = PROFILES["full"]
    short = {key: dataclasses.replace(sizes, epoch_samples=128) for key, sizes in full.sizes.items()}

    assert 1 == workers_for(member, dataclasses.replace(full, sizes=short))


@pytest.mark.parametrize(
    ("variant", "steps"),
    [
        ("mnist_cnn-single-1gpu-fp32-native", 32),
        ("mnist_cnn-dp-2gpu-fp32-native", 64),
        ("mnist_cnn-ddp-2gpu-nccl-fp32-native", 32),
        ("mnist_cnn-single-1gpu-fp32-native-synthetic", 0),
    ],
)
def test_a_queue_is_filled_for_so_many_steps(variant, steps):
    """Twice the batches that 8 workers of each of the rank's devices keep ready; no queue for a ring."""
    assert steps == queued_steps(Variant.parse(variant), 8)
