"""What the ResNet workloads share: images in a hundred classes, cross entropy, SGD, validation.

Loss, optimizer and normalization are those of the source, the demo of data-parallel training (ResNet-152 on
CIFAR-100, DP and DDP) in CSC's summer school on high-performance computing: SGD with rate 0.01 and momentum 0.9, the
same in all epochs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.optim.lr_scheduler import LRScheduler
from torchvision.models.resnet import Bottleneck

from models import choices, cifar_data
from models.classification import validate_classes


class NarrowBottleneck(Bottleneck):  # type: ignore[misc]  # torchvision has no types
    """A bottleneck that doesn't widen: blocks end in 64 to 512 channels, not 256 to 2048, for steps on a CPU core."""

    expansion = 1


@dataclass
class ImageClassifier:
    """A size of a network that sorts CIFAR-100's images. `models.interface.Workload` describes all members.

    Parameters
    ----------
    network : callable
        Makes the network: images ``(batch, 3, side, side)`` to scores ``(batch, 100)``.
    side : int
        Height and width of the images in pixels; CIFAR-100's are resized if it isn't 32.
    """

    network: Callable[[], nn.Module]
    PARAMETERS: int
    BATCH_SIZE: int
    VALIDATION_BATCH_SIZE: int = 1000
    side: int = 32
    TRAIN_SAMPLES: int = 50_000
    VALIDATION_SAMPLES: int = 10_000
    OPTIMIZERS: tuple[str, ...] = ("sgd", "adam")
    SCHEDULES: tuple[str, ...] = ("constant",)
    TARGET_SHAPE: tuple[int, ...] = ()

    @property
    def SAMPLE_SHAPE(self) -> tuple[int, ...]:  # noqa: N802 - a constant of the interface
        return (3, self.side, self.side)

    def build_model(self) -> nn.Module:
        return self.network()

    def loss_function(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(output, target)

    def make_optimizer(self, model: nn.Module, /, name: str = "", **flags: Any) -> optim.Optimizer:
        # The source has SGD alone; Adam's rate is torch's own default.
        return choices.choose(
            "optimizer",
            name,
            {
                "sgd": lambda: optim.SGD(model.parameters(), lr=0.01, momentum=0.9, **flags),
                "adam": lambda: optim.Adam(model.parameters(), lr=1e-3, **flags),
            },
        )

    def make_scheduler(self, optimizer: optim.Optimizer, name: str = "", epochs: int = 0) -> LRScheduler:
        if name and name not in self.SCHEDULES:
            raise ValueError(f"schedule {name!r} is not one of {', '.join(self.SCHEDULES)}")
        return choices.schedule(optimizer, "constant", epochs, gamma=1.0)

    def train_set(self, data_root: str | None, cache_dir: str) -> tuple[cifar_data.Cifar, dict[str, object]]:
        return self._part(data_root, cache_dir, train=True)

    def validation_set(
        self, data_root: str | None, cache_dir: str
    ) -> tuple[cifar_data.Cifar, dict[str, object]]:
        return self._part(data_root, cache_dir, train=False)

    def _part(
        self, data_root: str | None, cache_dir: str, train: bool
    ) -> tuple[cifar_data.Cifar, dict[str, object]]:
        source = cifar_data.find(data_root, cache_dir)
        dataset = cifar_data.load(source, train, self.side, cache_dir)
        return dataset, cifar_data.provenance(source, len(dataset))

    def validate(
        self,
        model: nn.Module,
        device: torch.device,
        loader: Iterable[tuple[torch.Tensor, torch.Tensor]],
    ) -> tuple[float, float]:
        return validate_classes(model, device, loader, F.cross_entropy)
