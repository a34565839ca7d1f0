"""Scaling judged by efficiency and by throughput together; and its numbers in words. Pure.

Efficiency is a ratio with one device's rate below it: a stack on which one device became faster has a lower efficiency
though nothing scales worse. So a miss does not count where the rate on all devices is what it is known to be, and one
device is so much faster than it is known to be that this is the miss.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

from perf.verdict.outcome import Judgement, Verdict
from perf.verdict.words import rounded

__all__ = ["efficiencies", "efficiencies_in_words", "slowest_rank", "with_rate"]


def with_rate(efficiency: Judgement, rate: Judgement, *, certain: bool, faster: float | None) -> Judgement:
    """Return what efficiency and throughput say together.

    Parameters
    ----------
    efficiency
        The judgement of the ratio of step times: those on all devices over those on one.
    rate
        The judgement of the throughput on all devices against its floor.
    certain
        Whether that floor is more than provisional.
    faster
        The throughput on one device over what it is known to be; None where that is not known for certain.

    Returns
    -------
    Judgement
        A miss becomes a pass where the throughput on all devices keeps its floor, and with one device as fast as it is
        known to be the ratio would keep its limit. Else it stays, and says what else is known.
    """
    if efficiency.verdict is not Verdict.FAIL:
        return efficiency
    if rate.verdict is Verdict.PASS and certain and faster is not None:
        # With a rate of one device that is 1 / faster of this one, its steps take longer by as much.
        known = efficiency.estimate / faster
        told = f"one device has {faster:.3f} times the throughput that it is known to have"
        if known <= efficiency.limit:
            words = (
                f"The throughput on all devices, {rounded(rate.estimate)} samples/s, keeps its floor, and {told}: held "
                f"against that, the ratio is {known:.3f}. One device became faster, and nothing scales worse."
            )
            return dataclasses.replace(efficiency, verdict=Verdict.PASS, reasons=(words, *efficiency.reasons))
        words = f"The throughput on all devices keeps its floor; but {told}, which does not explain the miss."
    elif rate.verdict is Verdict.PASS:
        words = (
            "The throughput on all devices keeps its floor; but whether one device became faster is not known for "
            "certain here, so efficiency alone was judged."
        )
    elif rate.verdict is Verdict.UNREFERENCED:
        words = "The throughput on all devices has no floor here, so efficiency alone was judged."
    else:
        words = f"The throughput on all devices does not keep its floor either ({rate.verdict})."
    return dataclasses.replace(efficiency, reasons=(*efficiency.reasons, words))


def efficiencies(rates: Mapping[int, float]) -> dict[int, float]:
    """Return the efficiency at each number of devices: throughput over devices times that of one.

    Parameters
    ----------
    rates
        Throughput by number of devices, samples/s; weak and strong scaling alike.

    Raises
    ------
    ValueError
        If one device is missing, or a rate is not positive.
    """
    if 1 not in rates or min(rates.values()) <= 0.0:
        raise ValueError(
            f"efficiency needs the rate of one device, and positive rates; found {dict(sorted(rates.items()))}"
        )
    return {count: rate / (count * rates[1]) for count, rate in sorted(rates.items())}


def efficiencies_in_words(rates: Mapping[int, float]) -> str:
    """Return ``1: 100 samples/s, 2: 190 samples/s (0.95)``."""
    of = efficiencies(rates)
    return ", ".join(
        f"{count}: {rounded(rate)} samples/s" + ("" if count == 1 else f" ({of[count]:.2f})")
        for count, rate in sorted(rates.items())
    )


def slowest_rank(step_medians: Sequence[float]) -> tuple[int, float]:
    """Return the slowest rank and its median step over the median rank's.

    Raises
    ------
    ValueError
        If there is no rank, or the median rank's step takes no time.
    """
    middle = statistics.median(step_medians) if step_medians else 0.0
    if middle <= 0.0:
        raise ValueError("no rank has timed steps")
    slowest = max(range(len(step_medians)), key=step_medians.__getitem__)
    return slowest, step_medians[slowest] / middle
