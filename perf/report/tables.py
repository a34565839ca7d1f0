"""The tables at the end of a run: what was measured, what was judged, why, and what that is worth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.text import Text

from perf.report import machine_tables
from perf.report.account import Held, Spent
from perf.report.layout import Cell, Column, arrange, paragraph, side_by_side
from perf.report.loose import NO_REASON, gathered
from perf.report.summary import EXPECTED, Summary, VariantRow, VerdictRow
from perf.report.text import duration, fit, memory, milliseconds, number, share
from perf.verdict.outcome import Verdict

__all__ = ["SYMBOLS", "marked", "print_report", "reasons", "time", "variants", "verdicts"]

SYMBOLS = {
    Verdict.PASS.value: "✓",
    Verdict.FAIL.value: "✗",
    Verdict.INCONCLUSIVE.value: "?",
    Verdict.INVALID.value: "!",
    Verdict.UNREFERENCED.value: "○",
    EXPECTED: "x",
}
"""A sign of its own for every verdict: each can be told from the others without colour, and beside its word."""

# Blue against orange and red stays apart for the common kinds of colour blindness; the words carry the meaning.
_STYLES = {
    Verdict.PASS.value: "blue",
    Verdict.FAIL.value: "bold red",
    Verdict.INCONCLUSIVE.value: "yellow",
    Verdict.INVALID.value: "bold magenta",
    Verdict.UNREFERENCED.value: "cyan",
    EXPECTED: "blue",
}

# Reasons: what needs an answer first. A pass comes last: its reasons are remarks (an override, a replaced launch).
_ORDER = [
    str(word)
    for word in (
        Verdict.FAIL,
        Verdict.INVALID,
        Verdict.INCONCLUSIVE,
        Verdict.UNREFERENCED,
        EXPECTED,
        Verdict.PASS,
    )
]

_VARIANT_COLUMNS = (
    Column("variant", line=0),
    Column("stack", line=1),
    Column("group", line=1),
    Column("plan"),
    Column("launches", right=True, label="launches {}"),
    Column("step ms", right=True, label="step {} ms"),
    Column("spread", right=True, label="{}"),
    Column("samples/s", right=True, label="{} samples/s"),
    Column("wait", right=True, label="wait {}"),
    Column("memory", right=True, label="memory {}"),
    Column("remarks"),
)

_VERDICT_COLUMNS = (
    Column("verdict", line=0),
    Column("test", line=0),
    Column("variant", line=1),
    Column("metric"),
    Column("estimate [bounds]", right=True),
    Column("limit", right=True, label="limit {}"),
    Column("a side", right=True, label="{} launches a side"),
    Column("detects", right=True, label="detects {}"),
    Column("GPU time", right=True, label="{} of GPUs"),
)


_TIME_COLUMNS = (
    Column("group", line=0),
    Column("launches", right=True, label="launches {}"),
    Column("wall time", right=True, label="{}"),
    Column("share", right=True, label="{}"),
    Column("start-up", right=True, label="start-up {}"),
    Column("window", right=True, label="window {}"),
    Column("rest", right=True, label="rest {}"),
)


def marked(verdict: str) -> str:
    """Return a verdict with its sign: '✗ fail'."""
    return f"{SYMBOLS.get(verdict, '·')} {verdict}"


def variants(console: Console, rows: Sequence[VariantRow]) -> list[RenderableType]:
    """Draw what was measured: one row a variant, plan and group."""
    if not rows:
        return [Text("no launch was recorded")]
    # A column that says the same everywhere is noise; the group matters only where a variant is in two of them.
    many_stacks = len({row.stack for row in rows}) > 1
    names = [(row.variant, row.plan, row.mode, row.stack, row.profiled) for row in rows]
    many_groups = len(set(names)) < len(names)
    cells = [_variant_cells(row, many_stacks, many_groups) for row in rows]
    note = (
        "spread: standard deviation over the launches. wait: the rank that waits most. memory: largest peak."
    )
    return [*arrange(console, _VARIANT_COLUMNS, cells), paragraph(console, note, style="dim")]


def verdicts(console: Console, rows: Sequence[VerdictRow]) -> list[RenderableType]:
    """Draw what was judged: one row a judgement."""
    if not rows:
        return [Text("nothing was judged")]
    note = (
        "bounds: those that the rule used. a side: launches on each side. "
        "detects: the smallest change that would have been found with 95 % power."
    )
    table = arrange(console, _VERDICT_COLUMNS, [_verdict_cells(row) for row in rows])
    return [*table, paragraph(console, note, style="dim")]


def time(console: Console, rows: Sequence[Spent], gpus: Held) -> list[RenderableType]:
    """Draw where the launches' wall time went: one row a group, the longest first."""
    whole = sum(row.total for row in rows)
    cells = [
        [
            Cell(row.group),
            Cell(str(row.launches)),
            Cell(duration(row.total)),
            Cell(share(row.total / whole if whole else None)),
            *(Cell(duration(part)) for part in (row.start, row.window, row.rest)),
        ]
        for row in rows
    ]
    note = (
        f"{duration(whole)} of launches in all. rest: warm-up, epochs outside the window, validation, ending."
    )
    if gpus.share is not None:
        note += f" GPUs were held for {duration(gpus.seconds)}, {share(gpus.share)} of it timed."
    return [*arrange(console, _TIME_COLUMNS, cells), paragraph(console, note, style="dim")]


def reasons(console: Console, summary: Summary) -> list[RenderableType]:
    """Say why: every judgement that is not a pass, every pass with a remark, and every launch that was left out."""
    places = {word: place for place, word in enumerate(_ORDER)}
    shown = [row for row in summary.verdicts if row.verdict != Verdict.PASS or row.reasons]
    loose = gathered(row for row in shown if row.verdict == Verdict.UNREFERENCED)
    together = {id(row): one for one in loose if len(one.rows) > 1 for row in one.rows}
    blocks: list[RenderableType] = []
    for row in sorted(shown, key=lambda row: places.get(row.verdict, -1)):
        one = together.get(id(row))
        if one is not None and row is not one.rows[0]:
            continue
        what = row.test if one is None else f"{len(one.rows)} measurements"
        style = _STYLES.get(row.verdict, "bold")
        head = [Cell(fit(text, console.encoding), style) for text in (marked(row.verdict), what)]
        about = " ".join(part for part in (row.metric, row.subject) if part) if one is None else one.what
        blocks += side_by_side(console, head)
        blocks.append(paragraph(console, about, indent=2))
        blocks += [paragraph(console, reason, indent=4) for reason in row.reasons or [NO_REASON]]
        if row.diagnosis:
            blocks.append(paragraph(console, row.diagnosis, indent=4, style="bold"))
    for variant in summary.variants:
        if not variant.invalid:
            continue
        were = "1 launch was" if variant.invalid == 1 else f"{variant.invalid} launches were"
        what = f"! left out  {variant.variant}  {variant.plan}: {were} not fit to be used"
        blocks.append(paragraph(console, what, style="bold"))
        counts = variant.reasons or {"no reason was recorded": variant.invalid}
        blocks += [paragraph(console, f"{count} × {reason}", indent=4) for reason, count in counts.items()]
    return blocks


def print_report(
    console: Console,
    summary: Summary,
    *,
    environment: Sequence[str] = (),
    folder: Path | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Print a run's tables.

    Parameters
    ----------
    console
        Its width and encoding decide the layout.
    summary
        What was measured and judged.
    environment
        Lines for the header (`perf.report.stacks.environment_lines`).
    folder
        Where the run's files are.
    notes
        Sentences about the run's files: a line that could not be read, say.
    """
    for line in [*environment, *summary.data]:
        console.print(paragraph(console, line))
    _section(console, "Measured", variants(console, summary.variants))
    if summary.rates:
        _section(console, "Machine", machine_tables.rates(console, summary.rates))
    if summary.fractions:
        _section(console, "Of the machine's rates", machine_tables.fractions(console, summary.fractions))
    _section(console, "Judged", verdicts(console, summary.verdicts))
    if summary.time:
        _section(console, "Time", time(console, summary.time, summary.held))
    why = reasons(console, summary)
    if why:
        _section(console, "Why", why)
    console.print()
    style = "bold" if summary.account.too_many else ""
    for note in notes:
        console.print(paragraph(console, f"note: {note}"))
    console.print(paragraph(console, summary.account.budget_text, style=style))
    console.print(paragraph(console, summary.account.verdicts_text))
    if folder is not None:
        # One line, however long: a path that is wrapped can't be copied.
        console.print(Text(fit(f"files: {folder}", console.encoding)), soft_wrap=True)


def _section(console: Console, title: str, blocks: Sequence[RenderableType]) -> None:
    console.print()
    console.print(Text(title, "bold"))
    console.print(Group(*blocks))


def _variant_cells(row: VariantRow, many_stacks: bool, many_groups: bool) -> list[Cell]:
    plan = [row.plan] + ([row.mode] if row.mode != "full" else []) + (["profiled"] if row.profiled else [])
    return [
        Cell(row.variant, "bold"),
        Cell(row.stack if many_stacks else ""),
        Cell(f"in {row.group}" if many_groups and row.group else ""),
        Cell(" ".join(plan)),
        Cell(str(row.launches)),
        Cell(milliseconds(row.median_step_seconds)),
        Cell("" if row.spread is None else f"±{share(row.spread)}"),
        Cell(number(row.samples_per_second)),
        Cell(share(row.wait_share)),
        Cell(memory(row.peak_memory_bytes)),
        Cell(row.remarks),
    ]


def _verdict_cells(row: VerdictRow) -> list[Cell]:
    return [
        Cell(marked(row.verdict), _STYLES.get(row.verdict, "bold")),
        Cell(row.test),
        Cell(row.subject),
        Cell(row.metric),
        Cell(row.estimate_text),
        Cell(row.limit_text),
        Cell(str(row.launches) if row.launches else ""),
        Cell(row.detectable_text),
        Cell(duration(row.gpu_seconds) if row.gpu_seconds > 0.0 else ""),
    ]
