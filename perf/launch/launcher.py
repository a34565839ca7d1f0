"""Start a launch, wait for it, and leave nothing behind, whatever happens.

At the time limit, at an error, at Ctrl-C and SIGTERM alike: SIGTERM to every process of the launch, a grace, SIGKILL.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil

from perf import contract
from perf.contract import LaunchRecord, LaunchSpec
from perf.launch.caches import compiler_caches
from perf.launch.command import LOG_FOLDER, TORCHRUN, WORKER, marker, worker_command, worker_environment
from perf.launch.environment import DRIVER
from perf.launch.evidence import STDERR_FILE, STDOUT_FILE, Observed, gather, rank_pids, why_unavailable
from perf.launch.failure import NotAvailable, diagnose, succeeded
from perf.launch.flight import TRACE_FILES
from perf.launch.forking import Servers
from perf.launch.lock import NodeLock
from perf.launch.merge import merge
from perf.launch.nccl import LOG_FILES, read_transports
from perf.launch.place import HERE, Place
from perf.launch.processes import descendants, driver_mark, end_all, in_session, left_over, marked
from perf.launch.server import Started
from perf.launch.signals import Interruption
from perf.launch.stack import Stack
from perf.launch.telemetry.companion import Companion
from perf.launch.telemetry.summary import summarize
from perf.launch.waiting import Over, Patience, Waiting
from perf.launch.watch import RankWatch
from perf.machine import REPOSITORY

PATIENCE = Patience()

KILLED = 128


def launch(
    spec: LaunchSpec,
    stack: Stack,
    *,
    lock: NodeLock | None,
    module: str = WORKER,
    environ: Mapping[str, str] | None = None,
    patience: Patience = PATIENCE,
    place: Place = HERE,
    servers: Servers | None = None,
    telemetry: bool = True,
) -> LaunchRecord:
    """Run one launch and return its record.

    Parameters
    ----------
    spec
        What to launch. Its `out_dir` must be absolute; it is made if need be and belongs to this launch alone.
    stack
        The Python to run it in.
    lock
        Held meanwhile, so that nobody else measures on this node; None where nothing is timed.
    module
        What each rank runs.
    environ
        The caller's environment; this process's if None.
    patience
        How long to wait for what.
    place
        Where it runs.
    servers
        Launch by fork, from these; None for a fresh start.
    telemetry
        Whether a sampler looks at the node meanwhile.

    Raises
    ------
    LaunchFailed
        If the launch did not end well or lacks a good record of any rank.
    NotAvailable
        If this stack or device lacks something that the spec asks for.
    KeyboardInterrupt
        If the driver was told to end; after the clean-up.
    LockError
        If the lock can't be had at all.
    ValueError
        If the spec can't be launched here.
    """
    if not os.path.isabs(spec.out_dir):
        raise ValueError(
            f"launch {spec.launch}: out_dir must be absolute, the worker runs elsewhere: {spec.out_dir!r}"
        )
    spec_path = os.path.join(spec.out_dir, contract.SPEC_FILE)
    command = worker_command(spec, stack, spec_path, module, place)
    environment = launch_environment(spec, stack, environ, place)
    companion = Companion(spec, stack, os.environ if environ is None else environ) if telemetry else None
    observed = None
    with lock if lock is not None else contextlib.nullcontext():
        _prepare(spec, spec_path)
        interruption = Interruption()
        # A signal that was noted wins over what went wrong meanwhile: whoever sees an exception may go on.
        with _delivered(interruption), interruption:
            # What a killed driver left behind would share the machine with what is timed now.
            end_all(left_over, patience.grace, lambda: interruption.happened)
            if not interruption.happened:
                start: Callable[[], Started] = functools.partial(_start, spec, command, environment)
                if servers is not None:
                    start = functools.partial(
                        _fork, spec, stack, command, environment, servers, lambda: interruption.happened
                    )
                # Read by the worker, which counts the launch's time limit from then on.
                environment[contract.STARTED] = repr(time.monotonic())
                how = {"steps": bool(place.step(1)), "forked": servers is not None}
                with companion if companion is not None else contextlib.nullcontext():
                    observed = _run(spec, start, interruption, patience, companion, **how)
    assert observed is not None, "an interrupted launch is delivered above"
    reason = why_unavailable(spec)
    if reason is not None:
        raise NotAvailable(f"not available here: {reason}")
    evidence, records = gather(spec, observed, socket.gethostname())
    if not succeeded(evidence):
        raise diagnose(evidence)
    seen = None
    if companion is not None:
        seen = summarize(spec, records, [companion.samples()], companion.problem)
        seen["transports"] = read_transports(spec.out_dir)
    record = merge(spec, records, observed.seconds, seen, stack.facts)
    # The ranks' clocks start behind their imports; only what began with its first process ends `launch_seconds` later.
    return dataclasses.replace(record, started_at=observed.started)


def launch_environment(
    spec: LaunchSpec, stack: Stack, environ: Mapping[str, str] | None = None, place: Place = HERE
) -> dict[str, str]:
    """Return the environment that a launch is started in, for parameters of `launch`."""
    environment = worker_environment(spec, place.environment(os.environ if environ is None else environ))
    environment.update(stack.environment)
    environment.update(compiler_caches(spec, stack, environment))
    environment[DRIVER] = driver_mark()
    return environment


@contextlib.contextmanager
def _delivered(interruption: Interruption) -> Iterator[None]:
    """End in what the driver was told meanwhile, if it was."""
    try:
        yield
    finally:
        interruption.deliver()


def _prepare(spec: LaunchSpec, spec_path: str) -> None:
    """Make the folder, without what an earlier try of the same launch left in it, and write the spec."""
    folder = Path(spec.out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / LOG_FOLDER, ignore_errors=True)
    for rank in range(spec.world_size):
        for name in (contract.RANK_FILE, contract.STATE_FILE, contract.STACK_FILE, contract.PROGRESS_FILE):
            (folder / name.format(rank=rank)).unlink(missing_ok=True)
    for pattern in (LOG_FILES, TRACE_FILES):
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)
    contract.write_whole(spec_path, contract.encode(spec))


def _run(
    spec: LaunchSpec,
    start: Callable[[], Started],
    interruption: Interruption,
    patience: Patience,
    companion: Companion | None,
    *,
    steps: bool,
    forked: bool,
) -> Observed:
    """Start the launch, wait for it and end all that it started.

    A step's tasks are no children of what was started, so they are looked for by their mark. What ends on this node
    ends the step on all: srun passes SIGTERM on, and Slurm ends the step of a killed srun.
    """
    root: psutil.Process | None = None

    def whole_launch() -> list[psutil.Process]:
        below = descendants(root) if root is not None else []
        # /proc shows the environment of a fork's server, which carries no launch's mark; but a fork leads a session.
        others = in_session(root.pid) if forked and root is not None else marked(marker(spec))
        return [*below, *others]

    began, started = time.time(), time.monotonic()
    try:
        process = start()
        root = psutil.Process(process.pid)
        if companion is not None:
            companion.follow(process.pid)
        watch = RankWatch(
            root,
            spec.ranks_per_node,
            direct=spec.strategy != "ddp",
            find=(lambda: marked(marker(spec))) if steps else None,
            elsewhere=spec.world_size - spec.ranks_per_node,
            named=(lambda: rank_pids(spec)) if forked else None,
        )
        waiting = Waiting(spec, process, watch, lambda: interruption.happened, patience)
        over = waiting.until_over()
        seconds = (waiting.ended_at or time.monotonic()) - started
        code = process.poll() if over is Over.ENDED else None
        if steps and code is not None and code > KILLED:
            # srun and jsrun say of a task that a signal ended what a shell says.
            code = KILLED - code
    finally:
        survivors = end_all(whole_launch, patience.grace, lambda: interruption.urgent)
    with contextlib.suppress(subprocess.TimeoutExpired):
        # Not without limit: a survivor may be stuck in the kernel.
        process.wait(timeout=1)
    return Observed(
        exit_code=code,
        ended_at=waiting.ended_at,
        timed_out=over is Over.LIMIT,
        gave_up=over is Over.GAVE_UP,
        started=began,
        seconds=seconds,
        ended=time.time(),
        pids={rank: found.pid for rank, found in watch.processes.items()},
        ranks_ended_at=watch.ended_at,
        rank_codes=watch.exit_codes,
        kernel_states=waiting.kernel_states,
        survivors=tuple(survivor.pid for survivor in survivors),
    )


def _fork(
    spec: LaunchSpec,
    stack: Stack,
    command: list[str],
    environment: dict[str, str],
    servers: Servers,
    told: Callable[[], bool],
) -> Started:
    """Start the launch as a fork, which reads torchrun's options as torchrun reads them."""
    torchrun = command[command.index(TORCHRUN) + 1 : -1] if TORCHRUN in command else None
    return servers.fork(
        stack,
        environment,
        spec=os.path.join(spec.out_dir, contract.SPEC_FILE),
        stdout=os.path.join(spec.out_dir, STDOUT_FILE),
        stderr=os.path.join(spec.out_dir, STDERR_FILE),
        torchrun=torchrun,
        told=told,
    )


def _start(spec: LaunchSpec, command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start the command in a session of its own, its output in the launch's folder."""
    with (
        open(os.path.join(spec.out_dir, STDOUT_FILE), "wb") as stdout,
        open(os.path.join(spec.out_dir, STDERR_FILE), "wb") as stderr,
    ):
        return subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
