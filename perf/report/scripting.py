"""A stored run as one JSON object, for scripts. Pure."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from perf.report.account import spent
from perf.report.answer import answer, failures
from perf.report.stored import StoredRun
from perf.report.summary import Summary

__all__ = ["JSON_SCHEMA", "as_json", "finite"]

JSON_SCHEMA = 1
"""Raised when a key changes its meaning or goes away; new keys do not raise it."""


def as_json(stored: StoredRun, summary: Summary) -> dict[str, Any]:
    """Return a run's answer, rows, account, failures, tests, environment and notes; times in seconds.

    Parameters
    ----------
    stored
        The run.
    summary
        Its rows (`perf.report.summary.summarize`).
    """
    failed = failures(stored.events)
    content = {
        "schema": JSON_SCHEMA,
        "run": stored.folder.name,
        "folder": str(stored.folder),
        "answer": dataclasses.asdict(answer(summary, failed, stored.outcomes)),
        "environment": stored.environment,
        "data": summary.data,
        "variants": [dataclasses.asdict(row) for row in summary.variants],
        "rates": [dataclasses.asdict(row) for row in summary.rates],
        "fractions": [dataclasses.asdict(row) for row in summary.fractions],
        "verdicts": [dataclasses.asdict(row) for row in summary.verdicts],
        "account": dataclasses.asdict(summary.account) | {"too_many": summary.account.too_many},
        "failures": [dataclasses.asdict(failure) for failure in failed],
        "tests": [dataclasses.asdict(outcome) for outcome in stored.outcomes],
        "time": [dataclasses.asdict(row) | {"total": row.total} for row in spent(stored.records)],
        "gpus_held": dataclasses.asdict(summary.held) | {"share": summary.held.share},
        "notes": stored.notes,
    }
    found: dict[str, Any] = finite(content)
    return found


def finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have but Python reads, by null."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
