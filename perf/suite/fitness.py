"""What the fitness of the machine means for a judgement, in words: launches taken again, launches that drifted."""

from __future__ import annotations

from collections.abc import Sequence

from perf.launch.validity import UNSTEADY
from perf.suite.bench import Measurement
from perf.verdict.steady import too_unsteady


def replaced_in_words(sides: Sequence[Measurement]) -> tuple[str, ...]:
    """Return one sentence for each launch that was taken again, so that no replacement goes unseen."""
    return tuple(
        f"launch {launch.launch} of {side.member.id} was taken again, the machine was not fit: {launch.unfit[0]}"
        for side in sides
        for launch in side.replaced
    )


def unsteady_in_words(sides: Sequence[Measurement]) -> tuple[str, ...]:
    """Return one sentence for each side of which too many launches drift for a verdict."""
    found = []
    for side in sides:
        flags = [UNSTEADY in launch.flags for launch in side.launches]
        if too_unsteady(flags):
            found.append(
                f"the steps of {sum(flags)} of {len(flags)} launches of {side.member.id} grew longer or shorter inside "
                f"their window, beyond their own noise: look for other work on this machine, or for heat"
            )
    return tuple(found)
