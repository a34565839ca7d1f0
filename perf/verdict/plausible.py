"""Too good is not good: results that only a run which didn't do the work can give.

Each function returns reasons; an empty tuple means plausible. A caller that gets a reason makes the
measurement `invalid`. The bounds have level 1e-4 (half a judgement's budget for `fail`), so an honest
measurement is called invalid in at most 1 of 10,000.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from perf.verdict.detectable import pooled_spread
from perf.verdict.inputs import positive_logs
from perf.verdict.looks import kth_smallest, pairwise_differences, rank_for_level
from perf.verdict.quantiles import student_t_quantile
from perf.verdict.words import change, percent, rounded

__all__ = ["above_peak", "above_reference", "negative_share", "too_efficient"]

LEVEL = 1e-4
"""Level of the lower bounds here."""

EFFICIENCY_CEILING = 1.05
"""N GPUs can't do more than N times the work of one, but for caches; 5 % is left for them."""

SHARE_FLOOR = -0.05
"""The real loader can't be faster than batches that already lie on the device, but for noise and clocks."""

REFERENCE_EXCESS = 0.15
"""The same configuration on the same system doesn't become 15 % faster; nor three tolerances faster."""


def too_efficient(
    numerator: Sequence[float],
    denominator: Sequence[float],
    *,
    ceiling: float = EFFICIENCY_CEILING,
) -> tuple[str, ...]:
    """Say whether an efficiency ``numerator / denominator`` is above `ceiling` beyond doubt.

    Parameters
    ----------
    numerator, denominator
        Launch values as in ``perf.verdict.fixed.judge_at_least``. Fewer than 2 a side: no reason is given.
    ceiling
        Largest plausible efficiency.
    """
    bound = _difference_bound(
        positive_logs(numerator, "the numerator"),
        positive_logs(denominator, "the denominator"),
    )
    if bound <= math.log(ceiling):
        return ()
    return (
        (
            f"The efficiency is at least {math.exp(bound):.3f}, more than the {ceiling:.2f} that is "
            "possible: "
            "was the work split, and was all of it done?"
        ),
    )


def negative_share(
    synthetic: Sequence[float], full: Sequence[float], *, floor: float = SHARE_FLOOR
) -> tuple[str, ...]:
    """Say whether the loader's share ``1 - T_synthetic / T_full`` is below `floor` beyond doubt.

    Parameters
    ----------
    synthetic, full
        Median step time of each launch in seconds. Fewer than 2 a side: no reason is given.
    floor
        Smallest plausible share.
    """
    bound = _difference_bound(
        positive_logs(synthetic, "the synthetic mode", "s"),
        positive_logs(full, "the full mode", "s"),
    )
    if bound <= math.log1p(-floor):
        return ()
    return (
        (
            f"The loader's share is {percent(-change(bound))} or less: training on real data is faster "
            "than on batches that "
            "already lie on the device. Did both modes do the same work?"
        ),
    )


def above_reference(
    rates: Sequence[float], *, centre: float, tolerance: float, same_fingerprint: bool
) -> tuple[str, ...]:
    """Say whether a rate lies implausibly far above its reference.

    Parameters
    ----------
    rates
        Samples per second of each launch. Fewer than 2: no reason is given.
    centre
        The reference's centre, in the same unit.
    tolerance
        The reference's tolerance T (log units).
    same_fingerprint
        Whether the configuration is the reference's; if not, there is nothing to compare.
    """
    logs = positive_logs(rates, "the rates")
    if not same_fingerprint or len(logs) < 2:
        return ()
    bound = statistics.fmean(logs) - _t_factor(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    excess = max(math.log1p(REFERENCE_EXCESS), 3.0 * tolerance)
    if bound <= math.log(centre) + excess:
        return ()
    return (
        (
            f"The rate is at least {percent(change(bound - math.log(centre)))} above the reference, with "
            "the same configuration; "
            f"more than {percent(change(excess))} is not plausible. Was all of the work done? "
            "If the system was changed, record a new reference."
        ),
    )


def above_peak(rates: Sequence[float], *, flop_per_sample: float, peak_flops: float) -> tuple[str, ...]:
    """Say whether a launch delivered more samples per second than the devices' peak allows.

    An exact fact: one launch is enough, and no bound is taken.

    Parameters
    ----------
    rates
        Samples per second of each launch, over all devices.
    flop_per_sample
        Floating-point operations that a sample needs at the least (forward and backward).
    peak_flops
        Peak of all devices together in the precision used, operations per second.
    """
    most = peak_flops / flop_per_sample
    fastest = max(rates, default=0.0)
    if fastest <= most:
        return ()
    return (
        (
            f"{rounded(fastest)} samples/s need {fastest * flop_per_sample:.3g} operations/s, more than the "
            "devices' peak of "
            f"{peak_flops:.3g}: the work was not done, or not in the precision that was asked for."
        ),
    )


def _difference_bound(larger: list[float], smaller: list[float]) -> float:
    """Return the lower bound at `LEVEL` of the shift between two sides of log values; -inf if there is none.

    From 8 launches a side an order statistic of the pairwise differences has that level whatever the noise
    (1/12,870 at 8); below, where no rank is small enough, the pooled t bound stands in.
    """
    m, n = len(larger), len(smaller)
    if min(m, n) < 2:
        return -math.inf
    differences = pairwise_differences(larger, smaller)
    rank = rank_for_level(m, n, LEVEL)
    if rank:
        return kth_smallest(differences, rank)
    half = _t_factor(m + n - 2) * pooled_spread(larger, smaller) * math.sqrt(1.0 / m + 1.0 / n)
    return statistics.fmean(larger) - statistics.fmean(smaller) - half


def _t_factor(df: int) -> float:
    return student_t_quantile(1.0 - LEVEL, df)
