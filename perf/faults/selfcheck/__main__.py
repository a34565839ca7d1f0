"""Plant every fault that this machine carries, with clean judgements between; the command under ``nox -s selfcheck``.

Writes ``selfcheck.json`` after each step: how many were planted, caught and named, how many clean judgements alarmed,
and a row a fault. Exit status 0: all were caught and named, and nothing clean failed. 1: not so. 4: misuse. 130: ended.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import math
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perf import contract, records
from perf.ending import finish
from perf.faults.catalogue import FAULTS
from perf.faults.fault import Fault
from perf.faults.on_cpu import ON_CPU
from perf.faults.on_gpu import ON_GPU
from perf.faults.plant import NoSuchFault, check_name
from perf.faults.selfcheck.carry import Where, carry
from perf.faults.selfcheck.clean import CLEAN, Cleaner, cleaner_of, dealt
from perf.faults.selfcheck.plan import Carrier, Plan, Step, plan, seconds_for
from perf.faults.selfcheck.results import BadResults, Clean, Results, Row, read
from perf.faults.selfcheck.stream import Beside
from perf.faults.table import table
from perf.launch.forking import Servers
from perf.launch.signals import end_in_order_on_sigterm
from perf.launch.stack import StackError, find_stack
from perf.machine import cores_allowed, system_facts
from perf.report.text import fit
from perf.suite.options import default_cache_dir

EXIT_NOT_GOOD = 1
EXIT_USAGE = 4
EXIT_INTERRUPTED = 130

RESULT = "selfcheck.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    options = _parser().parse_args(arguments)
    if options.table:
        return _print_table(options.table)
    if (wrong := _wrong_number(options)) is not None:
        _say(f"error: {wrong}", sys.stderr)
        return EXIT_USAGE
    try:
        faults = [FAULTS[check_name(name)] for name in options.faults] or [*ON_CPU, *ON_GPU]
        stack = find_stack(options.stack, os.environ.get("PATH", ""), os.environ)
    except (NoSuchFault, StackError) as error:
        _say(f"error: {error}", sys.stderr)
        return EXIT_USAGE
    gpus = len(stack.facts.get("gpus") or ())
    carrier = Carrier(options.device, cores_allowed(), gpus, os.geteuid() == 0)
    if carrier.device == "cuda" and not gpus:
        _say(f"error: --device cuda: the torch of {stack.python} sees no GPU", sys.stderr)
        return EXIT_USAGE
    seconds = seconds_for(carrier) if options.seconds is None else options.seconds
    planned = plan(faults, carrier, clean=options.clean, seconds=seconds)
    if options.dry_run:
        for line in _planned(planned):
            _say(line)
        return 0
    end_in_order_on_sigterm()
    run = records.Run.create(Path(options.results).absolute())
    os.makedirs(options.cache_dir, exist_ok=True)
    where = Where(stack, options.device, run.folder / "faults", carrier.cores, options.cache_dir)
    limit = seconds if options.stop else None
    beside = None
    if options.beside:
        beside = Beside(run, where, options.clean, limit)
        planned = dataclasses.replace(planned, steps=tuple(Step(one.fault, 0) for one in planned.steps))
    try:
        results = SelfCheck(run, where, planned, limit, beside).run_all()
    except KeyboardInterrupt:
        _say(f"ended early; what was found until then: {run.folder / RESULT}", sys.stderr)
        return EXIT_INTERRUPTED
    for line in results.lines():
        _say(line)
    _say(f"files: {run.folder}")
    return 0 if results.good else EXIT_NOT_GOOD


class SelfCheck:
    """One self-check: plants, judges, and writes what it knows after each step.

    Parameters
    ----------
    limit
        After so many seconds nothing more is begun; None for no limit.
    beside
        A process that makes the clean judgements meanwhile; None where they are made between the faults.
    """

    def __init__(
        self, run: records.Run, where: Where, planned: Plan, limit: float | None, beside: Beside | None = None
    ) -> None:
        self._run = run
        self._beside = beside
        self._where = where
        self._planned = planned
        self._limit = limit
        self._began = time.monotonic()
        self._machine = {**system_facts(), "stack": {"python": where.stack.python, **where.stack.facts}}
        self._loads: list[float] = []
        self._rows: list[Row] = []
        self._clean: list[Clean] = []

    def run_all(self) -> Results:
        """Do it all. Starts launches and writes files."""
        self._run.write_environment(
            {**self._machine, "run": self._run.name, "options": {"selfcheck": "True"}}
        )
        with (
            Servers(self._run.folder / "servers.log") as servers,
            self._beside or contextlib.nullcontext(),
        ):
            cleaner = cleaner_of(self._run, self._where, servers)
            for step in self._planned.steps:
                if self._is_over():
                    self._leave_out(step.fault, f"not begun within {self._limit:.0f} s (--seconds, --stop)")
                    continue
                self._plant(step.fault)
                for _ in range(step.clean):
                    if not self._is_over():
                        self._judge_clean(cleaner)
            if self._beside is not None:
                self._beside.wait()
        for name, reason in self._planned.left_out.items():
            self._leave_out(FAULTS[name], reason)
        clean_launches = self._run.records() if (self._run.folder / records.RECORDS).exists() else []
        done = self._write()
        results = dataclasses.replace(
            done, clean=[*done.clean, *dealt(clean_launches, len(done.clean) + 1)], seconds=self._seconds
        )
        contract.write_whole(str(self._run.folder / RESULT), results.text())
        return results

    def _plant(self, fault: Fault) -> None:
        try:
            row = carry(fault, self._where)
        except Exception as error:  # noqa: BLE001 - one fault that can't be planted must not end the check of the others
            row = Row(fault.name, carried=True, by=fault.caught_by, said=f"could not be planted: {error!r}")
        self._rows.append(row)
        word = "caught and named" if row.named else "caught, but not named" if row.caught else "not caught"
        _say(f"{row.name}: {word}, {row.seconds:.0f} s")
        self._write()

    def _judge_clean(self, cleaner: Cleaner) -> None:
        one = cleaner.judge(len(self._clean) + 1)
        self._clean.append(one)
        _say(f"clean {one.number}: {one.verdict}, {one.seconds:.0f} s")
        self._write()

    def _leave_out(self, fault: Fault, reason: str) -> None:
        self._rows.append(Row(fault.name, carried=False, why_not=reason))

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _is_over(self) -> bool:
        return self._limit is not None and self._seconds > self._limit

    def _write(self) -> Results:
        self._loads.append(round(os.getloadavg()[0], 1))
        if self._beside is not None:
            self._clean = self._beside.found()
        machine: dict[str, Any] = {**self._machine, "load_average": self._loads}
        order = list(FAULTS)
        rows = sorted(self._rows, key=lambda row: order.index(row.name))
        results = Results(machine, rows, list(self._clean), self._seconds)
        contract.write_whole(str(self._run.folder / RESULT), results.text())
        return results


def _wrong_number(options: argparse.Namespace) -> str | None:
    """Say which number can't be meant; None if all can."""
    if options.clean < 0:
        return f"--clean {options.clean}: expected a number of judgements, 0 or more"
    # Written so that NaN is refused too.
    if options.seconds is not None and not 0.0 < options.seconds < math.inf:
        return f"--seconds {options.seconds:g}: expected seconds above 0"
    return None


def _planned(planned: Plan) -> list[str]:
    found = [f"{step.fault.name}: {step.fault.caught_by}; then {step.clean} clean" for step in planned.steps]
    return [*found, *(f"{name}: not planted: {reason}" for name, reason in planned.left_out.items())]


def _print_table(paths: Sequence[Path]) -> int:
    """Print the table of some results; a fault that several of them planted is told as the last one has it."""
    found: dict[str, Row] = {}
    try:
        for path in paths:
            results = read(path.read_text(encoding="utf-8"), str(path))
            found |= {row.name: row for row in results.rows if row.carried}
    except (BadResults, OSError, UnicodeDecodeError) as error:
        _say(f"error: {error}", sys.stderr)
        return EXIT_USAGE
    print(table(FAULTS.values(), found))
    return 0


def _say(line: str, stream: Any = None) -> None:
    stream = stream or sys.stdout
    # An error has lines of its own; what they hold is escaped.
    for part in line.split("\n"):
        print(fit(part, stream.encoding or "ascii"), file=stream, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perf.faults.selfcheck",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("faults", nargs="*", metavar="FAULT", help="plant these only (default: all that the device carries)")
    add(
        "--device",
        choices=("cpu", "cuda"),
        default="cpu",
        help="carry the faults of the CPU (the default) or of GPUs",
    )
    add("--stack", metavar="PYTHON", help="Python to run (default: the first python3 on PATH with torch)")
    add("--results", metavar="DIR", default="results", help="where runs are kept (default: results)")
    add("--cache-dir", metavar="DIR", default=default_cache_dir(dict(os.environ)), help="as for pytest perf")
    add("--clean", type=int, default=CLEAN, metavar="N", help=f"clean judgements (default: {CLEAN})")
    add(
        "--seconds",
        type=float,
        metavar="S",
        help="time for all of it; on GPUs, faults that it has no room for are left out (default: 540 on one GPU, "
        "1800 on several, 2400 on the CPU)",
    )
    add(
        "--beside",
        action="store_true",
        help="make the clean judgements in a process of its own, beside the faults and not between them",
    )
    add("--stop", action="store_true", help="begin nothing more when --seconds are over")
    add("--dry-run", action="store_true", help="say what would be planted, and end")
    add(
        "--table",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="print the table of one or more selfcheck.json in Markdown, and end",
    )
    return parser


if __name__ == "__main__":
    finish(main)
