"""What telemetry says against a launch: throttled cards, cards that others used too. Pure; each fact a sentence.

No step time is looked at here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

THROTTLED_SHARE = 0.01
"""Of the window. A median of steps does not feel what touches one step in a hundred; a slower clock that lasts does."""

FOREIGN_BYTES = 256 * 2**20
"""A process that runs kernels holds a CUDA context, which takes more than this; an idle card has a few MiB in use."""

SLOWDOWNS = frozenset(
    {
        "thermal",
        "software thermal slowdown",
        "hardware thermal slowdown",
        "hardware slowdown",
        "power brake",
        "memory thermal slowdown",
        "voltage regulator thermal slowdown",
    }
)
"""Words of `perf.launch.telemetry` for a card that protects itself, or is told to by its power supply. A power cap is
none of them: a card at full work reaches it by design."""


def unfit_by_telemetry(telemetry: Mapping[str, Any]) -> list[str]:
    """Return why the machine was not fit, one sentence a reason; what is not known is held against nobody."""
    window = telemetry.get("window_seconds")
    return [
        reason
        for gpu in telemetry.get("gpus") or ()
        if gpu.get("ranks") or len(telemetry["gpus"]) == 1
        for reason in (*_throttled(gpu, window), *_shared(gpu))
    ]


def _throttled(gpu: Mapping[str, Any], window: float | None) -> Iterator[str]:
    counted = {word: s for word, s in (gpu.get("throttle_seconds") or {}).items() if s is not None}
    for word, seconds in sorted(counted.items()):
        if word in SLOWDOWNS and window and seconds > THROTTLED_SHARE * window:
            yield (
                f"{_name(gpu)} was slowed down ({word}) for {seconds:.2g} s of the window's {window:.2g} s"
                f"{_temperature(gpu)}. Look at its cooling and power supply (`nvidia-smi -q -d PERFORMANCE`)."
            )
    for word, share in sorted((gpu.get("event_reasons") or {}).items()):
        # Where there is no counter of it: a look in the window that saw it.
        if word in SLOWDOWNS and word not in counted and share > 0:
            yield (
                f"{_name(gpu)} was slowed down ({word}) in {share:.0%} of the looks at it{_temperature(gpu)}. "
                f"Look at its cooling and power supply."
            )


def _shared(gpu: Mapping[str, Any]) -> Iterator[str]:
    before = gpu.get("before") or {}
    used = before.get("memory_used_bytes")
    others = gpu.get("other_processes")
    # A launch by fork is on the card within 0.4 s, so that the first look may see its own processes there.
    mine = 0 < (before.get("processes") or 0) <= len(gpu.get("ranks") or ()) and others == 0
    if used is not None and used > FOREIGN_BYTES and not mine:
        busy = before.get("utilization_percent")
        said = "" if busy is None else f" and was {busy:.0f} % busy"
        yield (
            f"{_name(gpu)} had {used / 2**30:.2g} GiB in use{said} before the launch touched it: another process is on "
            f"it. Find it (`nvidia-smi`), or ask for the card alone (--exclusive)."
        )
    if others:
        yield (
            f"{_name(gpu)} ran processes besides the launch's: {others}. Find them (`nvidia-smi`), or ask for the card "
            f"alone (--exclusive)."
        )


def _name(gpu: Mapping[str, Any]) -> str:
    return f"GPU {gpu.get('index')} of {gpu.get('host')} ({gpu.get('uuid')})"


def _temperature(gpu: Mapping[str, Any]) -> str:
    found = gpu.get("temperature_celsius") or {}
    return f", at up to {found['max']:.0f} °C" if "max" in found else ""
