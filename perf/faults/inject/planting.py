"""What plants share: their signature, and ways to act at a step or at a file. Python 3.9, no torch import.

A plant is called with `after`, which runs a function when a module has been imported, and with a function that says
this process's rank: a launch that is forked gets its rank after its plant.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from typing import Any

After = Callable[[str, Callable[[Any], None]], None]
Rank = Callable[[], int]
Plant = Callable[[After, Rank], None]

LAST_RANK = 1
"""Faults of one rank hit the second of two: the first is where a suite would look anyway."""

STEP = 25
"""Behind the 20 steps of warm-up, inside the window."""

HANG_STEP = 2
"""As early as there is something to wait for: on a machine that others keep busy 90 s were over before step 25."""

SLOW_SECONDS = 0.25
"""Of the processor, several times what a step of the smallest network takes of it at smoke's sizes (40 to 50 ms)."""


def work(seconds: float) -> None:
    """Keep the processor busy for so many seconds of its own.

    Where others use it too that takes longer, as training does: 0.4 s of sleep were hidden behind steps of 0.45 s on
    two cores under a load of 20, and nothing was slow.
    """
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def each_step(after: After, act: Callable[[], None]) -> None:
    """Call `act` behind each step of an optimizer."""
    after(
        "torch.optim.optimizer",
        lambda module: module.register_optimizer_step_post_hook(lambda optimizer, arguments, keywords: act()),
    )


def at_step(after: After, step: int, act: Callable[[], None]) -> None:
    """Call `act` once, when the optimizer has taken `step` steps."""
    count = [0]

    def behind() -> None:
        count[0] += 1
        if count[0] == step:
            act()

    each_step(after, behind)


def slow_fetch(after: After, seconds: Callable[[], float]) -> None:
    """Work for so many seconds of the processor before each batch that a loader makes."""

    def patch(module: Any) -> None:
        fetcher = module._MapDatasetFetcher  # noqa: SLF001 - the only place that every worker passes
        plain = fetcher.fetch

        @functools.wraps(plain)
        def fetch(self: Any, indices: Any) -> Any:
            work(seconds())
            return plain(self, indices)

        fetcher.fetch = fetch

    after("torch.utils.data._utils.fetch", patch)


def replaced_file(act: Callable[[str, str], None], name: str) -> None:
    """Call `act` with source and target before a file whose name holds `name` is moved into its place."""
    plain = os.replace

    @functools.wraps(plain)
    def replace(source: Any, target: Any, **rest: Any) -> None:
        if name in os.path.basename(str(target)):
            act(str(source), str(target))
        plain(source, target, **rest)

    os.replace = replace  # type: ignore[assignment]
