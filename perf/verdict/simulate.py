"""Try the rules on noise that is known, and print what they do: ``python -m perf.verdict.simulate [--pairs N]``.

Prints false `fail` per judgement and wrong `pass` at the margin for each kind of noise, the power table,
fixed limits, one sample, floors, stalls, and the power at the printed detectable change. docs/trust.md says what the
figures mean. Needs numpy.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence

from perf.ending import finish
from perf.verdict.noise import KINDS
from perf.verdict.trials import (
    Rates,
    ab_trial,
    fixed_trial,
    floor_trial,
    noise,
    one_sample_trial,
    printed_power,
    stall_trial,
)

__all__ = ["POWER_ROWS", "SLOWDOWNS", "SPREADS", "main", "power_row", "report"]

PAIRS = 1_000_000
"""A million: at the nominal 2.2e-4, 100,000 pairs would exceed 2.5e-4 by luck in 22 % of simulations."""

LEAST_PAIRS = 100

MARGIN = 0.02

SPREADS = (0.003, 0.008, 0.05)
"""Launch-level sds: quiet; the largest that suits a margin of 2 %; so large that half the margin protects nothing."""

SLOWDOWNS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.10)
POWER_ROWS = (
    ("clean", 0.001),
    ("clean", 0.003),
    ("clean", 0.008),
    ("clean", 0.013),
    ("clean", 0.05),
    ("clean", 0.10),
    ("disturbed", 0.003),
)


def power_row(kind: str, sd: float, pairs: int) -> tuple[Rates, ...]:
    """Return the power table's row of this noise, one entry for each of `SLOWDOWNS`."""
    return ab_trial(noise(kind), sd, SLOWDOWNS, pairs, margin=MARGIN)


def _false_fails(pairs: int) -> Iterator[str]:
    yield f"A/B, margin 2 %, up to 16 launches a side; {pairs:,} judgements a line."
    yield "noise            sd %   false fail  pass %  launches   slower by the margin: wrong pass %"
    for kind in KINDS:
        # Medians of simulated steps cost a hundred times as much; the sd that suits the margin stands for all.
        for sd in SPREADS if kind.name != "steps" else (0.008,):
            same, slower = ab_trial(kind, sd, (0.0, MARGIN), pairs)
            note = "" if kind.exchangeable else "   (launches tied in time)"
            yield (
                f"{kind.name:<15} {100 * sd:5.1f}   {same.fail:9.2e}   {100 * same.passed:5.1f}"
                f"  {same.mean_launches:7.1f}   {100 * slower.passed:5.2f}{note}"
            )


def _power(pairs: int) -> Iterator[str]:
    yield f"Power, margin 2 %: fail / pass % (mean launches a side) by true slowdown; {pairs:,} judgements a cell."
    yield "noise        sd %  " + "".join(f"{f'{100 * slowdown:g} %':>16}" for slowdown in SLOWDOWNS)
    for kind, sd in POWER_ROWS:
        cells = [
            f"{100 * r.fail:.0f}/{100 * r.passed:.0f} ({r.mean_launches:.1f})"
            for r in power_row(kind, sd, pairs)
        ]
        yield f"{kind:<12} {100 * sd:4.1f}  " + "".join(f"{cell:>16}" for cell in cells)


def _fixed(pairs: int) -> Iterator[str]:
    distances = (-3.0, -2.0, 0.0, 2.0, 3.0)
    for name, rates in (
        ("Fixed limits", fixed_trial(noise("clean"), 0.01, distances, pairs)),
        ("One sample", one_sample_trial(noise("clean"), 0.01, distances, pairs)),
    ):
        yield f"{name}: fail / pass % by distance outside the limit in launch-level sds; {pairs:,} judgements a cell."
        yield "   ".join(
            f"{distance:+g} sd: {100 * r.fail:.2f}/{100 * r.passed:.2f}"
            for distance, r in zip(distances, rates, strict=True)
        )


def _floors(cases: int) -> Iterator[str]:
    yield f"Floors, date sd 0.5 %, node sd 1 %: missed twice % by true loss (mean tolerance); {cases:,} floors a cell."
    losses = (0.0, 0.05, 0.08, 0.10)
    for occasions in (2, 3, 5):
        rates = [floor_trial(occasions, loss, cases) for loss in losses]
        cells = "   ".join(
            f"{100 * loss:g} %: {100 * r.failed:.3g}" for loss, r in zip(losses, rates, strict=True)
        )
        yield f"{occasions} occasions ({100 * rates[0].tolerance:.1f} %):   {cells}"
    elsewhere = floor_trial(10, 0.0, cases, one_node=True)
    yield f"10 dates of one node, held against other nodes, nothing lost: {100 * elsewhere.missed:.2g} % miss."


def _stalls(pairs: int) -> Iterator[str]:
    yield f"Stalls, margin 1 point: fail / pass %; {pairs:,} judgements a line."
    for base, new, steps, burst in (
        (0.01, 0.01, 400, 0.0),
        (0.01, 0.01, 400, 0.5),
        (0.0, 0.01, 400, 0.0),
        (0.0, 0.01, 100, 0.0),
        (0.01, 0.02, 400, 0.0),
        (0.01, 0.03, 400, 0.0),
        (0.01, 0.03, 400, 0.5),
    ):
        rates = stall_trial(base, new, pairs, steps=steps, burst=burst)
        shares = f"{100 * base:g} % -> {100 * new:g} % of {steps} steps" + (", in bursts" if burst else "")
        yield f"{shares:<38} {100 * rates.fail:.3g}/{100 * rates.passed:.3g}"


def _printed(pairs: int) -> Iterator[str]:
    yield "True power at the detectable change that is printed, mean over judgements:"
    for cap in (7, 10, 16):
        powers = [printed_power(sd, pairs, cap=cap) for sd in SPREADS]
        cells = "   ".join(
            f"sd {100 * sd:g} %: {100 * p:.1f} %" for sd, p in zip(SPREADS, powers, strict=True)
        )
        yield f"up to {cap} launches a side:   {cells}"


def report(pairs: int) -> Iterator[str]:
    """Run every trial and yield the lines that tell it, as they come.

    Parameters
    ----------
    pairs
        Judgements for each kind of noise, and for all that is rare; the rest take a part of it.
    """
    parts: tuple[tuple[Callable[[int], Iterator[str]], int], ...] = (
        (_false_fails, pairs),
        (_power, pairs // 10),
        (_fixed, pairs),
        (_floors, pairs // 5),
        (_stalls, pairs // 10),
        (_printed, pairs // 50),
    )
    for part, size in parts:
        yield from part(max(LEAST_PAIRS, size))
        yield ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the simulation as a command."""
    parser = argparse.ArgumentParser(prog="python -m perf.verdict.simulate", description=__doc__)
    parser.add_argument(
        "--pairs",
        type=int,
        default=PAIRS,
        metavar="N",
        help=f"judgements for each kind of noise (default {PAIRS:,})",
    )
    pairs = parser.parse_args(arguments).pairs
    if pairs < LEAST_PAIRS:
        parser.error(f"--pairs needs at least {LEAST_PAIRS} judgements to be worth printing, got {pairs}")
    for line in report(pairs):
        # A command, and the only module of this package that says something by itself.
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    finish(main)
