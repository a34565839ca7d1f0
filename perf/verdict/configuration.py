"""What was measured, beside the variant's name: numbers that hold only as long as this stays the same. Pure.

The stack is no part of it: that a new stack is held against what the old one did is what references are for. Nor is
the seed, nor how many launches there were.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from perf.contract import LaunchRecord

__all__ = ["configuration", "differences", "fingerprint"]

FINGERPRINT_DIGITS = 16
"""Hexadecimal digits: 64 bits tell apart more configurations than anybody will ever record."""


def configuration(launch: LaunchRecord) -> dict[str, Any]:
    """Return what a launch did, as texts, whole numbers, true and false.

    Its sizes as they were run (a default count of workers depends on the cores allowed), and the data: generated
    images are not read from files as photographs are. A launch that shared its node says so: what others do beside it
    is in its times.
    """
    # Not there where it was not: references that were recorded alone hold for launches alone.
    shared = {"node": "shared"} if launch.shared_node else {}
    return {
        "plan": launch.plan,
        "nodes": launch.nodes,
        "ranks_per_node": launch.ranks_per_node,
        "gpus": launch.gpus,
        "batch_size": launch.batch_size,
        "workers": launch.workers,
        "threads": int((launch.threads[0] if launch.threads else {}).get("torch") or 0),
        "parameters": launch.parameters,
        "data": str(launch.data.get("kind") or "unknown"),
        **shared,
    }


def fingerprint(found: dict[str, Any]) -> str:
    """Return a configuration's fingerprint: a hash that is the same on every machine."""
    text = json.dumps(found, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:FINGERPRINT_DIGITS]


def differences(known: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """Return in words what differs between a reference's configuration and the one that was measured."""
    absent = {"node": "the launch's alone"}
    return [
        f"{name} was {known.get(name, absent.get(name, 'not recorded'))} "
        f"and is {here.get(name, absent.get(name, 'not recorded'))}"
        for name in sorted({*known, *here})
        if known.get(name) != here.get(name)
    ]
