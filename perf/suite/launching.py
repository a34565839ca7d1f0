"""How a run's launches are started: fresh or by fork, as asked for and as each stack allows, with what is planted."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from perf import contract
from perf.faults.catalogue import FAULTS
from perf.faults.plant import mark, planted_environment
from perf.launch.forking import Servers
from perf.launch.launcher import launch, launch_environment
from perf.launch.lock import NodeLock
from perf.launch.place import Place
from perf.launch.server import CannotFork
from perf.launch.stack import Stack
from perf.suite.options import Options

Narrow = Callable[[Mapping[str, str]], dict[str, str]]
"""Returns an environment in which a stack sees its group's GPUs alone."""


class Launching:
    """Starts the launches of one process.

    Parameters
    ----------
    options
        Of the run.
    place
        Where launches run.
    note
        Told what the run's events shall say.
    log
        File that takes what the servers of forks say.
    cores
        Cores of these servers.
    """

    def __init__(
        self, options: Options, place: Place, note: Callable[[str], None], log: Path, cores: Collection[int]
    ) -> None:
        self._options = options
        self._place = place
        self._note = note
        self._servers = Servers(log, options.server_launches, cores)

    def prepare(
        self,
        spec: contract.LaunchSpec,
        stack: Stack,
        narrow: Narrow,
        alone: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Start what launches like this one are forked from, if there is none yet, before they have GPUs.

        Parameters
        ----------
        alone
            A context in which the node may be kept busy.
        """
        # On AMD a server has its group's GPUs in its environment, so there is none before those are known.
        if not self._by_fork(spec, stack) or stack.facts.get("hip"):
            return
        environment = launch_environment(spec, stack, narrow(self._environ(spec)), self._place)
        if self._servers.serves(stack, environment, spec.out_dir):
            return
        try:
            with alone():
                seconds = self._servers.start(stack, environment, spec.out_dir)
        except CannotFork as error:
            self._say_fresh(stack, error)
        else:
            self._note(
                f"a server, which launches of {stack.name} are forked from, was ready in {seconds:.1f} s"
            )

    def launch(
        self, spec: contract.LaunchSpec, stack: Stack, narrow: Narrow, lock: NodeLock | None
    ) -> contract.LaunchRecord:
        """Launch as was asked for; a stack that can't be forked is launched fresh from then on, and that is said.

        Raises
        ------
        LaunchFailed, NotAvailable, LockError, KeyboardInterrupt
            As `perf.launch.launcher.launch`.
        """
        environ = narrow(self._environ(spec))
        record: contract.LaunchRecord | None = None
        if self._by_fork(spec, stack):
            forked = dataclasses.replace(spec, launcher="fork")
            try:
                record = launch(
                    forked, stack, lock=lock, environ=environ, place=self._place, servers=self._servers
                )
            except CannotFork as error:
                self._say_fresh(stack, error)
        if record is None:
            record = launch(spec, stack, lock=lock, environ=environ, place=self._place)
        plant = self._plant(spec)
        return mark(record, plant) if plant else record

    def close(self) -> None:
        """End the servers."""
        self._servers.close()

    def _say_fresh(self, stack: Stack, error: CannotFork) -> None:
        self._note(f"{stack.name} can't be launched by fork, so it is launched fresh: {error}")

    def _plant(self, spec: contract.LaunchSpec) -> str | None:
        """Return what is planted in a launch: of two stacks that are compared, in the new one alone."""
        return self._options.plant if spec.side != "old" else None

    def _environ(self, spec: contract.LaunchSpec) -> Mapping[str, str]:
        plant = self._plant(spec)
        return planted_environment(plant, os.environ) if plant else os.environ

    def _by_fork(self, spec: contract.LaunchSpec, stack: Stack) -> bool:
        plant = self._plant(spec)
        # A fault that acts as a rank's process starts can't be planted in a fork.
        whole = not plant or not FAULTS[plant].fresh
        launcher = (spec.side == "old" and self._options.old_launcher) or self._options.launcher_on(
            spec.device
        )
        # Nsight Systems sees what it has started itself.
        asked = launcher == "fork" and whole and not self._place.step(1) and spec.trace != "nsys"
        return asked and not self._servers.why_not(stack)
