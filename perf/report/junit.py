"""A judgement as JUnit properties."""

from __future__ import annotations

from perf.records import VerdictRecord
from perf.report.text import clean

__all__ = ["properties"]


def properties(verdict: VerdictRecord) -> list[tuple[str, str]]:
    """Return one judgement as properties, for ``item.user_properties.extend``.

    (The fixture ``record_property`` appends to the same list, and warns under pytest's default JUnit family.)

    The first property is always ``verdict``: a test that judges several things has several runs of properties, each
    of which begins with it. Numbers are written in full; what the judgement does not have is left out; each reason
    is a property of its own. Control characters, which XML can't hold, are shown as escapes.
    """
    texts = [
        ("verdict", verdict.verdict),
        ("variant", verdict.variant),
        ("against", verdict.against),
        ("group", verdict.group),
        ("metric", verdict.metric),
        ("unit", verdict.unit),
    ]
    numbers = [
        ("estimate", verdict.estimate),
        ("low", verdict.low),
        ("high", verdict.high),
        ("limit", verdict.limit),
        ("launches", verdict.launches),
        ("detectable", verdict.detectable),
    ]
    return [
        *((name, clean(text)) for name, text in texts if text),
        *((name, repr(value)) for name, value in numbers if value is not None),
        ("statistical", "true" if verdict.statistical else "false"),
        *(("reason", clean(reason)) for reason in verdict.reasons),
    ]
