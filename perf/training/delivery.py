"""Whether a loader delivers what the data set's plain code makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, cast

import torch

from perf.training.datasets import TOLERANCE, unwrapped
from perf.training.settings import NotInForce


def check_delivery(name: str, loader: Any, device: torch.device) -> None:
    """Hold the samples 0, 1 and the last, as a loader makes them, against the data set's plain code.

    So a normalization that was left out or a rotation that was computed and thrown away is found before training. The
    loader's order is not touched. Values may differ by the data set's `tolerance`, `TOLERANCE` where it names none;
    whole numbers may not differ.

    Parameters
    ----------
    name : str
        What the loader is called in the message.
    loader : Any
        What `make_loader` returned.
    device : torch.device
        Where a loader that makes batches on the device must deliver them.

    Raises
    ------
    NotInForce
        A sample differs; the message names loader, index and what differs.
    """
    dataset = loader.dataset
    inner = unwrapped(dataset)
    if not hasattr(inner, "reference"):
        raise NotInForce(
            f"loader {name}: the data set {type(inner).__name__} has no reference to hold its samples against "
            "(see Samples in models/interface.py)"
        )
    last = len(dataset) - 1
    indices = sorted({0, min(1, last), last})
    batch = _fetch(loader, indices)
    tolerance = float(getattr(dataset, "tolerance", TOLERANCE))
    for place, index in enumerate(indices):
        for part, delivered, expected in zip(("input", "target"), batch, dataset.reference(index)):
            if len(delivered) != len(indices):
                problem: Optional[str] = f"shape: a batch of {len(indices)} samples has {len(delivered)} rows"
            elif hasattr(loader, "fetch") and delivered.device.type != device.type:
                problem = f"device: it lies on {delivered.device}, should lie on {device}"
            else:
                problem = _difference(delivered[place].cpu(), expected, tolerance)
            if problem is not None:
                raise NotInForce(
                    f"loader {name}: {part} of sample {index} is not the data set's reference: {problem}"
                )


def _fetch(loader: Any, indices: list[int]) -> Sequence[torch.Tensor]:
    """Make one batch by a loader's own way of making samples, in this process."""
    if hasattr(loader, "fetch"):
        return cast(Sequence[torch.Tensor], loader.fetch(indices))
    whole = getattr(loader.dataset, "__getitems__", None)
    samples = [loader.dataset[index] for index in indices] if whole is None else whole(indices)
    return cast(Sequence[torch.Tensor], loader.collate_fn(samples))


def _difference(delivered: torch.Tensor, expected: torch.Tensor, tolerance: float) -> Optional[str]:
    """Say how a tensor differs from what was expected; None where it doesn't."""
    if delivered.shape != expected.shape:
        return f"shape: {tuple(delivered.shape)}, expected {tuple(expected.shape)}"
    if delivered.dtype != expected.dtype:
        return f"dtype: {delivered.dtype}, expected {expected.dtype}"
    # Nearly always: comparing with a tolerance takes ten times as long.
    if torch.equal(delivered, expected):
        return None
    allowed = tolerance if expected.is_floating_point() else 0.0
    if torch.allclose(delivered, expected, rtol=allowed, atol=allowed):
        return None
    largest = float((delivered.double() - expected.double()).abs().max())
    return f"values: largest difference {largest:.2g}, allowed {allowed:g}"
