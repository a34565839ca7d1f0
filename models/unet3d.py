"""A 3-D U-Net that predicts gas from dark matter in a box of the universe, point by point.

Network, loss, optimizer and schedule of the deep-learning tutorial that NERSC gave at SC22 (sc22-dl-tutorial,
``networks/UNet.py``, ``config/UNet.yaml``), after Harrington et al. 2021; the loss without its second term, which the
tutorial weighs with 0 (``lambda_rho``). There is no batch normalization, and so no buffer that ranks must exchange.

``unet3d`` is the tutorial's network on crops of 64³ points. ``unet3d_tiny`` is the same class with fewer levels and
channels on crops of 16³, for tests and for machines without a GPU: some 30 ms a step on one core.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.optim.lr_scheduler import LRScheduler

from models import choices, density_data
from models.density_generated import CHANNELS
from models.interface import Workload

WEIGHT_DEVIATION = 0.02
"""Of the normal distribution that every weight starts from; biases start at 0 (``conv_scale``, ``conv_bias``)."""

RATE = 2e-4
"""Learning rate of Adam (``lr_schedule``: ``start_lr``)."""


class UNet3d(nn.Module):
    """Levels that halve the side, as many that double it again, and a way past each pair.

    From ``(batch, 4, S, S, S)`` to ``(batch, 5, S, S, S)`` inside (-1, 1). S is a multiple of 2 to the power of levels.

    Parameters
    ----------
    widths : tuple of int
        Channels after each level on the way down.
    """

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            nn.Sequential(nn.Conv3d(before, after, 4, stride=2, padding=1), nn.LeakyReLU(inplace=True))
            for before, after in zip((CHANNELS["input"], *widths), widths)
        )
        # From the deepest level up. All but the deepest read what comes from below and what went past, in channels of
        # equal number.
        into = (widths[-1], *(2 * width for width in widths[-2::-1]))
        self.up = nn.ModuleList(
            nn.Sequential(nn.ConvTranspose3d(before, after, 4, stride=2, padding=1), nn.ReLU(inplace=True))
            for before, after in zip(into, widths[-2::-1])
        )
        self.last = nn.ConvTranspose3d(into[-1], CHANNELS["target"], 4, stride=2, padding=1)
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.normal_(parameter, 0.0, WEIGHT_DEVIATION)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        past: list[torch.Tensor] = []
        for level in self.down:
            x = level(x)
            past.append(x)
        past.pop()
        for level in self.up:
            x = torch.cat([level(x), past.pop()], dim=1)
        return torch.tanh(self.last(x))


@dataclass(eq=False)
class UNet3dWorkload:
    """The workload in one size (see models/interface.py). Sizes differ in these numbers alone."""

    PARAMETERS: int
    BATCH_SIZE: int
    WIDTHS: tuple[int, ...]
    CROP: int
    """Points along an edge of a sample."""
    SIDES: dict[str, int]
    """Points along an edge of the generated boxes ``train`` and ``validation``."""
    # Virtual numbers, since each crop is drawn anew: those of the tutorial's configuration ``short``.
    TRAIN_SAMPLES: int = 4096
    VALIDATION_SAMPLES: int = 512
    OPTIMIZERS: tuple[str, ...] = ("adam",)
    SCHEDULES: tuple[str, ...] = ("cosine", "constant")

    def __post_init__(self) -> None:
        self.VALIDATION_BATCH_SIZE = self.BATCH_SIZE
        self.SAMPLE_SHAPE = (CHANNELS["input"], *[self.CROP] * 3)
        self.TARGET_SHAPE = (CHANNELS["target"], *[self.CROP] * 3)

    def build_model(self) -> nn.Module:
        return UNet3d(self.WIDTHS)

    def loss_function(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.l1_loss(output, target)

    def make_optimizer(self, model: nn.Module, /, name: str = "", **flags: Any) -> optim.Optimizer:
        return choices.choose(
            "optimizer", name, {"adam": lambda: optim.Adam(model.parameters(), lr=RATE, **flags)}
        )

    def make_scheduler(self, optimizer: optim.Optimizer, name: str = "", epochs: int = 0) -> LRScheduler:
        if name and name not in self.SCHEDULES:
            raise ValueError(f"schedule {name!r} is not one of {', '.join(self.SCHEDULES)}")
        return choices.schedule(optimizer, name or self.SCHEDULES[0], epochs, gamma=1.0)

    def train_set(
        self, data_root: str | None, cache_dir: str
    ) -> tuple[density_data.Crops, dict[str, object]]:
        return self._samples("train", self.TRAIN_SAMPLES, data_root, cache_dir)

    def validation_set(
        self, data_root: str | None, cache_dir: str
    ) -> tuple[density_data.Crops, dict[str, object]]:
        return self._samples("validation", self.VALIDATION_SAMPLES, data_root, cache_dir)

    def validate(
        self,
        model: nn.Module,
        device: torch.device,
        loader: Iterable[tuple[torch.Tensor, torch.Tensor]],
    ) -> tuple[float, None]:
        was_training = model.training
        model.eval()
        # The sum stays on the device: an .item() for each batch would wait for the device each time.
        loss = torch.zeros((), device=device)
        samples = 0
        with torch.no_grad():
            for data, target in loader:
                data, target = data.to(device), target.to(device)
                loss += self.loss_function(model(data), target) * len(target)
                samples += len(target)
        model.train(was_training)
        if samples == 0:
            raise ValueError(
                "nothing to validate on: the loader delivered no batch. Give it at least one sample."
            )
        return loss.item() / samples, None

    def _samples(
        self, part: str, samples: int, data_root: str | None, cache_dir: str
    ) -> tuple[density_data.Crops, dict[str, object]]:
        source = density_data.find(data_root, cache_dir, self.SIDES, self.CROP)
        dataset = density_data.crops(source, part, self.CROP, samples)
        return dataset, density_data.provenance(source, samples)


SIZES: dict[str, Workload] = {
    "": UNet3dWorkload(
        PARAMETERS=116_977_029,
        BATCH_SIZE=32,  # the tutorial's for a V100 (``base_sm``); it has 64 for an A100
        WIDTHS=(64, 128, 256, 512, 512, 512),
        CROP=64,
        SIDES={"train": 256, "validation": 128},  # the tutorial's boxes have 1024 and 512: 38.7 and 4.8 GB
    ),
    "tiny": UNet3dWorkload(
        PARAMETERS=440_517,
        BATCH_SIZE=4,
        WIDTHS=(16, 32, 32, 32),
        CROP=16,
        SIDES={"train": 48, "validation": 32},
    ),
}
