"""The faults themselves: each changes torch or Python in the process that it is called in. Python 3.9, no torch import.

A plant is called with `after`, which runs a function when a module has been imported, and this process's rank.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import os
import time
from collections.abc import Callable
from typing import Any

After = Callable[[str, Callable[[Any], None]], None]
Plant = Callable[[After, int], None]

LAST_RANK = 1
"""Faults of one rank hit the second of two: the first is where a suite would look anyway."""

STEP = 25
"""Behind the 20 steps of warm-up, inside the window."""

SLOW_SECONDS = 0.25
"""Several times a step of the smallest network on a CPU (50 to 100 ms)."""

FIRST_LEVEL_STEP, LAST_LEVEL_STEP = 10, 18
"""Steps between which a step's time is taken: behind the first ones, which load kernels, and before the window."""

TRIAL_CYCLES = 20_000_000
"""About 10 ms on a card of 2 GHz: long enough for its events, and once."""

COLD_SECONDS = 0.5
"""A whole first epoch of smoke's 64 batches then takes 32 s: also on a machine that others keep busy, where a later one
was seen to take up to 20 s, that is far more than the limit."""


def at_step(after: After, step: int, act: Callable[[], None]) -> None:
    """Call `act` once, when the optimizer has taken `step` steps."""
    count = [0]

    def hook(optimizer: Any, arguments: Any, keywords: Any) -> None:
        count[0] += 1
        if count[0] == step:
            act()

    after("torch.optim.optimizer", lambda module: module.register_optimizer_step_post_hook(hook))


def replaced_file(act: Callable[[str, str], None], name: str) -> None:
    """Call `act` with source and target before a file whose name holds `name` is moved into its place."""
    plain = os.replace

    @functools.wraps(plain)
    def replace(source: Any, target: Any, **rest: Any) -> None:
        if name in os.path.basename(str(target)):
            act(str(source), str(target))
        plain(source, target, **rest)

    os.replace = replace  # type: ignore[assignment]


# Data.


def one_core(after: After, rank: int) -> None:
    """All threads and loader workers on one core: a binding that was meant for something else."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def no_workers(after: After, rank: int) -> None:
    """A DataLoader that starts no workers, whatever it is asked for."""

    def patch(module: Any) -> None:
        plain = module.DataLoader.__init__

        @functools.wraps(plain)
        def init(self: Any, *arguments: Any, **options: Any) -> None:
            options.update(num_workers=0, persistent_workers=False, prefetch_factor=None)
            plain(self, *arguments, **options)

        module.DataLoader.__init__ = init

    after("torch.utils.data.dataloader", patch)


def slow_decode(after: After, rank: int) -> None:
    """Every batch takes longer to make than to train on."""
    _slow_fetch(after, lambda calls: SLOW_SECONDS)


def small_shared_memory(after: After, rank: int) -> None:
    """A /dev/shm that holds a loader's locks and no batch, in a mount namespace of this process and its children.

    Needs the right to mount, as root has it in a container that allows it.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    calls: tuple[Callable[[], Any], ...] = (
        # linux/sched.h: CLONE_NEWNS; linux/mount.h: MS_REC | MS_PRIVATE, so that nothing leaves the namespace.
        lambda: libc.unshare(0x20000),
        lambda: libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None),
        lambda: libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"size=48k"),
    )
    for call in calls:
        if call() != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"can't plant a small /dev/shm: {os.strerror(number)}")


def first_epoch_stall(after: After, rank: int) -> None:
    """The first epoch reads from a cold file system: every batch of it comes slowly, and none of a later one."""
    flag = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"stackproof-cold-{os.getpid()}")
    atexit.register(_forget, flag)
    _slow_fetch(after, lambda calls: 0.0 if os.path.exists(flag) else COLD_SECONDS)
    # The rank's own process marks the end of the first epoch: it validates then, with a loader of its own.
    after("torch.nn.modules.module", lambda module: _mark_evaluation(module, flag))


def _forget(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _slow_fetch(after: After, seconds: Callable[[int], float]) -> None:
    def patch(module: Any) -> None:
        fetcher = module._MapDatasetFetcher  # noqa: SLF001 - the only place that every worker passes
        plain, calls = fetcher.fetch, [0]

        @functools.wraps(plain)
        def fetch(self: Any, indices: Any) -> Any:
            calls[0] += 1
            time.sleep(seconds(calls[0]))
            return plain(self, indices)

        fetcher.fetch = fetch

    after("torch.utils.data._utils.fetch", patch)


def _mark_evaluation(module: Any, flag: str) -> None:
    plain = module.Module.eval

    @functools.wraps(plain)
    def evaluate(self: Any) -> Any:
        with open(flag, "w", encoding="ascii"):
            pass
        return plain(self)

    module.Module.eval = evaluate


# Device.


def device_time(share: float) -> Plant:
    """Return the plant that makes each step longer by this share of itself, by a kernel that only counts cycles.

    The step and the card's clock are measured in the first steps, which are warm-up; from then on the kernel is queued
    behind each step's last, as a slower kernel of the network would be.
    """

    def plant(after: After, rank: int) -> None:
        seen = {"steps": 0, "cycles": 0, "began": 0.0}

        def hook(optimizer: Any, arguments: Any, keywords: Any) -> None:
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

        after("torch.optim.optimizer", lambda module: module.register_optimizer_step_post_hook(hook))

    return plant


def _cycles_a_second(torch: Any) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    torch.cuda._sleep(TRIAL_CYCLES)  # noqa: SLF001 - as above
    end.record()
    torch.cuda.synchronize()
    return float(TRIAL_CYCLES / (begin.elapsed_time(end) / 1000.0))


# Configuration.


def precision_dropped(after: After, rank: int) -> None:
    """Autocast that does nothing."""

    def patch(module: Any) -> None:
        plain = module.autocast.__init__

        @functools.wraps(plain)
        def init(self: Any, *arguments: Any, **options: Any) -> None:
            options["enabled"] = False
            plain(self, *arguments, **options)

        module.autocast.__init__ = init

    after("torch.amp.autocast_mode", patch)


def compile_dropped(after: After, rank: int) -> None:
    """torch.compile that gives the model back as it is."""

    def patch(module: Any) -> None:
        module.compile = lambda model=None, **options: model

    after("torch", patch)


def same_shuffle(after: After, rank: int) -> None:
    """Every rank draws the first rank's share of the samples."""

    def patch(module: Any) -> None:
        plain = module.DistributedSampler.__init__

        @functools.wraps(plain)
        def init(self: Any, *arguments: Any, **options: Any) -> None:
            plain(self, *arguments, **options)
            self.rank = 0

        module.DistributedSampler.__init__ = init

    after("torch.utils.data.distributed", patch)


def partial_batch_padded(after: After, rank: int) -> None:
    """The last batch is filled up to the full size with samples that were there already."""

    def patch(module: Any) -> None:
        fetcher = module._MapDatasetFetcher  # noqa: SLF001 - as above
        plain, largest = fetcher.fetch, [0]

        @functools.wraps(plain)
        def fetch(self: Any, indices: Any) -> Any:
            if isinstance(indices, list):
                largest[0] = max(largest[0], len(indices))
                indices = (indices * largest[0])[: largest[0]]
            return plain(self, indices)

        fetcher.fetch = fetch

    after("torch.utils.data._utils.fetch", patch)


def threads_unequal(after: After, rank: int) -> None:
    """One rank keeps a thread more than it is told to have."""

    def patch(module: Any) -> None:
        plain = module.set_num_threads
        module.set_num_threads = lambda number: plain(number + 1)

    if rank == LAST_RANK:
        after("torch", patch)


def work_skipped(after: After, rank: int) -> None:
    """Steps return the first loss again and skip backward: too fast, and nothing is learned."""

    def cached(plain: Callable[..., Any]) -> Callable[..., Any]:
        first: list[Any] = []

        @functools.wraps(plain)
        def loss(*arguments: Any, **options: Any) -> Any:
            if not first:
                first.append(plain(*arguments, **options).detach())
            return first[0]

        return loss

    def patch_losses(module: Any) -> None:
        for name in ("nll_loss", "cross_entropy"):
            setattr(module, name, cached(getattr(module, name)))

    def patch_backward(module: Any) -> None:
        module.Tensor.backward = lambda self, *arguments, **options: None

    after("torch.nn.functional", patch_losses)
    after("torch._tensor", patch_backward)


# Communication.


def slow_rank(after: After, rank: int) -> None:
    """One rank comes late to every step."""
    if rank == LAST_RANK:
        hook = lambda optimizer, arguments, keywords: time.sleep(SLOW_SECONDS)  # noqa: E731
        after("torch.optim.optimizer", lambda module: module.register_optimizer_step_post_hook(hook))


def rank_order(after: After, rank: int) -> None:
    """Ranks in another order than the devices that they take."""
    if os.environ.get("WORLD_SIZE") == "2":
        os.environ["LOCAL_RANK"] = str(1 - int(os.environ["LOCAL_RANK"]))


# Infrastructure.


def rank_hangs(after: After, rank: int) -> None:
    """One rank hangs in native code, which holds the interpreter's lock."""
    import ctypes

    if rank == LAST_RANK:
        at_step(after, STEP, lambda: ctypes.PyDLL(None).sleep(3600))


def rank_killed(after: After, rank: int) -> None:
    """One rank is killed, as the kernel does it when memory is short."""
    if rank == LAST_RANK:
        at_step(after, STEP, lambda: os.kill(os.getpid(), 9))


def rank_out_of_memory(after: After, rank: int) -> None:
    """One rank gets no more memory."""

    def act() -> None:
        bytearray(2**62)

    if rank == LAST_RANK:
        at_step(after, STEP, act)


def disk_full(after: After, rank: int) -> None:
    """No space is left when a rank writes its record."""

    def refuse(source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)

    replaced_file(refuse, f"rank-{LAST_RANK}.json")


def record_cut(after: After, rank: int) -> None:
    """A record is cut short on its way to the disk."""
    replaced_file(lambda source, target: os.truncate(source, 200), f"rank-{LAST_RANK}.json")


def clock_stepped(after: After, rank: int) -> None:
    """The system's clock is set while one rank measures."""
    plain, shift = time.time, [0.0]
    time.time = lambda: plain() + shift[0]

    def act() -> None:
        shift[0] = -3600.0

    if rank == LAST_RANK:
        at_step(after, STEP, act)


def other_torch(after: After, rank: int) -> None:
    """The worker gets another torch than the one that the stack was asked about."""

    def patch(module: Any) -> None:
        module.__version__ = "2.0.0+elsewhere"

    after("torch", patch)


PLANTS: dict[str, Plant] = {
    "one-core": one_core,
    "no-workers": no_workers,
    "slow-decode": slow_decode,
    "small-shared-memory": small_shared_memory,
    "first-epoch-stall": first_epoch_stall,
    **{f"device-time-{percent}": device_time(percent / 100.0) for percent in (1, 2, 3, 5)},
    "precision-dropped": precision_dropped,
    "compile-dropped": compile_dropped,
    "same-shuffle": same_shuffle,
    "partial-batch-padded": partial_batch_padded,
    "threads-unequal": threads_unequal,
    "work-skipped": work_skipped,
    "slow-rank": slow_rank,
    "rank-order": rank_order,
    "rank-hangs": rank_hangs,
    "rank-killed": rank_killed,
    "rank-out-of-memory": rank_out_of_memory,
    "disk-full": disk_full,
    "record-cut": record_cut,
    "clock-stepped": clock_stepped,
    "torch-not-the-stacks": other_torch,
}
