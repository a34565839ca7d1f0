"""The stacks of a run, each asked once what it is, and the machine that they see."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from typing import Any

import filelock

from perf import contract, records
from perf.cluster.allocation import LAUNCH_NODES, find_place
from perf.cluster.stacks import places_of, probe_site_stack, site_stack
from perf.launch.node_limits import read_cards
from perf.launch.place import Place
from perf.launch.stack import Stack, StackError, find_stack
from perf.launch.text import harmless
from perf.machine import cores_allowed, system_facts
from perf.report.stored import load
from perf.suite.options import Options
from perf.suite.selection import Machine

STACK_FILE = "stack.json"
OLD_STACK_FILE = "stack-old.json"


class Stacks:
    """The stack under test, and in a comparison the other one. Everything is found out when it is first needed.

    Parameters
    ----------
    options
        Which stacks, and the site that they run on.
    run
        Keeps what they said: xdist's workers share the answer, and the run's ``environment.json`` is written from it.
    """

    def __init__(self, options: Options, run: records.Run) -> None:
        self._options = options
        self._run = run
        self._no_stack: StackError | None = None

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
            if "line-profile" in self._options.extras and stack.facts.get("line_profiler") is False:
                raise StackError(
                    f"--line-profile: the stack of {harmless(stack.python)} has no line_profiler. Install it "
                    "there (`python -m pip install line_profiler`), or leave --line-profile out."
                )
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

    def of(self, spec: contract.LaunchSpec) -> Stack:
        """Return the stack of a launch's side."""
        return self.old_stack if spec.side == "old" else self.stack

    @functools.cached_property
    def machine(self) -> Machine:
        """What there is to run on."""
        facts = self.stack.facts
        return Machine(
            gpus=len(facts["gpus"]),
            cores=self.cores,
            nodes=self.place.nodes,
            nccl=bool(facts.get("nccl")),
            gloo=bool(facts.get("gloo", True)),
        )

    @property
    def cores(self) -> int:
        """Cores of one node that may be used: what was given to the job, as far as this process may use it."""
        given = self.place.cores
        return cores_allowed() if given is None else min(given, cores_allowed()) if self._on_a_node else given

    @property
    def _on_a_node(self) -> bool:
        """Whether this process is on one of the nodes that launches run on; with jsrun it is on a launch node."""
        site = self._options.site
        return site is None or site.scheduler.step_command not in LAUNCH_NODES
