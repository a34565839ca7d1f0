"""How batches reach a rank: the loaders by name, the order they share, and what is in force of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Union, cast

import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler, RandomSampler

from perf.training.datasets import start_epoch, unwrapped
from perf.training.settings import NotInForce

NAMES = ("native", "batched", "resident", "dali")


@dataclass(frozen=True)
class LoaderPlan:
    """What a rank's loader is asked for. `batch_size` and `workers` are the rank's own totals.

    `persistent` keeps the workers through all epochs; `prefetch` is how many batches each keeps ready, None for torch's
    default of 2.
    """

    batch_size: int
    workers: int
    rank: int
    world_size: int
    distributed: bool
    pin_memory: bool
    seed: int
    persistent: bool = False
    prefetch: Optional[int] = None


def make_loader(name: str, dataset: Any, plan: LoaderPlan, device: torch.device) -> Any:
    """Return a loader by its name; all deliver the same samples in the same order for equal plans.

    Parameters
    ----------
    name : str
        ``native`` (torch's DataLoader, sample by sample), ``batched`` (the same, with whole batches made in one go),
        ``resident`` (raw data on the device, batches made there) or ``dali`` (NVIDIA DALI, for images).
    dataset : models.interface.Samples
        What to load; ``native`` takes any data set.
    plan : LoaderPlan
        The rank's share.
    device : torch.device
        Where batches are trained on. ``native`` and ``batched`` deliver on the CPU all the same.

    Returns
    -------
    Any
        An iterable with ``__len__`` (batches an epoch, a partial one included), `dataset`, `batch_size`,
        `num_workers`, `prefetch_factor`, `persistent_workers`, `pin_memory` and `sampler`.

    Raises
    ------
    NotInForce
        The name is unknown, the plan can't be kept, or the data set lacks what the loader needs.
    perf.training.settings.Unavailable
        This stack or device can't do it; the message is the reason.
    """
    if name == "native":
        return native_loader(dataset, plan)
    # Late, so that torch's own loader never pays for the others.
    if name == "batched":
        from perf.training.batched import BatchedLoader

        return BatchedLoader(dataset, plan)
    if name == "resident":
        from perf.training.resident import ResidentLoader

        return ResidentLoader(dataset, plan, device)
    if name == "dali":
        from perf.training.dali import DaliLoader

        return DaliLoader(dataset, plan, device)
    raise NotInForce(f"loader {name!r} is not one that this worker knows: {', '.join(NAMES)}")


def native_loader(dataset: Dataset[Any], plan: LoaderPlan) -> DataLoader[Any]:
    """Return torch's DataLoader as the tutorials set it up: shuffled, pinned on a GPU, workers anew each epoch."""
    return DataLoader(dataset, **torch_arguments(dataset, plan))


def torch_arguments(dataset: Any, plan: LoaderPlan) -> dict[str, Any]:
    """Return what a DataLoader is made with besides its data set.

    Raises
    ------
    NotInForce
        The plan asks for something about workers and has none, or for an empty queue.
    """
    if plan.workers == 0 and (plan.persistent or plan.prefetch is not None):
        asked = "persistent workers" if plan.persistent else f"prefetching {plan.prefetch} batches a worker"
        raise NotInForce(f"the loader has no workers, so {asked} can't be in force; ask for workers too")
    if plan.prefetch is not None and plan.prefetch < 1:
        raise NotInForce(f"a worker must keep at least 1 batch ready, {plan.prefetch} were asked for")
    return {
        "batch_size": plan.batch_size,
        "sampler": make_sampler(dataset, plan),
        "num_workers": plan.workers,
        "pin_memory": plan.pin_memory,
        # The workers' seeds. Not the sampler's generator: new workers draw from it and persistent ones don't, so that
        # from the second epoch on the two would train on other batches.
        "generator": torch.Generator().manual_seed(plan.seed),
        "persistent_workers": plan.persistent,
        "prefetch_factor": plan.prefetch,
    }


def make_sampler(dataset: Any, plan: LoaderPlan) -> Union[DistributedSampler[Any], RandomSampler]:
    """Return what draws the order of samples: the same for every loader, epoch by epoch, for equal plans."""
    if plan.distributed:
        return DistributedSampler(
            dataset, num_replicas=plan.world_size, rank=plan.rank, shuffle=True, seed=plan.seed
        )
    return RandomSampler(dataset, generator=torch.Generator().manual_seed(plan.seed))


def require_batches(name: str, dataset: Any) -> None:
    """Check that a data set makes whole batches.

    Raises
    ------
    NotInForce
        It doesn't; the message says what it lacks.
    """
    inner = unwrapped(dataset)
    lacking = [method for method in ("tensors", "batch") if not hasattr(inner, method)]
    if lacking:
        raise NotInForce(
            f"loader {name} makes whole batches, and the data set {type(inner).__name__} lacks {', '.join(lacking)} "
            "(see Samples in models/interface.py)"
        )


def set_epoch(loader: Any, epoch: int, seed: int) -> None:
    """Tell a loader which epoch comes, before its iterator is made.

    A distributed sampler has the same order in every epoch without it, and what is random in the samples themselves
    (`models.interface.Samples.start_epoch`) stays as it was drawn. `seed` is for the latter, another for each rank.
    """
    if isinstance(loader.sampler, DistributedSampler):
        loader.sampler.set_epoch(epoch)
    start_epoch(loader.dataset, epoch, seed)


def ends_in_part(loader: Any) -> bool:
    """Say whether an epoch's last batch has fewer samples than the others, on this rank as on each."""
    return bool(len(loader.sampler) % loader.batch_size)


def describe(loader: Any) -> dict[str, Any]:
    """Return the settings of a loader, from the object and never from the request; plain values for a record.

    ``loader`` is its name, ``class`` its type. ``start_method`` is how torch's loader starts workers, None for a loader
    that has no worker processes. ``resident`` adds ``device`` and ``bytes``, ``dali`` adds ``device``.
    """
    start_method = None
    if isinstance(loader, DataLoader):
        context = loader.multiprocessing_context or torch.multiprocessing
        start_method = cast(Any, context).get_start_method()
    return {
        "loader": getattr(loader, "loader_name", "native"),
        "class": type(loader).__name__,
        "batch_size": loader.batch_size,
        "workers": loader.num_workers,
        "pin_memory": loader.pin_memory,
        "prefetch_factor": loader.prefetch_factor,
        "persistent_workers": loader.persistent_workers,
        "sampler": type(loader.sampler).__name__,
        "start_method": start_method,
        **getattr(loader, "facts", {}),
    }
