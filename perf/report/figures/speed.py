"""The questions about speed: strategies, loaders, workers, the ladder, scaling. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from perf.report.figures.bars import RATE, STEP, bars, launches_text, search_words, side_table
from perf.report.figures.launches import Estimate, Side, question_of
from perf.report.figures.model import Axis, Band, Figure, Line, Series
from perf.report.figures.ratios import forest, ratio
from perf.report.summary import VerdictRow
from perf.report.text import clean, number, share

__all__ = ["floors", "ladder", "loaders", "scaling", "strategies", "workers"]

Groups = Mapping[str, Sequence[Side]]

_STRATEGIES = ("ddp", "dp", "dp4", "dp8", "ranks", "tiny")
_LADDER = ("ladder", "mixed", "tuned", "overlap")


SCALING = ("weak", "weak_real", "weak_data", "strong", "strong_real")
"""Groups that are curves of scaling: on data that lie on the device, on the real loader, the loader alone."""


def strategies(groups: Groups) -> list[Figure]:
    """Step time alone, with DataParallel and with DistributedDataParallel, a picture a group."""
    figures = []
    for group, found in _of(groups, _STRATEGIES).items():
        figure = bars(
            f"strategies-{group}",
            f"One process, DataParallel and DDP, {clean(group)}",
            "A short bar is a fast step. The sides were launched in turn, with the same batch on each device.",
            found,
            STEP,
        )
        if figure is not None:
            figures.append(figure)
    return figures


def loaders(groups: Groups, rows: Sequence[VerdictRow]) -> list[Figure]:
    """Loading alone (IO), training on data that lie on the device (SYNTHETIC), and both (FULL)."""
    figures = []
    for group, found in _of(groups, ("loader", "loaders")).items():
        caption = (
            "io: the loader alone; synthetic: training on a batch that lies on the device; full: both. Full can be "
            "no faster than the slower of the other two."
        )
        shares = [row for row in rows if row.group == group and row.metric == "loader_share"]
        for row in shares:
            caption += f" The loader's share of the step is {row.estimate_text}, limit {row.limit_text}: {row.verdict}."
        figure = bars(f"loader-{group}", f"Data loading, {clean(group)}", caption, found, RATE)
        if figure is not None:
            figures.append(figure)
    return figures


def workers(groups: Groups) -> list[Figure]:
    """Throughput and wait over the number of loader workers, a line for each loader; a bar for each count of cores."""
    figures = [
        bars(
            f"cores-{group}",
            f"Workers on so many cores, {clean(group)}",
            "c4: tied to 4 cores. As many workers on fewer cores have a shorter bar where those cores were too few.",
            found,
            RATE,
        )
        for group, found in _of(groups, ("cores",)).items()
    ]
    return [*_sweeps(groups), *(figure for figure in figures if figure is not None)]


def _sweeps(groups: Groups) -> list[Figure]:
    figures = []
    for group, found in _of(groups, ("workers",)).items():
        kinds: dict[tuple[str, str], list[Side]] = {}
        for side in found:
            kinds.setdefault((side.first.loader, side.run), []).append(side)
        series = []
        for place, ((loader, run), unsorted) in enumerate(kinds.items()):
            mine = sorted(unsorted, key=lambda side: side.first.workers)
            points = [(side, rate) for side in mine if (rate := side.rate) is not None]
            series.append(
                _line(
                    clean(f"{loader} {run}".strip()),
                    place,
                    [float(side.first.workers) for side, _ in points],
                    [rate for _, rate in points],
                    [
                        f"{clean(side.variant)}\n{rate.text('samples/s')}, {launches_text(rate.launches)}"
                        f"\nwaits for data {share(side.wait_share.median if side.wait_share else None)}"
                        for side, rate in points
                    ],
                )
            )
        figures.append(
            Figure(
                f"workers-{group}",
                f"Loader workers, {clean(group)}",
                "Where the line stops rising, more workers give nothing: something else bounds the step.",
                Axis("loader workers a device", ticks=_whole(side.first.workers for side in found)),
                Axis("throughput (samples/s)", from_zero=True),
                series,
                side_table(found),
                search=search_words(found),
            )
        )
    return figures


def ladder(groups: Groups) -> list[Figure]:
    """What each optimization gains over the first side of its group: ratios of step times."""
    figures = []
    for group, found in _of(groups, _LADDER).items():
        base = found[0]
        rows = [
            (side.label, base.label, value)
            for side in found[1:]
            if side.run == base.run and (value := ratio(side, base)) is not None
        ]
        figure = forest(
            f"ladder-{group}",
            f"Optimizations, {clean(group)}",
            f"Each step time divided by that of {clean(base.variant)}. Left of 1 the optimization gains.",
            rows,
            search=search_words(found),
        )
        if figure is not None:
            figures.append(figure)
    return figures


def scaling(groups: Groups) -> list[Figure]:
    """Throughput over devices beside the ideal line: weak scaling (as many samples a device) and strong (in all)."""
    figures = []
    for group, found in _of(groups, ("ddp", *SCALING)).items():
        weak = not question_of(group).startswith("strong")
        kept = (
            "Weak scaling: each device keeps its batch."
            if weak
            else "Strong scaling: the devices share the batch."
        )
        kinds: dict[tuple[str, str], list[Side]] = {}
        for side in found:
            kinds.setdefault((side.first.strategy, side.run), []).append(side)
        alone = next(
            (side for side in found if _devices(side) == 1 and side.first.strategy == "single"), None
        )
        if alone is None or alone.rate is None or len({_devices(side) for side in found}) < 2:
            continue
        most = max(_devices(side) for side in found)
        one = alone.rate.median
        series = [
            Series(
                "ideal: devices × one process",
                [1.0, float(most)],
                [one, one * most],
                kind="line",
                role="ideal",
                line="dash",
                hover=[f"{number(one)} samples/s", f"{number(one * most)} samples/s"],
            )
        ]
        for place, ((strategy, run), mine) in enumerate(kinds.items()):
            points = sorted(
                ((side, rate) for side in mine if (rate := side.rate) is not None),
                key=lambda point: _devices(point[0]),
            )
            series.append(
                _line(
                    clean(f"{strategy} {run}".strip()),
                    place,
                    [float(_devices(side)) for side, _ in points],
                    [rate for _, rate in points],
                    [
                        f"{clean(side.variant)}\n{rate.text('samples/s')}, {launches_text(rate.launches)}"
                        f"\nefficiency {share(rate.median / (one * _devices(side)))}"
                        for side, rate in points
                    ],
                )
            )
        efficiency = [
            share(side.rate.median / (one * _devices(side))) if side.rate else "–" for side in found
        ]
        figures.append(
            Figure(
                f"scaling-{group}",
                f"Scaling, {clean(group)}",
                f"{kept} Efficiency is throughput over devices × one process.",
                Axis("devices", ticks=_whole(map(_devices, found))),
                Axis("throughput (samples/s)", from_zero=True),
                series,
                side_table(found, [("efficiency", efficiency)]),
                search=search_words(found),
            )
        )
    return figures


def floors(groups: Groups, rows: Sequence[VerdictRow]) -> list[Figure]:
    """Throughput of every launch as a strip, with the floor that a reference gives where there is one."""
    figures = []
    for group, found in groups.items():
        shown = [side for side in found if side.rate is not None]
        if not shown:
            continue
        labels = [clean(side.label) for side in shown]
        series = [
            Series(
                "one launch",
                [launch.samples_per_second for side in shown for launch in side.launches],
                [label for side, label in zip(shown, labels, strict=True) for _ in side.launches],
                role="side-0",
                hover=[
                    f"{clean(launch.launch)} on {clean(', '.join(dict.fromkeys(launch.host)))}"
                    f"\n{number(launch.samples_per_second)} samples/s"
                    for side in shown
                    for launch in side.launches
                ],
            ),
            Series(
                "median",
                [rate.median for side in shown if (rate := side.rate) is not None],
                labels,
                role="median",
                symbol="line-ns-open",
                size=16,
                hover=[
                    f"{clean(side.variant)}\n{rate.text('samples/s')}, {launches_text(rate.launches)}"
                    for side in shown
                    if (rate := side.rate) is not None
                ],
            ),
        ]
        known = {
            (row.variant, row.limit, row.reference)
            for row in rows
            if row.group == group and row.unit == "samples/s" and row.limit is not None
        }
        mine = [
            (place, limit, reference)
            for place, side in enumerate(shown)
            for variant, limit, reference in sorted(known, key=lambda found: (found[0], found[1] or 0.0))
            if variant in (side.variant, f"{side.variant}+{side.plan}") and limit is not None
        ]
        lines = [
            Line("x", limit, f"floor {number(limit)} samples/s", category=place) for place, limit, _ in mine
        ]
        bands = [
            # As far above the reference as the floor is below it, on the rules' own scale of ratios.
            Band(limit, reference**2 / limit, place, f"reference {number(reference)} samples/s")
            for place, limit, reference in mine
            if reference is not None and limit > 0.0
        ]
        caption = "Every dot is a launch, the bar its median."
        caption += (
            " The line is the floor: the reference's median minus its tolerance."
            if lines
            else " No reference of this system was there to hold them against, so no band is drawn."
        )
        caption += " The band is the tolerance on both sides of the reference." if bands else ""
        figures.append(
            Figure(
                f"floor-{group}",
                f"Throughput, {clean(group)}",
                caption,
                Axis("throughput, all ranks together (samples/s)"),
                Axis("", categories=tuple(labels)),
                series,
                side_table(shown),
                lines=lines,
                bands=bands,
                search=search_words(shown),
            )
        )
    return figures


def _of(groups: Groups, questions: tuple[str, ...]) -> dict[str, Sequence[Side]]:
    return {group: found for group, found in groups.items() if question_of(group) in questions and found}


def _devices(side: Side) -> int:
    """Return how many devices work: GPUs, or processes on the CPU."""
    first = side.first
    return first.nodes * max(first.gpus, first.ranks_per_node)


def _whole(values: Iterable[int]) -> tuple[float, ...]:
    return tuple(float(value) for value in sorted(set(values)))


def _line(
    name: str, place: int, x: Sequence[float], values: Sequence[Estimate], hover: Sequence[str]
) -> Series:
    return Series(
        name,
        x,
        [value.median for value in values],
        kind="line",
        role=f"side-{place}",
        low=[value.low for value in values],
        high=[value.high for value in values],
        hover=hover,
        line=("solid", "dash", "dot")[place % 3],
        symbol=("circle", "square", "diamond")[place % 3],
    )
