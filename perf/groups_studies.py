"""Groups of studies: large batches and their learning rates, memory against batch, sizes of a network."""

from __future__ import annotations

from collections.abc import Iterator

from perf.declaration import Declaration, Maker, windows
from perf.workloads import WORKLOADS

TIMES = 8
"""A large batch is so many times the workload's own: the SC22 tutorial goes from 64 to 512 first."""

WARM_STEPS = 8
"""Steps of warm-up: of 48 in all, as the tutorial's 128 of 1,280."""

MULTIPLES = (0.5, 1, 2, 4, 8)
"""Batches of the study of memory and time, in the workload's own."""

STUDIED = ("mnist_cnn", "resnet50", "resnet152", "unet3d")


def solution(make: Maker) -> Iterator[Declaration]:
    """Yield short trainings to a target: the workload's own batch, and a large one with each rule of its rate."""
    batch = WORKLOADS[make.workload].batch_size
    warm = f"warm{WARM_STEPS}"
    rules = (("none",), ("sqrt", warm), ("linear", warm))
    large = [make.single(batch=TIMES * batch, rate=rule) for rule in rules]
    # The same global batch on several devices has to take the same way.
    shared = make.ddp(make.many, batch=TIMES * batch // make.many, rate=("sqrt", warm))
    members = tuple((v, "solution") for v in (make.single(rate=("none",)), *large, shared))
    yield Declaration("solution", members, judged=False, profiles=("full",), compared=False)


def batches(make: Maker) -> Iterator[Declaration]:
    """Yield one network at several batches, on data that lie on the device: time and memory against the batch."""
    if make.workload not in STUDIED or (make.device == "cpu" and make.workload != "mnist_cnn"):
        return
    own = WORKLOADS[make.workload].batch_size
    found = [make.single("synthetic", batch=None if times == 1 else int(own * times)) for times in MULTIPLES]
    yield Declaration("batches", windows(*found), judged=False, profiles=("full",), compared=False)
