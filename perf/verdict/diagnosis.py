"""Why a judgement failed: which phase of a step moved, on which rank, and what moved or differs beside it. Pure.

From launches with phases, which synchronize and are never judged: they tell where the time lies, not how much there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perf.contract import LaunchRecord
from perf.verdict.advice import advice_for
from perf.verdict.diagnosis_facts import settings_that_differ, stack_that_differs
from perf.verdict.moved import (
    COMMUNICATION,
    NOT_MOVED,
    Moved,
    Side,
    epoch_phases,
    moved_phase,
    moved_start,
    phases_of,
)
from perf.verdict.slow_steps import SlowSteps, slow_in_words, slow_steps
from perf.verdict.words import percent

__all__ = ["Diagnosis", "RateMoved", "diagnose", "moved_rate"]

RATE_MOVED = 0.05
"""Of the known rate. Component rates repeat to 1 to 3 % on a quiet machine (docs/rates.md)."""

RATES_OF = {
    "data": ("file_read", "file_read_cached", "python_loop", "memory_copy"),
    "copy": ("host_to_device_pinned", "host_to_device_pageable", "memory_copy"),
    "forward": ("matmul_", "memory_copy", "kernel_launches"),
    "backward": ("matmul_", "memory_copy", "kernel_launches"),
    "optimizer": ("memory_copy", "kernel_launches", "python_loop"),
    COMMUNICATION: ("all_reduce_", "peer_copy"),
    "start-up": ("file_read", "file_read_cached", "python_loop"),
}
"""Component rates that a phase rests on, by the beginning of their names."""


@dataclass(frozen=True)
class RateMoved:
    """A component rate of the machine, now and as its reference has it."""

    name: str
    now: float
    known: float


@dataclass(frozen=True)
class Diagnosis:
    """What is known of a failure: one paragraph, and its parts for scripts."""

    text: str
    phase: str = ""
    rank: int | None = None
    host: str = ""
    differs: tuple[str, ...] = ()
    rate: str = ""
    profiles: tuple[str, ...] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """Return it as ``verdicts.jsonl`` holds it."""
        return {
            "text": self.text,
            "phase": self.phase,
            "rank": self.rank,
            "host": self.host,
            "differs": list(self.differs),
            "rate": self.rate,
            "profiles": list(self.profiles),
        }


def diagnose(
    new: Side,
    base: Side | None,
    *,
    metric: str,
    rates: Mapping[str, tuple[float, float | None]],
    reference: str = "",
    profiles: Sequence[str] = (),
) -> Diagnosis:
    """Put together what is known of a failed judgement.

    Parameters
    ----------
    new, base
        What was judged, and what it was held against; None where that is a stored number.
    metric
        What was judged: a start is told by other records than a step.
    rates
        Component rates of the machine that this run measured, with the known ones; None where nothing is known.
    reference
        The stack that a stored number was recorded with, where it is held against one.
    profiles
        Files of the line profiles of every rank.
    """
    moved, slow = _where(new, base, metric)
    told = _time_in_words(moved, slow, base, metric)
    advice = advice_for(moved, slow, metric)
    if moved is not None and moved.stayed:
        moved = None
    differs = (
        (*stack_that_differs(new.launches, base.launches), *settings_that_differ(new.launches, base.launches))
        if base
        else _unlike_reference(new.launches, reference)
    )
    rate = moved_rate(moved.phase, rates) if moved else None
    sentences = [
        *told,
        f"In stack and settings differ: {'; '.join(differs)}."
        if differs
        else _nothing_differs(base, reference),
        _rate_in_words(moved, rate, rates),
        f"Line profiles of every rank: {', '.join(profiles)}." if profiles else "",
        f"Try: {advice}." if advice else "",
    ]
    held = moved or slow
    return Diagnosis(
        text=" ".join(sentence for sentence in sentences if sentence),
        phase=held.phase if held else "",
        rank=held.rank if held else None,
        host=held.host if held else "",
        differs=tuple(differs),
        rate=rate.name if rate else "",
        profiles=tuple(profiles),
    )


def moved_rate(phase: str, rates: Mapping[str, tuple[float, float | None]]) -> RateMoved | None:
    """Return the component rate of a phase that fell most below what is known of it; None where none did."""
    found = [
        RateMoved(name, now, known)
        for name, (now, known) in rates.items()
        if known and name.startswith(RATES_OF[phase]) and now < (1.0 - RATE_MOVED) * known
    ]
    return min(found, key=lambda one: one.now / one.known, default=None)


def _where(new: Side, base: Side | None, metric: str) -> tuple[Moved | None, SlowSteps | None]:
    """Return the phase that moved, or what is known of slow steps where they were judged."""
    if metric == "stall_share":
        return None, slow_steps(new)
    if metric == "start_up":
        return moved_start(new, base), None
    if metric == "first_epoch_penalty":
        first, later = (epoch_phases(new.phases, first=one) for one in (True, False))
        return moved_phase(first, later, new), None
    return moved_phase(phases_of(new.phases), phases_of(base.phases) if base else None, new), None


def _time_in_words(moved: Moved | None, slow: SlowSteps | None, base: Side | None, metric: str) -> list[str]:
    if slow is not None:
        return slow_in_words(slow, slow_steps(base) if base else None)
    if metric == "peak_memory":
        return []
    if moved is None:
        return ["No launch of it could be timed phase by phase."]
    if moved.stayed:
        return [_unmoved_in_words(moved)]
    against = "a later epoch" if metric == "first_epoch_penalty" else base.name if base else ""
    return [_phase_in_words(moved, against)]


def _unmoved_in_words(moved: Moved) -> str:
    sums = f"{_ms(moved.step)} for {_ms(moved.step_before or 0.0)}"
    if moved.grown >= NOT_MOVED:
        return f"No phase alone holds the time: phase by phase the step takes {sums}, each a little more."
    if moved.grown <= -NOT_MOVED:
        return f"Timed phase by phase the step was no longer: it takes {sums}."
    return f"No phase of a step moved: phase by phase it takes {sums}."


def _phase_in_words(moved: Moved, against: str) -> str:
    where = f" of {moved.host}" if moved.host else ""
    what = f"{_ms(moved.seconds)} of a step's {_ms(moved.step)}"
    if moved.phase == "start-up":
        grown = "" if moved.before is None else f", {_s(moved.before)} in {against}"
        return f"The time is in start-up{where}: {_s(moved.seconds)} until the first step is over{grown}."
    if moved.late:
        before = _ms(moved.before or 0.0)
        return (
            f"Rank {moved.rank}{where} comes late to every step: its {moved.phase} takes {_ms(moved.seconds)}, that of "
            f"the others {before}, and they wait {_ms(moved.waited)} for it in {COMMUNICATION}."
        )
    who = f"on every rank, most on {moved.host}" if moved.rank is None else f"on rank {moved.rank}{where}"
    if moved.before is None:
        return f"Most of the time is in {moved.phase}: {what}, {who}."
    return f"The time is in {moved.phase}: {what}, {who}; in {against} it is {_ms(moved.before)}."


def _nothing_differs(base: Side | None, reference: str) -> str:
    if base is None and not reference:
        return ""
    return "Nothing that was recorded of stack and settings differs."


def _unlike_reference(launches: Sequence[LaunchRecord], reference: str) -> tuple[str, ...]:
    """Say that the stack is another one than the reference's: its words hold the version of torch."""
    here = str(launches[0].stack.get("torch") or "") if launches else ""
    if not reference or not here or f"torch {here}" in reference:
        return ()
    return (f"the reference was recorded with {reference}, this is torch {here}",)


def _rate_in_words(
    moved: Moved | None, rate: RateMoved | None, rates: Mapping[str, tuple[float, float | None]]
) -> str:
    if rate is not None:
        fallen = percent(1.0 - rate.now / rate.known)
        return f"The machine's {rate.name} has moved with it: {fallen} below what is known of it."
    if moved is None:
        return ""
    if not rates:
        return "The machine's own rates were not measured before it (`-k test_machine`)."
    known = [name for name, (_, value) in rates.items() if value and name.startswith(RATES_OF[moved.phase])]
    if not known:
        return "Nothing is known of the machine's rates to hold this run's against."
    return f"None of the machine's rates that it rests on has moved ({', '.join(known)})."


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def _s(seconds: float) -> str:
    return f"{seconds:.3g} s"
