"""A workload that trains in microseconds, specs for it, and a clock that does not tick by itself."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset

from models import mnist_cnn
from perf.contract import LaunchSpec
from perf.training.clocks import Clock


class TinyWorkload:
    """Two linear layers that tell three separable classes apart; everything else like a real workload."""

    PARAMETERS = 4 * 8 + 8 + 8 * 3 + 3
    BATCH_SIZE = 8
    VALIDATION_BATCH_SIZE = 16
    TRAIN_SAMPLES = 180
    VALIDATION_SAMPLES = 50
    OPTIMIZERS = ("sgd",)
    SCHEDULES = ("step",)

    loss_function = staticmethod(torch.nn.functional.nll_loss)
    validate = staticmethod(mnist_cnn.validate)

    def build_model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.LogSoftmax(dim=1))

    def make_optimizer(self, model: nn.Module, name: str = "", **flags: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=0.1, **flags)

    def make_scheduler(self, optimizer: torch.optim.Optimizer, name: str = "", epochs: int = 0) -> Any:
        return torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)

    def train_set(self, data_root: str | None, cache_dir: str) -> tuple[Points, dict[str, object]]:
        return separable(self.TRAIN_SAMPLES, 1), {
            "kind": "tiny",
            "description": "made up",
            "fingerprint": "1",
        }

    def validation_set(self, data_root: str | None, cache_dir: str) -> tuple[Points, dict[str, object]]:
        return separable(self.VALIDATION_SAMPLES, 2), {"kind": "tiny"}


class Points(Dataset):  # type: ignore[type-arg]
    """Points and classes in memory, with what a workload's data set offers beside torch's."""

    def __init__(self, features: torch.Tensor, classes: torch.Tensor) -> None:
        self.features, self.classes = features, classes

    def __len__(self) -> int:
        return len(self.classes)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, ...]:
        return self.features[index], self.classes[index]

    def tensors(self) -> tuple[torch.Tensor, ...]:
        return self.features, self.classes

    def batch(
        self, tensors: tuple[torch.Tensor, ...], indices: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return tensors[0][indices], tensors[1][indices]

    def reference(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.features[index], self.classes[index]

    def start_epoch(self, epoch: int, seed: int) -> None:
        """Points are always the same."""


def separable(samples: int, seed: int) -> Points:
    """Points around three corners: features ``(samples, 4)``, the last of them the sample's number; classes 0 to 2."""
    generator = torch.Generator().manual_seed(seed)
    classes = torch.randint(0, 3, (samples,), generator=generator)
    features = (
        torch.nn.functional.one_hot(classes, 4).float() * 3 + torch.randn(samples, 4, generator=generator) / 4
    )
    features[:, 3] = torch.arange(samples) / samples
    return Points(features, classes)


def make_spec(out_dir: object, **changes: Any) -> LaunchSpec:
    """Return a spec of one CPU rank that trains `TinyWorkload`: 4 warm-up steps, 6 timed ones."""
    fields: dict[str, Any] = {
        "run": "run",
        "launch": "main-0001",
        "variant": "tiny-single-1cpu-fp32-native0",
        "group": "group",
        "round": 0,
        "workload": "tiny",
        "strategy": "single",
        "device": "cpu",
        "backend": "none",
        "nodes": 1,
        "ranks_per_node": 1,
        "gpus": 0,
        "precision": "fp32",
        "loader": "native",
        "mode": "full",
        "plan": "window",
        "batch_size": TinyWorkload.BATCH_SIZE,
        "workers": 0,
        "threads": 1,
        "cores": 2,
        "seed": 1000,
        "warmup_steps": 4,
        "timed_steps": 6,
        "min_seconds": 0.0,
        "epochs": 0,
        "cache_dir": str(out_dir),
        "out_dir": str(out_dir),
        "time_limit_seconds": 300.0,
        "parameters": TinyWorkload.PARAMETERS,
        "train_samples": TinyWorkload.TRAIN_SAMPLES,
        "validation_samples": TinyWorkload.VALIDATION_SAMPLES,
    }
    return LaunchSpec(**{**fields, **changes})


class FakeDevice(Clock):
    """A device with a queue, and the host that fills it; time passes only where a test says so.

    It is a `perf.training.clocks.Clock` and stands in for the module `time` too. A mark lies behind the work queued so
    far, as a CUDA event does; a synchronize lets the host wait until the queue is empty.
    """

    def __init__(self) -> None:
        self.now = 100.0
        self.idle_at = 100.0
        self.synchronized = 0
        self.prepared: list[int] = []
        self.asked: list[tuple[float, float]] = []
        self.wrong = 0
        self.ends: list[tuple[float, float]] = []
        self.names: list[str] = []

    def name(self, marks: Any) -> str:
        """Return the first of `names` for a window's first stretch, and so on; then ``events``."""
        return self.names.pop(0) if self.names else "events"

    def suit(self, lag: float, step: float) -> None:
        self.asked.append((lag, step))

    def fits(self, lag: float, step: float) -> bool:
        """Call so many windows wrong as `wrong` says."""
        self.ends.append((lag, step))
        self.wrong -= 1
        return self.wrong < 0

    def host(self, seconds: float) -> None:
        self.now += seconds

    def queue(self, seconds: float) -> None:
        self.idle_at = max(self.idle_at, self.now) + seconds

    def marks(self, due: list[Any]) -> tuple[Any, Any, list[float]]:
        self.prepared.append(len(due) + 1)
        self.now += 0.5
        points: list[float] = []

        def mark() -> None:
            points.append(max(self.idle_at, self.now))

        def step(loss: Any, target: Any) -> bool:
            mark()
            action = due.pop()
            return action is not None and action(loss, target)

        return mark, step, points

    def synchronize(self) -> None:
        self.synchronized += 1
        self.now = max(self.now, self.idle_at)

    def durations(self, marks: Any) -> list[float]:
        return [after - before for before, after in itertools.pairwise(marks)]

    @property
    def as_time(self) -> SimpleNamespace:
        """What replaces the module ``time`` in the code under test."""
        return SimpleNamespace(perf_counter=lambda: self.now)
