"""What differs between two sides beside their times: versions, settings in force, threads, transports. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perf.contract import LaunchRecord

__all__ = ["settings_that_differ", "stack_that_differs"]

STACK = ("python", "torch", "torchvision", "cuda", "hip", "cudnn", "nccl", "gloo", "torch_path")

ASKED = (
    "strategy",
    "world_size",
    "backend",
    "ddp",
    "precision",
    "activation_dtype",
    "first_batch",
    "product_error",
    "device",
)
"""What the two variants' own names say, or what differs from launch to launch."""

OF_VARIANTS = ("loader", "schedule", "optimizer", "cuda_graph", "compiled", "channels_last", "non_blocking")
"""Settings that differ where two variants are compared, as their names say; on two stacks they may not."""

MOST = 6
"""Differences that a paragraph holds; the records hold all."""


def stack_that_differs(new: Sequence[LaunchRecord], base: Sequence[LaunchRecord]) -> list[str]:
    """Return one entry for each version that is another one on the two sides."""
    if not new or not base:
        return []
    now, then = new[0].stack, base[0].stack
    return [
        f"{key} is {_shown(now.get(key))} and was {_shown(then.get(key))}"
        for key in STACK
        if now.get(key) != then.get(key) and (key in now or key in then)
    ]


def settings_that_differ(new: Sequence[LaunchRecord], base: Sequence[LaunchRecord]) -> list[str]:
    """Return one entry for each setting that is in force on one side only, beyond what the variants' names say.

    The first `MOST` of them; threads and transports come last.
    """
    if not new or not base:
        return []
    one, other = new[0], base[0]
    left_out = ASKED if one.variant == other.variant else (*ASKED, *OF_VARIANTS)
    now, then = (dict(_flat(record.effective[0], "")) if record.effective else {} for record in (one, other))
    found = [
        f"{key} is {_shown(now.get(key))} and was {_shown(then.get(key))}"
        for key in dict.fromkeys((*now, *then))
        if key.partition(".")[0] not in left_out and now.get(key) != then.get(key)
    ]
    found += _unlike_threads(one, other)
    found += _unlike_transports(one, other)
    if len(found) > MOST:
        return [*found[: MOST - 1], f"and {len(found) - MOST + 1} more"]
    return found


def _unlike_threads(one: LaunchRecord, other: LaunchRecord) -> Iterator[str]:
    now, then = (record.threads[0] if record.threads else {} for record in (one, other))
    for key in ("torch", "cores_allowed"):
        if now.get(key) != then.get(key):
            yield f"threads.{key} is {_shown(now.get(key))} and was {_shown(then.get(key))}"


def _unlike_transports(one: LaunchRecord, other: LaunchRecord) -> Iterator[str]:
    now, then = (record.telemetry.get("transports") for record in (one, other))
    if now and then and set(now) != set(then):
        yield f"NCCL's transports are {' and '.join(now)} and were {' and '.join(then)}"


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def _shown(value: Any) -> str:
    return "not recorded" if value is None else str(value)
