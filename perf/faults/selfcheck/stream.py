"""Clean judgements in a process of its own: ``python -m perf.faults.selfcheck.stream RUN SETTINGS``.

A launch handles signals, so that two at a time need two processes.
"""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from perf import records
from perf.ending import finish
from perf.faults.selfcheck.carry import Where
from perf.faults.selfcheck.clean import cleaner_of
from perf.faults.selfcheck.results import Clean
from perf.launch.forking import Servers
from perf.launch.signals import end_in_order_on_sigterm
from perf.launch.stack import Stack
from perf.machine import REPOSITORY

__all__ = ["Beside", "main"]

FILE = "clean.jsonl"

END_SECONDS = 60.0
"""From the signal to the end: a launch ends its ranks in 10 s, a busy machine needs longer."""


class Beside:
    """A process that makes clean judgements while something else goes on; a context that ends it."""

    def __init__(self, run: records.Run, where: Where, count: int, limit: float | None) -> None:
        self._file = run.folder / FILE
        settings = {
            "stack": dataclasses.asdict(where.stack),
            "device": where.device,
            "cores": where.cores,
            "cache_dir": where.cache_dir,
            "count": count,
            "limit": limit,
        }
        self._command = [
            sys.executable,
            "-m",
            "perf.faults.selfcheck.stream",
            str(run.folder),
            json.dumps(settings),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, start_new_session=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def wait(self) -> None:
        """Wait until all judgements were made, or their time was over."""
        if self._process is not None:
            self._process.wait()

    def found(self) -> list[Clean]:
        """Return the judgements that were made so far."""
        return records.read_lines(self._file, Clean) if self._file.exists() else []


def main(arguments: Sequence[str]) -> int:
    """Make the clean judgements; return 0."""
    run, settings = records.Run(Path(arguments[0])), json.loads(arguments[1])
    end_in_order_on_sigterm()
    began = time.monotonic()
    where = Where(
        Stack(**settings["stack"]), settings["device"], run.folder, settings["cores"], settings["cache_dir"]
    )
    with Servers(run.folder / "servers-clean.log") as servers:
        cleaner = cleaner_of(run, where, servers)
        for number in range(1, settings["count"] + 1):
            if settings["limit"] is not None and time.monotonic() - began > settings["limit"]:
                break
            one = cleaner.judge(number)
            run.append(FILE, one)
            print(f"clean {one.number}: {one.verdict}, {one.seconds:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    try:
        finish(lambda: main(sys.argv[1:]))
    except KeyboardInterrupt:
        # Ended by whoever started it: what was found is in the file.
        sys.exit(130)
