"""Line profiles of the training loop, per rank, in the form in which line_profiler itself shows them.

A line profile says where the host's time went. Work on a GPU is asynchronous: its time is charged to whichever line
waits for it. The share of the loader is genuine, since taking a batch waits for the loader.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import perf
from perf.contract import LaunchRecord
from perf.report.lprof import ProfileError, load_stats
from perf.report.text import clean

__all__ = [
    "ProfileError",
    "ProfiledLine",
    "SourceRow",
    "TrainProfile",
    "launch_profiles",
    "loader_share",
    "profile_place",
    "read_profile",
    "render",
    "source_rows",
]

_LOOP = ("perf", "training", "loop.py")
_TRAIN = "train"
_LOADER = "train_loader"
_SHOWN_UNIT = 1e-6
"""Times are shown in microseconds, whatever the unit of the file: as in the tables that people compare with."""


@dataclass(frozen=True)
class ProfiledLine:
    """One line of source and what was measured there; `seconds` is over all `hits`."""

    line: int
    hits: int
    seconds: float


@dataclass(frozen=True)
class TrainProfile:
    """The line profile of ``train`` on one rank.

    Attributes
    ----------
    rank
        Which rank wrote it.
    file, function, first_line
        Where the profiled function stands, as the rank saw it; `first_line` is its decorator's, if it has one.
    lines
        The lines that ran, by line number.
    source
        The function's source, from `first_line` on; empty where it can't be had.
    loader_lines
        The lines of the heads of its loops over the loader, as the source has them.
    source_trouble
        Why there is no source.
    """

    rank: int
    file: str
    function: str
    first_line: int
    lines: list[ProfiledLine]
    source: list[str]
    loader_lines: frozenset[int] = frozenset()
    source_trouble: str = ""

    @property
    def seconds(self) -> float:
        """Time in the whole function."""
        return sum(line.seconds for line in self.lines)


def read_profile(path: Path, rank: int = 0) -> TrainProfile:
    """Read the profile of ``train`` from one rank's ``.lprof`` file.

    The function in perf/training/loop.py is preferred; else the one named ``train`` in which most time was spent.

    Raises
    ------
    ProfileError
        If the file is missing, unreadable or holds no function of that name; names file and rank.
    """
    stats = load_stats(path, rank)
    found = [key for key in stats.timings if key[2].rpartition(".")[2] == _TRAIN]
    if not found:
        names = ", ".join(sorted(key[2] for key in stats.timings)) or "no function at all"
        raise ProfileError(
            f"line profile of rank {rank}: {path} holds no function named {_TRAIN}, but {names}"
        )
    key = max(found, key=lambda key: (_is_loop(key[0]), sum(line[2] for line in stats.timings[key])))
    file, first, function = key
    lines = [ProfiledLine(line, hits, time * stats.unit) for line, hits, time in sorted(stats.timings[key])]
    source = _source(file, first, function)
    return TrainProfile(rank, file, function, first, lines, source.lines, source.loader_lines, source.trouble)


def launch_profiles(record: LaunchRecord, folder: Path) -> list[TrainProfile]:
    """Read the line profiles of all ranks of a launch, in rank order.

    Parameters
    ----------
    record
        The launch; its `line_profiles` name the files: absolute, or below the folder of the launch or the run.
    folder
        The folder of the run, also if it was moved since.

    Raises
    ------
    ProfileError
        If a rank has no file, or one that can't be read; names file and rank.
    """
    ranks = {_rank(name, place): name for place, name in enumerate(record.line_profiles)}
    world = record.nodes * record.ranks_per_node
    missing = [str(rank) for rank in range(world) if rank not in ranks]
    if missing:
        raise ProfileError(
            f"launch {record.launch} has no line profile of rank {', '.join(missing)} of {world}"
        )
    return [read_profile(profile_place(ranks[rank], record.launch, folder), rank) for rank in sorted(ranks)]


def loader_share(stats: TrainProfile) -> float:
    """Return the share of the function's time in the head of its ``for … in train_loader``: 0.845 is 84.5 %.

    Raises
    ------
    ProfileError
        If the source can't be had, holds no such loop, or no time was measured.
    """
    where = f"line profile of rank {stats.rank}, {stats.file}:{stats.first_line}"
    if not stats.source:
        raise ProfileError(f"{where}: the loader's line can't be found: {stats.source_trouble}")
    if not stats.loader_lines:
        raise ProfileError(f"{where}: {stats.function} has no line 'for … in {_LOADER}'")
    if stats.seconds <= 0.0:
        raise ProfileError(f"{where}: no time was measured in {stats.function}; it did not run")
    return sum(line.seconds for line in stats.lines if line.line in stats.loader_lines) / stats.seconds


def render(profiles: Sequence[TrainProfile]) -> str:
    """Draw line profiles as line_profiler does, one table a rank, ending in a line feed each.

    Columns: line number, hits, time (microseconds), time per hit, share of the function's time, source. Foreign text
    is made safe; lines of source are not wrapped.
    """
    return "\n".join(_render(profile) for profile in profiles)


@dataclass(frozen=True)
class SourceRow:
    """One line of a profile, written: numbers as text (empty where the line did not run), `percent` of the whole."""

    line: int
    hits: str
    time: str
    per_hit: str
    percent: float | None
    source: str
    loader: bool


def source_rows(profile: TrainProfile) -> list[SourceRow]:
    """Return a profile as rows: every line of the function, `time` in milliseconds and `per_hit` in microseconds."""
    measured = {line.line: line for line in profile.lines}
    source = dict(enumerate(profile.source, start=profile.first_line))
    rows = []
    for number in sorted({*measured, *source}):
        line, text = measured.get(number), clean(source.get(number, ""))
        loader = number in profile.loader_lines
        if line is None:
            rows.append(SourceRow(number, "", "", "", None, text, loader))
            continue
        per_hit = f"{line.seconds / line.hits / _SHOWN_UNIT:.1f}" if line.hits else ""
        percent = 100 * line.seconds / profile.seconds if profile.seconds > 0.0 else None
        rows.append(
            SourceRow(number, str(line.hits), f"{line.seconds * 1e3:.1f}", per_hit, percent, text, loader)
        )
    return rows


def _render(profile: TrainProfile) -> str:
    head = [
        f"Rank: {profile.rank}",
        f"Timer unit: {_SHOWN_UNIT:g} s",
        "",
        f"Total time: {profile.seconds:g} s",
        f"File: {clean(profile.file)}",
        f"Function: {clean(profile.function)} at line {profile.first_line}",
    ]
    if profile.source_trouble:
        head.append(f"No source: {clean(profile.source_trouble)}")
    measured = {line.line: line for line in profile.lines}
    source = dict(enumerate(profile.source, start=profile.first_line))
    rows = [("Line #", "Hits", "Time", "Per Hit", "% Time", "Line Contents")]
    rows += [
        _row(number, measured.get(number), source.get(number, ""), profile.seconds)
        for number in sorted({*measured, *source})
    ]
    smallest = (6, 9, 12, 8, 8)
    widths = [max(least, *(len(row[place]) for row in rows)) for place, least in enumerate(smallest)]
    table = [
        " ".join([*(cell.rjust(width) for cell, width in zip(row, widths, strict=False)), " " + row[5]])
        for row in rows
    ]
    rule = "=" * len(table[0])
    return "\n".join(line.rstrip() for line in [*head, "", table[0], rule, *table[1:]]) + "\n"


def _row(
    number: int, line: ProfiledLine | None, source: str, total: float
) -> tuple[str, str, str, str, str, str]:
    if line is None:
        return str(number), "", "", "", "", clean(source)
    time = line.seconds / _SHOWN_UNIT
    per_hit = f"{time / line.hits:.1f}" if line.hits else ""
    percent = f"{100 * line.seconds / total:.1f}" if total > 0.0 else ""
    return str(number), str(line.hits), f"{time:.1f}", per_hit, percent, clean(source)


def _loader_lines(function: ast.AST) -> frozenset[int]:
    """Return the numbers of the lines of all loop heads that iterate over the loader, in whatever wrapping."""
    heads: set[int] = set()
    for node in ast.walk(function):
        if not isinstance(node, (ast.For, ast.AsyncFor)):
            continue
        names = {name.id for name in ast.walk(node.iter) if isinstance(name, ast.Name)}
        names |= {name.attr for name in ast.walk(node.iter) if isinstance(name, ast.Attribute)}
        if _LOADER in names:
            heads.update(range(node.lineno, (node.iter.end_lineno or node.lineno) + 1))
    return frozenset(heads)


@dataclass(frozen=True)
class _Source:
    """A function's source, and the lines of its loops over the loader; or the reason why it can't be had."""

    lines: list[str]
    loader_lines: frozenset[int]
    trouble: str = ""


def _source(file: str, first: int, function: str) -> _Source:
    path = Path(file)
    own = Path(perf.__file__).resolve().parent.parent.joinpath(*_LOOP)
    if not path.is_file() and _is_loop(file):
        # The rank saw the suite under another path (in a container, say); this is the same file, if it still agrees.
        path = own
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError) as error:
        return _Source([], frozenset(), f"{path} can't be read here ({error})")
    name = function.rpartition(".")[2]
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if start == first:
                # Not splitlines(): a form feed in the source starts no new line for Python.
                return _Source(text.split("\n")[start - 1 : node.end_lineno], _loader_lines(node))
    return _Source(
        [], frozenset(), f"{path} has no {name} at line {first}; it was changed after it was profiled"
    )


def _is_loop(file: str) -> bool:
    return Path(file).parts[-len(_LOOP) :] == _LOOP


def _rank(name: str, place: int) -> int:
    """Read the rank from a file's name ('train-rank-3.lprof'); else it is the place in the list."""
    found = re.search(r"rank-(\d+)", Path(name).name)
    return int(found.group(1)) if found else place


def profile_place(name: str, launch: str, folder: Path) -> Path:
    """Find a profile by its recorded name; if it is nowhere, return where it should be."""
    path = Path(name)
    usual = folder / "launches" / launch / path.name
    below = [] if path.is_absolute() else [folder / "launches" / launch / path, folder / path]
    places = [*([path] if path.is_absolute() else []), *below, usual, folder / "profiles" / path.name]
    return next((place for place in places if place.is_file()), usual)
