"""What launches on several devices say of themselves, in words: buckets, memory, ranks. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from perf.contract import LaunchRecord
from perf.suite.source import Measurement

__all__ = ["all_reduces", "buckets_in_words", "peak_in_words", "peak_of", "rank_in_words"]

MIB = 1024**2

BYTES_A_GRADIENT = 4
"""Parameters are float32 in every precision of this suite: autocast leaves them so. On two H200s DDP of `unet3d` peaked
at 4,053 MiB in some launches and at 4,499 in others that were alike, or on the other rank of one of them; its gradients
have 446 MiB (docs/measurements/2026-11-29-h200-x2-third)."""

UNSET_DIFFERS = (
    "An unset bucket_cap_mb is not the same as 25, its default in words: where it is unset DDP makes a first "
    "bucket of 1 MiB, so that talking can begin early, and buckets of 25 MiB behind it; a cap that is given holds "
    "for all buckets."
)

UNSET_IS_25 = (
    "An unset bucket_cap_mb and an explicit 25 give as many all-reduces here: this torch, or the sizes of this "
    "network's gradients, make no difference between them."
)


def all_reduces(measured: Measurement) -> set[float]:
    """Return the numbers of all-reduces of a step, over launches and ranks: one number where all agree."""
    return {effective["ddp"]["all_reduces"] for launch in measured.launches for effective in launch.effective}


def buckets_in_words(measured: Sequence[Measurement]) -> list[str]:
    """Return a sentence a variant on its all-reduces and bucket sizes, and why an unset cap differs from 25."""
    found = []
    counts: dict[str, float] = {}
    for one in measured:
        ddp = one.first.effective[0]["ddp"]
        knobs = ".".join(one.member.variant.ddp_knobs) or "defaults"
        counts[knobs] = ddp["all_reduces"]
        sizes = ", ".join(f"{size / MIB:.3g}" for size in ddp["bucket_bytes"])
        broadcasts = f", {ddp['broadcasts']:g} broadcasts of buffers" if ddp["broadcasts"] else ""
        found.append(
            f"{knobs}: {ddp['all_reduces']:g} all-reduces a step of {sizes} MiB{broadcasts}, "
            f"step {statistics.median(one.step_times) * 1e3:.4g} ms."
        )
    if "bucket25" in counts:
        found.append(UNSET_DIFFERS if counts["bucket25"] != counts["defaults"] else UNSET_IS_25)
    return found


def peak_of(measured: Measurement) -> float:
    """Return the peak of the rank that takes most memory, in bytes: the median over launches."""
    return max(statistics.median(peaks) for peaks in _peaks(measured, measured.in_windows))


def peak_in_words(measured: Measurement, base: Measurement) -> str:
    """Return what a variant's peak of memory is beside that of the defaults, rank by rank, and what that is worth."""
    windows = measured.in_windows and base.in_windows
    new, old = _peaks(measured, windows), _peaks(base, windows)
    difference = statistics.median(
        statistics.median(one) - statistics.median(other) for one, other in zip(new, old, strict=True)
    )
    told = (
        f"{'.'.join(measured.member.variant.ddp_knobs)}: {max(statistics.median(one) for one in new) / MIB:.4g} MiB, "
        f"{difference / MIB:+.4g} MiB a rank against the defaults."
    )
    spread = max(max(one) - min(one) for one in (*new, *old))
    if 0 < abs(difference) <= spread:
        return f"{told} Equal launches differ by up to {spread / MIB:.4g} MiB: nothing is shown."
    gradients = BYTES_A_GRADIENT * measured.first.parameters
    if windows and min(len(measured.launches), len(base.launches)) == 1:
        return f"{told} One launch of a side does not tell how far equal ones differ (--launches)."
    # A copy in buckets is padded a little.
    if windows or not 0 < abs(difference) <= 1.05 * gradients:
        return told
    return (
        f"{told} Peaks of whole launches, their first steps included, have differed between equal ones by as much as a "
        f"copy of the gradients ({gradients / MIB:.4g} MiB here), those of windows have not."
    )


def _peaks(measured: Measurement, windows: bool) -> list[tuple[int, ...]]:
    """Return the largest peak of each rank's devices in each launch, in bytes: a tuple a rank."""
    found = ([max(peaks.values()) for peaks in ranks] for ranks in measured.peaks(windows=windows))
    return list(zip(*found, strict=True))


def rank_in_words(launch: LaunchRecord, rank: int, step_medians: Sequence[float]) -> str:
    """Return which rank is the slowest, on which host and GPU, and its step beside the median rank's."""
    middle = statistics.median(step_medians)
    cards = launch.gpu_uuids[rank] if rank < len(launch.gpu_uuids) else []
    card = f", {cards[0]}" if cards and cards[0] else ""
    return (
        f"Rank {rank} on {launch.host[rank]}{card} is the slowest of {len(step_medians)}: its step takes "
        f"{step_medians[rank] * 1e3:.4g} ms, the median rank's {middle * 1e3:.4g} ms."
    )
