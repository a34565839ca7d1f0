"""How much of the catalogue runs, how often and how long: ``smoke``, ``quick``, ``full``; ``compare`` for two stacks.

Also the sizes of a launch for each plan. Steps and seconds come from what a launch costs: on a GPU a start takes
10 to 20 s, so a window shorter than 2 s would leave nearly all of the time unmeasured; on two slow cores a step of
`mnist_cnn` takes 70 ms at its own batch of 64, too much for a smoke run of three minutes with 18 launches.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from perf.verdict.looks import FIRST_LOOK


@dataclass(frozen=True)
class Sizes:
    """How long one launch trains, and on how much; see `perf.contract.LaunchSpec` for the words.

    A workload's own batch is cut to `batch_size` where it is larger, which would take too long; records say so.
    """

    warmup_steps: int
    timed_steps: int
    min_seconds: float = 0.0
    max_seconds: float = 0.0
    warmup_seconds: float = 0.0
    epochs: int = 0
    epoch_samples: int | None = None
    later_epoch_batches: int | None = None
    validate_samples: int | None = None
    batch_size: int | None = None


@dataclass(frozen=True)
class Profile:
    """One profile.

    Parameters
    ----------
    launches
        Launches of each member of a judged group.
    cap
        Launches a side up to which an undecided judgement may ask for more.
    one_thread
        Whether every rank has one thread.
    judge_all
        Whether every judged group gets `launches`; else, in ``smoke``, only the groups marked for it, and in ``full``
        only those that ``quick`` accepts a stack by. The others get one launch.
    """

    name: str
    launches: int
    cap: int
    one_thread: bool
    judge_all: bool
    time_limit_seconds: float
    sizes: dict[tuple[str, str], Sizes]
    stalls: bool = False
    """Whether windows on GPUs are long enough for shares of slow steps, for workloads that are marked for it."""
    every_stall: bool = False
    """Whether they are so for every workload."""
    asked: bool = False
    """Whether somebody named a number of launches."""

    def with_launches(self, launches: int) -> Profile:
        """Return this profile with so many launches of each member of every judged group."""
        # Fewer than the first look decides nothing, and whoever asks for so few does not want more.
        cap = launches if launches < FIRST_LOOK else max(launches, self.cap)
        return dataclasses.replace(self, launches=launches, cap=cap, judge_all=True, asked=True)

    def with_stalls(self) -> Profile:
        """Return this profile with windows on GPUs that are long enough for shares of slow steps of every workload."""
        return dataclasses.replace(self, stalls=True, every_stall=True)

    def sizes_for(self, device: str, plan: str) -> Sizes:
        """Return the sizes of a launch on `device` for `plan`."""
        return self.sizes[device, plan]


_GPU_SIZES = {
    # 100 steps and at least 2 s: the median of 100 steps is worth nearly as much as that of 200, and launches buy more.
    # Where 100 steps take longer than 4 s, fewer do: a step that long waits for the device or the loader, and spreads
    # little. On H200s medians of 51 steps spread from launch to launch as those of 64 (unet3d 0.03, resnet50 at 224
    # 0.15 %). A warm-up has as many steps as take 0.4 s, 10 at least, 20 where a CUDA graph is captured among them, and
    # never fewer than a loader's queue takes: 32 steps of mnist_cnn take less than a fifth of that.
    ("cuda", "window"): Sizes(
        warmup_steps=32, timed_steps=100, min_seconds=2.0, max_seconds=4.0, warmup_seconds=0.4
    ),
    ("cuda", "epochs"): Sizes(warmup_steps=32, timed_steps=100, epochs=3),
    ("cuda", "solution"): Sizes(
        warmup_steps=4, timed_steps=20, epochs=3, epoch_samples=512, validate_samples=64
    ),
    # Samples are counted, and no step is timed: an epoch of unet3d has 32 on four GPUs.
    ("cuda", "audit"): Sizes(warmup_steps=0, timed_steps=0, epochs=2),
    # A second for each of 15 rates.
    ("cuda", "rates"): Sizes(warmup_steps=0, timed_steps=0, min_seconds=1.0),
}

_CPU_SIZES = {
    ("cpu", "window"): Sizes(warmup_steps=20, timed_steps=60),
    # A whole epoch of mnist_cnn takes 42 to 75 s on two cores: epochs of 64 steps tell the same there.
    ("cpu", "epochs"): Sizes(
        warmup_steps=20, timed_steps=60, epochs=3, epoch_samples=4096, validate_samples=1000
    ),
    # Of unet3d_tiny: 384 steps of 4 crops, or 48 of 32; 10 s on a quiet core.
    ("cpu", "solution"): Sizes(
        warmup_steps=4, timed_steps=20, epochs=3, epoch_samples=512, validate_samples=64
    ),
    ("cpu", "audit"): Sizes(warmup_steps=0, timed_steps=0, epochs=2),
    # 0.8 s for each of 8 rates.
    ("cpu", "rates"): Sizes(warmup_steps=0, timed_steps=0, min_seconds=0.8),
}

PROFILES = {
    "smoke": Profile(
        name="smoke",
        launches=5,
        cap=5,
        one_thread=True,
        judge_all=False,
        time_limit_seconds=300.0,
        sizes={
            **_GPU_SIZES,
            # With 8 samples a step the start of a launch, not its steps, is what smoke waits for. The loss falls within
            # these 44 steps for 50 of 50 seeds, for mnist_cnn and for every tiny network.
            ("cpu", "window"): Sizes(warmup_steps=20, timed_steps=24, batch_size=8),
            # Epochs of 64 steps.
            ("cpu", "epochs"): Sizes(
                warmup_steps=20,
                timed_steps=24,
                epochs=2,
                epoch_samples=1024,
                validate_samples=1000,
                batch_size=16,
            ),
            # The first epoch is whole; 16 batches of the second show that it is shuffled anew.
            ("cpu", "audit"): Sizes(warmup_steps=0, timed_steps=0, epochs=2, later_epoch_batches=16),
            ("cpu", "rates"): Sizes(warmup_steps=0, timed_steps=0, min_seconds=0.2),
        },
    ),
    "quick": Profile(
        name="quick",
        launches=5,
        cap=10,
        one_thread=False,
        judge_all=True,
        time_limit_seconds=600.0,
        sizes={**_GPU_SIZES, **_CPU_SIZES},
    ),
    "full": Profile(
        name="full",
        launches=5,
        cap=16,
        one_thread=False,
        judge_all=False,
        time_limit_seconds=600.0,
        sizes={**_GPU_SIZES, **_CPU_SIZES},
    ),
}

for _name in ("compare", "compare-full"):
    # Every comparison is judged, and up to the last look: that is what whoever compares two stacks waits for.
    PROFILES[_name] = dataclasses.replace(PROFILES["full"], name=_name, judge_all=True, stalls=True)
# The same in smoke's sizes, to try it on a laptop. Short windows spread more, so it wants a wider margin.
PROFILES["compare-smoke"] = dataclasses.replace(
    PROFILES["smoke"], name="compare-smoke", cap=PROFILES["full"].cap, judge_all=True
)
