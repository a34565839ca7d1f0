"""The driver's side of the sampler: starts it beside a launch, tells it whom to follow, ends it, reads its file."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from perf import contract
from perf.contract import LaunchSpec
from perf.launch.environment import MARKER
from perf.launch.stack import Stack
from perf.launch.telemetry.reading import INTERVAL_SECONDS, TELEMETRY_FILE, Header, Sample, decode
from perf.launch.text import last_lines
from perf.machine import REPOSITORY

MODULE = "perf.launch.telemetry.sampler"
LOG_FILE = "telemetry.log"

END_SECONDS = 10.0
"""Its last look and the end of a Python take tenths of a second; a driver of a GPU that hangs may hold it for ever."""


class Companion:
    """A sampler that lives as long as the context. Trouble with it is told in `problem` and never ends a launch.

    Parameters
    ----------
    spec
        The launch that it accompanies; its folder must be there.
    stack
        What its torch says of the GPUs decides which library is asked, and for which cards.
    environ
        The environment of the launch: which cards it sees.
    """

    def __init__(self, spec: LaunchSpec, stack: Stack, environ: Mapping[str, str]) -> None:
        self._folder = Path(spec.out_dir)
        self._arguments = [*interpreter(), "-m", MODULE, spec.out_dir, *gpu_arguments(spec, stack.facts)]
        # Without the launch's mark: what carries it is ended before its last look. Python's path is this driver's own:
        # the launch's may lead to other packages, or to a planted fault.
        dropped = (MARKER, "PYTHONSAFEPATH", "PYTHONPATH")
        self._environ = {name: value for name, value in environ.items() if name not in dropped}
        if "PYTHONPATH" in os.environ and not sys.flags.ignore_environment:
            self._environ["PYTHONPATH"] = os.environ["PYTHONPATH"]
        self._process: subprocess.Popen[bytes] | None = None
        self.problem = ""

    def __enter__(self) -> Self:
        pipe = self._folder / contract.EDGE_PIPE
        pipe.unlink(missing_ok=True)
        (self._folder / TELEMETRY_FILE).unlink(missing_ok=True)
        # Where the file system has no pipes, the sampler says so; all but the edges is there.
        with contextlib.suppress(OSError):
            os.mkfifo(pipe)
        try:
            with open(self._folder / LOG_FILE, "wb") as log:
                self._process = subprocess.Popen(
                    self._arguments,
                    cwd=REPOSITORY,
                    env=self._environ,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    # Ctrl-C goes to the whole terminal; the last look comes when the driver says so.
                    start_new_session=True,
                )
        except OSError as error:
            self.problem = f"the sampler can't be started ({error.strerror})"
        return self

    def follow(self, root: int) -> None:
        """Tell the sampler whose processes to follow."""
        if self._process is not None and self._process.stdin is not None:
            try:
                self._process.stdin.write(f"root {root}\n".encode("ascii"))
                self._process.stdin.flush()
            except OSError:
                self.problem = "the sampler ended at once"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            try:
                code = self._process.wait(timeout=END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self.problem = f"the sampler did not end within {END_SECONDS:g} s and was killed"
                # Not waited for without limit: it may be stuck in the kernel with the GPU's driver.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout=1.0)
            else:
                if code != 0:
                    said = last_lines((self._folder / LOG_FILE).read_text(errors="replace"), count=1)
                    self.problem = f"the sampler ended with exit status {code}: {' '.join(said)}"
        # A pipe that is left behind makes whoever copies the folder wait for ever.
        (self._folder / contract.EDGE_PIPE).unlink(missing_ok=True)

    def samples(self) -> tuple[Header | None, list[Sample]]:
        """Read what the sampler wrote; nothing where it wrote nothing."""
        try:
            return decode((self._folder / TELEMETRY_FILE).read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return None, []


def interpreter() -> list[str]:
    """Return the driver's own Python, isolated as the driver itself was started."""
    flags = ["-E"] if sys.flags.ignore_environment else []
    return [sys.executable, *flags, *(["-s"] if sys.flags.no_user_site else [])]


def gpu_arguments(spec: LaunchSpec, facts: Mapping[str, Any]) -> list[str]:
    """Return the sampler's options for the GPUs of a launch: none on the CPU, AMD's where torch is built for HIP."""
    if spec.device != "cuda":
        return []
    uuids: Sequence[Any] = [gpu.get("uuid") for gpu in facts.get("gpus") or ()]
    kind = "amdsmi" if facts.get("hip") else "nvml"
    chosen = [f"--uuid={uuid or ''}" for uuid in uuids]
    return ["--gpus", kind, f"--interval={INTERVAL_SECONDS:g}", *chosen]
