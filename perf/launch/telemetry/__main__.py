"""``python -m perf.launch.telemetry``: what can be read on this node, looked at once a second.

To see before a run whether GPUs, cgroup and pressure files can be read here, and which calls a driver does not support.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from perf.ending import finish
from perf.launch.telemetry.node import NodeLook
from perf.launch.telemetry.reading import GpuReading, Header, Sample, encode
from perf.launch.text import harmless

GIB = 2**30
STDERR = 2

SECONDS = 5.0
LONGEST = 1e9
"""Seconds, thirty years: the system's clocks can still be asked to wait so long."""

NOT_STARTED, NOT_FOUND = 126, 127
"""What a shell says of a command that it can't start, and of one that is not there."""


def main(arguments: Sequence[str]) -> int:
    """Look and print; return the exit status: that of the command that was followed, else 0."""
    options = _options(arguments)
    node = open_any(options.interval)
    try:
        # Ours is for the looks alone where scripts read them.
        process = (
            subprocess.Popen(options.command, stdout=STDERR if options.json else None)
            if options.command
            else None
        )
    except OSError as error:
        node.close()
        print(f"error: {harmless(options.command[0])} can't be started: {error.strerror}", file=sys.stderr)
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED
    spent, began = time.process_time(), time.monotonic()
    samples, looks = _look(node, process, options)
    cost = (time.process_time() - spent) / looks
    header = node.header(socket.gethostname())
    node.close()
    status = process.wait() if process is not None else 0
    if not options.json:
        print("\n".join(in_words(header, samples)))
        print(
            f"one look costs {1000 * cost:.1f} ms of CPU time ({looks} looks, {time.monotonic() - began:.1f} s)"
        )
    return status if status >= 0 else 128 - status


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m perf.launch.telemetry",
        description=__doc__,
        epilog="The exit status is the command's own: 128 + the signal where one ended it, 127 where there is no such "
        "command, 126 where it can't be started.",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        help="how long to look (default: 5; until the command ends where there is one, which is never ended by this)",
    )
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between two looks (default: 1)")
    parser.add_argument(
        "--json",
        action="store_true",
        help="the samples themselves, one a line; what the command prints then goes to standard error",
    )
    parser.add_argument("command", nargs="*", help="follow this command's processes (after --) until it ends")
    options = parser.parse_args(arguments)
    # Written so that NaN is refused too.
    if not 0 < options.interval <= LONGEST:
        parser.error(f"--interval must be a number of seconds above 0, {LONGEST:g} at most")
    if options.seconds is not None and not 0 <= options.seconds <= LONGEST:
        parser.error(f"--seconds must be a number from 0 to {LONGEST:g}")
    if options.seconds is None:
        options.seconds = math.inf if options.command else SECONDS
    return options


def _look(
    node: NodeLook, process: subprocess.Popen[bytes] | None, options: argparse.Namespace
) -> tuple[list[Sample], int]:
    """Look until the time or the command is over; return the first and the last sample, and how many there were."""
    node.follow(process.pid if process is not None else os.getpid())
    waiter = None
    if process is not None:
        waiter = threading.Thread(target=_await_end, args=(process.pid,), daemon=True)
        waiter.start()
    end = time.monotonic() + options.seconds
    # No more of them: a command may take days.
    samples: list[Sample] = []
    looks = 0
    while True:
        # Before the look, so that the last one sees what the whole command took.
        over = waiter is not None and not waiter.is_alive()
        samples[1:] = [node.look("tick" if samples else "first", not samples)]
        looks += 1
        if options.json:
            print(encode(samples[-1]), flush=True)
        left = end - time.monotonic()
        if over or left <= 0:
            return samples, looks
        pause = min(options.interval, left + 0.001)
        if waiter is not None:
            waiter.join(pause)
        else:
            time.sleep(pause)


def _await_end(pid: int) -> None:
    """Wait for a child's end, and leave it to be awaited: until then its CPU seconds can still be read."""
    # The looking may be over before it: then whoever awaits the command can be faster.
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


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
