"""Deals the clean launches of runs to two sides and judges them as two stacks: ``python …/dealt.py RUN [RUN …]``.

Of each variant and group, ten launches a judgement, in the order in which they were made, none in two judgements, with
the self-check's margin. Left out: what was planted, what was not valid, and launches that were slowed to say why.
Exit status 1 where a judgement failed: a false alarm.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from perf.contract import LaunchRecord  # noqa: E402
from perf.faults.plant import planted  # noqa: E402
from perf.faults.selfcheck.clean import WIDE_MARGIN, dealt  # noqa: E402
from perf.faults.selfcheck.results import Clean  # noqa: E402
from perf.report.stored import load  # noqa: E402


def clean(record: LaunchRecord) -> bool:
    """Say whether a launch is a measurement of steps like any other of its variant. Pure."""
    slowed = record.phase_seconds or any(record.operators) or record.line_profiles or record.traces
    return record.valid and record.plan == "window" and not planted(record) and not slowed


def judgements(records: Sequence[LaunchRecord]) -> Iterator[Clean]:
    """Yield the judgements of a run's launches, group by group. Pure."""
    launches = sorted(filter(clean, records), key=lambda record: record.started_at)
    groups = sorted({(record.group, record.mode) for record in launches})
    parts = (dealt([r for r in launches if (r.group, r.mode) == one], 1) for one in groups)
    yield from itertools.chain.from_iterable(parts)


def main(words: Sequence[str] | None = None) -> int:
    """Print each judgement, then the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    options = parser.parse_args(words)
    counts: Counter[str] = Counter()
    for run in options.runs:
        for one in judgements(load(run).records):
            counts[one.verdict] += 1
            print(f"{run.name}: {one.verdict}: {one.what}, {one.launches} launches a side")
    told = ", ".join(f"{number} {verdict}" for verdict, number in sorted(counts.items()))
    print(f"{counts.total()} judgements with a margin of {WIDE_MARGIN:.0%}: {told}")
    return 1 if counts["fail"] else 0


if __name__ == "__main__":
    sys.exit(main())
