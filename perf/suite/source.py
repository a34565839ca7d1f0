"""Where launches come from, and what a test gets: the launches of a member, measured now or stored."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from perf import contract
from perf.catalogue import Member
from perf.verdict.metrics import METRICS
from perf.verdict.pace import of_side, waits
from perf.verdict.startup import start_up


@dataclass(frozen=True)
class Measurement:
    """The launches of one member, in the order in which they ended; never empty.

    `replaced` are those that were taken again because the machine was not fit: they are told, and not judged. `by_mean`
    says whether steps are taken by their mean; None: as its own launches have it (`perf.verdict.pace`).
    """

    member: Member
    launches: list[contract.LaunchRecord]
    replaced: tuple[contract.LaunchRecord, ...] = ()
    by_mean: bool | None = None

    @property
    def first(self) -> contract.LaunchRecord:
        """The first launch: for facts that do not differ between launches."""
        return self.launches[0]

    @property
    def step_times(self) -> list[float]:
        """What a step of each launch takes, in seconds."""
        mean = waits(self.launches) if self.by_mean is None else self.by_mean
        return of_side(self.launches, mean=mean)

    @property
    def in_windows(self) -> bool:
        """Whether all launches tell the peak of memory of their windows; older ones tell the whole launch's alone."""
        return all(peaks for one in self.launches for peaks in one.window_peak_memory_bytes or [{}])

    def peaks(self, *, windows: bool) -> list[list[dict[str, int]]]:
        """Return the peaks of allocated memory in bytes, by launch, rank and device.

        Those of whole launches hold first steps, in which DDP builds its buckets anew: equal launches differ there by a
        copy of the gradients, and hardly within their windows (docs/measurements/2026-11-29-h200-x4).
        """
        return [one.window_peak_memory_bytes if windows else one.peak_memory_bytes for one in self.launches]

    @property
    def throughputs(self) -> list[float]:
        """Throughput of each launch, in samples/s."""
        return [launch.samples_per_second for launch in self.launches]

    def values(self, metric: str) -> list[float]:
        """Return one positive number a launch for a metric that references know; without launches that have none."""
        return METRICS[metric].values(self.launches)

    @property
    def start_seconds(self) -> list[float]:
        """From a launch's first process to the end of its first step, in seconds, of each launch that says so."""
        found = (start_up(launch.startup_seconds, launch.first_step_seconds) for launch in self.launches)
        return [seconds for seconds in found if seconds is not None]

    @property
    def drain_steps(self) -> float | None:
        """Median, over launches, of the steps that a device had still to do when the last one had been queued.

        Of the rank that is least ahead, which the others wait for: where hosts hold two ranks up, the device of the
        quicker one waits in its all-reduce for the other's, with up to 14 steps of `mnist_cnn` queued (H200s). None on
        a CPU, where work is done when it is queued, and where launches do not say.
        """
        if self.member.variant.device != "cuda":
            return None
        found = [
            min(seconds) / launch.median_step_seconds
            for launch in self.launches
            if (seconds := [s for s in launch.drain_seconds if s is not None]) and launch.median_step_seconds
        ]
        return statistics.median(found) if found else None

    @property
    def wait_share(self) -> float:
        """Median, over launches, of the part of the window for which the slowest rank waited for its data."""
        found = [share for launch in self.launches if (share := launch.wait_share) is not None]
        return statistics.median(found) if found else 0.0


def alike(*sides: Measurement) -> list[Measurement]:
    """Return sides that are held against each other, whose steps are all taken by their mean or all by their median."""
    mean = any(waits(side.launches) for side in sides)
    return [dataclasses.replace(side, by_mean=mean) for side in sides]


class Source(Protocol):
    """Where launches come from: measured now, or stored."""

    def lacks(self, member: Member) -> str | None:
        """Return why the source can't have launches of the member, in words; None if it can."""

    def measure(self, member: Member) -> Measurement:
        """Return the member's launches, with its group's measured first if need be."""

    def more(self, test: str, sides: Sequence[Member], launches: int) -> bool:
        """Add launches for `test` until each side has `launches` of its own or the group's; False if impossible."""

    def sides(self, test: str, members: Sequence[Member]) -> list[Measurement]:
        """Return the members' launches, with those that were added for `test` behind the group's."""

    def watched(
        self, members: Sequence[Member], kind: str, launches: int
    ) -> dict[str, list[contract.LaunchRecord]]:
        """Return, by member, launches beside the judged ones that say why: ``phases``, ``operators``, ``rates``."""

    def explain(self, members: Sequence[Member]) -> list[contract.LaunchRecord]:
        """Return launches that tell where the time of members goes: phases of each, a line profile of the first.

        None of them is judged. What can't be had is left out.
        """

    def rates(self) -> list[contract.LaunchRecord]:
        """Return the launches that measured the machine, as far as there are any yet."""

    def profiled(self, member: Member, extra: str) -> contract.LaunchRecord:
        """Return a launch of the member for a profile: never one that is judged."""


def pick(records_of_member: Iterable[contract.LaunchRecord], test: str) -> list[contract.LaunchRecord]:
    """Return the launches that a test may use: the group's own rounds, then those added for this very test.

    Launches that another test asked for are left out: with them a verdict would depend on what else was selected.
    """
    found = list(records_of_member)
    return [r for r in found if not r.escalation] + [
        r for r in found if r.escalation and r.escalation == test
    ]
