"""A run for other programs: as CSV and in Prometheus's text format. Pure."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping

from perf.report.stored import StoredRun
from perf.report.summary import Summary, VariantRow
from perf.verdict.outcome import Verdict

__all__ = ["CSV_COLUMNS", "as_csv", "as_prometheus", "escaped_label"]

CSV_COLUMNS = (
    "run",
    "kind",
    "group",
    "variant",
    "plan",
    "stack",
    "against",
    "metric",
    "unit",
    "value",
    "low",
    "high",
    "limit",
    "launches",
    "verdict",
    "test",
)
"""One number a row: `kind` is ``measured`` or ``judged``."""

_QUANTITIES: tuple[tuple[str, str, str], ...] = (
    ("step_seconds", "s", "median_step_seconds"),
    ("samples_per_second", "samples/s", "samples_per_second"),
    ("wait_share", "share", "wait_share"),
    ("peak_memory_bytes", "bytes", "peak_memory_bytes"),
    ("launch_spread", "log", "spread"),
)
"""Name, unit, and attribute of a variant's row."""

_HELP = {
    "step_seconds": "What a step of the slowest rank takes, median over launches, in seconds.",
    "samples_per_second": "Samples per second of all ranks together, median over launches.",
    "wait_share": "Share of the window in which the rank that waits most waits for data.",
    "peak_memory_bytes": "Largest peak of allocated device memory.",
    "launch_spread": "Standard deviation of the logarithms of the launches' step times.",
}


def as_csv(stored: StoredRun, summary: Summary) -> str:
    """Return measured and judged numbers as CSV (RFC 4180), one a row; what is not known is empty.

    A cell that a spreadsheet would take for a formula begins with an apostrophe: names came from elsewhere.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(CSV_COLUMNS)
    run = stored.folder.name
    for row in summary.variants:
        for metric, unit, value in _numbers(row):
            named = (run, "measured", row.group, row.variant, row.plan, row.stack, "", metric, unit)
            writer.writerow(_safe((*named, value, "", "", "", row.launches, "", "")))
    for judged in summary.verdicts:
        numbers = [_written(value) for value in (judged.estimate, judged.low, judged.high, judged.limit)]
        named = (
            run,
            "judged",
            judged.group,
            judged.variant,
            "",
            "",
            judged.against,
            judged.metric,
            judged.unit,
        )
        writer.writerow(_safe((*named, *numbers, judged.launches, judged.verdict, judged.test)))
    return out.getvalue()


def as_prometheus(stored: StoredRun, summary: Summary) -> str:
    """Return the run in Prometheus's text exposition format, version 0.0.4: for a textfile collector or a push gateway.

    Numbers that are not known are left out. A verdict is a gauge that is 1 for the word that was given and 0 for the
    others, as Prometheus wants states.
    """
    run = {"run": stored.folder.name}
    lines: list[str] = []
    for metric, _unit, attribute in _QUANTITIES:
        found = [
            (_variant_labels(run, row), getattr(row, attribute))
            for row in summary.variants
            if getattr(row, attribute) is not None
        ]
        lines += _family(f"stackproof_{metric}", _HELP[metric], found)
    lines += _family(
        "stackproof_launches",
        "Launches that count.",
        [(_variant_labels(run, row), float(row.launches)) for row in summary.variants],
    )
    judged = [
        (
            run
            | {
                "test": row.test,
                "group": row.group,
                "variant": row.variant,
                "against": row.against,
                "metric": row.metric,
            },
            row,
        )
        for row in summary.verdicts
    ]
    lines += _family(
        "stackproof_verdict",
        "1 for the verdict that was given, 0 for the others.",
        [
            (labels | {"verdict": str(word)}, float(row.verdict == word))
            for labels, row in judged
            for word in _words(row.verdict)
        ],
    )
    for name, text in (
        ("estimate", "What was judged, in the unit of its label."),
        ("limit", "What it is held against."),
    ):
        lines += _family(
            f"stackproof_{name}",
            text,
            [
                (labels | {"unit": row.unit}, value)
                for labels, row in judged
                if (value := getattr(row, name)) is not None
            ],
        )
    return "".join(f"{line}\n" for line in lines)


def escaped_label(text: str) -> str:
    """Escape a label's value: backslash, double quote and line feed, as the format asks; other controls are shown."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return _CONTROLS.sub(lambda found: f"\\\\x{ord(found[0]):02x}", text)


_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


def _words(given: str) -> list[str]:
    known = [str(word) for word in Verdict]
    return known if given in known else [*known, given]


def _family(name: str, text: str, values: Iterable[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    """Yield a metric's lines, of all its label sets together, as the format asks; none where there is no value."""
    written = []
    for labels, value in values:
        if math.isfinite(value):
            inner = ",".join(f'{key}="{escaped_label(label)}"' for key, label in labels.items())
            written.append(f"{name}{{{inner}}} {float(value)!r}")
    # One sample a set of labels: a test that judges twice the same way would be refused as a duplicate.
    unique = list({line.rpartition(" ")[0]: line for line in written}.values())
    if unique:
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} gauge"
        yield from unique


def _variant_labels(run: Mapping[str, str], row: VariantRow) -> dict[str, str]:
    return {
        **run,
        "group": row.group,
        "variant": row.variant,
        "plan": row.plan,
        "mode": row.mode,
        "stack": row.stack,
        "profiled": "true" if row.profiled else "false",
    }


def _numbers(row: VariantRow) -> list[tuple[str, str, str]]:
    return [
        (metric, unit, _written(value))
        for metric, unit, attribute in _QUANTITIES
        if (value := getattr(row, attribute)) is not None
    ]


def _written(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else repr(float(value))


def _safe(row: tuple[object, ...]) -> list[str]:
    cells = [str(cell) for cell in row]
    return [
        f"'{cell}"
        if cell[:1] in ("=", "@", "\t", "\r") or (cell[:1] in "+-" and not _is_number(cell))
        else cell
        for cell in cells
    ]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell == ""
    return True
