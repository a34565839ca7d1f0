"""A run's launches in the form in which pictures need them: by side, with short names and intervals. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from perf.contract import LaunchRecord
from perf.report.stacks import stack_key, stack_labels
from perf.report.text import number
from perf.verdict.pace import step_times

__all__ = ["INTERVAL_NOTE", "Estimate", "Side", "by_group", "estimate", "letter", "question_of", "sides"]

INTERVAL_NOTE = (
    "Values are medians over launches, [lowest–highest launch] behind them: from 5 launches on that range holds the "
    "true median with at least 93.75 % (1 − 2 × 0.5⁵), whatever the noise."
)


_Key = tuple[str, str, str, str, str]
"""Group, variant, plan, stack and run of a side."""


@dataclass(frozen=True)
class Estimate:
    """A median over launches and the range of the launches."""

    median: float
    low: float
    high: float
    launches: int

    def text(self, unit: str = "", scale: float = 1.0) -> str:
        """Write ``2.31 [2.20–2.44] ms, 5 launches``: one launch has no range."""
        written = number(self.median * scale)
        if self.launches > 1:
            written += f" [{number(self.low * scale)}–{number(self.high * scale)}]"
        return f"{written} {unit}".rstrip()


@dataclass(frozen=True)
class Side:
    """One variant of one group, in one plan, on one stack, in one run: the unprofiled, valid launches, in order.

    `label` is the shortest name that tells it from the other sides of its group. `run` is a letter where a page holds
    several runs, else empty.
    """

    group: str
    variant: str
    plan: str
    stack: str
    run: str
    label: str
    launches: list[LaunchRecord]
    invalid: int = 0

    @property
    def first(self) -> LaunchRecord:
        """The first launch: for what does not differ between launches."""
        return self.launches[0]

    def estimate(self, value: Callable[[LaunchRecord], float | None]) -> Estimate | None:
        """Return the median of a quantity over the launches that have it, None where none has."""
        return estimate(value(launch) for launch in self.launches)

    @property
    def rate(self) -> Estimate | None:
        """Throughput of all ranks together, samples/s."""
        return self.estimate(lambda launch: launch.samples_per_second or None)

    @property
    def step(self) -> Estimate | None:
        """What a step of the slowest rank takes, seconds."""
        return estimate(step or None for step in step_times(self.launches)[0])

    @property
    def wait_share(self) -> Estimate | None:
        """Share of the window in which the rank that waits most waits for data."""
        return self.estimate(lambda launch: launch.wait_share)


def estimate(values: Iterable[float | None]) -> Estimate | None:
    """Return the median and the range of the values that were had."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return Estimate(statistics.median(known), min(known), max(known), len(known)) if known else None


def question_of(group: str) -> str:
    """Return the question that a group answers: 'loader' of 'loader@mnist_cnn-gpu'."""
    return group.partition("@")[0]


def letter(place: int) -> str:
    """Return the letter of a page's run: A is the first."""
    return chr(ord("A") + place) if place < 26 else f"run {place + 1}"


def sides(records: Sequence[LaunchRecord], letters: Mapping[str, str] | None = None) -> list[Side]:
    """Sort launches into sides, in the order of first appearance. Profiled launches are no part of any.

    Parameters
    ----------
    letters
        By the runs' names as the records have them, the letter under which a page of several runs shows each.
    """
    letters = letters or {}
    plain = [record for record in records if not record.profiled]
    stacks = stack_labels(record.stack for record in plain)
    many = len(stacks) > 1 and not letters
    members: dict[_Key, list[LaunchRecord]] = {}
    for record in plain:
        stack = stacks[stack_key(record.stack)] if many else ""
        # A stack that is compared with itself has two sides all the same.
        variant = record.variant + (f"@{record.side}" if record.side else "")
        key = (record.group, variant, record.plan, stack, letters.get(record.run, ""))
        members.setdefault(key, []).append(record)
    groups: dict[str, list[_Key]] = {}
    for key in members:
        groups.setdefault(key[0], []).append(key)
    found = []
    for keys in groups.values():
        for key, label in zip(keys, _labels(keys), strict=True):
            launches = members[key]
            valid = [launch for launch in launches if launch.valid]
            if valid:
                found.append(Side(*key, label, valid, len(launches) - len(valid)))
    return found


def by_group(found: Sequence[Side]) -> dict[str, list[Side]]:
    """Sort sides by group, in the order of first appearance."""
    groups: dict[str, list[Side]] = {}
    for side in found:
        groups.setdefault(side.group, []).append(side)
    return groups


def _labels(keys: Sequence[_Key]) -> list[str]:
    """Leave out of the variants' ids the parts that all of a group share; full names where that is not unique."""
    variants = list(dict.fromkeys(variant for _, variant, *_ in keys))
    short = _short_names(variants)
    plans = {plan for _, _, plan, *_ in keys}
    labels: list[str] = []
    for names in (short, dict(zip(variants, variants, strict=True))):
        labels = [
            ", ".join(filter(None, (names[variant], plan if len(plans) > 1 else "", stack, run)))
            for _, variant, plan, stack, run in keys
        ]
        if len(set(labels)) == len(labels):
            break
    return labels


def _short_names(variants: Sequence[str]) -> dict[str, str]:
    """Name each variant by the parts of its id that the others do not have."""
    if len(variants) == 1:
        return {variants[0]: variants[0]}
    parts = {variant: variant.split("-") for variant in variants}
    common = set.intersection(*map(set, parts.values()))
    modes = {"synthetic", "io"}
    some_mode = any(modes & (set(words) - common) for words in parts.values())
    names = {}
    for variant, words in parts.items():
        kept = [word for word in words if word not in common]
        if some_mode and not modes & set(words):
            kept.append("full")
        names[variant] = " ".join(kept) or "base"
    return names
