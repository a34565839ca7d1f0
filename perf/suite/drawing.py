"""What a person sees: progress while launches run, and the tables at the end."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from perf import contract, records
from perf.portable import systems_to_show
from perf.report.console import make_console
from perf.report.kernels import table_of
from perf.report.lines import ProfileError, launch_profiles, render
from perf.report.progress import Progress, choose_mode, follow
from perf.report.stacks import environment_lines
from perf.report.stored import NoRun, StoredRun, load
from perf.report.summary import summarize as rows_of
from perf.report.tables import print_report
from perf.report.text import fit


class Drawing:
    """Draws progress from a run's events, in a thread: under xdist the workers write them and this process reads.

    pytest captures what a test prints by redirecting file descriptor 1, so the drawing goes to a copy of it that is
    taken here, while nothing is captured.
    """

    def __init__(self, folder: Path, reporter: Any, *, quiet: bool) -> None:
        out = _Between(os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace"), reporter)
        console = make_console(out)  # type: ignore[arg-type]
        progress = Progress(console, choose_mode(console, quiet=quiet))
        self._stop = threading.Event()

        def draw() -> None:
            with progress:
                follow(folder / records.EVENTS, progress, self._stop)
            out.close()

        self._thread = threading.Thread(target=draw, name="stackproof-progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Draw what is left and end the thread."""
        self._stop.set()
        self._thread.join()


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


def summarize(folder: Path, terminal: Any, sentence: str) -> None:
    """Print a run's tables and line profiles, write its report, and say what the exit status means.

    All goes through pytest's terminal reporter. A report that can't be drawn is a line here and changes no exit status:
    what was measured is stored, and `python -m perf.report html` draws it again.
    """
    try:
        stored = load(folder)
    except NoRun:
        stored = None
    if stored is not None and (stored.records or stored.verdicts):
        terminal.section("stackproof")
        known, notes = systems_to_show()
        # pytest has no public name for the stream that its own report goes to.
        console = make_console(terminal._tw._file)  # noqa: SLF001
        print_report(
            console,
            rows_of(stored.records, stored.verdicts, known),
            environment=environment_lines(stored.environment),
            folder=stored.folder,
            notes=[*stored.notes, *notes],
        )
        for record in stored.records:
            if record.line_profiles:
                _print_profile(console, record, stored.folder)
            if record.trace_facts:
                title = f"\nTrace of {record.variant}, launch {record.launch}: {', '.join(record.traces)}\n"
                said = fit(title + table_of(record), console.encoding, keep_lines=True)
                console.print(Text(said), soft_wrap=True)
    if stored is not None and (stored.records or stored.verdicts or stored.events or stored.outcomes):
        terminal.write_line(write_report(stored))
    if sentence:
        terminal.write_line(f"stackproof: {sentence}")


def write_report(stored: StoredRun) -> str:
    """Write a run's ``report.html`` and return the line that says where it is, or why there is none."""
    try:
        # Late: templates and plotly's JavaScript are read here alone.
        from perf.report.page import write

        return f"report: {fit(str(write([stored])), 'utf-8')}"
    except Exception as error:  # noqa: BLE001 - whatever drawing raises, the measurement stands
        why = fit(f"{type(error).__name__}: {error}", "utf-8")
        return f"note: report.html could not be drawn ({why}); `python -m perf.report html {stored.folder}` tries again"


def _print_profile(console: Console, record: contract.LaunchRecord, folder: Path) -> None:
    """Print the line profile of one launch, every rank; a profile that can't be read is said, not raised."""
    try:
        text = render(launch_profiles(record, folder))
    except ProfileError as error:
        text = str(error)
    title = f"Line profile of {record.variant}, launch {record.launch}"
    console.print(Text(fit(f"\n{title}\n{text}", console.encoding, keep_lines=True)), soft_wrap=True)
