"""The report's sections: a question each, with its pictures or the reason why there is none. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perf.contract import LaunchRecord
from perf.report.figures.comparison import stacks_forests
from perf.report.figures.devices import devices
from perf.report.figures.epochs import epochs
from perf.report.figures.kernels import kernels
from perf.report.figures.launches import Side
from perf.report.figures.memory import memory_pictures
from perf.report.figures.model import Figure, Section
from perf.report.figures.phases import phases
from perf.report.figures.ratios import limits_forest
from perf.report.figures.speed import floors, ladder, loaders, scaling, strategies, workers
from perf.report.figures.traces import traces
from perf.report.samples import Sampled
from perf.report.summary import Summary

__all__ = ["sections"]


def sections(
    records: Sequence[LaunchRecord],
    groups: Mapping[str, Sequence[Side]],
    summary: Summary,
    sampled: Sequence[Sampled] = (),
) -> list[Section]:
    """Return the report's questions in the order in which they are read.

    Parameters
    ----------
    records
        All launches, profiled ones too.
    groups
        The unprofiled, valid launches by group (`perf.report.figures.launches.by_group`).
    summary
        Rows of what was judged.
    sampled
        What was sampled beside the launches.
    """
    limits = limits_forest(summary.verdicts)
    timed = phases(records)
    full = "profile full measures it"
    return [
        _section(
            "limits",
            "Limits",
            "How far is each judged number from its limit?",
            [limits] if limits else [],
            "no judgement of these runs has a limit",
        ),
        _section(
            "stacks",
            "New stack against old",
            "Is the new one as fast as the old one?",
            stacks_forests(summary.verdicts),
            "no two stacks were compared; `--against=PYTHON` names the old one",
        ),
        _section(
            "floors",
            "Throughput",
            "How fast is each way to train, launch by launch?",
            floors(groups, summary.verdicts),
            "no launch that counts has a throughput",
        ),
        _section(
            "strategies",
            "Single, DataParallel, DDP",
            "What does it cost to train in parallel?",
            strategies(groups),
            "no launch of these groups counts (ddp and dp need a GPU or two processes)",
        ),
        _section(
            "loader",
            "Data loading",
            "Does the loader keep up?",
            loaders(groups, summary.verdicts),
            "no launch of a loader group counts",
        ),
        _section(
            "workers", "Loader workers", "How many are enough?", workers(groups), f"no sweep was run; {full}"
        ),
        _section(
            "ladder",
            "Optimizations",
            "What does each rung gain?",
            ladder(groups),
            f"no ladder was run; {full}, on GPUs",
        ),
        _section(
            "scaling",
            "Scaling",
            "Do more devices give more?",
            scaling(groups),
            "no group ran on one device and on several",
        ),
        _section(
            "phases",
            "Phases of a step",
            "Where does a step's time go?",
            [timed] if timed else [],
            "no launch was timed in phases; `--phases` adds one a variant",
        ),
        _section(
            "kernels",
            "Kernels",
            "What does the device, or the CPU, spend its time on?",
            kernels(records),
            "no launch was traced; `--torch-trace` adds one a variant",
        ),
        _section(
            "epochs",
            "First epoch",
            "What does the first epoch cost more?",
            epochs(groups),
            "no launch trained whole epochs that count",
        ),
        _section(
            "memory",
            "Memory",
            "How much of the device is used?",
            memory_pictures(groups),
            "no launch on a GPU counts, and torch does not say what it takes on a CPU",
        ),
        _section(
            "steps",
            "Step times",
            "Are there stalls, drifts, slow ranks?",
            traces(groups),
            "no launch that counts has a timed step",
        ),
        _section(
            "devices",
            "Power, clock, utilization",
            "Was the machine fit while it was measured? High utilization at low power is a GPU that waits.",
            devices(sampled),
            "no samples of a GPU lie beside the launches",
        ),
    ]


def _section(key: str, title: str, intro: str, figures: list[Figure], absent: str) -> Section:
    return Section(key, title, intro, figures, [] if figures else [absent])
