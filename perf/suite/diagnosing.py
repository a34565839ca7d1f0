"""From a failed judgement to its diagnosis: what to launch for it, and what to hold it against."""

from __future__ import annotations

from collections.abc import Sequence

from perf.contract import LaunchRecord
from perf.suite.floors import variant_of
from perf.suite.source import Measurement, Source
from perf.verdict.configuration import configuration
from perf.verdict.diagnosis import Diagnosis, diagnose
from perf.verdict.known import Known, Library
from perf.verdict.moved import Side

__all__ = ["diagnosis_of", "rates_and_known"]

WITHOUT_PHASES = ("start_up", "peak_memory")
"""Metrics that no phase of a step tells of."""


def diagnosis_of(
    source: Source, sides: Sequence[Measurement], metric: str, library: Library, known: Known | None = None
) -> Diagnosis:
    """Launch, once a run, what tells where the time of the sides goes, and put the diagnosis together.

    Parameters
    ----------
    sides
        What was judged, then what it was held against where that was measured too.
    known
        The reference that a floor was held against.
    """
    members = [side.member for side in sides]
    extras = [] if metric in WITHOUT_PHASES else source.explain(members)
    new, *others = (
        Side(side.member.id, side.launches, next((one for one in extras if _is_of(one, side)), None))
        for side in sides
    )
    # The first side's alone: that is whose time is to be explained.
    profiles = [name for one in extras for name in one.line_profiles if one.side == sides[0].member.side]
    last = max(known.reference.occasions, key=lambda found: found.date) if known else None
    return diagnose(
        new,
        others[0] if others else None,
        metric=metric,
        rates=rates_and_known(source.rates(), library),
        reference=last.stack if last else "",
        profiles=profiles,
    )


def _is_of(record: LaunchRecord, side: Measurement) -> bool:
    member = side.member
    return record.phase_seconds is not None and (record.variant, record.plan, record.side, record.group) == (
        member.variant.id,
        member.plan,
        member.side,
        member.group,
    )


def rates_and_known(
    launches: Sequence[LaunchRecord], library: Library
) -> dict[str, tuple[float, float | None]]:
    """Return each component rate that was measured, with what the system is known to reach (None: nothing)."""
    found: dict[str, tuple[float, float | None]] = {}
    for launch in launches:
        for name, rate in launch.rates.items():
            if rate.value is None:
                continue
            known = library.find(variant_of(launch), name, configuration(launch))
            found[name] = (rate.value, known.floor.centre if isinstance(known, Known) else None)
    return found
