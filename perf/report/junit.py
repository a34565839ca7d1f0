"""Judgements, failed launches and the run itself as JUnit properties.

Jenkins shows properties of a test and of a suite where its step says ``keepProperties: true``. GitLab shows neither,
only a failed test's text and output: so the text of a failure tells all by itself (`perf.launch.failure.describe`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perf.records import VerdictRecord
from perf.report.text import clean

__all__ = ["failure_properties", "properties", "run_properties"]


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
        *((("diagnosis", clean(str(verdict.diagnosis["text"]))),) if verdict.diagnosis.get("text") else ()),
    ]


def failure_properties(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return which rank, host and GPU of a failed launch failed first, and how, as properties.

    Parameters
    ----------
    facts
        What `perf.launch.failure.facts` returns; empty where an error carries none.

    Returns
    -------
    list of pairs
        ``failed_launch`` first; then what is known of ``failed_rank``, ``failed_host``, ``failed_gpu`` (one each),
        ``failed_status``, ``failed_phase``, ``failed_log`` (the file) and ``failed_folder``; ``other_rank`` for each
        other.
    """
    if not facts:
        return []
    rank = facts.get("rank")
    found = [
        ("failed_launch", facts.get("launch")),
        ("failed_rank", None if rank is None else str(rank)),
        ("failed_host", facts.get("host")),
        *(("failed_gpu", gpu) for gpu in facts.get("gpus", ())),
        ("failed_status", facts.get("status")),
        ("failed_phase", facts.get("phase")),
        ("failed_log", facts.get("log_path")),
        ("failed_folder", facts.get("folder")),
        *(("other_rank", f"{other.get('rank')}: {other.get('state')}") for other in facts.get("others", ())),
    ]
    return [(name, clean(str(value))) for name, value in found if value]


def run_properties(folder: str, profile: str) -> list[tuple[str, str]]:
    """Return what a suite's properties say of the run: where its files and its report are."""
    return [
        ("stackproof_run", clean(folder.rstrip("/").rpartition("/")[2])),
        ("stackproof_folder", clean(folder)),
        ("stackproof_profile", clean(profile)),
    ]
