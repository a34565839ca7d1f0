"""What a rank trains on: its data set, its loader, and the batches that the training is handed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from models.interface import Workload
from perf.contract import LaunchSpec
from perf.training import settings
from perf.training.datasets import Numbers, shorten
from perf.training.identity import Identity
from perf.training.loaders import LoaderPlan, make_loader
from perf.training.ring import RingLoader


@dataclass(frozen=True)
class Feed:
    """A rank's data.

    Attributes
    ----------
    provenance
        Where the samples came from, for the record.
    loader
        What `perf.training.loaders.make_loader` returned.
    batches
        What is trained on: the ring of mode ``synthetic``, whose workers are at work, or the loader itself.
    """

    provenance: dict[str, Any]
    loader: Any
    batches: Any


def feeds_early(spec: LaunchSpec, identity: Identity) -> bool:
    """Return whether a rank's data may be opened before it touches its GPU.

    A ring's workers then make its batches while CUDA starts, and a process without CUDA forks them sooner. Those of
    other loaders would only wait for the first epoch; some put the data on the GPU; and the cores beside it, to which
    a rank is bound with its workers, are asked of CUDA.
    """
    anywhere = not spec.numa or bool(spec.tied_cores)
    return identity.is_cuda and spec.mode == "synthetic" and spec.loader == "native" and anywhere


def open_feed(spec: LaunchSpec, identity: Identity, workload: Workload) -> Feed:
    """Find a rank's data, make its loader, and have a ring begun where there is to be one.

    Raises
    ------
    perf.training.settings.NotInForce
        The data are not what the catalogue says, or the loader can't be as asked for.
    perf.training.settings.Unavailable
        This stack or device can't load them so.
    models.errors.DataError
        They can't be used.
    """
    dataset, provenance = workload.train_set(spec.data_root, spec.cache_dir)
    _check_facts(spec, workload, dataset)
    loader = _make_loader(spec, identity, dataset)
    batches = RingLoader(loader, identity.device) if spec.mode == "synthetic" else loader
    return Feed(dict(provenance), loader, batches)


def _check_facts(spec: LaunchSpec, workload: Workload, dataset: Any) -> None:
    """Hold the driver's catalogue against the workload, so that neither drifts from the other unseen."""
    for name, planned, found in (
        ("training samples", spec.train_samples, len(dataset)),
        ("training samples (as the workload says)", spec.train_samples, workload.TRAIN_SAMPLES),
        ("validation samples", spec.validation_samples, workload.VALIDATION_SAMPLES),
        ("parameters (as the workload says)", spec.parameters, workload.PARAMETERS),
    ):
        if planned != found:
            raise settings.NotInForce(f"{spec.workload}: the catalogue says {planned} {name}, found {found}")


def _make_loader(spec: LaunchSpec, identity: Identity, dataset: Any) -> Any:
    shortened = shorten(dataset, spec.epoch_samples)
    plan = LoaderPlan(
        batch_size=spec.batch_size * spec.devices_per_rank,
        workers=spec.workers * spec.devices_per_rank,
        rank=identity.rank,
        world_size=identity.world_size,
        distributed=spec.strategy == "ddp",
        pin_memory=identity.is_cuda if spec.pin_memory is None else spec.pin_memory,
        seed=spec.seed,
        persistent=spec.persistent,
        prefetch=spec.prefetch,
    )
    counted: Any = Numbers(shortened) if spec.plan == "audit" else shortened
    return make_loader(spec.loader, counted, plan, identity.device)
