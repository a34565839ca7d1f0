"""Faults of GPUs and of what is asked of them. Python 3.9; torch is imported when a step has been taken."""

from __future__ import annotations

import functools
import os
import sys
import time
from typing import Any

from perf.faults.inject.planting import After, Plant, Rank, each_step

FIRST_LEVEL_STEP, LAST_LEVEL_STEP = 18, 30
"""Steps between which a step's time is taken: behind the first ones, which load kernels, and before the window, since
no warm-up is shortened where a fault is planted (`perf.suite.plan.Context`). Between the 10th and the 18th the first
fork of a server on an H200 was still a third faster than later on."""

TRIAL_CYCLES = 20_000_000
"""About 10 ms on a card of 2 GHz: long enough for its events, and once."""

STALL_SECONDS = 0.02
"""At least: ten steps of the smallest network on an H100 (2 ms). A stall is more than 1.5 steps, so that it takes as
long as a step where that is longer."""

WAITS_A_STEP = 40
"""About as many as the smallest network has operators: a host that never runs ahead of its device."""

THRASH_BYTES = 64 * 2**20
"""What is put into the allocator's cache, so that there is something to free when it tries again."""


# Device.


def device_time(share: float) -> Plant:
    """Return the plant that makes each step longer by this share of itself, by a kernel that only counts cycles.

    The step and the card's clock are measured in the first steps, which are warm-up; from then on the kernel is queued
    behind each step's last, as a slower kernel of the network would be.
    """

    def plant(after: After, rank: Rank) -> None:
        seen = {"steps": 0, "cycles": 0, "began": 0.0}

        def behind() -> None:
            import torch

            seen["steps"] += 1
            if seen["steps"] in (FIRST_LEVEL_STEP, LAST_LEVEL_STEP):
                torch.cuda.synchronize()
                now = time.perf_counter()
                if seen["steps"] == FIRST_LEVEL_STEP:
                    seen["began"] = now
                else:
                    step = (now - seen["began"]) / (LAST_LEVEL_STEP - FIRST_LEVEL_STEP)
                    seen["cycles"] = int(share * step * _cycles_a_second(torch))
            if seen["cycles"]:
                torch.cuda._sleep(seen["cycles"])  # noqa: SLF001 - torch's own tests wait with it

        each_step(after, behind)

    return plant


def _cycles_a_second(torch: Any) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    torch.cuda._sleep(TRIAL_CYCLES)  # noqa: SLF001 - as above
    end.record()
    torch.cuda.synchronize()
    return float(TRIAL_CYCLES / (begin.elapsed_time(end) / 1000.0))


def stalled_steps(share: float) -> Plant:
    """Return the plant that holds up this share of all steps, evenly."""
    every = round(1.0 / share)

    def plant(after: After, rank: Rank) -> None:
        seen = {"steps": 0.0, "began": 0.0, "seconds": 0.0}

        def behind() -> None:
            import torch

            seen["steps"] += 1
            stalls = seen["steps"] % every == 0
            if stalls or seen["steps"] == FIRST_LEVEL_STEP:
                # What is queued already hides a host that sleeps.
                torch.cuda.synchronize()
            if seen["steps"] == FIRST_LEVEL_STEP:
                seen["began"] = time.perf_counter()
            elif stalls:
                if not seen["seconds"]:
                    step = (time.perf_counter() - seen["began"]) / (seen["steps"] - FIRST_LEVEL_STEP)
                    seen["seconds"] = max(STALL_SECONDS, step)
                time.sleep(seen["seconds"])

        each_step(after, behind)

    return plant


def step_synchronized(after: After, rank: Rank) -> None:
    """A host that waits for its GPU at every module, as a stray ``.item()`` or print makes it."""

    def wait(gradient: Any = None) -> None:
        import torch

        if torch.cuda.is_initialized():
            torch.cuda.synchronize()

    def wait_both_ways(module: Any, arguments: Any, output: Any) -> None:
        wait()
        # A hook of the tensor: a module's own backward hooks forbid what works in place, as many an activation does.
        if getattr(output, "requires_grad", False):
            output.register_hook(wait)

    def patch(module: Any) -> None:
        module.register_module_forward_hook(wait_both_ways)

    def behind() -> None:
        import torch

        for _ in range(WAITS_A_STEP):
            torch.cuda.synchronize()

    after("torch.nn.modules.module", patch)
    each_step(after, behind)


def unpinned(after: After, rank: Rank) -> None:
    """A DataLoader that pins nothing, whatever it is asked for."""

    def patch(module: Any) -> None:
        plain = module.DataLoader.__init__

        @functools.wraps(plain)
        def init(self: Any, *arguments: Any, **options: Any) -> None:
            options["pin_memory"] = False
            plain(self, *arguments, **options)

        module.DataLoader.__init__ = init

    after("torch.utils.data.dataloader", patch)


def autotune_dropped(after: After, rank: Rank) -> None:
    """A switch for autotuning that does nothing."""
    _autotuning(after, on=False)


def dp_autotuned(after: After, rank: Rank) -> None:
    """Autotuning on for everything, DataParallel's threads included, as many a script has it in its first lines."""
    _autotuning(after, on=True)


def _autotuning(after: After, *, on: bool) -> None:
    def patch(module: Any) -> None:
        # The package stands for itself as an object, whose class holds the switch.
        switches = sys.modules[module.__name__]
        plain = vars(type(switches))["benchmark"]
        switches.benchmark = on  # type: ignore[attr-defined]
        # What is set later changes nothing.
        type(switches).benchmark = property(  # type: ignore[attr-defined]
            lambda self: plain.__get__(self, type(self)), lambda self, value: None
        )

    after("torch.backends.cudnn", patch)


def allocator_thrash(after: After, rank: Rank) -> None:
    """A card so full that the allocator must free its cache and try again in every step."""

    def behind() -> None:
        import torch

        # What the cache holds is given back first: else the next step would be served from it, and nothing would fail.
        torch.cuda.empty_cache()
        free, _ = torch.cuda.mem_get_info()
        cached = torch.empty(THRASH_BYTES, dtype=torch.uint8, device="cuda")
        del cached
        try:
            # More than the card has left with an empty cache: it is emptied, tried again, and in vain.
            torch.empty(free + THRASH_BYTES // 2, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            return

    each_step(after, behind)


def gloo_for_nccl(after: After, rank: Rank) -> None:
    """A process group over gloo, whatever is asked for."""

    def patch(module: Any) -> None:
        plain = module.init_process_group

        @functools.wraps(plain)
        def init(backend: Any = None, **options: Any) -> None:
            # Bound to a device, a group is made over what serves that device best.
            options.pop("device_id", None)
            plain(backend="gloo", **options)

        module.init_process_group = init

    after("torch.distributed", patch)


def gpu_taken_twice(after: After, rank: Rank) -> None:
    """Every rank takes the first GPU."""
    os.environ["LOCAL_RANK"] = "0"


PLANTS: dict[str, Plant] = {
    **{f"device-time-{percent}": device_time(percent / 100.0) for percent in (1, 2, 3, 5)},
    **{f"stalled-steps-{percent}": stalled_steps(percent / 100.0) for percent in (1, 3)},
    "step-synchronized": step_synchronized,
    "unpinned": unpinned,
    "autotune-dropped": autotune_dropped,
    "dp-autotuned": dp_autotuned,
    "allocator-thrash": allocator_thrash,
    "gloo-for-nccl": gloo_for_nccl,
    "gpu-taken-twice": gpu_taken_twice,
}
