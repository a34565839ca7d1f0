"""A miss of a floor is confirmed elsewhere before it is a `fail`.

Elsewhere is another node, or another date where the reference comes from a single node (it binds that
node only: with nodes that differ by 1 %, ten dates of one node miss 2.6 % of the others). Missed again: `fail`,
or `inconclusive` if the reference is provisional. Not missed again: `inconclusive`, naming the node that was slow.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from perf.verdict.floors import LAUNCHES_PER_OCCASION, Floor, Occasion
from perf.verdict.inputs import positive_logs
from perf.verdict.outcome import Judgement, Verdict
from perf.verdict.quantiles import median_rank
from perf.verdict.words import percent

__all__ = ["judge_floor"]

RANGE_LEVEL = 1.0 / 32.0
"""One-sided level of the printed range of the median rate (sign test): the extremes of 5, the second of 10."""

MISS_FACTOR = 1.96
"""Each of two measurements misses with 97.5 % at T + 1.96 s', so both with 95 %."""


def judge_floor(
    measured: Sequence[Occasion],
    floor: Floor | None,
    *,
    can_confirm: bool,
    single_node: bool = False,
    least_launches: int = LAUNCHES_PER_OCCASION,
) -> Judgement:
    """Judge the median rate of a measurement, and of the one that confirms it, against a floor.

    Parameters
    ----------
    measured
        The measurement, then the one that was made because it missed, if any. A later one counts as
        confirmation only if it is elsewhere; further entries are read until one is.
    floor
        The floor; None if the system has no reference for this: `unreferenced`.
    can_confirm
        Whether this run can still measure elsewhere. If so, a first miss is undecided (verdict None) and
        wants `least_launches` there; if not, it is `inconclusive`.
    single_node
        Whether the system has only one node, so that another date confirms.
    least_launches
        Launches that a measurement needs.

    Returns
    -------
    Judgement
        In the unit of the rates; `low` to `high` is the range of the median rate at the deciding
        measurement, `detectable` the relative loss that both measurements would have missed with 95 %.

    Raises
    ------
    ValueError
        If a rate is not positive and finite.
    """
    if not measured:
        return _judgement((), None, floor, ("Nothing is measured yet.",), least_launches)
    first = measured[0]
    if floor is None:
        return _judgement(
            first.rates, Verdict.UNREFERENCED, floor, ("This system has no reference for it.",), 0
        )
    if len(first.rates) < least_launches:
        return _too_few(first, floor, can_confirm, least_launches)
    bound_node = next(iter(floor.nodes)) if len(floor.nodes) == 1 else None
    if bound_node is not None and not single_node and first.node != bound_node:
        reason = (
            f"The reference comes from {bound_node} alone and binds that node only; this is {_where(first)}. "
            "Record occasions on other nodes."
        )
        return _judgement(first.rates, Verdict.UNREFERENCED, floor, (reason,), 0)
    if not floor.missed_by(statistics.median(first.rates)):
        return _judgement(first.rates, Verdict.PASS, floor, _kept(first, floor), 0)
    by_date = single_node or bound_node is not None
    second = next((again for again in measured[1:] if _elsewhere(first, again, by_date)), None)
    if second is None:
        return _first_miss(first, floor, by_date, can_confirm, least_launches)
    if len(second.rates) < least_launches:
        return _too_few(second, floor, can_confirm, least_launches)
    return _confirmed(first, second, floor)


def _elsewhere(first: Occasion, again: Occasion, by_date: bool) -> bool:
    return again.date != first.date and again.node == first.node if by_date else again.node != first.node


def _too_few(measured: Occasion, floor: Floor, can_measure: bool, least: int) -> Judgement:
    reason = f"{_where(measured)} has {len(measured.rates)} launches; a floor is judged by {least} or more."
    verdict = None if can_measure else Verdict.INCONCLUSIVE
    return _judgement(measured.rates, verdict, floor, (reason,), least if can_measure else 0)


def _kept(measured: Occasion, floor: Floor) -> tuple[str, ...]:
    reasons: tuple[str, ...] = (f"It is {_gap(measured, floor)}; {percent(_loss(floor))} is allowed.",)
    if floor.provisional:
        reasons += (f"The reference is provisional: {_why_provisional(floor)}.",)
    return reasons


def _first_miss(measured: Occasion, floor: Floor, by_date: bool, can_confirm: bool, least: int) -> Judgement:
    elsewhere = "on another date" if by_date else "on another node"
    reasons: tuple[str, ...] = (
        f"{_where(measured)} misses: it is {_gap(measured, floor)}; {percent(_loss(floor))} is allowed.",
    )
    if floor.provisional:
        reasons += (_provisional(floor),)
        return _judgement(measured.rates, Verdict.INCONCLUSIVE, floor, reasons, 0)
    reasons += (f"A miss counts when it is seen again {elsewhere}, with {least} launches.",)
    return _judgement(
        measured.rates,
        None if can_confirm else Verdict.INCONCLUSIVE,
        floor,
        reasons,
        least if can_confirm else 0,
    )


def _confirmed(first: Occasion, second: Occasion, floor: Floor) -> Judgement:
    if not floor.missed_by(statistics.median(second.rates)):
        reason = (
            f"{_where(first)} misses ({_gap(first, floor)}; {percent(_loss(floor))} is allowed), "
            f"{_where(second)} does not ({_gap(second, floor)}): look at {_where(first)}."
        )
        return _judgement(second.rates, Verdict.INCONCLUSIVE, floor, (reason,), 0)
    reason = (
        f"Missed twice: {_where(first)} is {_gap(first, floor)}, {_where(second)} is {_gap(second, floor)}; "
        f"{percent(_loss(floor))} is allowed."
    )
    if floor.provisional:
        return _judgement(second.rates, Verdict.INCONCLUSIVE, floor, (reason, _provisional(floor)), 0)
    return _judgement(second.rates, Verdict.FAIL, floor, (reason,), 0)


def _provisional(floor: Floor) -> str:
    return f"The reference is provisional: {_why_provisional(floor)}. Record more occasions here to make a miss count."


def _why_provisional(floor: Floor) -> str:
    if floor.occasions == 1:
        return f"it rests on the single occasion of {floor.dates[0]}, which may have been the unusual one"
    return "it is not known to be of the same system"


def _where(measured: Occasion) -> str:
    return f"{measured.node} on {measured.date}" if measured.node else f"the measurement of {measured.date}"


def _gap(measured: Occasion, floor: Floor) -> str:
    relative = statistics.median(measured.rates) / floor.centre - 1.0
    return f"{percent(abs(relative))} {'below' if relative < 0.0 else 'above'} the reference"


def _loss(floor: Floor) -> float:
    """Return the relative deviation that the floor allows."""
    return abs(floor.bound / floor.centre - 1.0)


def _judgement(
    rates: Sequence[float], verdict: Verdict | None, floor: Floor | None, reasons: tuple[str, ...], wants: int
) -> Judgement:
    positive_logs(rates, "the rates")
    limit, detectable = math.nan, None
    if floor is not None:
        limit = floor.bound
        if not floor.provisional:
            reach = floor.tolerance + MISS_FACTOR * floor.spread * math.sqrt(1.0 + 1.0 / floor.occasions)
            detectable = abs(math.expm1(-reach if floor.higher_is_better else reach))
    if not rates:
        return Judgement(verdict, math.nan, math.nan, math.nan, limit, 0, detectable, reasons, wants)
    ordered = sorted(rates)
    rank = max(1, median_rank(len(ordered), RANGE_LEVEL))
    low, high = ordered[rank - 1], ordered[-rank]
    return Judgement(
        verdict, statistics.median(ordered), low, high, limit, len(ordered), detectable, reasons, wants
    )
