"""Faults of data and of configuration: the work is fed wrongly, or is another one than was asked for. Python 3.9."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from perf.faults.inject.planting import LAST_RANK, After, Plant, Rank, slow_fetch

DECODE_SECONDS = 0.6
"""Of the processor, a batch: 14 times smoke's step of 42 ms. Launches of that spread by 14 % on two cores, and seven of
them a side see no less than 3.1 times the ratio of steps at the limit: 0.25 s were 0.9 times that, in logarithms."""

COLD_SECONDS = 0.25
"""Of the processor: a whole first epoch of smoke's 64 batches then takes several times a later one (50 ms a step)."""


# Data.


def one_core(after: After, rank: Rank) -> None:
    """All threads and loader workers on one core: a binding that was meant for something else."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def no_workers(after: After, rank: Rank) -> None:
    """A DataLoader that starts no workers, whatever it is asked for."""

    def patch(module: Any) -> None:
        plain = module.DataLoader.__init__

        @functools.wraps(plain)
        def init(self: Any, *arguments: Any, **options: Any) -> None:
            options.update(num_workers=0, persistent_workers=False, prefetch_factor=None)
            plain(self, *arguments, **options)

        module.DataLoader.__init__ = init

    after("torch.utils.data.dataloader", patch)


def slow_decode(after: After, rank: Rank) -> None:
    """Every batch takes longer to make than to train on."""
    slow_fetch(after, lambda: DECODE_SECONDS)


def small_shared_memory(after: After, rank: Rank) -> None:
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


def first_epoch_stall(after: After, rank: Rank) -> None:
    """The first epoch reads from a cold file system: every batch of it comes slowly, and none of a later one."""
    slow_fetch(after, lambda: 0.0 if os.path.exists(_warm(_owner())) else COLD_SECONDS)

    def patch(module: Any) -> None:
        plain = module.Module.eval

        @functools.wraps(plain)
        def evaluate(self: Any) -> Any:
            # The rank's own process marks the end of the first epoch: it validates then, with a loader of its own.
            path = _warm(os.getpid())
            if not os.path.exists(path):
                with open(path, "w", encoding="ascii"):
                    pass
            return plain(self)

        module.Module.eval = evaluate

    after("torch.nn.modules.module", patch)


def _owner() -> int:
    """Return the process of the rank that this process makes batches for."""
    import torch.utils.data

    return os.getpid() if torch.utils.data.get_worker_info() is None else os.getppid()


def _warm(pid: int) -> str:
    """Return the file that says that a process's first epoch is over. A pid alone may come again."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        # proc(5): the process's start is field 22; the second, its name, may hold blanks and ends with a parenthesis.
        started = stat.read().rpartition(")")[2].split()[19]
    return os.path.join(os.environ.get("TMPDIR", "/tmp"), f"stackproof-warm-{pid}-{started}")


# Configuration.


def precision_dropped(after: After, rank: Rank) -> None:
    """Autocast that does nothing."""

    def patch(module: Any) -> None:
        plain = module.autocast.__init__

        @functools.wraps(plain)
        def init(self: Any, *arguments: Any, **options: Any) -> None:
            options["enabled"] = False
            plain(self, *arguments, **options)

        module.autocast.__init__ = init

    after("torch.amp.autocast_mode", patch)


def compile_dropped(after: After, rank: Rank) -> None:
    """torch.compile that gives the model back as it is."""

    def patch(module: Any) -> None:
        module.compile = lambda model=None, **options: model

    after("torch", patch)


def same_shuffle(after: After, rank: Rank) -> None:
    """Every rank draws the first rank's share of the samples."""

    def patch(module: Any) -> None:
        plain = module.DistributedSampler.__init__

        @functools.wraps(plain)
        def init(self: Any, *arguments: Any, **options: Any) -> None:
            plain(self, *arguments, **options)
            self.rank = 0

        module.DistributedSampler.__init__ = init

    after("torch.utils.data.distributed", patch)


def partial_batch_padded(after: After, rank: Rank) -> None:
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


def threads_unequal(after: After, rank: Rank) -> None:
    """One rank keeps a thread more than it is told to have."""

    def patch(module: Any) -> None:
        plain = module.set_num_threads
        module.set_num_threads = lambda number: plain(number + (rank() == LAST_RANK))

    after("torch", patch)


def work_skipped(after: After, rank: Rank) -> None:
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


PLANTS: dict[str, Plant] = {
    "one-core": one_core,
    "no-workers": no_workers,
    "slow-decode": slow_decode,
    "small-shared-memory": small_shared_memory,
    "first-epoch-stall": first_epoch_stall,
    "precision-dropped": precision_dropped,
    "compile-dropped": compile_dropped,
    "same-shuffle": same_shuffle,
    "partial-batch-padded": partial_batch_padded,
    "threads-unequal": threads_unequal,
    "work-skipped": work_skipped,
}
