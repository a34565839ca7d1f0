"""Measuring: groups in interleaved rounds, once a run, shared by all tests."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from perf import contract, records
from perf.catalogue import GROUPS, Group, Member
from perf.launch.failure import NotAvailable
from perf.suite.plan import (
    NO_EXTRA,
    Context,
    build_spec,
    has_phases,
    in_the_tutorials_loop,
    launches_planned,
    order_of_round,
    takes_extra,
)
from perf.suite.source import Measurement, pick

REPLACEMENTS = 2
"""Launches a side that may be taken again because the machine was not fit. A machine that is unfit more often than that
is not one to judge a stack on; and whoever replaces for as long as it takes has chosen."""


@dataclass
class _Taken:
    """What a group has so far."""

    launches: dict[str, list[contract.LaunchRecord]] = field(default_factory=dict)
    failures: dict[tuple[str, str], Exception] = field(default_factory=dict)
    """By member and purpose: '' for the group's rounds, a test's name for launches added for it, an extra's name."""
    replaced: dict[str, list[contract.LaunchRecord]] = field(default_factory=dict)
    """By member: launches that others were taken for."""
    watched: dict[tuple[str, str], list[contract.LaunchRecord]] = field(default_factory=dict)
    """By member and kind: launches beside the judged ones."""
    measured: bool = False


class Bench:
    """Measures groups on this machine.

    Parameters
    ----------
    context
        What every launch shares.
    run
        Where records and events go.
    launch
        Starts one launch and returns its record; raises if it gave none.
    runnable
        Whether a member can run on this machine.
    words
        Says a launch's result in a few words, for the progress.
    worker
        Name of the xdist worker, or empty: part of launch names, so that two workers never use one.
    extras
        Launches beside the judged ones of each variant that has such: ``line-profile``, ``phases``, ``torch-trace``,
        ``nsys``.
    named
        Whether a test of the run names a member. Only those get launches of `extras`.
    room
        Makes room on the node for some members of a group while they are measured, and yields the cores that they may
        keep busy. Left out, the context's.
    keep
        Told how many GPUs the launches that are still to come need; the others of the group's may be given back.
    affords
        Whether there is time for so many more launches of each of some members.
    """

    def __init__(
        self,
        context: Context,
        run: records.Run,
        launch: Callable[[contract.LaunchSpec], contract.LaunchRecord],
        runnable: Callable[[Member], bool],
        words: Callable[[contract.LaunchRecord], str],
        *,
        worker: str = "",
        extras: tuple[str, ...] = (),
        named: Callable[[Member], bool] = lambda member: True,
        room: Callable[[Sequence[Member]], contextlib.AbstractContextManager[int]] | None = None,
        keep: Callable[[int], None] = lambda gpus: None,
        affords: Callable[[Sequence[Member], int], bool] = lambda members, launches: True,
    ) -> None:
        self._context = context
        self._room = room or (lambda members: contextlib.nullcontext(context.cores))
        self._keep = keep
        self._run = run
        self._launch = launch
        self._runnable = runnable
        self._words = words
        self._worker = worker
        self._extras = extras
        self._named = named
        self._affords = affords
        self._taken: dict[str, _Taken] = {}
        self._number = 0

    def lacks(self, member: Member) -> str | None:
        """Whatever this machine can run can be measured; the tests of the rest were skipped."""
        return None

    def measure(self, member: Member) -> Measurement:
        """Return the member's launches; its whole group is measured by the first test that needs one of it."""
        taken = self._group(GROUPS[member.group])
        if (member.id, "") in taken.failures:
            raise taken.failures[member.id, ""]
        return self._measurement(taken, member, "")

    def sides(self, test: str, members: Sequence[Member]) -> list[Measurement]:
        """Return the members' launches that `test` may use."""
        for member in members:
            self.measure(member)
        return [self._measurement(self._taken[m.group], m, test) for m in members]

    def profiled(self, member: Member, extra: str) -> contract.LaunchRecord:
        """Return the member's launch for a profile (see `extras`); it is taken if the run has none yet.

        Raises
        ------
        NotAvailable
            If such a variant has none.
        """
        if not takes_extra(member.variant, extra):
            raise NotAvailable(f"{extra}: {NO_EXTRA}")
        taken = self._group(GROUPS[member.group])
        found = self.watched([member], extra, 1)[member.id]
        if not found:
            lacking = RuntimeError(f"no time is left for a launch of {member.id} for {extra}")
            raise taken.failures.get((member.id, extra), lacking)
        return found[0]

    def _measurement(self, taken: _Taken, member: Member, test: str) -> Measurement:
        return Measurement(
            member,
            pick(taken.launches[member.id], test),
            tuple(pick(taken.replaced.get(member.id, []), test)),
        )

    def more(self, test: str, sides: Sequence[Member], launches: int) -> bool:
        """Add launches to the sides of an undecided test, interleaved like the rounds before."""
        taken = self._taken[sides[0].group]
        have = min(len(pick(taken.launches[m.id], test)) for m in sides)
        if not self._affords(sides, launches - have):
            self._event(
                "note", sides[0].group, text=f"{test} asks for {launches} launches a side: no time is left"
            )
            return False
        asked = f"{test} asks for {launches} launches a side"
        self._event("extend", sides[0].group, total=(launches - have) * len(sides), text=asked)
        with self._roomy(taken, sides, test):
            for round_number in range(have, launches):
                for member in order_of_round(sides, round_number):
                    self._one(taken, member, round_number, of=launches, escalation=test)
        for member in sides:
            if (member.id, test) in taken.failures:
                raise taken.failures[member.id, test]
        return True

    def watched(
        self, members: Sequence[Member], kind: str, launches: int
    ) -> dict[str, list[contract.LaunchRecord]]:
        """Return launches that are never judged, taken now if need be; none of a member that gave none."""
        taken = self._taken.setdefault(members[0].group, _Taken())
        lacking = [member for member in members if (member.id, kind) not in taken.watched]
        if lacking and not self._affords(lacking, launches):
            return {member.id: taken.watched.get((member.id, kind), []) for member in members}
        if lacking:
            self._event("extend", members[0].group, total=launches * len(lacking), text=f"{kind}, to say why")
            # Like the judged ones they need GPUs of their own, and must not disturb a neighbour's.
            with self._roomy(taken, lacking, kind):
                for round_number in range(launches):
                    for member in order_of_round(lacking, round_number):
                        self._one(taken, member, round_number, of=launches, extra=kind)
        return {member.id: taken.watched.setdefault((member.id, kind), []) for member in members}

    def explain(self, members: Sequence[Member]) -> list[contract.LaunchRecord]:
        """Take, once a run, what tells where the time of members goes; a launch that fails is told and left out."""
        asked = [(member, "phases") for member in members if has_phases(member.variant)]
        asked += [(member, "line-profile") for member in members[:1] if in_the_tutorials_loop(member.variant)]
        return [one for member, kind in asked for one in self.watched([member], kind, 1)[member.id]]

    def rates(self) -> list[contract.LaunchRecord]:
        """Return the launches that measured the machine so far."""
        return [
            one
            for taken in self._taken.values()
            for launches in taken.launches.values()
            for one in launches
            if one.rates
        ]

    def _group(self, group: Group) -> _Taken:
        taken = self._taken.setdefault(group.name, _Taken())
        if taken.measured:
            return taken
        taken.measured = True
        profile = self._context.profile.name
        members = [m for m in group.members if m.runs_in(profile) and self._runnable(m)]
        rounds = launches_planned(group, self._context.profile)
        named = [member for member in members if self._named(member)]
        beside = [(extra, m) for extra in self._extras for m in named if takes_extra(m.variant, extra)]
        self._event("planned", group.name, total=len(members) * rounds + len(beside))
        if rounds == 1 and not beside:
            self._largest_first(taken, members)
            return taken
        with self._roomy(taken, members, ""):
            for round_number in range(rounds):
                for member in order_of_round(members, round_number):
                    self._one(taken, member, round_number, of=rounds)
            for extra, member in beside:
                self._one(taken, member, 0, of=1, extra=extra)
        return taken

    def _largest_first(self, taken: _Taken, members: Sequence[Member]) -> None:
        """Launch each member once, and give GPUs back as soon as none that is left needs them."""
        left = sorted(members, key=lambda member: -member.variant.gpus)
        with self._roomy(taken, members, ""):
            for member in left:
                self._keep(member.variant.gpus)
                self._one(taken, member, 0, of=1)

    @contextlib.contextmanager
    def _roomy(self, taken: _Taken, members: Sequence[Member], purpose: str) -> Iterator[None]:
        """Have room for some members. Where none can be had, no launch of theirs is tried, and each test says why."""
        with contextlib.ExitStack() as stack:
            try:
                cores = stack.enter_context(self._room(members))
            except Exception as error:  # noqa: BLE001
                # Like a launch that can't be started: it stops these members only.
                purposes = (purpose, *(() if purpose else self._extras))
                taken.failures |= {(member.id, each): error for member in members for each in purposes}
            else:
                self._context = dataclasses.replace(self._context, cores=cores)
            yield

    def _one(
        self,
        taken: _Taken,
        member: Member,
        round_number: int,
        *,
        of: int,
        escalation: str = "",
        extra: str = "",
    ) -> None:
        """Take one launch. A member that failed once is not launched again for the same purpose.

        The group's rounds, the launches added for one test and the extra ones are purposes of their own: where a trace
        fails there still are verdicts, and no test ends with another test's failure.
        """
        purpose = (member.id, escalation or extra)
        replaces = ""
        while purpose not in taken.failures:
            self._number += 1
            spec = build_spec(
                self._context,
                member,
                launch=f"{self._worker or 'main'}-{self._number:04d}",
                round_number=round_number,
                out_dir=self._run.launch_folder(f"{self._worker or 'main'}-{self._number:04d}"),
                escalation=escalation,
                phases=extra == "phases",
                line_profile=extra == "line-profile",
                operators=extra == "operators",
                trace={"torch-trace": "torch", "nsys": "nsys"}.get(extra, ""),
            )
            record = self._try(taken, purpose, member, spec, replaces, of, extra)
            if record is not None and extra:
                taken.watched.setdefault((member.id, extra), []).append(record)
            if record is None or extra:
                return
            if not record.unfit or len(pick(taken.replaced.get(member.id, []), escalation)) >= REPLACEMENTS:
                taken.launches.setdefault(member.id, []).append(record)
                return
            # The machine was not fit, which says nothing about the stack. It stays in the records, and is told.
            taken.replaced.setdefault(member.id, []).append(record)
            replaces = record.launch
            self._event(
                "extend",
                member.group,
                member=member.id,
                total=1,
                text=f"in place of {replaces}: {record.unfit[0]}",
            )

    def _try(
        self,
        taken: _Taken,
        purpose: tuple[str, str],
        member: Member,
        spec: contract.LaunchSpec,
        replaces: str,
        of: int,
        extra: str,
    ) -> contract.LaunchRecord | None:
        """Take one launch and record it; None if it gave no record."""
        about = {"member": member.id, "launch": spec.launch, "number": spec.round + 1, "total": of}
        self._event("start", member.group, **about, text=extra)
        try:
            record = self._launch(spec)
        except Exception as error:  # noqa: BLE001
            # Whatever stops a launch stops this member only; pytest shows the error for each of its tests.
            taken.failures[purpose] = error
            if extra and extra not in self._extras:
                # Nobody asked for it but the suite itself: a stack without line_profiler has no failed launch.
                lacking = f"no {extra}: {str(error).partition(chr(10))[0]}"
                self._event("done", member.group, **about, text=lacking)
                return None
            failure = getattr(error, "facts", {})
            self._event("failed", member.group, **about, text=str(error), failure=failure)
            return None
        if replaces:
            record = dataclasses.replace(record, replaces=replaces)
        self._run.append(records.RECORDS, record)
        self._event("done", member.group, **about, text=self._words(record))
        return record

    def _event(self, kind: str, group: str, **rest: Any) -> None:
        self._run.append(
            records.EVENTS, records.Event(kind, time.time(), group=group, worker=self._worker, **rest)
        )
