"""Small data sets as workloads offer them, plans for loaders, and what a loader delivers in some epochs."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from hypothesis import strategies as st
from torch.utils.data import Dataset, TensorDataset
from torchvision import transforms

from models import mnist_generated
from models.mnist_data import DEVIATION, MEAN, Mnist
from perf.training.loaders import LoaderPlan, set_epoch

CPU = torch.device("cpu")
PLAN = LoaderPlan(batch_size=4, workers=0, rank=0, world_size=1, distributed=False, pin_memory=False, seed=5)


def digits(samples: int) -> Mnist:
    """Return generated images in the format of MNIST, with the transform of the sources."""
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)])
    return Mnist(*mnist_generated.draw(samples, 3), train=True, transform=transform)


class Turning(Dataset[Any]):
    """Numbered squares, turned by some quarters that are drawn for each epoch; the target is the sample's number.

    The draw lies in shared memory, so that workers that already run see the next one.
    """

    def __init__(self, samples: int) -> None:
        self.squares = torch.arange(samples * 9, dtype=torch.float32).reshape(samples, 1, 3, 3)
        self.quarters = torch.zeros(samples, dtype=torch.int64).share_memory_()
        self.start_epoch(0, 0)

    def __len__(self) -> int:
        return len(self.squares)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.rot90(self.squares[index], int(self.quarters[index]), (1, 2)), index

    def tensors(self) -> tuple[torch.Tensor, ...]:
        return (self.squares,)

    def batch(self, tensors, indices):
        turned = [torch.rot90(tensors[0][i], int(self.quarters[i]), (1, 2)) for i in indices.tolist()]
        return torch.stack(turned), indices.to(tensors[0].device)

    def reference(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        rows = self.squares[index, 0].tolist()
        for _ in range(int(self.quarters[index])):
            rows = [list(row) for row in zip(*rows, strict=True)][::-1]
        return torch.tensor([rows]), torch.tensor(index)

    def start_epoch(self, epoch: int, seed: int) -> None:
        """Draw 1 to 3 quarters a sample, so that none is the same unturned."""
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        self.quarters.copy_(torch.randint(1, 4, self.quarters.shape, generator=generator))


@st.composite
def plans(draw: Any) -> LoaderPlan:
    """Draw a plan without workers: one rank, or one of up to four."""
    world_size = draw(st.integers(1, 4))
    return dataclasses.replace(
        PLAN,
        batch_size=draw(st.integers(1, 9)),
        rank=draw(st.integers(0, world_size - 1)),
        world_size=world_size,
        distributed=world_size > 1 or draw(st.booleans()),
        seed=draw(st.integers(0, 10)),
    )


def epochs(loader: Any, count: int = 2) -> list[list[Any]]:
    """Return the batches of some epochs."""
    delivered = []
    for epoch in range(count):
        set_epoch(loader, epoch, 7)
        delivered.append(list(loader))
    return delivered


def same(one: list[list[Any]], other: list[list[Any]], tolerance: float = 0.0) -> bool:
    """Say whether two loaders delivered equal batches in equal order: counts, types, shapes and values."""
    if [len(batches) for batches in one] != [len(batches) for batches in other]:
        return False
    pairs = [
        pair
        for batches, others in zip(one, other, strict=True)
        for batch, twin in zip(batches, others, strict=True)
        for pair in zip(batch, twin, strict=True)
    ]
    return all(
        a.dtype == b.dtype and a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=tolerance)
        for a, b in pairs
    )


def numbered(samples: int) -> TensorDataset:
    """Samples that are their own number, with ten times it as target."""
    return TensorDataset(torch.arange(samples), torch.arange(samples) * 10)
