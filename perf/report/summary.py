"""What a run's records and judgements add up to: the rows and the account that every report shows. Pure."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from perf.contract import LaunchRecord
from perf.records import VerdictRecord
from perf.report.account import Held, Spent, held, held_for, spent
from perf.report.machine import FractionRow, RateRow, fraction_rows, rate_rows, scale
from perf.report.stacks import data_line, environment_lines, stack_key, stack_labels
from perf.report.text import bounded, duration, interval, milliseconds, number, share
from perf.verdict.outcome import Verdict
from perf.verdict.pace import step_time, step_times
from perf.verdict.portable_table import PortableTable

__all__ = [
    "ALARM_LEVEL",
    "EXPECTED",
    "FALSE_FAIL_PER_JUDGEMENT",
    "Account",
    "Summary",
    "VariantRow",
    "VerdictRow",
    "environment_lines",
    "launch_words",
    "summarize",
]

FALSE_FAIL_PER_JUDGEMENT = 2.2e-4
"""Chance of a false `fail` of one judgement: 6.1e-5 + 6.5e-5 + 9.5e-5 over its looks (perf/verdict/looks.py)."""

ALARM_LEVEL = 0.01
"""At most this share of clean runs may show a `fail`: 45 judgements. Beyond it the report warns."""


EXPECTED = "expected fail"
"""How a judgement is shown that a reference file said would fail."""


@dataclass(frozen=True)
class VariantRow:
    """The launches of one variant, for one plan, in one group.

    Numbers are medians over the valid launches; None where there is no such number.

    Attributes
    ----------
    launches, invalid
        How many launches count, and how many were left out.
    median_step_seconds
        Median of what a step of each launch takes.
    spread
        Standard deviation of the logarithms of the launches' step times (0.004 is 0.4 %); None below two launches.
    wait_share
        Share of the window in which the rank that waits most waits for data.
    peak_memory_bytes
        The largest of all devices, ranks and launches.
    flags, reasons
        How many launches carry each flag, and each reason for which a launch was left out.
    profiled
        Whether the launches ran with a profiler; such launches are never judged.
    """

    group: str
    variant: str
    plan: str
    mode: str
    stack: str
    profiled: bool
    launches: int
    invalid: int
    median_step_seconds: float | None
    spread: float | None
    samples_per_second: float | None
    wait_share: float | None
    peak_memory_bytes: int | None
    flags: dict[str, int]
    reasons: dict[str, int]

    @property
    def remarks(self) -> str:
        """What is unusual about the launches, in a few words with counts."""
        parts = [f"{self.invalid} invalid"] if self.invalid else []
        parts += [f"{count} {flag}" for flag, count in self.flags.items()]
        return ", ".join(parts)


@dataclass(frozen=True)
class VerdictRow:
    """One judgement, ready to be shown. Numbers are in `unit`; `launches` counts a side."""

    verdict: str
    test: str
    group: str
    variant: str
    against: str
    metric: str
    unit: str
    estimate: float | None
    low: float | None
    high: float | None
    limit: float | None
    launches: int
    detectable: float | None
    statistical: bool
    reasons: list[str] = field(default_factory=list)
    diagnosis: str = ""
    reference: float | None = None
    gpu_seconds: float = 0.0
    """What its launches held GPUs for."""

    @property
    def subject(self) -> str:
        """Who was judged, against whom."""
        return f"{self.variant} against {self.against}" if self.against else self.variant

    @property
    def estimate_text(self) -> str:
        """The estimate with its bounds and unit."""
        factor, unit = self._scale
        estimate, low, high, limit = (None if v is None else v / factor for v in self._numbers)
        return interval(estimate, low, high, limit, unit)

    @property
    def limit_text(self) -> str:
        """The limit, with the estimate's decimals, so that the two can be compared by eye."""
        factor, _ = self._scale
        estimate, low, high, limit = (None if v is None else v / factor for v in self._numbers)
        return bounded(estimate, low, high, limit)[3]

    @property
    def _numbers(self) -> tuple[float | None, ...]:
        return self.estimate, self.low, self.high, self.limit

    @property
    def _scale(self) -> tuple[float, str]:
        """What a rate's numbers are divided by, and the unit that they then have."""
        return scale(max((abs(v) for v in self._numbers if v is not None), default=0.0), self.unit)

    @property
    def detectable_text(self) -> str:
        """The smallest change that would have been seen: relative, and in points for a share."""
        written = share(self.detectable)
        return written.replace(" %", " points") if "share" in f"{self.unit} {self.metric}" else written


@dataclass(frozen=True)
class Account:
    """How many judgements there were, what came of them, and how often that many alarm for nothing.

    Attributes
    ----------
    judgements
        Statistical judgements that could have failed. Exact facts draw on no budget, and what is unreferenced is
        held against nothing; neither counts.
    false_fail
        Upper bound of the chance that a run in which nothing changed shows a statistical `fail`.
    counts
        Judgements of every kind by verdict, in the order of `Verdict`; unknown words last.
    """

    judgements: int
    false_fail: float
    counts: dict[str, int]

    @property
    def too_many(self) -> bool:
        """Whether a clean run shows a false `fail` more often than was promised."""
        return self.false_fail > ALARM_LEVEL

    @property
    def budget_text(self) -> str:
        """One line: judgements and what they cost; a warning where it is too much."""
        if not self.judgements:
            return "no judgement by statistics: no fail can be due to noise"
        # Rounded up: 'at most' must hold. The small step back keeps 45 x 0.022 % = 0.99 % from becoming 1.00 %.
        percent = math.ceil(self.false_fail * 1e4 - 1e-6) / 100
        noun = "judgement" if self.judgements == 1 else "judgements"
        line = f"{self.judgements} {noun}, chance of a false fail in a clean run at most {percent:.2f} %"
        if self.too_many:
            line += (
                f" - WARNING: more than {100 * ALARM_LEVEL:g} %; select fewer tests, or doubt a single fail"
            )
        return line

    @property
    def verdicts_text(self) -> str:
        """One line: how often each verdict was given."""
        return "verdicts: " + (", ".join(f"{count} {word}" for word, count in self.counts.items()) or "none")


@dataclass(frozen=True)
class Summary:
    """All that a report shows of a run's measurements.

    `data` says, one line each, which data the workloads were trained on. `rates` is what the machine can do,
    `fractions` what each variant makes of it. `time` accounts for the launches' wall time.
    """

    variants: list[VariantRow]
    verdicts: list[VerdictRow]
    account: Account
    data: list[str] = field(default_factory=list)
    rates: list[RateRow] = field(default_factory=list)
    fractions: list[FractionRow] = field(default_factory=list)
    time: list[Spent] = field(default_factory=list)
    held: Held = field(default_factory=lambda: Held(0.0, 0.0))


def summarize(
    records: Sequence[LaunchRecord], verdicts: Sequence[VerdictRecord], known: PortableTable | None = None
) -> Summary:
    """Build rows and account from a run's launches and judgements.

    `known` holds fractions of other systems, to stand beside this run's.

    Rows of variants stand by group in the order in which they first appear; judgements in the order in which they
    were made.
    """
    # A dict, for the order of first appearance.
    data = dict.fromkeys(filter(None, (data_line(record.workload, record.data) for record in records)))
    rows = [_verdict_row(verdict, held_for(verdict, records).seconds) for verdict in verdicts]
    return Summary(
        _variant_rows(records),
        rows,
        _account(verdicts),
        list(data),
        rates=rate_rows(records),
        fractions=fraction_rows(records, known),
        time=spent(records),
        held=held(records),
    )


def launch_words(record: LaunchRecord) -> str:
    """Say what one launch measured, for the ``text`` of its ``done`` event: '75.1 ms a step, 853 samples/s'."""
    parts = []
    step = step_time(record)
    if step > 0.0:
        parts.append(f"{milliseconds(step, 3)} ms a step")
    if record.samples_per_second > 0.0:
        parts.append(f"{number(record.samples_per_second, 3)} samples/s")
    if record.rates:
        parts.append(f"{len(record.rates)} rates")
    if not record.valid:
        parts.append("invalid" + (f" ({record.reasons[0]})" if record.reasons else ""))
    return ", ".join(parts + list(record.flags)) or f"measured in {duration(record.launch_seconds)}"


def _variant_rows(records: Sequence[LaunchRecord]) -> list[VariantRow]:
    labels = stack_labels(record.stack for record in records)
    members: dict[tuple[str, ...], list[LaunchRecord]] = {}
    groups: dict[str, int] = {}
    for record in records:
        groups.setdefault(record.group, len(groups))
        stack = labels[stack_key(record.stack)]
        profiled = "profiled" if _profiled(record) else ""
        members.setdefault(
            (record.group, record.variant, record.plan, record.mode, stack, profiled, record.side), []
        ).append(record)
    rows = [_variant_row(launches, stack=key[4], profiled=bool(key[5])) for key, launches in members.items()]
    return sorted(rows, key=lambda row: groups[row.group])


def _variant_row(launches: Sequence[LaunchRecord], stack: str, profiled: bool) -> VariantRow:
    first, valid = launches[0], [record for record in launches if record.valid]
    steps = _measured(step_times(valid)[0])
    waits = [wait for record in valid if (wait := record.wait_share) is not None]
    peaks = [size for record in valid for rank in record.peak_memory_bytes for size in rank.values()]
    return VariantRow(
        group=first.group,
        variant=first.variant + (f"@{first.side}" if first.side else ""),
        plan=first.plan,
        mode=first.mode,
        stack=stack,
        profiled=profiled,
        launches=len(valid),
        invalid=len(launches) - len(valid),
        median_step_seconds=statistics.median(steps) if steps else None,
        spread=statistics.stdev(math.log(step) for step in steps) if len(steps) > 1 else None,
        samples_per_second=_median(_measured(record.samples_per_second for record in valid)),
        wait_share=_median(waits),
        peak_memory_bytes=max(peaks, default=None),
        flags=dict(Counter(flag for record in launches for flag in record.flags)),
        reasons=dict(Counter(reason for record in launches if not record.valid for reason in record.reasons)),
    )


def _profiled(record: LaunchRecord) -> bool:
    return bool(record.profiled)


def _measured(values: Iterable[float]) -> list[float]:
    """Keep what was measured: an audit has no steps, and a record from elsewhere may hold anything."""
    return [value for value in values if math.isfinite(value) and value > 0.0]


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _verdict_row(record: VerdictRecord, gpu_seconds: float) -> VerdictRow:
    return VerdictRow(
        verdict=_shown(record),
        test=record.test,
        group=record.group,
        variant=record.variant,
        against=record.against,
        metric=record.metric,
        unit=record.unit,
        estimate=record.estimate,
        low=record.low,
        high=record.high,
        limit=record.limit,
        launches=record.launches,
        detectable=record.detectable,
        statistical=record.statistical,
        reasons=[*([f"Expected: {record.expected}."] if record.expected else []), *record.reasons],
        diagnosis=str(record.diagnosis.get("text") or ""),
        reference=record.reference,
        gpu_seconds=gpu_seconds,
    )


def _shown(record: VerdictRecord) -> str:
    """Return the word under which a judgement is shown and counted."""
    known = record.expected and record.verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE)
    return EXPECTED if known else record.verdict


def _account(verdicts: Sequence[VerdictRecord]) -> Account:
    judgements = sum(verdict.statistical and verdict.verdict != Verdict.UNREFERENCED for verdict in verdicts)
    found = Counter(_shown(verdict) for verdict in verdicts)
    words = [str(word) for word in Verdict]
    ordered = [word for word in words if word in found] + sorted(set(found) - set(words))
    # The sum is an upper bound whatever the judgements have in common (Boole).
    bound = min(1.0, judgements * FALSE_FAIL_PER_JUDGEMENT)
    return Account(judgements, bound, {word: found[word] for word in ordered})
