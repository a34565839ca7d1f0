"""Why a comparison of two stacks came out as it did: launches of their own, after it was judged."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perf.catalogue import GROUPS, SIDES, Group, Member
from perf.contract import LaunchRecord
from perf.records import ExplanationRecord
from perf.report.differences import setting_differences, stack_differences
from perf.suite.source import Source
from perf.suite.two_stacks import moved
from perf.verdict.operators import operator_changes, operators_in_words
from perf.verdict.outcome import Judgement
from perf.verdict.phases import phase_changes, phases_in_words
from perf.verdict.words import percent

__all__ = ["Explainer"]

EXPLAINED = ("step_time", "loader_share", "scaling")
"""Metrics of a step. What a start-up is spent on is in every launch's record already, and memory has no phases."""

PHASE_LAUNCHES = 2
"""A side, in turn: one alone could not tell a phase that moved from a launch that was disturbed."""

TOLD_OPERATORS = 40
"""Of the table: beyond them lie microseconds."""

RATE_CHANGE = 0.05
"""A rate that changed by less is not told in words: the card's own repetitions spread by a few per cent."""

TOLD_SETTINGS = 6


class Explainer:
    """Explains comparisons that moved.

    Parameters
    ----------
    source
        Where launches come from.
    run
        The run's name.
    record
        Takes each explanation's record.
    stacks
        What both stacks said of themselves, old first; asked for when it is needed.
    always
        Whether what did not move is explained too (``--why``).
    """

    def __init__(
        self,
        source: Source,
        run: str,
        record: Callable[[ExplanationRecord], None],
        stacks: Callable[[], tuple[Mapping[str, Any], Mapping[str, Any]]],
        *,
        always: bool = False,
    ) -> None:
        self._source = source
        self._run = run
        self._record = record
        self._stacks = stacks
        self._always = always

    def __call__(self, test: str, metric: str, group: Group, judgement: Judgement) -> tuple[str, ...]:
        """Say why a comparison came out as it did, in sentences; none where it did not move."""
        if metric not in EXPLAINED or not (self._always or moved(judgement)):
            return ()
        # Of a quotient's two variants the last is the one that its question is about.
        members = [group.of_side(side)[-1] for side in SIDES]
        new = members[-1]
        phases = phase_changes(
            *self._parts(members, "phases", PHASE_LAUNCHES, lambda one: one.phase_seconds or [])
        )
        operators = operator_changes(
            *self._parts(members, "operators", 1, lambda one: one.operators[0] if one.operators else {})
        )
        rates = self._rates(new)
        settings = self._settings(members)
        told = (
            phases_in_words(phases) or "No launch could be timed phase by phase.",
            operators_in_words(operators) or "No launch could be profiled.",
            _rates_in_words(rates),
            _settings_in_words(settings),
        )
        sentences = tuple(sentence for sentence in told if sentence)
        self._record(
            ExplanationRecord(
                run=self._run,
                test=test,
                group=group.name,
                variant=new.id,
                metric=metric,
                sentences=list(sentences),
                phases={change.phase: [change.old, change.new] for change in phases},
                operators={
                    change.name: [change.old, change.new, change.old_calls, change.new_calls]
                    for change in operators[:TOLD_OPERATORS]
                },
                rates=rates,
                settings={name: [before, after] for name, before, after in settings},
            )
        )
        return sentences

    def _parts(
        self, members: Sequence[Member], kind: str, launches: int, part: Callable[[LaunchRecord], Any]
    ) -> tuple[list[Any], list[Any]]:
        """Return a part of each side's launches of a kind, old first; without those that do not have it."""
        found = self._source.watched(members, kind, launches)
        old, new = ([p for one in found[m.id] if one.valid and (p := part(one))] for m in members)
        return old, new

    def _rates(self, member: Member) -> dict[str, list[float | None]]:
        """Return what the machine does by itself with each stack: one launch a side and kind of device, once a run."""
        kind = "gpu" if member.variant.device == "cuda" else "cpu"
        group = GROUPS.get(f"rates@machine-{kind}")
        if group is None:
            return {}
        members = [dataclasses.replace(group.members[0], side=side) for side in SIDES]
        found = self._source.watched(members, "rates", 1)
        sides = [_medians(found[one.id]) for one in members]
        return {name: [side.get(name) for side in sides] for name in dict.fromkeys((*sides[0], *sides[1]))}

    def _settings(self, members: Sequence[Member]) -> list[tuple[str, str, str]]:
        """Return what is in force, or is torch's default, on one side and not on the other."""
        launches = [self._source.measure(member).first for member in members]
        effective = [one.effective[0] if one.effective else {} for one in launches]
        old, new = self._stacks()
        defaults = stack_differences(
            *({key: side.get(key) or {} for key in ("defaults", "environment")} for side in (old, new))
        )
        return [*setting_differences(*effective), *defaults]


def _medians(launches: Sequence[LaunchRecord]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for launch in launches:
        for name, rate in launch.rates.items():
            if rate.value is not None:
                values.setdefault(name, []).append(rate.value)
    return {name: statistics.median(found) for name, found in values.items()}


def _rates_in_words(rates: Mapping[str, Sequence[float | None]]) -> str:
    changes = {name: new / old - 1.0 for name, (old, new) in rates.items() if old and new}
    large = sorted(
        (name for name in changes if abs(changes[name]) > RATE_CHANGE), key=lambda n: -abs(changes[n])
    )
    if not changes:
        return ""
    if not large:
        return f"The machine does by itself what it did, within {percent(RATE_CHANGE)}, with either stack."
    return (
        "By itself the machine changed in "
        + ", ".join(f"{name} {changes[name]:+.0%}" for name in large[:4])
        + "."
    )


def _settings_in_words(settings: Sequence[tuple[str, str, str]]) -> str:
    if not settings:
        return "Settings and defaults are the same."
    told = ", ".join(f"{name} was {old:.60} and is {new:.60}" for name, old, new in settings[:TOLD_SETTINGS])
    more = len(settings) - TOLD_SETTINGS
    return f"Settings that differ: {told}{f', and {more} more' if more > 0 else ''}."
