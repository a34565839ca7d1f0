"""Where a run's launches come from, and how each is made."""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from perf import contract, records
from perf.catalogue import Member
from perf.cluster.sites import SiteError
from perf.cluster.stacks import stranger
from perf.launch.failure import LaunchFailed
from perf.launch.leases import LeaseError
from perf.launch.lock import LockError
from perf.launch.nsys import check_capture, refuse_without_nsys
from perf.launch.preflight import NodeFacts, collect
from perf.launch.stack import StackError
from perf.report.stored import NoRun, load
from perf.report.summary import launch_words
from perf.suite.again import stored_again
from perf.suite.bench import Bench
from perf.suite.budget import Budget
from perf.suite.costs import expected_seconds
from perf.suite.kept import Stored
from perf.suite.launching import Launching
from perf.suite.library import library_of, today
from perf.suite.options import Options
from perf.suite.plan import Context, build_spec
from perf.suite.planning import rank
from perf.suite.preflight import Preflight, Unfit
from perf.suite.room import Rooms, this_node
from perf.suite.scheduling import MOST_LAUNCHES, group_weight
from perf.suite.selection import members_here, need_of_member, why_not
from perf.suite.source import Source
from perf.suite.stacks import Stacks
from perf.verdict.known import Library
from perf.verdict.references import ReferenceFile
from perf.verdict.system import system_of

INFRASTRUCTURE_ERRORS = (
    LaunchFailed,
    LeaseError,
    LockError,
    NoRun,
    SiteError,
    StackError,
    Unfit,
    contract.ContractError,
    OSError,
)
"""Errors that say that nothing was measured, rather than that a number is bad."""


class Measuring:
    """What one process needs to measure. Everything is found out once, when it is first needed.

    Parameters
    ----------
    options, run, worker
        As of `perf.suite.session.Session`.
    named
        Whether a selected test names a member.
    """

    def __init__(
        self,
        options: Options,
        run: records.Run,
        worker: str,
        named: Callable[[Member], bool] = lambda member: True,
    ) -> None:
        self._options = options
        self._named = named
        self._run = run
        self._worker = worker
        self.stacks = Stacks(options, run)
        self._library: Library | None = None
        self.budget = Budget(options.budget, known=self._expected)

    def _expected(self, member: Member) -> float | None:
        """Return what a launch is expected to take, by what is known of others; a job's steps start fresh."""
        steps = bool(self.stacks.place.step(1))
        return expected_seconds(member, "fresh" if steps else self._options.launcher_on("cuda"))

    def _collect(self) -> NodeFacts:
        facts = collect(self.rooms.narrow(self.stacks.stack))
        return dataclasses.replace(facts, cores=self.stacks.cores)

    @functools.cached_property
    def preflight(self) -> Preflight:
        """What each launch is checked by."""
        return Preflight(self._collect, self._note)

    def library(self, files: Sequence[ReferenceFile]) -> Library:
        """Return what is known of the system, on the date of the run: that of the stored run where one is named."""
        if self._library is None:
            if self._options.records:
                runs = [load(folder) for folder in self._options.records]
                self._library = library_of(runs, files, self._note)
            else:
                self._library = Library(files, system_of(self.stacks.environment), today())
                for line in self._library.lines:
                    self._note(line)
        return self._library

    @functools.cached_property
    def _confirmed(self) -> list[contract.LaunchRecord]:
        """The launches of the run that this one confirms."""
        return load(self._options.confirms).records if self._options.confirms else []

    def earlier(self, member: Member) -> list[contract.LaunchRecord]:
        """Return a member's launches in the run that this one confirms."""
        return Stored(self._confirmed, str(self._options.confirms)).launches_of(member)

    @functools.cached_property
    def source(self) -> Source:
        """Where launches come from: stored runs where ``--records`` names some, else this machine."""
        if self._options.records:
            return stored_again(self._options.records, self._run, self._note)
        return self._bench()

    def _bench(self) -> Bench:
        options = self._options
        context = Context(
            run=self._run.name,
            profile=options.sized_profile,
            cores=self.stacks.machine.cores,
            cache_dir=options.cache_dir,
            data_root=options.data_root,
            time_limit_seconds=options.launch_timeout,
            save_model=options.save_model,
            numa=options.site is not None and options.site.node.numa,
            devices=self.stacks.machine.gpus or None,
            whole_warm_up=options.plant is not None,
        )
        os.makedirs(options.cache_dir, exist_ok=True)
        return Bench(
            context,
            self._run,
            self._launch,
            self._runnable,
            launch_words,
            worker="-".join(
                part for part in (options.job_folder.name if options.job_folder else "", self._worker) if part
            ),
            extras=options.extras,
            named=self._named,
            room=functools.partial(self._room, context),
            keep=self.rooms.keep,
            affords=self.budget.affords,
        )

    @functools.cached_property
    def rooms(self) -> Rooms:
        """What of the node each group has while it is measured."""
        return Rooms(
            self._run.name,
            this_node(self.stacks.stack, self.stacks.machine.cores),
            share=self._options.share_node,
            beside=bool(self._worker),
            profile=self._options.profile,
            steps=bool(self.stacks.place.step(1)),
            say=self._note,
            weigh=self._weight,
        )

    def _weight(self, group: str) -> int:
        """Return which group is served first: with a budget the most telling, of those the heaviest."""
        ranked = 0 if self._options.budget is None else -rank(group) * MOST_LAUNCHES**2
        return ranked + group_weight(group, self._options.sized_profile)

    def members_of(self, group: str) -> list[Member]:
        """Return the members that are measured with a group: all that run here."""
        device = self.stacks.machine.device(self._options.device)
        return members_here(group, self._options.profile, self.stacks.machine, device)

    def _room(self, context: Context, members: Sequence[Member]) -> AbstractContextManager[int]:
        """Give members of a group their place on the node; what takes no GPU is done before."""
        return self.rooms.room(members, functools.partial(self._prepare, context, members))

    def _prepare(self, context: Context, members: Sequence[Member]) -> None:
        for side in sorted({member.side for member in members}):
            member = next(member for member in members if member.side == side)
            # Of no launch, so its folder is never made.
            nowhere = self._run.folder / "launches" / "none"
            spec = build_spec(context, member, launch="none", round_number=0, out_dir=nowhere)
            # Importing keeps cores busy, which who measures alone must not feel.
            self.launching.prepare(spec, self.stacks.of(spec), self.rooms.environ, self.rooms.launching)

    def _note(self, text: str) -> None:
        event = records.Event("note", time.time(), text=text, worker=self._worker)
        self._run.append(records.EVENTS, event)

    def _runnable(self, member: Member) -> bool:
        device = self.stacks.machine.device(self._options.device)
        return why_not(need_of_member(member), self.stacks.machine, device) is None

    def _launch(self, spec: contract.LaunchSpec) -> contract.LaunchRecord:
        if spec.trace == "nsys":
            refuse_without_nsys()
        # Before preflight looks at the node, which a neighbour's launch would make look unfit. Waiting for a neighbour
        # is time of the budget too, and no time of a launch.
        with self.rooms.launching(), self.budget.timed(spec):
            self.preflight(spec)
            stack = self.rooms.narrow(self.stacks.of(spec))
            with self.rooms.binding():
                record = self.launching.launch(spec, stack, self.rooms.environ, self.rooms.lock)
        record = self.rooms.settle(record)
        problem = stranger(stack, record)
        if problem:
            raise StackError(f"Launch {spec.launch} of {spec.variant}: {problem}")
        self.preflight.after(spec, record)
        return self._keep_profiles(spec, record)

    @functools.cached_property
    def launching(self) -> Launching:
        """How launches are started."""
        log = self._run.folder / f"servers{self._worker and '-'}{self._worker}.log"
        return Launching(self._options, self.stacks.place, self._note, log, self.rooms.core_ids)

    def close(self) -> None:
        """End what was started to serve launches."""
        if "launching" in vars(self):
            self.launching.close()
        if "rooms" in vars(self):
            self.rooms.close()

    def _keep_profiles(
        self, spec: contract.LaunchSpec, record: contract.LaunchRecord
    ) -> contract.LaunchRecord:
        """Move line profiles and traces to the run's ``profiles``, named after their launch."""
        if spec.trace == "nsys":
            check_capture(os.path.join(spec.out_dir, contract.NSYS_FILE))

        def moved(name: str) -> str:
            target = self._run.profile_folder() / f"{record.launch}-{Path(name).name}"
            (Path(spec.out_dir) / Path(name).name).replace(target)
            return str(target.relative_to(self._run.folder))

        return dataclasses.replace(
            record,
            line_profiles=[moved(name) for name in record.line_profiles],
            traces=[moved(name) for name in record.traces],
        )
