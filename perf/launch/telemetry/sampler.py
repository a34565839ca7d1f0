"""``python -m perf.launch.telemetry.sampler``: looks at this node beside a launch, once a second, and sleeps meanwhile.

Its standard input is its master: one line ``root PID`` says whose processes to follow, and its end (also when the
driver is killed) says to leave. Ranks tell of their windows through a named pipe in the launch's folder; then it looks
at once, so that cumulative counters are read at a window's edges, however short it is. It never outlives its driver.
"""

from __future__ import annotations

import argparse
import os
import selectors
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO

from perf.whole import whole

NICE = 10
"""A rank that wants its core gets it first."""

PSS_SECONDS = 10.0
"""Between two sums of PSS outside windows: one costs 28 ms for a rank with four loader workers."""

LINE_BYTES = 4096
"""Of a pipe, at a time: a rank's line has a dozen bytes, and pipes pass up to 4096 whole."""


@dataclass
class Edges:
    """Which ranks have an open window, from the lines that they write."""

    open_ranks: set[int] = field(default_factory=set)
    _rest: str = ""

    def take(self, text: str) -> str:
        """Take what a pipe gave; return ``open`` or ``close`` where the launch's window begins or ends, else ''.

        A launch's window begins with its first rank's and ends with its last one's.
        """
        *lines, self._rest = (self._rest + text).split("\n")
        what = ""
        for line in lines:
            number, _, word = line.partition(" ")
            rank = whole(number)
            if rank is None or word not in ("open", "close"):
                continue
            before = bool(self.open_ranks)
            if word == "open":
                self.open_ranks.add(rank)
            else:
                self.open_ranks.discard(rank)
            if before != bool(self.open_ranks):
                what = word
        return what


class Sampler:
    """Looks, and writes what it saw.

    Parameters
    ----------
    look
        Returns one sample as a line, given why and whether memory may be summed now.
    out
        Where lines go.
    interval
        Seconds between two looks.
    """

    def __init__(
        self, look: Callable[[str, bool], str], follow: Callable[[int], None], out: IO[str], interval: float
    ) -> None:
        self._look = look
        self._follow = follow
        self._out = out
        self._interval = interval
        self._edges = Edges()
        self._summed_at = -PSS_SECONDS

    def run(self, master: int, edges: int | None) -> None:
        """Look until the master's end of the pipe is closed.

        Parameters
        ----------
        master
            File descriptor of the standard input.
        edges
            That of the ranks' pipe; None where this file system has no pipes.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(master, selectors.EVENT_READ)
            if edges is not None:
                selector.register(edges, selectors.EVENT_READ)
            self._write("first")
            due = time.monotonic() + self._interval
            orders = ""
            while True:
                ready = {key.fd for key, _ in selector.select(max(0.0, due - time.monotonic()))}
                if master in ready:
                    text = os.read(master, LINE_BYTES).decode("ascii", errors="replace")
                    if not text:
                        break
                    *lines, orders = (orders + text).split("\n")
                    for line in lines:
                        word, _, pid = line.partition(" ")
                        if word == "root" and pid.isdigit():
                            self._follow(int(pid))
                if edges is not None and edges in ready:
                    why = self._edges.take(os.read(edges, LINE_BYTES).decode("ascii", errors="replace"))
                    if why:
                        self._write(why)
                now = time.monotonic()
                if now >= due:
                    self._write("tick")
                    # A look that came late does not make the next ones crowd.
                    due += self._interval * max(1, int((now - due) // self._interval) + 1)
            self._write("last")

    def _write(self, why: str) -> None:
        self._out.write(self._look(why, self._may_sum(why)) + "\n")
        self._out.flush()

    def _may_sum(self, why: str) -> bool:
        """Say whether PSS may be summed now: never inside a window, and at its end in any case."""
        now = time.monotonic()
        if self._edges.open_ranks or (why != "close" and now - self._summed_at < PSS_SECONDS):
            return False
        self._summed_at = now
        return True


def main(arguments: Sequence[str]) -> int:
    """Sample until the standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m perf.launch.telemetry.sampler")
    parser.add_argument("out_dir")
    parser.add_argument("--gpus", choices=("none", "nvml", "amdsmi"), default="none")
    parser.add_argument(
        "--uuid", action="append", default=[], help="a GPU as the stack's torch names it, '' for unknown"
    )
    parser.add_argument("--interval", type=float, default=1.0)
    options = parser.parse_args(arguments)
    os.nice(NICE)
    from perf import contract
    from perf.launch.telemetry.node import NodeLook
    from perf.launch.telemetry.reading import TELEMETRY_FILE, encode

    node = NodeLook.open(options.gpus, [uuid or None for uuid in options.uuid], options.interval)
    path = os.path.join(options.out_dir, contract.EDGE_PIPE)
    try:
        # Also for writing: a pipe whose last writer has gone would else be at its end again and again.
        edges: int | None = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    except OSError as error:
        edges = None
        node.problems["window edges"] = f"{contract.EDGE_PIPE}: {error.strerror}"
    with open(os.path.join(options.out_dir, TELEMETRY_FILE), "w", encoding="utf-8") as out:
        out.write(encode(node.header(socket.gethostname())) + "\n")
        Sampler(lambda why, may: encode(node.look(why, may)), node.follow, out, options.interval).run(
            sys.stdin.fileno(), edges
        )
        # Once more: what can't be read is known only now.
        out.write(encode(node.header(socket.gethostname())) + "\n")
    node.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
