"""Every fixed limit, with a sentence that says where its number comes from.

A limit is put at least two launch-to-launch standard deviations away from the healthy value (a limit that the healthy
value touches is answered with `inconclusive`). Sites override a limit, with a reason, in their site file.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """One limit: a number, its unit, and why it is what it is."""

    metric: str
    value: float
    unit: str
    why: str


LOADER_SHARE = Limit(
    "loader_share",
    0.30,
    "share",
    "The tutorials call 0.85 (1 worker on an A100) the defect and reach 0.18 with 4 workers; a loader that takes "
    "more than 0.30 of a step can be improved by workers alone.",
)

DDP_OVERHEAD = {
    "cpu": Limit(
        "ddp_overhead",
        1.20,
        "ratio",
        "One rank has nobody to talk to, so DDP adds its hooks and one copy of the gradients: a few percent of a step "
        "of 70 ms. Beyond 1.20 it does something else.",
    ),
    "cuda": Limit(
        "ddp_overhead",
        1.25,
        "ratio",
        "One rank has nobody to talk to. DDP's own work is some 0.1 to 0.3 ms of host time a step, which shows in a "
        "network as small as mnist_cnn and vanishes in large ones.",
    ),
}

WEAK_SCALING = {
    "cpu": Limit(
        "weak_scaling_overhead",
        1.60,
        "ratio",
        "Two ranks on two cores of one machine share its caches and memory, and gloo copies 4.8 MB of gradients "
        "through the loopback device: 88 ms against 75 ms when quiet. Beyond 1.60 the ranks get in each other's way.",
    ),
    "cuda": Limit(
        "weak_scaling_overhead",
        1.50,
        "ratio",
        "An all-reduce of 4.8 MB takes 0.1 ms over NVLink and about 1 ms through host memory; a step of mnist_cnn "
        "takes 2 to 3 ms. Beyond 1.50 the ranks wait for something else.",
    ),
}

DDP_AGAINST_DP = Limit(
    "ddp_over_dp",
    1.00,
    "ratio",
    "DDP exists to beat DataParallel, which copies the model to every device in each step and runs in one process: "
    "at an equal global batch and equal workers a GPU it must not be slower.",
)

FIRST_EPOCH = {
    "cpu": Limit(
        "first_epoch_penalty",
        1.50,
        "ratio",
        "The first of several short epochs holds the first step (lazy initialization, allocation) and the first start "
        "of the loader's workers, together under 0.5 s of an epoch of 5 s.",
    ),
    "cuda": Limit(
        "first_epoch_penalty",
        4.00,
        "ratio",
        "The first epoch holds CUDA's lazy loading of kernels and the choice of cuDNN's algorithms, one to a few "
        "seconds, and a later epoch of mnist_cnn takes about 3 s; data loaders with cold caches took 31 to 55 epochs.",
    ),
}

LIMITS = (
    LOADER_SHARE,
    *DDP_OVERHEAD.values(),
    *WEAK_SCALING.values(),
    DDP_AGAINST_DP,
    *FIRST_EPOCH.values(),
)
