"""How a model is spread over devices: ``single``, ``dp`` (DataParallel) and ``ddp`` (DistributedDataParallel)."""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Sequence
from typing import Any, Optional

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from perf.training.identity import Identity


def join(backend: str, identity: Identity, time_limit_seconds: float) -> None:
    """Join the process group. A collective that outlasts the launch's time limit ends with an error."""
    arguments: dict[str, Any] = {
        "backend": backend,
        "timeout": datetime.timedelta(seconds=time_limit_seconds),
    }
    if identity.is_cuda and "device_id" in inspect.signature(dist.init_process_group).parameters:
        # Since torch 2.3: binds the communicator at once, so that its start does not fall into the first step.
        arguments["device_id"] = identity.device
    dist.init_process_group(**arguments)


def leave() -> None:
    """Leave the process group, if there is one."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def wrap(
    model: torch.nn.Module,
    strategy: str,
    identity: Identity,
    bucket_cap_mb: Optional[int] = None,
    switches: Sequence[str] = (),
) -> torch.nn.Module:
    """Put the model on its devices and wrap it for `strategy`.

    `bucket_cap_mb` and `switches` are DistributedDataParallel's (see `perf.contract.LaunchSpec`); an unset cap is left
    unset, since torch makes a small first bucket only then.
    """
    model = model.to(identity.device)
    if strategy == "dp":
        return torch.nn.DataParallel(model, device_ids=[device.index for device in identity.devices])
    if strategy == "ddp":
        options: dict[str, Any] = {} if bucket_cap_mb is None else {"bucket_cap_mb": bucket_cap_mb}
        if "nobuffers" in switches:
            # Since torch 2.14 the older name warns.
            known = inspect.signature(DistributedDataParallel.__init__).parameters
            new = "forward_sync_buffers"
            options[new if new in known else "broadcast_buffers"] = False
        return DistributedDataParallel(
            model,
            device_ids=[identity.device.index] if identity.is_cuda else None,
            gradient_as_bucket_view="view" in switches,
            static_graph="static" in switches,
            **options,
        )
    return model


def unwrap(model: torch.nn.Module) -> torch.nn.Module:
    """Return the model inside its wrappers, torch.compile's among them."""
    model = getattr(model, "_orig_mod", model)
    if isinstance(model, (torch.nn.DataParallel, DistributedDataParallel)):
        inner = model.module
        assert isinstance(inner, torch.nn.Module)
        return inner
    return model


def largest(value: int, device: torch.device) -> int:
    """Return the largest of all ranks' numbers; the number itself outside a process group."""
    if not dist.is_initialized():
        return value
    tensor = torch.tensor([value], dtype=torch.int64, device=device)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return int(tensor.item())


def wait_for_all() -> None:
    """Wait for every rank; nothing outside a process group."""
    if dist.is_initialized():
        dist.barrier()
