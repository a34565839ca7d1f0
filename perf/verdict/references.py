"""Reference files: what a system is known to do, as people read and edit it (``perf/references/<system>.toml``).

The only place in this room that reads files. A file holds the system, and for each variant and metric its occasions:

    schema = 1

    [system]
    gpu = "NVIDIA H100 80GB HBM3"
    gpus = 2
    power_limit_watts = 700
    cpu = "Intel(R) Xeon(R) Platinum 8480+"

    [reference."mnist_cnn-single-1gpu-fp32-native".throughput]
    unit = "samples/s"
    direction = "higher"
    expires = 2027-05-28
    fingerprint = "1f0c…"
    configuration = { batch_size = 64, workers = 8 }
    spread = 0.012
    margin = 0.04

    [[reference."mnist_cnn-single-1gpu-fp32-native".throughput.occasion]]
    date = 2026-11-28
    node = "n17"
    stack = "torch 2.14.1+cu130, CUDA 13.0"
    run = "20261128T101500Z-1a2b3c"
    jobs = ["4711"]
    recorded_by = "maria"
    launches = [30112.4, 30098.1, 30151.0, 30077.3, 30120.9]

``docs/references.md`` says what each key means. ``perf.calibration`` writes such files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perf.tomlfile import Section, TomlError, load, nearest
from perf.verdict.configuration import fingerprint
from perf.verdict.floors import LAUNCHES_PER_OCCASION
from perf.verdict.metrics import METRICS
from perf.verdict.spread import SPREADS_IN_A_MARGIN
from perf.verdict.system import System

__all__ = ["ExpectedFailure", "Recorded", "Reference", "ReferenceFile", "is_over", "parse", "read"]

SCHEMA = 1


RENAMED = {"weak_scaling_overhead": "scaling_overhead"}
"""Metrics of judgements under another name, which reference files and stored runs may still have."""


@dataclass(frozen=True)
class Recorded:
    """The launches of one occasion: a date on its own node.

    `values` holds one number a launch in the metric's unit, in the order of the launches.
    """

    date: str
    node: str
    stack: str
    run: str
    jobs: tuple[str, ...]
    recorded_by: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Reference:
    """What is known of one metric of one variant.

    Attributes
    ----------
    expires
        From this date on it is no longer held against anything.
    configuration, fingerprint
        What was measured, beside the variant's name (``perf.verdict.configuration``).
    spread
        Standard deviation (log) from launch to launch; None where it was not found out.
    margin
        The smallest change (relative) that two stacks may be compared for; at least three spreads.
    tolerance, reason
        The relative loss that is allowed, where it is not the computed one, and why.
    line
        Where it begins in its file.
    """

    variant: str
    metric: str
    expires: str
    configuration: dict[str, Any]
    fingerprint: str
    spread: float | None
    margin: float | None
    tolerance: float | None
    reason: str
    occasions: tuple[Recorded, ...]
    line: int = 0


@dataclass(frozen=True)
class ExpectedFailure:
    """A judgement that is known to fail, and why: it doesn't turn a run red, and its success is reported."""

    variant: str
    metric: str
    reason: str
    expires: str


@dataclass(frozen=True)
class ReferenceFile:
    """One system's references.

    `single_node` says that the system has one node (or nodes whose names change), so that another date confirms a
    miss. `references` is by variant and metric.
    """

    where: str
    system: System
    single_node: bool
    references: dict[tuple[str, str], Reference]
    expected_failures: dict[tuple[str, str], ExpectedFailure]


Complaint = Callable[[str], "str | None"]
"""Says what is wrong with a variant's id; None if nothing is."""


def read(path: Path, complaint: Complaint) -> ReferenceFile:
    """Read one reference file. Reads a file.

    Raises
    ------
    TomlError
        If it can't be read, or holds something that can't be used.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TomlError(f"{path}: can't be read as text in UTF-8: {error}") from error
    return parse(text, str(path), complaint)


def parse(text: str, where: str, complaint: Complaint) -> ReferenceFile:
    """Read the text of one reference file.

    Parameters
    ----------
    text
        The file's text.
    where
        Its name, for messages.
    complaint
        What is wrong with a variant's id, if anything.

    Raises
    ------
    TomlError
        With file, line and key, if anything in it can't be used.
    """
    top = load(text, where)
    schema = top.whole("schema", least=1)
    if schema > SCHEMA:
        raise top.error("schema", f"is {schema}, this suite reads up to {SCHEMA}; use a newer stackproof")
    system, single_node = _system(top)
    references: dict[tuple[str, str], Reference] = {}
    table = top.table("reference")
    for variant in table.names if table else []:
        assert table is not None
        wrong = complaint(variant)
        if wrong:
            raise table.error(variant, wrong)
        metrics = table.table(variant)
        assert metrics is not None
        for metric in metrics.names:
            if metric not in METRICS:
                raise metrics.error(metric, f"is no metric that launches have; {nearest(metric, METRICS)}")
            section = metrics.table(metric)
            assert section is not None
            references[variant, metric] = _reference(section, variant, metric)
    expected: dict[tuple[str, str], ExpectedFailure] = {}
    for section in top.tables("expected_failure"):
        one = _expected(section, complaint)
        if (one.variant, one.metric) in expected:
            raise section.error("metric", f"{one.variant} is expected to fail in {one.metric} twice")
        expected[one.variant, one.metric] = one
    top.finish()
    return ReferenceFile(where, system, single_node, references, expected)


def _system(top: Section) -> tuple[System, bool]:
    section = top.table("system")
    if section is None:
        raise top.error(None, "lacks the table [system]: gpu, gpus, cpu, power_limit_watts")
    system = System(
        gpu=section.text("gpu"),
        gpus=section.whole("gpus"),
        power_limit_watts=section.number("power_limit_watts", None, above=0.0),
        cpu=section.text("cpu", None),
    )
    single_node = section.flag("single_node", False)
    section.finish()
    return system, single_node


def _reference(section: Section, variant: str, metric: str) -> Reference:
    known = METRICS[metric]
    for key, expected in (("unit", known.unit), ("direction", known.direction)):
        if section.text(key) != expected:
            raise section.error(key, f"of {metric} is {expected!r}, got {section.text(key)!r}")
    found = section.plain("configuration")
    mark = section.text("fingerprint")
    if fingerprint(found) != mark:
        raise section.error(
            "fingerprint",
            f"is {mark!r}, but that of the configuration above is {fingerprint(found)!r}: it was edited. "
            "Numbers hold for the configuration in which they were measured; calibrate again",
        )
    tolerance = section.number("tolerance", None)
    if tolerance is not None and not 0.0 < tolerance < 1.0:
        raise section.error(
            "tolerance", f"expected a relative loss between 0 and 1, such as 0.05 for 5 %, got {tolerance:g}"
        )
    reason = section.text("reason", "")
    if (tolerance is None) != (not reason):
        raise section.error(
            "tolerance" if tolerance is not None else "reason",
            "a tolerance and its reason go together: give both, or neither for the computed tolerance",
        )
    spread = section.number("spread", None, least=0.0)
    margin = section.number("margin", None, above=0.0)
    if margin is not None and (spread is None or margin < SPREADS_IN_A_MARGIN * spread):
        least = "" if spread is None else f", {SPREADS_IN_A_MARGIN * spread:.4g},"
        raise section.error(
            "margin",
            f"is {margin:g}; a margin is at least three times the spread{least} or equal stacks can't pass",
        )
    occasions = tuple(_occasion(one) for one in section.tables("occasion"))
    if not occasions:
        raise section.error(None, "has no occasion: add [[….occasion]] tables, or remove it")
    for index, one in enumerate(occasions):
        if (one.date, one.node) in {(other.date, other.node) for other in occasions[:index]}:
            raise section.tables("occasion")[index].error(
                "date", f"{one.node} on {one.date} is there twice; an occasion is a date on its own node"
            )
    expires = section.date("expires")
    section.finish()
    return Reference(
        variant=variant,
        metric=metric,
        expires=expires.isoformat(),
        configuration=found,
        fingerprint=mark,
        spread=spread,
        margin=margin,
        tolerance=tolerance,
        reason=reason,
        occasions=occasions,
        line=section.line,
    )


def _occasion(section: Section) -> Recorded:
    found = Recorded(
        date=section.date("date").isoformat(),
        node=section.text("node"),
        stack=section.text("stack"),
        run=section.text("run"),
        jobs=tuple(section.texts("jobs", [])),
        recorded_by=section.text("recorded_by"),
        values=tuple(section.numbers("launches", above=0.0, least=LAUNCHES_PER_OCCASION)),
    )
    section.finish()
    return found


def _expected(section: Section, complaint: Complaint) -> ExpectedFailure:
    variant = section.text("variant")
    wrong = complaint(variant)
    if wrong:
        raise section.error("variant", wrong)
    found = ExpectedFailure(
        variant=variant,
        metric=RENAMED.get(metric := section.text("metric"), metric),
        reason=section.text("reason"),
        expires=section.date("expires").isoformat(),
    )
    section.finish()
    return found


def is_over(expires: str, date: str) -> bool:
    """Say whether something that expires on `expires` is over on `date` (ISO dates)."""
    return date >= expires
