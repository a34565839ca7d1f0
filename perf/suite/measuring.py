"""The stack under test, the machine, and where a run's launches come from."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import filelock

from perf import contract, records
from perf.catalogue import Member
from perf.cluster.allocation import LAUNCH_NODES, find_place
from perf.cluster.sites import SiteError
from perf.cluster.stacks import places_of, probe_site_stack, site_stack, stranger
from perf.launch.failure import LaunchFailed
from perf.launch.leases import LeaseError
from perf.launch.lock import LockError
from perf.launch.node_limits import read_cards
from perf.launch.nsys import check_capture, refuse_without_nsys
from perf.launch.place import Place
from perf.launch.preflight import NodeFacts, collect
from perf.launch.stack import Stack, StackError, find_stack
from perf.machine import cores_allowed, system_facts
from perf.report.lines import profile_place
from perf.report.stored import NoRun, load
from perf.report.summary import launch_words
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
from perf.suite.selection import Machine, members_here, need_of_member, why_not
from perf.suite.source import Source
from perf.verdict.known import Library
from perf.verdict.references import ReferenceFile
from perf.verdict.system import system_of

STACK_FILE = "stack.json"
OLD_STACK_FILE = "stack-old.json"

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
    """What one process needs to measure. Everything is found out once, when it is first needed."""

    def __init__(self, options: Options, run: records.Run, worker: str) -> None:
        self._options = options
        self._run = run
        self._worker = worker
        self._no_stack: StackError | None = None
        self._library: Library | None = None
        known = functools.partial(expected_seconds, launcher=options.launcher)
        self.budget = Budget(options.budget, known=known)

    @property
    def stack(self) -> Stack:
        """The stack under test, or the error that there is none; found out once a run."""
        if self._no_stack is not None:
            # A new one: an exception that is raised again and again carries all of its earlier tracebacks.
            raise StackError(str(self._no_stack))
        try:
            return self._stack
        except StackError as error:
            self._no_stack = error
            raise

    @property
    def has_stack(self) -> bool:
        """Whether the stack under test answered, as far as it was asked."""
        return self._no_stack is None

    @functools.cached_property
    def _stack(self) -> Stack:
        stack = self._probed(self._options.stack, STACK_FILE)
        with filelock.FileLock(self._run.folder / f"{records.ENVIRONMENT}.lock", fallback_to_soft=False):
            if not (self._run.folder / records.ENVIRONMENT).exists():
                self._write_environment(stack)
        return stack

    @functools.cached_property
    def old_stack(self) -> Stack:
        """The stack that the one under test is compared with."""
        return self._probed(self._options.against, OLD_STACK_FILE)

    def both_stacks(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the two stacks of a comparison say of themselves, the old one first; stored runs tell it too."""
        if self._options.records:
            kept = load(self._options.records[0]).environment
            return dict(kept.get("against") or {}), dict(kept.get("stack") or {})
        new = self._facts(self.stack)
        return self._facts(self.old_stack), new

    def _probed(self, option: str | None, file: str) -> Stack:
        """Return a stack, probed once a run: xdist's workers share the answer."""
        cache = self._run.folder / file
        with filelock.FileLock(f"{cache}.lock", fallback_to_soft=False):
            if cache.is_file():
                return Stack(**json.loads(cache.read_text(encoding="utf-8")))
            stack = self._asked(option, "--against" if file == OLD_STACK_FILE else "--stack")
            contract.write_whole(str(cache), json.dumps(dataclasses.asdict(stack)))
        return stack

    def _asked(self, option: str | None, name: str) -> Stack:
        """A stack as it answers now: one of the site's, or a Python."""
        options = self._options
        if options.site is None or option not in options.site.stacks:
            return find_stack(option, os.environ.get("PATH", ""), os.environ, name=name)
        places = places_of(options.site, self._run.folder, options.cache_dir)
        return probe_site_stack(options.site, site_stack(options.site, option, places), self.place)

    @functools.cached_property
    def place(self) -> Place:
        """Where launches run: here, or as steps of the job that this process is in."""
        return find_place(self._options.site)

    def _write_environment(self, stack: Stack) -> None:
        options = {key: str(value) for key, value in vars(self._options).items()}
        options["site"] = self._options.site.path if self._options.site else "None"
        self._run.write_environment(
            {
                **system_facts(),
                "gpu_power_limits_watts": [card.power_limit_watts for card in read_cards(stack)],
                "stack": self._facts(stack),
                **({"against": self._facts(self.old_stack)} if self._options.against else {}),
                "options": options,
                "run": self._run.name,
                "nodes": self.place.nodes,
            }
        )

    @staticmethod
    def _facts(stack: Stack) -> dict[str, Any]:
        return {"name": stack.name, "python_path": stack.python, **stack.facts}

    @property
    def environment(self) -> dict[str, Any]:
        """What the run's ``environment.json`` says, once the stack was probed."""
        _ = self.stack
        found: dict[str, Any] = json.loads((self._run.folder / records.ENVIRONMENT).read_bytes())
        return found

    @functools.cached_property
    def machine(self) -> Machine:
        """What there is to run on."""
        facts = self.stack.facts
        return Machine(
            gpus=len(facts["gpus"]),
            cores=self._cores,
            nodes=self.place.nodes,
            nccl=bool(facts.get("nccl")),
            gloo=bool(facts.get("gloo", True)),
        )

    @property
    def _cores(self) -> int:
        """Cores of one node that may be used: what was given to the job, as far as this process may use it."""
        given = self.place.cores
        return cores_allowed() if given is None else min(given, cores_allowed()) if self._on_a_node else given

    @property
    def _on_a_node(self) -> bool:
        """Whether this process is on one of the nodes that launches run on; with jsrun it is on a launch node."""
        site = self._options.site
        return site is None or site.scheduler.step_command not in LAUNCH_NODES

    def _collect(self) -> NodeFacts:
        facts = collect(self.rooms.narrow(self.stack))
        return dataclasses.replace(facts, cores=self._cores)

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
                self._library = Library(files, system_of(self.environment), today())
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
        return self._stored() if self._options.records else self._bench()

    def _stored(self) -> Stored:
        folders = self._options.records
        runs = [load(folder) for folder in folders]
        launches = [record for run in runs for record in run.records]
        for note in (note for run in runs for note in run.notes):
            # A line that was cut off when a run was killed costs that launch, not the run.
            self._note(note)
        # xdist's workers share the run: the first one to come copies the launches into it.
        with filelock.FileLock(self._run.folder / f"{records.RECORDS}.lock", fallback_to_soft=False):
            if not (self._run.folder / records.RECORDS).exists():
                for run in runs:
                    for record in run.records:
                        self._run.append(records.RECORDS, self._copy_profiles(run.folder, record))
                # What was measured elsewhere is reported with where it was measured.
                environment = runs[0].environment
                again = [str(folder) for folder in folders]
                self._run.write_environment({**environment, "judged_again": again})
        return Stored(launches, ", ".join(str(folder) for folder in folders))

    def _copy_profiles(self, folder: Path, record: contract.LaunchRecord) -> contract.LaunchRecord:
        """Copy a stored launch's line profiles into this run, which then needs the other one no more.

        One that is not there is left as it was recorded: printing it says what is missing.
        """

        def copied(name: str) -> str:
            source = profile_place(name, record.launch, folder)
            target = self._run.profile_folder() / f"{record.run}-{source.name}"
            if not source.is_file():
                return name
            shutil.copyfile(source, target)
            return str(target.relative_to(self._run.folder))

        return dataclasses.replace(
            record,
            line_profiles=[copied(name) for name in record.line_profiles],
            traces=[copied(name) for name in record.traces],
        )

    def _bench(self) -> Bench:
        options = self._options
        context = Context(
            run=self._run.name,
            profile=options.sized_profile,
            cores=self.machine.cores,
            cache_dir=options.cache_dir,
            data_root=options.data_root,
            time_limit_seconds=options.launch_timeout,
            save_model=options.save_model,
            numa=options.site is not None and options.site.node.numa,
            devices=self.machine.gpus or None,
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
            room=functools.partial(self._room, context),
            keep=self.rooms.keep,
            affords=self.budget.affords,
        )

    @functools.cached_property
    def rooms(self) -> Rooms:
        """What of the node each group has while it is measured."""
        return Rooms(
            self._run.name,
            this_node(self.stack, self.machine.cores),
            share=self._options.share_node,
            beside=bool(self._worker),
            profile=self._options.profile,
            steps=bool(self.place.step(1)),
            say=self._note,
            weigh=self._weight,
        )

    def _weight(self, group: str) -> int:
        """Return which group is served first: with a budget the most telling, of those the heaviest."""
        ranked = 0 if self._options.budget is None else -rank(group) * MOST_LAUNCHES**2
        return ranked + group_weight(group, self._options.sized_profile)

    def members_of(self, group: str) -> list[Member]:
        """Return the members that are measured with a group: all that run here."""
        device = self.machine.device(self._options.device)
        return members_here(group, self._options.profile, self.machine, device)

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
            self.launching.prepare(spec, self._stack_of(spec), self.rooms.environ, self.rooms.launching)

    def _stack_of(self, spec: contract.LaunchSpec) -> Stack:
        return self.old_stack if spec.side == "old" else self.stack

    def _note(self, text: str) -> None:
        event = records.Event("note", time.time(), text=text, worker=self._worker)
        self._run.append(records.EVENTS, event)

    def _runnable(self, member: Member) -> bool:
        device = self.machine.device(self._options.device)
        return why_not(need_of_member(member), self.machine, device) is None

    def _launch(self, spec: contract.LaunchSpec) -> contract.LaunchRecord:
        if spec.trace == "nsys":
            refuse_without_nsys()
        # Before preflight looks at the node, which a neighbour's launch would make look unfit. Waiting for a neighbour
        # is time of the budget too, and no time of a launch.
        with self.rooms.launching(), self.budget.timed(spec):
            self.preflight(spec)
            stack = self.rooms.narrow(self._stack_of(spec))
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
        return Launching(self._options, self.place, self._note, log, self.rooms.core_ids)

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
