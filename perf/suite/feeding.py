"""What feeds a launch: the samples and steps of its epochs, its loader workers, threads and cores. Pure functions."""

from __future__ import annotations

from perf.catalogue import GROUPS, Member
from perf.contract import PREFETCH_ROUNDS
from perf.core_share import MOST_DEFAULT_WORKERS, Share, share_of_cores
from perf.profiles import Profile, Sizes
from perf.variants import Variant
from perf.workloads import SUBJECTS

TORCHS_PREFETCH = 2
"""Batches that each worker of torch's loader keeps ready, where nothing is said."""


def batches_an_epoch(samples: int, ranks: int, batch_size: int) -> int:
    """Return the steps of an epoch on each rank: ceil(ceil(samples / ranks) / batch_size)."""
    a_rank = -(-samples // ranks)
    return -(-a_rank // batch_size)


def epoch_samples(member: Member, sizes: Sizes) -> int | None:
    """Return the samples that an epoch is cut to; None for all there are."""
    of_workload = SUBJECTS[member.variant.workload].epoch_samples if member.plan == "epochs" else 0
    return sizes.epoch_samples or of_workload or None


def validation_samples(member: Member, sizes: Sizes) -> int | None:
    """Return the samples of a validation, cut as a workload's epochs are; None for all there are."""
    workload = SUBJECTS[member.variant.workload]
    if sizes.validate_samples is None and member.plan == "epochs" and workload.epoch_samples:
        return workload.validation_samples * workload.epoch_samples // workload.train_samples
    return sizes.validate_samples


def batch_of(variant: Variant, sizes: Sizes) -> int:
    """Return the batch of a device, in samples."""
    return min(variant.batch_size, sizes.batch_size or variant.batch_size)


def queued_steps(variant: Variant, workers: int) -> int:
    """Return the steps of each epoch in which a loader's queue fills, none of which is timed.

    Parameters
    ----------
    variant
        Whose loader it is; one on data that lie on the device has no queue.
    workers
        Loader workers of each device.
    """
    if variant.mode == "synthetic":
        return 0
    prefetch = TORCHS_PREFETCH if variant.prefetch is None else variant.prefetch
    return PREFETCH_ROUNDS * prefetch * workers * _devices_a_rank(variant)


def workers_for(member: Member, profile: Profile) -> int:
    """Return how many loader workers of its own choice a device of a member can have, 1 at least.

    Their queue takes half of an epoch's steps to fill, or fewer, and where the plan has so many epochs and no more, the
    rest holds the steps that are to be timed. Large batches on many devices make epochs of few steps: `unet3d` has 32
    on 4 GPUs, all of which 8 workers a GPU would take.

    Parameters
    ----------
    member
        Variant and plan.
    profile
        How long its launches train.
    """
    variant, sizes = member.variant, profile.sizes_for(member.variant.device, member.plan)
    if member.plan == "rates":
        return MOST_DEFAULT_WORKERS
    samples = epoch_samples(member, sizes) or SUBJECTS[variant.workload].train_samples
    ranks = variant.nodes * variant.ranks_per_node
    batch = batch_of(variant, sizes) * _devices_a_rank(variant)
    steps = batches_an_epoch(samples, ranks, batch)
    # Of which a window may hold those of whole batches.
    whole = -(-samples // ranks) // batch

    def fits(workers: int) -> bool:
        queue = queued_steps(variant, workers)
        if member.plan not in ("epochs", "solution"):
            return 2 * queue <= steps
        # A window opens behind a step.
        untimed = max(1, queue)
        left = sizes.epochs * (whole - untimed) - max(0, sizes.warmup_steps - untimed)
        return 2 * queue <= steps and sizes.timed_steps <= left

    return next((workers for workers in range(MOST_DEFAULT_WORKERS, 1, -1) if fits(workers)), 1)


def share_for(member: Member, profile: Profile, cores: int, devices: int | None = None) -> Share:
    """Return a member's workers, threads and cores: the members of a group are fed alike.

    Of a group's members those that need more devices than the node has do not run, so nothing is kept for them.

    Parameters
    ----------
    member
        Variant and plan; its group's other members get as many workers, the fewest that `workers_for` says of any.
    profile
        How long launches train.
    cores
        Cores allowed to this process on the node.
    devices
        GPUs of the node, None for any number; of a variant on the CPU it is the cores that count.
    """
    variant = member.variant
    there = cores if variant.device == "cpu" else devices
    fitting = [
        other
        for other in GROUPS[member.group].members
        if there is None or other.variant.devices_per_node <= there
    ]
    most = max((other.variant.devices_per_node for other in fitting), default=1)
    asked_nothing = [other for other in fitting if other.variant.workers is None]
    workers = min((workers_for(other, profile) for other in asked_nothing), default=None)
    return share_of_cores(variant, cores, devices=most, one_thread=profile.one_thread, most_workers=workers)


def _devices_a_rank(variant: Variant) -> int:
    return variant.devices_per_node // variant.ranks_per_node
