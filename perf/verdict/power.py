"""A GPU that is busy at low power does not work: it waits in a loop. Busy is then not a pass.

Utilization is the share of time in which any kernel ran, so a kernel that spins until its partner comes counts as
busy. What it draws tells the two apart, held against what the same work drew when it was known to be good.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from perf.verdict.words import percent

__all__ = ["below_power_floor"]

BUSY_PERCENT = 90.0
"""What people call a busy GPU when they look at nvidia-smi. Below it low power has a plain cause: nothing to do."""


def below_power_floor(
    watts: Sequence[float | None],
    busy: Sequence[float | None],
    *,
    centre: float,
    tolerance: float,
) -> tuple[str, ...]:
    """Say whether a GPU was busy at a power that the same work never drew.

    Parameters
    ----------
    watts
        Mean power of a GPU in the window of each launch, in watts; None where it could not be read.
    busy
        Its mean utilization likewise, in percent.
    centre
        What the reference drew, in watts.
    tolerance
        The reference's own spread of it, in log units: as much less is still ordinary.

    Returns
    -------
    tuple of str
        One reason, or none: also where fewer than two launches have both readings, which decide nothing.

    Raises
    ------
    ValueError
        If the reference's power or its tolerance is not positive.
    """
    if not (centre > 0 and tolerance > 0):
        raise ValueError(
            f"the reference's power and tolerance must be positive, got {centre!r} W and {tolerance!r}"
        )
    known = [(w, b) for w, b in zip(watts, busy, strict=True) if w is not None and b is not None and w > 0]
    if len(known) < 2:
        return ()
    power = statistics.median(w for w, _ in known)
    share = statistics.median(b for _, b in known)
    floor = centre * math.exp(-tolerance)
    if share < BUSY_PERCENT or power >= floor:
        return ()
    return (
        (
            f"The GPU was {share:.0f} % busy and drew {power:.0f} W, {percent(1.0 - power / centre)} less than the "
            f"reference's {centre:.0f} W (down to {floor:.0f} W is ordinary): it waits in a loop instead of working. "
            f"Look at what it waits for: another rank, the network, a copy."
        ),
    )
