"""The page of all that the suite complains about and what to do: ``python -m perf.report.troubleshooting``.

Made from the messages themselves: remedies as they stand in the code, checks of a machine as they answer to made-up
facts. ``docs/troubleshooting.md`` is its output; a test holds the two together.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from perf.ending import finish
from perf.launch.cause import FILE_HINT, HINTS, LOG_HINTS
from perf.launch.machine_facts import unfit_by_telemetry
from perf.launch.preflight import Demand, NodeFacts, check
from perf.launch.telemetry.reading import GpuReading
from perf.report.remedies import every_remedy
from perf.verdict.advice import TRY, TRY_OF_ALL, TRY_OF_LATE, TRY_OF_MEMORY, TRY_OF_SLOW

__all__ = ["main", "page"]

HEAD = """\
# What the suite complains about, and what to do

Made by `python -m perf.report.troubleshooting` from the messages themselves. Numbers and names in the examples are
made up. Which planted fault was told in which words stands in [trust.md](trust.md).
"""

_DEMAND = Demand(
    variant="a variant",
    device="cuda",
    strategy="ddp",
    gpus=2,
    ranks=2,
    cores=8,
    promised=True,
    workers=4,
    batch_bytes=2**24,
    nodes=2,
    backend="nccl",
    tasks=136,
    cpu_seconds=600.0,
)
_NODE = NodeFacts(
    cores=4,
    gpus=({"index": 0, "uuid": "GPU-1"}, {"index": 1, "uuid": "GPU-1"}, {"index": 2, "uuid": "GPU-2"}),
    shared_memory_free=2**20,
    open_files=256,
    port=None,
    port_problem="Address already in use",
    tasks_left=10,
    locked_memory=2**16,
    cpu_seconds=60,
    cards=(GpuReading("GPU-2", 2, memory_used_bytes=2**33, utilization_percent=90.0),),
    versions={"torch": "2.14.1"},
)
_TELEMETRY = {
    "window_seconds": 10.0,
    "gpus": [
        {
            "host": "n1",
            "uuid": "GPU-2",
            "index": 2,
            "ranks": [0],
            "throttle_seconds": {"thermal": 2.0},
            "temperature_celsius": {"max": 91.0},
            "before": {"memory_used_bytes": 2**33, "utilization_percent": 90.0},
            "other_processes": 1,
        }
    ],
}


def page() -> str:
    """Return the page in Markdown."""
    remedies = every_remedy()
    sections = (
        ("A launch that failed", _launches(remedies["launch"])),
        ("A machine that is not fit, before a launch", _preflight()),
        ("A launch that is invalid", _invalid()),
        ("A judgement that failed, by metric", iter(remedies["metric"].items())),
        ("A judgement that failed, by the phase that moved", _phases()),
        ("Every other answer", iter(remedies["verdict"].items())),
    )
    return HEAD + "".join(
        f"\n## {title}\n\n| what you see | what to do |\n|---|---|\n"
        + "".join(dict.fromkeys(f"| {_cell(seen)} | {_cell(cure)} |\n" for seen, cure in rows))
        for title, rows in sections
    )


def _launches(deaths: dict[str, str]) -> Iterator[tuple[str, str]]:
    for number, hint in HINTS.items():
        yield f"a rank was killed by {number.name}", hint
    for words, cure in deaths.items():
        if not words.startswith("SIG"):
            yield f"a rank ended: {words}", cure
    for pattern, hint in LOG_HINTS:
        yield f"in its log: `{pattern.pattern}`", hint
    yield "a rank left its record cut short", FILE_HINT.strip()


def _preflight() -> Iterator[tuple[str, str]]:
    for finding in check([_DEMAND], _NODE):
        if not finding.ok:
            yield f"preflight, {finding.name}: {finding.sentence}", finding.remedy
    for finding in check([_DEMAND], NodeFacts(64, (), None, None, 1, versions={"nccl": "", "torch": "2"})):
        if not finding.ok and finding.name in ("stack", "GPUs", "/dev/shm"):
            yield f"preflight, {finding.name}: {finding.sentence}", finding.remedy


def _invalid() -> Iterator[tuple[str, str]]:
    for reason in unfit_by_telemetry(_TELEMETRY):
        sentence, _, cure = reason.rpartition(". ")
        yield sentence, cure


def _phases() -> Iterator[tuple[str, str]]:
    for phase, cure in TRY.items():
        yield f"the time is in {phase}", cure
    yield "one rank comes late to every step", TRY_OF_LATE
    yield "no phase alone holds the time", TRY_OF_ALL
    yield "more steps are slow, and neither the loader nor communication holds them up", TRY_OF_SLOW
    yield "the peak of memory is higher", TRY_OF_MEMORY


def _cell(text: str) -> str:
    """Return text for a cell: on one line, a bar inside it escaped."""
    return " ".join(text.split()).replace("|", "\\|")


def main() -> int:
    """Print the page; return 0."""
    sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    finish(main)
