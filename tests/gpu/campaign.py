"""Measures on a machine with GPUs what docs/measurements keeps: ``python tests/gpu/campaign.py OUT STEP…``.

Steps start in the order in which they are named; those that need a part of the GPUs run side by side, each on GPUs and
on a part of the cores of its own. Each has a time limit, after which it is interrupted and keeps what it has.
What each printed stands in OUT/STEP.log, what it measured below OUT/STEP, and how it went in OUT/campaign.log.
"""

from __future__ import annotations

import argparse
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.gpu.steps import STEPS, Step  # noqa: E402

GRACE = 30.0
"""Seconds in which an interrupted step ends its launches and writes its report."""


class Campaign:
    """Runs steps, and tells how they went.

    Parameters
    ----------
    out
        Folder of logs and results.
    stack
        Python under test.
    gpus
        Words for the GPUs, as CUDA_VISIBLE_DEVICES takes them.
    cores
        Numbers of the cores that may be used.
    """

    def __init__(self, out: Path, stack: str, gpus: Sequence[str], cores: Sequence[int]) -> None:
        self._out = out
        self._stack = stack
        self._gpus = gpus
        self._cores = cores
        self._began = time.monotonic()
        self._writing = threading.Lock()

    def run(self, steps: Iterable[Step]) -> None:
        """Run steps, each as soon as its GPUs are free; what needs all of them waits for all, and all wait for it."""
        self._out.mkdir(parents=True, exist_ok=True)
        waiting = list(steps)
        free = set(range(len(self._gpus)))
        ended: queue.SimpleQueue[tuple[int, ...]] = queue.SimpleQueue()
        while waiting or len(free) < len(self._gpus):
            for step, places in list(fitting(waiting, sorted(free), len(self._gpus))):
                waiting.remove(step)
                free.difference_update(places)
                threading.Thread(target=self._then_free, args=(step, places, ended)).start()
            if len(free) < len(self._gpus):
                free.update(ended.get())
        self._log("all done")

    def _then_free(
        self, step: Step, places: tuple[int, ...], ended: queue.SimpleQueue[tuple[int, ...]]
    ) -> None:
        try:
            self._one(step, places)
        finally:
            ended.put(places)

    def _one(self, step: Step, places: tuple[int, ...]) -> None:
        """Run a step on some of the GPUs."""
        if len(self._gpus) < step.fewest:
            self._log(f"{step.name}: left out, it needs {step.fewest} GPUs")
            return
        self._log(f"{step.name}: starts on GPU {', '.join(self._gpus[place] for place in places)}")
        began = time.monotonic()
        with open(self._out / f"{step.name}.log", "wb") as log:
            process = subprocess.Popen(
                self.command(step, places),
                cwd=ROOT,
                env=self._environment(places),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            how = self._wait(process, step.seconds)
        self._log(f"{step.name}: {how} after {time.monotonic() - began:.0f} s, status {process.returncode}")

    def _wait(self, process: subprocess.Popen[bytes], seconds: float) -> str:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            return "interrupted"
        return "ended"

    def command(self, step: Step, places: tuple[int, ...]) -> list[str]:
        """Return a step's command; on a part of the cores where it has a part of the GPUs."""
        names = {
            "stack": self._stack,
            "driver": sys.executable,
            "out": str(self._out / step.name),
            "here": str(ROOT),
        }
        words = [word.format(**names) for word in step.words]
        python = self._stack if "perf.training" in " ".join(step.words[:2]) else sys.executable
        if len(places) == len(self._gpus):
            return [python, *words]
        size = len(self._cores) // len(self._gpus)
        mine = [core for place in places for core in self._cores[place * size : (place + 1) * size]]
        beside = {"pytest", "perf.comparing"}.intersection(words) and "--share-node" not in words
        shared = ["--share-node"] if beside else []
        return ["taskset", "-c", ",".join(map(str, mine)), python, *words, *shared]

    def _environment(self, places: tuple[int, ...]) -> dict[str, str]:
        own = (
            {}
            if len(places) == len(self._gpus)
            else {"CUDA_VISIBLE_DEVICES": ",".join(self._gpus[place] for place in places)}
        )
        return {**os.environ, "PYTHONUNBUFFERED": "1", **own}

    def _log(self, text: str) -> None:
        line = f"{time.monotonic() - self._began:6.0f} s  {text}\n"
        with self._writing, open(self._out / "campaign.log", "a", encoding="utf-8") as log:
            log.write(line)
            print(line, end="", flush=True)


def fitting(
    waiting: Iterable[Step], free: Sequence[int], gpus: int
) -> Iterator[tuple[Step, tuple[int, ...]]]:
    """Yield the steps that may start now, with the places that each gets. Pure.

    In order, but a step for which too few are free lets later ones pass; one that needs all lets none.
    """
    left = list(free)
    for step in waiting:
        wanted = min(step.gpus or gpus, gpus)
        if wanted <= len(left):
            yield step, tuple(left[:wanted])
            del left[:wanted]
        elif not step.gpus:
            return


def gpus_here() -> list[str]:
    """Return the numbers of this machine's GPUs, those of CUDA_VISIBLE_DEVICES where it is set."""
    asked = os.environ.get("CUDA_VISIBLE_DEVICES")
    if asked:
        return asked.split(",")
    found = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=True)
    return [str(number) for number in range(len(found.stdout.splitlines()))]


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    known = {step.name: step for step in STEPS}
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="steps: " + ", ".join(known),
    )
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("steps", nargs="+", choices=sorted(known), metavar="STEP")
    parser.add_argument("--stack", default="python3", metavar="PYTHON", help="under test (default: python3)")
    options = parser.parse_args(words)
    # A shell starts what it leaves in the background with these ignored, and an interrupted step must hear them.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    campaign = Campaign(options.out.absolute(), options.stack, gpus_here(), sorted(os.sched_getaffinity(0)))
    campaign.run(known[name] for name in options.steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
