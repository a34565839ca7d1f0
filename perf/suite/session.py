"""One pytest process's part of a run: the run's folder, the stack, the machine, and where launches come from."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import filelock
import pytest
from rich.console import Console
from rich.text import Text

from perf import contract, records
from perf.catalogue import Member
from perf.launch.failure import LaunchFailed
from perf.launch.launcher import launch
from perf.launch.lock import LockError, NodeLock
from perf.launch.preflight import collect
from perf.launch.stack import Stack, StackError, find_stack
from perf.machine import cores_allowed, system_facts
from perf.profiles import PROFILES
from perf.report.junit import properties
from perf.report.lines import ProfileError, launch_profiles, render
from perf.report.progress import Progress, choose_mode, follow
from perf.report.stacks import environment_lines
from perf.report.stored import NoRun, load
from perf.report.summary import summarize
from perf.report.tables import print_report
from perf.report.text import fit
from perf.suite.bench import Bench, Source, Stored
from perf.suite.judge import Judge
from perf.suite.options import Options
from perf.suite.plan import Context
from perf.suite.preflight import Preflight, Unfit
from perf.suite.selection import Machine, need_of_member, why_not

STACK_FILE = "stack.json"


class Session:
    """Holds what the tests of one process share. Nothing is looked up before a perf test needs it.

    Parameters
    ----------
    options
        The run's options.
    folder
        The run's folder, where another process (xdist's controller) has opened it.
    worker
        Name of the xdist worker, or empty.
    """

    def __init__(self, options: Options, folder: Path | None, worker: str = "") -> None:
        self.options = options
        self.has_perf_tests = False
        self._run = records.Run(folder) if folder else None
        self._worker = worker
        self._stop = threading.Event()
        self._drawing: threading.Thread | None = None

    @property
    def has_run(self) -> bool:
        """Whether this invocation measures or judges."""
        return self._run is not None

    @property
    def run(self) -> records.Run:
        """The run's folder."""
        if self._run is None:
            self.open_run()
        assert self._run is not None
        return self._run

    def open_run(self) -> None:
        """Make the run's folder."""
        self._run = records.Run.create(self.options.results)

    @functools.cached_property
    def stack(self) -> Stack:
        """The stack under test, probed once a run: xdist's workers share the answer."""
        cache = self.run.folder / STACK_FILE
        with filelock.FileLock(f"{cache}.lock", fallback_to_soft=False):
            if cache.is_file():
                found = json.loads(cache.read_text(encoding="utf-8"))
                return Stack(found["name"], found["python"], found["facts"])
            try:
                stack = find_stack(self.options.stack, os.environ.get("PATH", ""), os.environ)
            except StackError as error:
                self.no_stack = str(error)
                raise
            facts = {"name": stack.name, "python": stack.python, "facts": stack.facts}
            contract.write_whole(str(cache), json.dumps(facts))
            self._write_environment(stack)
        return stack

    def _write_environment(self, stack: Stack) -> None:
        options = {key: str(value) for key, value in vars(self.options).items()}
        stack_facts = {"name": stack.name, "python_path": stack.python, **stack.facts}
        self.run.write_environment(
            {**system_facts(), "stack": stack_facts, "options": options, "run": self.run.name}
        )

    @functools.cached_property
    def machine(self) -> Machine:
        """What there is to run on."""
        facts = self.stack.facts
        return Machine(
            gpus=len(facts["gpus"]),
            cores=cores_allowed(),
            nccl=bool(facts.get("nccl")),
            gloo=bool(facts.get("gloo", True)),
        )

    @functools.cached_property
    def preflight(self) -> Preflight:
        """What each launch is checked by."""
        return Preflight(functools.partial(collect, self.stack), self._note)

    @functools.cached_property
    def source(self) -> Source:
        """Where launches come from: stored runs where ``--records`` names some, else this machine."""
        if self.options.records:
            launches = [r for folder in self.options.records for r in records.Run(folder).records()]
            for record in launches:
                self.run.append(records.RECORDS, record)
            # What was measured elsewhere is reported with where it was measured.
            environment = load(self.options.records[0]).environment
            judged_again = [str(folder) for folder in self.options.records]
            self.run.write_environment({**environment, "judged_again": judged_again})
            return Stored(launches, ", ".join(str(folder) for folder in self.options.records))
        options = self.options
        context = Context(
            run=self.run.name,
            profile=PROFILES[options.profile],
            cores=self.machine.cores,
            cache_dir=options.cache_dir,
            data_root=options.data_root,
            time_limit_seconds=options.launch_timeout,
        )
        os.makedirs(options.cache_dir, exist_ok=True)
        lock = None if options.share_node else NodeLock(self.run.name, say=self._note)
        bench = Bench(
            context,
            self.run,
            functools.partial(self._launch, lock),
            self._runnable,
            self._worker,
        )
        bench.extras = options.extras
        return bench

    def _note(self, text: str) -> None:
        self.run.append(records.EVENTS, records.Event("note", time.time(), text=text, worker=self._worker))

    def _runnable(self, member: Member) -> bool:
        device = self.machine.device(self.options.device)
        return why_not(need_of_member(member), self.machine, device) is None

    def _launch(self, lock: NodeLock | None, spec: contract.LaunchSpec) -> contract.LaunchRecord:
        self.preflight(spec)
        record = launch(spec, self.stack, lock=lock)
        return self._keep_profiles(spec, record)

    def _keep_profiles(
        self, spec: contract.LaunchSpec, record: contract.LaunchRecord
    ) -> contract.LaunchRecord:
        """Move line profiles to the run's ``profiles``, named after their launch."""
        kept = []
        for name in record.line_profiles:
            target = self.run.profile_folder() / f"{record.launch}-{Path(name).name}"
            (Path(spec.out_dir) / Path(name).name).replace(target)
            kept.append(str(target.relative_to(self.run.folder)))
        return dataclasses.replace(record, line_profiles=kept)

    def judge(self, test: str, user_properties: list[tuple[str, object]]) -> Judge:
        """Return the judge of one test; a verdict also goes to the test's properties, which JUnit shows."""

        def record(verdict: records.VerdictRecord) -> None:
            self.run.append(records.VERDICTS, verdict)
            user_properties.extend(properties(verdict))

        return Judge(
            self.source,
            test,
            PROFILES[self.options.profile],
            self.run.name,
            record,
            require_references=self.options.require_references,
        )

    @staticmethod
    def is_infrastructure(error: BaseException) -> bool:
        """Whether an error says that nothing was measured, rather than that a number is bad."""
        return isinstance(
            error, (LaunchFailed, LockError, StackError, Unfit, contract.ContractError, OSError)
        )

    def header(self) -> list[str]:
        """Return the lines of pytest's header."""
        if not self.has_run or self._worker:
            return []
        return [f"stackproof: profile {self.options.profile}, files in {self.run.folder}"]

    def start_drawing(self, config: pytest.Config, reporter: Any) -> None:
        """Draw progress from the run's events, in a thread: under xdist the workers write them and this process reads.

        pytest captures what a test prints by redirecting file descriptor 1, so the drawing goes to a copy of it that
        was taken while nothing is captured.
        """
        if not self.has_run or self._worker or reporter is None:
            return
        out = _Between(os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace"), reporter)
        console = Console(file=out, highlight=False)  # type: ignore[arg-type]
        progress = Progress(console, choose_mode(console, quiet=config.option.verbose < 0))

        def draw() -> None:
            with progress:
                follow(self.run.folder / records.EVENTS, progress, self._stop)
            out.close()

        self._drawing = threading.Thread(target=draw, name="stackproof-progress", daemon=True)
        self._drawing.start()

    def stop_drawing(self) -> None:
        """Draw what is left and stop."""
        self._stop.set()
        if self._drawing is not None:
            self._drawing.join()
            self._drawing = None

    def summarize(self, terminal: Any, sentence: str) -> None:
        """Print the run's tables, line profiles, and what the exit status means."""
        try:
            stored = load(self.run.folder)
        except NoRun:
            stored = None
        if stored is not None and (stored.records or stored.verdicts):
            terminal.section("stackproof")
            # pytest has no public name for the stream that its own report goes to.
            console = Console(file=terminal._tw._file, highlight=False)  # noqa: SLF001
            print_report(
                console,
                summarize(stored.records, stored.verdicts),
                environment=environment_lines(stored.environment),
                folder=stored.folder,
                notes=stored.notes,
            )
            for record in stored.records:
                if record.line_profiles:
                    _print_profile(console, record, stored.folder)
        if sentence:
            terminal.write_line(f"stackproof: {sentence}")


def _print_profile(console: Console, record: contract.LaunchRecord, folder: Path) -> None:
    """Print the line profile of one launch, every rank; a profile that can't be read is said, not raised."""
    try:
        text = render(launch_profiles(record, folder))
    except ProfileError as error:
        text = str(error)
    title = f"Line profile of {record.variant}, launch {record.launch}"
    console.print(Text(fit(f"\n{title}\n{text}", console.encoding, keep_lines=True)), soft_wrap=True)


class _Between:
    """A text stream that starts on a line of its own while pytest is in the middle of one."""

    def __init__(self, stream: Any, reporter: Any) -> None:
        self._stream = stream
        self._reporter = reporter

    def write(self, text: str) -> int:
        """Write text, after a line feed if pytest's own line is open."""
        if getattr(self._reporter, "currentfspath", None):
            self._reporter.currentfspath = None
            self._stream.write("\n")
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
