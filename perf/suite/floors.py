"""A measurement held against what its system is known to do. Pure."""

from __future__ import annotations

import dataclasses
import datetime
import math
import statistics
from collections.abc import Iterable, Sequence

from perf.contract import LaunchRecord
from perf.verdict.configuration import configuration, differences
from perf.verdict.confirm import judge_floor
from perf.verdict.floors import Occasion
from perf.verdict.known import Known, Library
from perf.verdict.metrics import METRICS, POWER, Metric, busy_percent
from perf.verdict.outcome import Judgement, Verdict
from perf.verdict.plausible import above_reference
from perf.verdict.power import below_power_floor

__all__ = ["confirming", "floor_judgement", "low_power", "node_of", "occasions_of", "variant_of"]


def node_of(launch: LaunchRecord) -> str:
    """Return the node of a launch; several joined by a plus sign."""
    return "+".join(sorted(set(launch.host)))


def date_of(launch: LaunchRecord) -> str:
    """Return the date (UTC, ISO) on which a launch started."""
    return datetime.datetime.fromtimestamp(launch.started_at, datetime.UTC).date().isoformat()


def variant_of(launch: LaunchRecord) -> str:
    """Return the key under which a launch's reference stands: the variant, and the plan where it is no window."""
    return launch.variant + ("" if launch.plan == "window" else f"+{launch.plan}")


def occasions_of(launches: Iterable[LaunchRecord], metric: Metric) -> list[Occasion]:
    """Return a metric's values by occasion, the earliest first: the launches of one run on one node.

    A run that goes on past midnight is one occasion, with the date of its first launch.
    """
    taken: dict[tuple[str, str], list[LaunchRecord]] = {}
    for launch in sorted(launches, key=lambda one: one.started_at):
        taken.setdefault((launch.run, node_of(launch)), []).append(launch)
    return [
        Occasion(date_of(found[0]), node, tuple(metric.values(found))) for (_, node), found in taken.items()
    ]


def floor_judgement(
    launches: Sequence[LaunchRecord], metric: Metric, library: Library
) -> tuple[Judgement, Known | None]:
    """Judge launches of one variant, of one or several occasions, against its reference.

    An occasion that missed comes first, so that a later one can confirm it; what comes after it in time comes next.

    Parameters
    ----------
    launches
        Valid launches, at least one; of one configuration.
    library
        What is known of the system on the date of the run.

    Returns
    -------
    tuple
        The judgement, always decided, and the reference that it was held against, if there is one.
    """
    first = launches[0]
    found = library.find(variant_of(first), metric.name, configuration(first))
    measured = occasions_of(launches, metric)
    if isinstance(found, str):
        return _unreferenced(measured, found), None
    missed = next((i for i, occasion in enumerate(measured) if _misses(occasion, found)), 0)
    judgement = judge_floor(
        [*measured[missed:], *measured[:missed]],
        found.floor,
        can_confirm=False,
        single_node=found.single_node,
    )
    if judgement.verdict is Verdict.PASS and metric.higher_is_better:
        too_good = above_reference(
            [value for occasion in measured for value in occasion.rates],
            centre=found.floor.centre,
            tolerance=found.floor.tolerance,
            same_fingerprint=True,
        )
        if too_good:
            judgement = dataclasses.replace(
                judgement, verdict=Verdict.INVALID, reasons=(*too_good, *judgement.reasons)
            )
    return dataclasses.replace(judgement, reasons=(*judgement.reasons, *found.notes)), found


def confirming(
    earlier: Iterable[LaunchRecord], now: LaunchRecord
) -> tuple[list[LaunchRecord], tuple[str, ...]]:
    """Return which launches of an earlier run a launch of this one can confirm, and why the others can't be.

    What was not fit to be used then shows nothing now, and other work, or work beside others, is another number.
    """
    kept, why = [], []
    for launch in earlier:
        changed = differences(configuration(launch), configuration(now))
        if not launch.valid:
            why.append(f"{launch.launch} of {launch.run} was not fit to be used: {launch.reasons[0]}")
        elif changed:
            why.append(f"{launch.launch} of {launch.run} is of another configuration: {'; '.join(changed)}.")
        else:
            kept.append(launch)
    words = (f"{len(why)} launches of the run to be confirmed were left out; {why[0]}",) if why else ()
    return kept, words


def low_power(launches: Sequence[LaunchRecord], library: Library) -> tuple[str, ...]:
    """Say whether GPUs were busy at a power that the same work never drew; nothing where no reference has a power."""
    found = library.find(variant_of(launches[0]), POWER, configuration(launches[0]))
    if isinstance(found, str):
        return ()
    return below_power_floor(
        [METRICS[POWER].of(launch) for launch in launches],
        [busy_percent(launch) for launch in launches],
        centre=found.floor.centre,
        tolerance=found.floor.tolerance,
    )


def _misses(occasion: Occasion, known: Known) -> bool:
    return bool(occasion.rates) and known.floor.missed_by(statistics.median(occasion.rates))


def _unreferenced(measured: Sequence[Occasion], why: str) -> Judgement:
    values = [value for occasion in measured for value in occasion.rates]
    return Judgement(
        verdict=Verdict.UNREFERENCED,
        estimate=statistics.median(values) if values else math.nan,
        low=min(values, default=math.nan),
        high=max(values, default=math.nan),
        limit=math.nan,
        launches=len(values),
        detectable=None,
        reasons=(why,),
        wants=0,
    )
