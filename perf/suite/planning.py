"""A run's plan: its groups, their launches, how long they take, and what a budget leaves out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from perf.catalogue import GROUPS, Member
from perf.profiles import PROFILES, Profile
from perf.suite.plan import launches_planned, takes_extra
from perf.suite.selection import Need

__all__ = ["Part", "Planned", "beside", "extra_launches", "one_by_one", "parts_of", "rank", "told"]


@dataclass(frozen=True)
class Part:
    """A group that a run measures.

    Attributes
    ----------
    group
        Its name.
    launches
        Of all its members, as planned: an undecided judgement asks for more.
    stages
        GPUs that it holds, and for how many seconds: one stage where sides are launched in turn; else GPUs are given
        back as it goes. Seconds are None where nobody knows.
    """

    group: str
    launches: int
    stages: tuple[tuple[int, float | None], ...]

    @property
    def gpus(self) -> int:
        """What its largest member needs."""
        return max(gpus for gpus, _ in self.stages)

    @property
    def seconds(self) -> float | None:
        """How long it takes."""
        each = [seconds for _, seconds in self.stages if seconds is not None]
        return sum(each) if len(each) == len(self.stages) else None

    @property
    def gpu_seconds(self) -> float:
        """What it holds GPUs for."""
        return sum(gpus * (seconds or 0.0) for gpus, seconds in self.stages)

    @property
    def weight(self) -> tuple[int, float]:
        """What comes first where groups are measured beside each other, as `perf.suite.scheduling` has it."""
        return self.gpus, self.seconds or 0.0


@dataclass(frozen=True)
class Planned:
    """A part, and when it starts and ends, in seconds from the first launch; both None where nobody knows."""

    part: Part
    starts: float | None
    ends: float | None


def rank(group: str, quick: Profile = PROFILES["quick"]) -> int:
    """Return how telling a group is: 0 what ``quick`` accepts a stack by, 1 what is judged besides, 2 the rest."""
    found = GROUPS[group]
    if not found.judged:
        return 2
    return 0 if any(member.runs_in(quick.name) for member in found.members) else 1


def parts_of(
    members: Iterable[Member],
    profile: Profile,
    expected: Callable[[Member], float | None],
    extras: Callable[[Member], int] = lambda member: 0,
) -> list[Part]:
    """Return the parts for all members that run here, in the order in which their groups first come.

    `extras` says how many launches a member gets beside the judged ones.
    """
    by_group: dict[str, list[Member]] = {}
    for member in members:
        known = by_group.setdefault(member.group, [])
        if member not in known:
            known.append(member)
    return [_part(group, mine, profile, expected, extras) for group, mine in by_group.items()]


def extra_launches(
    tests: Iterable[tuple[Need, Iterable[Member]]], extras: Iterable[str]
) -> Callable[[Member], int]:
    """Return what says how many launches a member gets beside the judged ones.

    Parameters
    ----------
    tests
        What each test of a run needs, and the members that it names.
    extras
        Profiles that were asked for, of every member that a test names.
    """
    asked: dict[Member, set[str]] = {}
    for need, members in tests:
        for member in members:
            asked.setdefault(member, set()).update(extras, need.beside)
    return lambda member: sum(takes_extra(member.variant, extra) for extra in asked.get(member, ()))


def _part(
    group: str,
    members: Sequence[Member],
    profile: Profile,
    expected: Callable[[Member], float | None],
    extras: Callable[[Member], int],
) -> Part:
    counted = [(m, launches_planned(GROUPS[group], profile) + extras(m)) for m in members]
    launches = sum(count for _, count in counted)
    each = sorted(((m.variant.gpus, expected(m)) for m in members), key=lambda one: -one[0])
    if launches > len(members):
        known = [(count, seconds) for m, count in counted if (seconds := expected(m)) is not None]
        whole = sum(count * seconds for count, seconds in known) if len(known) == len(members) else None
        each = [(each[0][0], whole)]
    return Part(group, launches, tuple(each))


def one_by_one(parts: Sequence[Part], budget: float | None = None) -> tuple[list[Planned], list[Part]]:
    """Return parts one after the other, and those that do not fit into a budget (seconds)."""
    planned: list[Planned] = []
    left_out: list[Part] = []
    now: float | None = 0.0
    for part in parts:
        ends = None if now is None or part.seconds is None else now + part.seconds
        if budget is not None and planned and ends is not None and ends > budget:
            left_out.append(part)
            continue
        planned.append(Planned(part, now, ends))
        now = ends
    return planned, left_out


def beside(
    parts: Sequence[Part], gpus: int, processes: int, budget: float | None = None
) -> tuple[list[Planned], list[Part]]:
    """Return parts beside each other, as `perf.suite.scheduling` and `perf.launch.leases` have them.

    Each process takes the heaviest group that is left and asks for its GPUs; one that has to wait keeps back what is
    free. Parts without a time take none.

    Parameters
    ----------
    gpus
        Of the node.
    processes
        That measure at the same time.
    budget
        Seconds: the most telling parts are taken first, and those that no time is left for are not. Each process takes
        its first one in any case.

    Returns
    -------
    planned, left_out
        The parts with their times, and those that the budget has no room for.
    """
    left = sorted(parts, key=lambda part: part.weight, reverse=True)
    if budget is not None:
        left.sort(key=lambda part: rank(part.group))
    left_out: list[Part] = []
    taken = 0
    waiting: list[Part] = []
    running: list[_Running] = []
    done: list[Planned] = []
    now = 0.0
    while left or waiting or running:
        while left and len(waiting) + len(running) < processes:
            part = left.pop(0)
            if budget is None or taken < processes or now + (part.seconds or 0.0) <= budget:
                waiting.append(part)
                taken += 1
            else:
                left_out.append(part)
        free = gpus - sum(one.gpus for one in running)
        started = []
        for part in sorted(waiting, key=lambda part: part.weight, reverse=True):
            if part.gpus <= free:
                started.append(part)
            free -= min(free, part.gpus)
        running += [_Running(part, now, now + (part.stages[0][1] or 0.0)) for part in started]
        waiting = [part for part in waiting if part not in started]
        if not started and running:
            now = min(one.until for one in running)
            over = [one for one in running if one.is_over(now)]
            done += [Planned(one.part, one.starts, now) for one in over]
            running = [one for one in running if one not in over]
    return done, left_out


@dataclass(eq=False)
class _Running:
    """A part that is being measured, in one of its stages."""

    part: Part
    starts: float
    until: float
    stage: int = 0

    @property
    def gpus(self) -> int:
        return self.part.stages[self.stage][0]

    def is_over(self, now: float) -> bool:
        """Go to the next stage where this one has ended; return whether there is none."""
        if self.until > now:
            return False
        self.stage += 1
        if self.stage == len(self.part.stages):
            return True
        self.until = now + (self.part.stages[self.stage][1] or 0.0)
        return False


def told(planned: Sequence[Planned], left_out: Mapping[str, int], *, start: float, how: str) -> list[str]:
    """Return a plan in lines: a row a group, then the whole, then how many tests are left out and why."""
    from perf.report.text import duration

    if not planned:
        return ["Nothing would be measured here.", *_left_out(left_out)]
    rows = sorted(planned, key=lambda one: (one.starts or 0.0, -one.part.gpus))
    width = max([len(one.part.group) for one in rows], default=5)
    lines = [f"{'starts':>10}  {'group':{width}}  GPUs  launches  takes"]
    for one in rows:
        known = one.starts is not None and one.ends is not None
        starts = duration(start + (one.starts or 0.0)) if known else "–"
        takes = "–" if one.part.seconds is None else duration(one.part.seconds)
        lines.append(
            f"{starts:>10}  {one.part.group:{width}}  {one.part.gpus:>4}  {one.part.launches:>8}  {takes}"
        )
    parts = [one.part for one in rows]
    whole = f"{sum(part.launches for part in parts)} launches in {len(parts)} groups, {how}"
    if all(one.ends is not None for one in rows):
        ends = start + max([one.ends or 0.0 for one in rows], default=0.0)
        hours = sum(part.gpu_seconds for part in parts) / 3600.0
        whole += f": about {duration(ends)} and {hours:.1f} GPU hours, as far as launches are known (docs/launching.md)"
    else:
        whole += ": how long a launch takes here is told as it goes"
    lines += ["", whole, "Undecided judgements ask for more launches than are planned."]
    return [*lines, *_left_out(left_out)]


def _left_out(left_out: Mapping[str, int]) -> list[str]:
    return [f"left out: {count} test{'s' * (count > 1)}: {reason}" for reason, count in left_out.items()]
