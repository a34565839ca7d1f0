"""What launches are spared, pair by pair in turn: ``python tests/gpu/savings.py OUT --device=cpu --rounds=4``.

Two pairs for each workload: fresh and by fork, and (fresh, with ``compile``) with the compilers' caches empty and kept.
Prints a row a side: the median launch, and its first step, in seconds.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from perf.catalogue import Member, home  # noqa: E402
from perf.contract import LaunchRecord, LaunchSpec  # noqa: E402
from perf.launch.caches import CACHES  # noqa: E402
from perf.launch.forking import Servers  # noqa: E402
from perf.launch.launcher import launch  # noqa: E402
from perf.launch.stack import find_stack  # noqa: E402
from perf.machine import cores_allowed  # noqa: E402
from perf.profiles import PROFILES  # noqa: E402
from perf.suite.options import default_cache_dir  # noqa: E402
from perf.suite.plan import Context, build_spec  # noqa: E402

VARIANTS = {
    "cpu": ("resnet50_tiny-single-1cpu-fp32-native", "unet3d_tiny-single-1cpu-fp32-native"),
    "cuda": ("resnet50-single-1gpu-bf16-native-synthetic", "unet3d-single-1gpu-bf16-native-synthetic"),
}
SIDES = ("fresh", "fork", "empty", "kept")


class Savings:
    """Launches the sides in turn and keeps their records."""

    def __init__(self, out: Path, stack: str, servers: Servers) -> None:
        self._out = out
        self._stack = find_stack(stack, os.environ.get("PATH", ""), os.environ)
        self._servers = servers
        # Of this run alone: what another run compiled would be found by the first launch.
        self._caches = {name: str(out / "caches" / part) for name, part in CACHES.items()}

    def spec(self, member: Member, side: str, number: int) -> LaunchSpec:
        """Return the spec of a launch."""
        context = Context(
            "savings", PROFILES["quick"], cores_allowed(), default_cache_dir(dict(os.environ)), None
        )
        name = f"{member.variant.workload}-{side}-{number}"
        spec = build_spec(context, member, launch=name, round_number=number, out_dir=self._out / name)
        if side in ("empty", "kept"):
            spec = dataclasses.replace(spec, optimizations=["compile"])
        return dataclasses.replace(spec, launcher="fork" if side == "fork" else "fresh")

    def take(self, member: Member, side: str, number: int) -> LaunchRecord:
        """Take one launch."""
        end = f"-{number}" if side == "empty" else ""
        caches = {name: path + end for name, path in self._caches.items()}
        record = launch(
            self.spec(member, side, number),
            self._stack,
            lock=None,
            environ={**os.environ, **caches},
            servers=self._servers if side == "fork" else None,
        )
        print(f"{record.launch}: {record.launch_seconds:.1f} s, {record.reasons or 'valid'}", flush=True)
        return record

    def rounds(self, member: Member, count: int) -> Iterator[tuple[str, LaunchRecord]]:
        """Yield the launches of a member's sides, in turn, each order reversed in the next round."""
        # Fills the caches and starts the server, and counts for nothing.
        for side in ("kept", "fork"):
            self.take(member, side, 0)
        for number in range(1, count + 1):
            for side in SIDES if number % 2 else SIDES[::-1]:
                yield side, self.take(member, side, number)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--device", choices=sorted(VARIANTS), required=True)
    parser.add_argument("--stack", default="python3", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=4, metavar="N")
    options = parser.parse_args(words)
    out = options.out.absolute()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with Servers(out / "servers.log") as servers:
        savings = Savings(out, options.stack, servers)
        for variant in VARIANTS[options.device]:
            found: dict[str, list[LaunchRecord]] = {side: [] for side in SIDES}
            for side, record in savings.rounds(home(variant), options.rounds):
                found[side].append(record)
            for side, records in found.items():
                seconds = statistics.median(record.launch_seconds for record in records)
                first = statistics.median(record.first_step_seconds for record in records)
                print(
                    f"{variant}  {side}  {len(records)} launches  {seconds:.1f} s  first step {first:.2f} s",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
