"""How much time a run may take, and what still fits: from what the launches so far have taken."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from perf.catalogue import GROUPS, Member
from perf.contract import LaunchSpec
from perf.profiles import Profile
from perf.report.text import duration
from perf.suite.plan import launches_planned

__all__ = ["Budget"]


class Budget:
    """The time of a run. Without a limit everything fits.

    A launch is taken to last as long as the median one of its kind (workload, plan, strategy) has; of a kind that was
    not launched yet, as long as others were seen to take (`known`), else as long as the median of the slowest. The
    first group is asked in any case.

    Parameters
    ----------
    seconds
        The limit; None for none.
    clock
        Tells the time in seconds; its start is the budget's.
    known
        How long a launch of a member takes elsewhere; None where nobody knows.
    """

    def __init__(
        self,
        seconds: float | None,
        clock: Callable[[], float] = time.monotonic,
        known: Callable[[Member], float | None] = lambda member: None,
    ) -> None:
        self._seconds = seconds
        self._known = known
        self._clock = clock
        self._started = clock()
        self._taken: dict[tuple[str, str, str], list[float]] = {}
        self._decided: dict[str, str | None] = {}

    @contextlib.contextmanager
    def timed(self, spec: LaunchSpec) -> Iterator[None]:
        """Note how long a launch takes, also one that fails."""
        before = self._clock()
        try:
            yield
        finally:
            kind = (spec.workload, spec.plan, spec.strategy)
            self._taken.setdefault(kind, []).append(self._clock() - before)

    @property
    def left(self) -> float:
        """Seconds that are left; infinite without a limit."""
        return float("inf") if self._seconds is None else self._seconds - (self._clock() - self._started)

    def affords(self, members: Sequence[Member], launches: int) -> bool:
        """Whether so many more launches of each member fit."""
        return self._seconds is None or self._needs(dict.fromkeys(members, launches)) <= self.left

    def why_not(
        self,
        members: Sequence[Member],
        profile: Profile,
        extras: Callable[[Member], int] = lambda member: 0,
    ) -> str | None:
        """Return why a group is not asked; None if it is. What was decided for a group holds for all of its tests.

        Parameters
        ----------
        members
            All that are measured with the group.
        extras
            How many launches a member gets beside the judged ones.
        """
        if self._seconds is None or not members:
            return None
        group = members[0].group
        if group not in self._decided:
            judged = launches_planned(GROUPS[group], profile)
            self._decided[group] = self._refused({member: judged + extras(member) for member in members})
        return self._decided[group]

    def _refused(self, launches: Mapping[Member, int]) -> str | None:
        needed = self._needs(launches)
        if not self._decided or (needed <= self.left and self.left > 0.0):
            return None
        left, whole = duration(max(0.0, self.left)), duration(self._seconds or 0.0)
        return (
            f"not asked: {sum(launches.values())} launches would take about {duration(needed)}, and {left} of the "
            f"budget of {whole} are left"
        )

    def _needs(self, launches: Mapping[Member, int]) -> float:
        return sum(count * self._expected(member) for member, count in launches.items())

    def _expected(self, member: Member) -> float:
        medians = {kind: statistics.median(found) for kind, found in self._taken.items()}
        variant = member.variant
        kind = (variant.workload, member.plan, variant.strategy)
        if kind in medians:
            return medians[kind]
        known = self._known(member)
        return max(medians.values(), default=0.0) if known is None else known
