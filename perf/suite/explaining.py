"""Why a comparison of two stacks came out as it did: launches of their own, after it was judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perf.catalogue import GROUPS, SIDES, Group, Member
from perf.contract import LaunchRecord, Rate
from perf.records import ExplanationRecord
from perf.report.differences import setting_differences, stack_differences
from perf.suite.source import Source
from perf.suite.two_stacks import is_slower, judged_members, moved
from perf.verdict.operators import operator_changes, operators_in_words
from perf.verdict.outcome import Judgement
from perf.verdict.phases import moved_phases, phase_changes, phases_in_words
from perf.verdict.rate_changes import rate_changes, rates_in_words

__all__ = ["Explainer"]

EXPLAINED = ("step_time", "loader_share", "scaling")
"""Metrics of a step. What a start-up is spent on is in every launch's record already, and memory has no phases."""

PHASE_LAUNCHES = 2
"""A side, in turn: one alone could not tell a phase that moved from a launch that was disturbed."""

TOLD_OPERATORS = 40
"""Of the table: beyond them lie microseconds."""

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
        members = list(judged_members(group, metric))
        new = members[-1]
        phases = phase_changes(
            *self._parts(members, "phases", PHASE_LAUNCHES, lambda one: one.phase_seconds or [])
        )
        operators = operator_changes(
            *self._parts(members, "operators", 1, lambda one: one.operators[0] if one.operators else {})
        )
        old_rates, new_rates = self._rates(new)
        # A quotient may have grown since what it is held against became faster.
        slower = sum(change.seconds for change in phases) > 0.0 if phases else is_slower(judgement)
        clear = [one.phase for one in moved_phases(phases) if (one.seconds > 0.0) is slower]
        changes = rate_changes(old_rates, new_rates, slower=slower, phases=clear)
        settings = self._settings(members)
        told = (
            phases_in_words(phases) or "No launch could be timed phase by phase.",
            operators_in_words(operators) or "No launch could be profiled.",
            rates_in_words(changes, old_rates.keys() & new_rates.keys(), clear),
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
                rates={
                    name: [side[name].value if name in side else None for side in (old_rates, new_rates)]
                    for name in dict.fromkeys((*old_rates, *new_rates))
                },
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

    def _rates(self, member: Member) -> list[dict[str, Rate]]:
        """Return what the machine does by itself with each stack: one launch a side and kind of device, once a run."""
        kind = "gpu" if member.variant.device == "cuda" else "cpu"
        group = GROUPS.get(f"rates@machine-{kind}")
        if group is None:
            return [{}, {}]
        members = [dataclasses.replace(group.members[0], side=side) for side in SIDES]
        found = self._source.watched(members, "rates", 1)
        return [next((dict(one.rates) for one in found[m.id] if one.valid), {}) for m in members]

    def _settings(self, members: Sequence[Member]) -> list[tuple[str, str, str]]:
        """Return what is in force, or is torch's default, on one side and not on the other."""
        launches = [self._source.measure(member).first for member in members]
        effective = [one.effective[0] if one.effective else {} for one in launches]
        old, new = self._stacks()
        defaults = stack_differences(
            *({key: side.get(key) or {} for key in ("defaults", "environment")} for side in (old, new))
        )
        return [*setting_differences(*effective), *defaults]


def _settings_in_words(settings: Sequence[tuple[str, str, str]]) -> str:
    if not settings:
        return "Settings and defaults are the same."
    told = ", ".join(f"{name} was {old:.60} and is {new:.60}" for name, old, new in settings[:TOLD_SETTINGS])
    more = len(settings) - TOLD_SETTINGS
    return f"Settings that differ: {told}{f', and {more} more' if more > 0 else ''}."
