"""``python -m perf.launch.telemetry``: what can be read on this node, looked at once a second.

To see before a run whether GPUs, cgroup and pressure files can be read here, and which calls a driver does not support.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence

from perf.ending import finish
from perf.launch.telemetry.node import NodeLook
from perf.launch.telemetry.reading import GpuReading, Header, Sample, encode
from perf.launch.text import harmless

GIB = 2**30


def main(arguments: Sequence[str]) -> int:
    """Look and print."""
    parser = argparse.ArgumentParser(prog="python -m perf.launch.telemetry", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to look (default: 5)")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between two looks (default: 1)")
    parser.add_argument("--json", action="store_true", help="the samples themselves, one a line")
    parser.add_argument("command", nargs="*", help="follow this command's processes (after --) until it ends")
    options = parser.parse_args(arguments)
    if options.interval <= 0 or options.seconds < 0:
        parser.error("seconds and interval must be positive")
    node = open_any(options.interval)
    samples: list[Sample] = []
    process = subprocess.Popen(options.command) if options.command else None
    node.follow(process.pid if process else os.getpid())
    end = time.monotonic() + options.seconds
    spent, began = time.process_time(), time.monotonic()
    while True:
        samples.append(node.look("first" if not samples else "tick", not samples))
        if options.json:
            print(encode(samples[-1]), flush=True)
        if time.monotonic() >= end or (process is not None and process.poll() is not None):
            break
        time.sleep(min(options.interval, max(0.0, end - time.monotonic()) + 0.001))
    cost = (time.process_time() - spent) / max(1, len(samples))
    header = node.header(socket.gethostname())
    node.close()
    if process is not None:
        process.wait()
    if not options.json:
        print("\n".join(in_words(header, samples)))
        print(
            f"one look costs {1000 * cost:.1f} ms of CPU time ({len(samples)} looks, {time.monotonic() - began:.1f} s)"
        )
    return 0


def open_any(interval: float) -> NodeLook:
    """Open NVML, else amdsmi, else neither; say why."""
    problems: dict[str, str] = {}
    for kind in ("nvml", "amdsmi"):
        node = NodeLook.open(kind, [], interval)
        if "GPUs" not in node.problems:
            return node
        problems[kind] = node.problems["GPUs"]
    return NodeLook(None, problems, interval)


def in_words(header: Header, samples: Sequence[Sample]) -> list[str]:
    """Return what was read, one line a thing."""
    last = samples[-1]
    lines = [
        f"{header.host}: {header.cores_allowed} cores allowed"
        + (f", quota {header.cpu_quota_cores:g} cores" if header.cpu_quota_cores is not None else ""),
        (
            f"memory: limit {_gib(header.memory_limit_bytes)}, node {_gib(header.memory_total_bytes)}, "
            f"cgroup uses {_gib(last.host.memory_used_bytes)}, peak {_gib(last.host.memory_peak_bytes)}"
        ),
        (
            f"processes followed: {last.host.processes}, CPU {_plain(last.host.cpu_seconds_total, 's')}, "
            f"PSS {_gib(samples[0].host.pss_bytes)}"
        ),
        "pressure so far: "
        + (
            ", ".join(f"{k} {v:.1f} s" for k, v in last.host.pressure_seconds_total.items())
            or "not counted here"
        ),
        f"GPUs by {header.source}: {len(last.gpus)}" if header.source else "GPUs: none that can be read",
    ]
    for gpu in last.gpus:
        lines += _gpu_lines(gpu)
    lines += [f"can't be read: {what}: {harmless(why)}" for what, why in sorted(header.problems.items())]
    return lines


def _gpu_lines(gpu: GpuReading) -> list[str]:
    throttled = gpu.throttle_seconds_total
    seconds = (
        "not counted" if throttled is None else ", ".join(f"{k} {v:.3f} s" for k, v in throttled.items())
    )
    part = ", a part (MIG) of it" if gpu.shared_card else ""
    held = "?" if gpu.event_reasons is None else ", ".join(gpu.event_reasons) or "nothing"
    return [
        f"  [{gpu.index}] {harmless(gpu.name)} {gpu.uuid}{part}",
        (
            f"      busy {_plain(gpu.utilization_percent, '%')}, power {_plain(gpu.power_watts, 'W')} of "
            f"{_plain(gpu.power_limit_watts, 'W')}, {_plain(gpu.temperature_celsius, '°C')}, SM clock "
            f"{_plain(gpu.sm_clock_mhz, 'MHz')} of {_plain(gpu.sm_clock_max_mhz, 'MHz')}"
        ),
        (
            f"      memory {_gib(gpu.memory_used_bytes)} of {_gib(gpu.memory_total_bytes)}, energy so far "
            f"{_plain(gpu.energy_joules_total, 'J')}, processes {'?' if gpu.process_ids is None else gpu.process_ids}"
        ),
        f"      held down now by: {held}; so far: {seconds}",
    ]


def _gib(size: int | None) -> str:
    return "?" if size is None else f"{size / GIB:.2f} GiB"


def _plain(value: float | None, unit: str) -> str:
    return "?" if value is None else f"{value:.6g} {unit}"


if __name__ == "__main__":
    finish(lambda: main(sys.argv[1:]))
