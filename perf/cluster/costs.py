"""How long launches take, for the time limits of jobs. Pure."""

from __future__ import annotations

from perf.catalogue import GROUPS, Group, Member
from perf.profiles import Profile
from perf.suite.costs import expected_seconds, is_known
from perf.suite.plan import launches_planned

MEASURED_SECONDS = {
    # The longest of 127 launches of mnist_cnn on H100s, docs/measurements/2026-11-28-h100*.
    ("cuda", "mnist_cnn", "window"): 22.1,
    ("cuda", "mnist_cnn", "epochs"): 23.1,
    ("cuda", "mnist_cnn", "audit"): 20.8,
}
"""Seconds of one launch, from the start of its first process to the end of its last."""

LONGEST = 4.0
"""Times that a launch took at most what its workload's median one did: 97 and 22 s, `unet3d` on H200s."""

SMOKE_CPU_SECONDS = 24.0
"""Ten smoke runs of 16 launches on a busy machine took up to 388 s (docs/measurements/2026-11-28-cpu.md)."""

START_SECONDS = 600.0
"""Before the first launch: the stack is asked what it is (180 s are allowed for that), and data that are generated are
generated once, which took minutes on a cold parallel file system."""

SAFETY = 2.0
"""A limit that ends a run costs the whole run; one that is too long costs a later start. Slow file systems have doubled
a launch's start."""


def launch_seconds(member: Member, profile: Profile) -> float:
    """Return how long a launch takes at most; its own time limit where nobody has measured it."""
    variant = member.variant
    if profile.name == "smoke" and variant.device == "cpu":
        return SMOKE_CPU_SECONDS
    expected = expected_seconds(member, "fresh") or 0.0
    measured = MEASURED_SECONDS.get((variant.device, variant.workload, member.plan))
    # Nobody has measured windows of 400 steps of every network.
    if profile.every_stall or (measured is None and not is_known(member)):
        return profile.time_limit_seconds
    longest = LONGEST * expected if measured is None else max(measured, expected)
    return min(longest, profile.time_limit_seconds)


def planned_seconds(member: Member, profile: Profile) -> float:
    """Return how long a launch may be expected to take, fresh, as a job's steps are started."""
    expected = expected_seconds(member, "fresh")
    # On a CPU nobody knows.
    return launch_seconds(member, profile) if expected is None else expected


def group_seconds(
    group: Group, members: list[Member], profile: Profile, extras: int = 0
) -> tuple[float, float]:
    """Return how long a group takes: with the launches that are planned, and with all that its looks may ask for.

    Parameters
    ----------
    group
        The group.
    members
        Those of its members that will run.
    profile
        How many launches each gets.
    extras
        Further launches of each member: line profiles, phases.
    """
    planned = launches_planned(group, profile)
    most = profile.cap if planned > 1 else planned
    expected = sum(planned_seconds(member, profile) for member in members)
    longest = sum(launch_seconds(member, profile) for member in members)
    return expected * (planned + extras), longest * (most + extras)


def job_limit_seconds(most_seconds: float, allowed: int) -> int:
    """Return a job's time limit: what all its launches may take, with a margin, and no more than the site allows."""
    return min(allowed, int(START_SECONDS + SAFETY * most_seconds))


def group_named(name: str | None) -> Group | None:
    """Return a group of the catalogue; None for a test that belongs to none."""
    return None if name is None else GROUPS[name]
