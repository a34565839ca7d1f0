"""Disjoint experiments from the launches of comparisons: ``python -m perf.calibration.experiments RUN ...``.

A comparison with many launches a side (``pytest perf --against=OLD --launches=20``) holds several experiments that
share no launch. Each is judged as a comparison of that size would have been, in the order in which the launches were
made: how many of them fail shows how often a planted change is caught, and the old side's launches dealt to two sides
show how often an equal stack alarms. Drawing launches at random from the pool would give experiments that depend on
each other.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from perf.contract import LaunchRecord
from perf.ending import finish
from perf.faults.plant import planted
from perf.report.stored import NoRun, load
from perf.report.text import fit
from perf.verdict.comparison import compare
from perf.verdict.looks import FIRST_LOOK
from perf.verdict.pace import step_times
from perf.verdict.spread import SPREADS_IN_A_MARGIN, halves_in_true_order, spread_of
from perf.verdict.words import percent

__all__ = ["Experiment", "experiments_of", "main"]

SIZE = 10
"""Launches a side of one experiment: with 10 a comparison can fail by rank, not only by a gross difference."""


@dataclass(frozen=True)
class Experiment:
    """One comparison of launches that no other experiment holds.

    `what` is the fault that was planted in its new side, or ``clean``; `launches` a side is what the rule read.
    """

    run: str
    variant: str
    what: str
    verdict: str
    estimate: float
    low: float
    high: float
    launches: int


def experiments_of(launches: Sequence[LaunchRecord], margin: float, size: int = SIZE) -> list[Experiment]:
    """Return the disjoint experiments that a run's comparisons hold.

    Parameters
    ----------
    launches
        Of one run, in the order in which they ended. What was taken under a profiler, to say why, is left out, and so
        is what another launch was taken in place of.
    margin
        The relative slowdown that must not pass.
    size
        Launches a side of one experiment. What is left over is left out.
    """
    found = []
    compared = _compared(launches)
    for variant in dict.fromkeys(launch.variant for launch in compared):
        old, new = (
            [launch for launch in compared if launch.variant == variant and launch.side == side]
            for side in ("old", "new")
        )
        if any(not launch.valid for launch in (*old, *new)):
            continue
        what = next((fault for launch in new if (fault := planted(launch))), "clean")
        steps, before = step_times(new, old)
        found += _judged(variant, what, steps, before, launches[0].run, margin, size)
        if what != "clean":
            first, second = halves_in_true_order(step_times(old)[0])
            found += _judged(variant, "clean", second, first, launches[0].run, margin, size)
    return found


def _compared(launches: Sequence[LaunchRecord]) -> list[LaunchRecord]:
    """Return the launches of two sides that a comparison rests on."""
    replaced = {launch.replaces for launch in launches if launch.replaces}
    return [one for one in launches if one.side and not one.profiled and one.launch not in replaced]


def _judged(
    variant: str,
    what: str,
    new: Sequence[float],
    old: Sequence[float],
    run: str,
    margin: float,
    size: int,
) -> list[Experiment]:
    found = []
    for start in range(0, min(len(new), len(old)) - size + 1, size):
        one = compare(new[start : start + size], old[start : start + size], margin=margin, cap=size)
        found.append(
            Experiment(run, variant, what, str(one.verdict), one.estimate, one.low, one.high, one.launches)
        )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the experiments of some runs and the old sides' spread; return 0, or 2 where a path is no run."""
    parser = argparse.ArgumentParser(
        prog="python -m perf.calibration.experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a run with comparisons")
    parser.add_argument("--margin", type=float, default=2.0, metavar="%", help="in percent (default: 2)")
    parser.add_argument(
        "--size", type=int, default=SIZE, metavar="N", help=f"launches a side (default: {SIZE})"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    options = parser.parse_args(arguments)
    if options.size < FIRST_LOOK or not 0.0 < options.margin < 100.0:
        parser.error(f"--size is {FIRST_LOOK} or more, --margin a percentage between 0 and 100")
    margin = options.margin / 100.0
    try:
        runs = [load(folder) for folder in options.runs]
    except (NoRun, OSError) as error:
        print(f"error: {fit(str(error), sys.stderr.encoding)}", file=sys.stderr)
        return 2
    experiments = [one for run in runs for one in experiments_of(run.records, margin, options.size)]
    if options.json:
        print(json.dumps({"margin": margin, "experiments": [asdict(one) for one in experiments]}, indent=2))
        return 0
    for line in _lines(experiments, [one for run in runs for one in _compared(run.records)], margin):
        print(fit(line, sys.stdout.encoding))
    return 0


def _lines(experiments: Sequence[Experiment], launches: Sequence[LaunchRecord], margin: float) -> list[str]:
    lines = []
    for variant in dict.fromkeys(launch.variant for launch in launches if launch.side == "old"):
        old = [one for one in launches if one.variant == variant and one.side == "old" and one.valid]
        if len(old) > 1:
            spread = spread_of(step_times(old)[0])
            fits = "below" if SPREADS_IN_A_MARGIN * spread.upper < margin else "not below"
            lines.append(
                f"{variant}: {spread.launches} launches of the old side spread by {percent(spread.sd)}, at most "
                f"{percent(spread.upper)}, {fits} a third of the margin of {percent(margin)}"
            )
    lines += [
        f"  {one.verdict:<12} {one.what}, {one.variant}: {one.estimate:.4f} ({one.low:.4f} to {one.high:.4f}), "
        f"{one.launches} launches a side, run {one.run}"
        for one in experiments
    ]
    for what in dict.fromkeys(one.what for one in experiments):
        mine = [one for one in experiments if one.what == what]
        failed = sum(one.verdict == "fail" for one in mine)
        mean = sum(one.launches for one in mine) / len(mine)
        lines.append(
            f"{what}: {failed} of {len(mine)} disjoint experiments fail, {mean:.1f} launches a side on average"
        )
    return lines or ["no launches of comparisons: measure some with `python -m pytest perf --against=PYTHON`"]


if __name__ == "__main__":
    finish(main)
