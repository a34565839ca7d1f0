"""NVIDIA DALI as a loader of images: an optional part, imported only where it was asked for.

The raw images are handed to a pipeline batch by batch, in the order of the native loader, and normalized by DALI's
operators, on the CPU or on the GPU. Its threads take the place of workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.utils.data import BatchSampler
from torchvision import transforms

from perf.training.datasets import Numbers
from perf.training.loaders import LoaderPlan, make_sampler
from perf.training.settings import NotInForce, Unavailable

QUEUE_BATCHES = 2
"""Batches that the pipeline keeps ready; DALI's own default."""

CHANNELS = (1, 3)


class DaliLoader:
    """Images through a DALI pipeline.

    `num_workers` are DALI's threads. `prefetch_factor` is the queue of the whole pipeline, not of each thread.

    Parameters
    ----------
    dataset : models.interface.Samples
        Images: uint8 pixels as the first of `tensors`, and the transform ToTensor, Normalize.
    plan : LoaderPlan
        The rank's share.
    device : torch.device
        Where batches are normalized and delivered.

    Raises
    ------
    NotInForce
        The plan asks for persistent workers, a queue or no threads at all.
    Unavailable
        This stack has no DALI, or the data set is none of plain images.
    """

    loader_name = "dali"
    pin_memory = False
    persistent_workers = False

    def __init__(self, dataset: Any, plan: LoaderPlan, device: torch.device) -> None:
        _require_dali()
        if plan.workers < 1:
            raise NotInForce("loader dali works with threads of its own; ask for at least 1 worker")
        if plan.persistent or plan.prefetch is not None:
            raise NotInForce(
                "loader dali has threads and a queue of its own, so neither persistent workers nor prefetched batches "
                "can be in force"
            )
        mean, deviation = normalization(dataset)
        self.dataset = dataset
        self.device = device
        self.sampler = make_sampler(dataset, plan)
        self._images, self._targets = images_and_targets(dataset)
        self._order = BatchSampler(self.sampler, plan.batch_size, drop_last=False)
        self._waiting: Iterator[list[int]] = iter(())
        self._running = False
        self._pipeline = self._build(plan, mean, deviation)
        self.batch_size = int(self._pipeline.max_batch_size)
        self.num_workers = int(self._pipeline.num_threads)
        self.prefetch_factor = QUEUE_BATCHES

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield an epoch's batches, in memory of their own."""
        return self._run(self._order)

    def fetch(self, indices: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the samples `indices` as one batch, made by the pipeline."""
        size = self.batch_size
        parts = list(self._run([indices[at : at + size] for at in range(0, len(indices), size)]))
        return torch.cat([images for images, _ in parts]), torch.cat([targets for _, targets in parts])

    @property
    def facts(self) -> dict[str, Any]:
        """Where the images are normalized, and DALI's version."""
        import nvidia.dali

        return {"device": str(self.device), "version": str(nvidia.dali.__version__)}

    def _build(self, plan: LoaderPlan, mean: list[float], deviation: list[float]) -> Any:
        from nvidia.dali import fn, types
        from nvidia.dali.pipeline import Pipeline

        on_gpu = self.device.type == "cuda"
        number = None
        if on_gpu:
            number = torch.cuda.current_device() if str(self.device) == "cuda" else self.device.index
        pipeline = Pipeline(
            batch_size=plan.batch_size,
            num_threads=plan.workers,
            device_id=number,
            prefetch_queue_depth=QUEUE_BATCHES,
            seed=plan.seed,
        )
        with pipeline:
            images, targets = fn.external_source(
                source=self._next_raw, num_outputs=2, batch=True, layout=["HWC", ""]
            )
            images = fn.crop_mirror_normalize(
                images.gpu() if on_gpu else images,
                dtype=types.FLOAT,
                output_layout="CHW",
                mean=[255 * value for value in mean],
                std=[255 * value for value in deviation],
            )
            pipeline.set_outputs(images, targets.gpu() if on_gpu else targets)
        pipeline.build()
        return pipeline

    def _next_raw(self) -> tuple[Any, Any]:
        """Gather the next batch's raw pixels and classes; DALI calls this ahead of time."""
        chosen = torch.tensor(next(self._waiting))  # its StopIteration ends the epoch
        return self._images[chosen].numpy(), self._targets[chosen].numpy()

    def _run(self, batches: Iterable[list[int]]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        if self._running:
            # The last epoch was left early: what the pipeline still keeps ready is not this epoch's.
            self._waiting = iter(())
            while self._outputs() is not None:
                pass
        self._waiting = iter(batches)
        self._running = True
        while True:
            outputs = self._outputs()
            if outputs is None:
                return
            images, targets = (self._own(output) for output in outputs)
            yield images, targets

    def _outputs(self) -> Any:
        """Run the pipeline once; None at the end of the epoch, after which it can begin anew."""
        try:
            return self._pipeline.run()
        except StopIteration:
            self._pipeline.reset()
            self._running = False
            return None

    def _own(self, output: Any) -> torch.Tensor:
        """Copy a batch out of the pipeline, which writes the next one to the same place."""
        from nvidia.dali.plugin.pytorch import feed_ndarray, to_torch_type

        dense = output.as_tensor()
        tensor = torch.empty(dense.shape(), dtype=to_torch_type[dense.dtype], device=self.device)
        stream = torch.cuda.current_stream(self.device) if self.device.type == "cuda" else None
        feed_ndarray(dense, tensor, cuda_stream=stream)
        return tensor


def normalization(dataset: Any) -> tuple[list[float], list[float]]:
    """Return the means and deviations that a data set normalizes with, a number a channel.

    Raises
    ------
    Unavailable
        The data set does anything else with an image, which the pipeline would not.
    """
    if isinstance(dataset, Numbers):
        raise Unavailable("loader dali: it delivers images and can't count samples; audit another loader")
    steps = getattr(getattr(dataset, "transform", None), "transforms", [])
    if [transforms.ToTensor, transforms.Normalize] != [type(step) for step in steps]:
        does = ", ".join(type(step).__name__ for step in steps) or "something else"
        raise Unavailable(
            "loader dali: it is for images whose transform is ToTensor, Normalize, as those of MNIST and of CIFAR at "
            f"32 pixels; this data set's is {does}"
        )
    return [float(value) for value in steps[1].mean], [float(value) for value in steps[1].std]


def images_and_targets(dataset: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return raw pixels, uint8 ``(samples, height, width, channels)``, and classes, ``(samples,)``.

    Raises
    ------
    Unavailable
        The raw data are something else.
    """
    tensors = dataset.tensors()
    images = tensors[0].unsqueeze(-1) if tensors[0].dim() == 3 else tensors[0]
    if len(tensors) == 2 and images.dtype == torch.uint8 and images.dim() == 4 and tensors[1].dim() == 1:
        if images.shape[3] in CHANNELS:
            return images, tensors[1]
        if images.shape[1] in CHANNELS:
            return images.permute(0, 2, 3, 1).contiguous(), tensors[1]
    found = ", ".join(f"{str(t.dtype).replace('torch.', '')} {tuple(t.shape)}" for t in tensors)
    raise Unavailable(f"loader dali: it is for uint8 images with 1 or 3 channels; this data set has {found}")


def _require_dali() -> None:
    try:
        import nvidia.dali  # noqa: F401
    except ImportError as error:
        raise Unavailable(
            "loader dali: this stack has no nvidia.dali; install nvidia-dali for its CUDA version or leave the loader "
            "out"
        ) from error
