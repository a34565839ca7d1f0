"""What calibration prints of the launches: their spread, and what a comparison of equal sides says. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from perf.calibration.occasions import New
from perf.calibration.writing import default_margin
from perf.report.text import number
from perf.verdict.metrics import METRICS
from perf.verdict.spread import judge_same
from perf.verdict.words import percent

__all__ = ["spread_lines"]


def spread_lines(found: Sequence[New]) -> list[str]:
    """Return a line for each variant and metric, and one that says what they mean."""
    lines = []
    for one in found:
        margin = default_margin(one.spread.sd)
        same = judge_same(one.steps, margin)
        middle = sorted(one.recorded.values)[len(one.recorded.values) // 2]
        lines.append(
            f"  {one.variant} {one.metric}: {number(middle)} {METRICS[one.metric].unit}, {one.spread.launches} "
            f"launches, spread {percent(one.spread.sd)} (at most {percent(one.spread.upper)}), margin "
            f"{percent(margin)}, A/A {_answer(same)}"
        )
    if found:
        lines.append(
            "Spread: standard deviation from launch to launch (with its upper 95 % bound). Margin: the smallest change "
            "that two stacks can be compared for. A/A: these launches, dealt to two sides in their true order."
        )
    return lines


def _answer(judgement: object) -> str:
    verdict = getattr(judgement, "verdict", None)
    return str(verdict) if verdict is not None else "not judged (10 launches are needed)"
