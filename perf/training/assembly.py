"""What trains in one rank: network, optimizer, schedule and step, put together as a launch spec says; and read back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

import torch

from models.interface import Workload
from perf.contract import LaunchSpec
from perf.training import optimizations, settings, strategies
from perf.training.identity import Identity
from perf.training.learning_rate import ScaledRate, scale_of
from perf.training.loaders import describe
from perf.training.steps import AUTOCAST, EagerStep, GraphedStep

LOOP_STAYS = ("fused", "compile", "autotune")
"""Optimizations that leave the tutorials' loop as it is; the others need a step of their own."""


@dataclass
class Assembly:
    """Everything that a training loop needs, on its devices."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: Any
    parameters: int
    eager: EagerStep
    graphed: Optional[GraphedStep]
    watch: Optional[settings.ActivationWatch]
    rate: Optional[ScaledRate] = None

    @property
    def step(self) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        """Return what trains on one batch."""
        return self.graphed or self.eager


def assemble(spec: LaunchSpec, identity: Identity, workload: Workload) -> Assembly:
    """Build the network and all that trains it.

    Raises
    ------
    Unavailable
        If this stack or device lacks something that was asked for.
    NotInForce
        If the network is not the one that the catalogue names.
    """
    device, asked = identity.device, spec.optimizations
    optimizations.refuse_unavailable(
        asked, device=device, strategy=spec.strategy, precision=spec.precision, loader=spec.loader
    )
    if "autotune" in asked:
        torch.backends.cudnn.benchmark = True
    # Made where it trains: 117 million random numbers twice over take one slow core 4 s, and a GPU no time.
    with identity.device:
        network = workload.build_model()
    parameters = sum(p.numel() for p in network.parameters() if p.requires_grad)
    if parameters != spec.parameters:
        raise settings.NotInForce(
            f"{spec.workload} should have {spec.parameters} parameters, has {parameters}"
        )
    fmt = optimizations.memory_format(network) if "channels_last" in asked else None
    if fmt is not None:
        network = network.to(memory_format=fmt)
    model = strategies.wrap(network, spec.strategy, identity, spec.bucket_cap_mb, spec.ddp_switches)
    # What a compiled model does inside is not seen by hooks; it is watched once, uncompiled, after training.
    watch = None if "compile" in asked else settings.ActivationWatch(model)
    if "compile" in asked:
        model = optimizations.compile_model(model)
    optimizer = optimizations.make_optimizer(workload, model, spec.optimizer, asked)
    rate = None
    if spec.rate_rule:
        global_batch = spec.batch_size * spec.devices_per_rank * spec.world_size
        scale = scale_of(spec.rate_rule, global_batch, spec.rate_base_batch)
        rate = ScaledRate(optimizer, scale, spec.rate_warmup)
    eager = EagerStep(
        model,
        device,
        workload.loss_function,
        optimizer,
        precision=spec.precision,
        memory_format=fmt,
        non_blocking="non_blocking" in asked,
    )
    if (
        "cuda_graph" in asked
        and eager.scaler is not None
        and eager.describe()["scaler"]["reads_device_each_step"]
    ):
        raise settings.Unavailable(
            f"cuda_graph: with float16 the gradient scaler reads the device in each step of "
            f"{type(optimizer).__name__}; only a fused optimizer spares it that"
        )
    return Assembly(
        model,
        optimizer,
        workload.make_scheduler(optimizer, spec.schedule, spec.epochs),
        parameters,
        eager,
        GraphedStep(eager, device) if "cuda_graph" in asked else None,
        watch,
        rate,
    )


def needs_own_step(spec: LaunchSpec) -> bool:
    """Say whether the launch needs more than the tutorials' loop."""
    return spec.precision in AUTOCAST or any(name not in LOOP_STAYS for name in spec.optimizations)


def read_back(
    spec: LaunchSpec, identity: Identity, built: Assembly, loader: Any, first_batch: Optional[Sequence[Any]]
) -> dict[str, Any]:
    """Return the settings that are in force on this rank, from objects and behaviour. Called after training."""
    watch = built.watch
    if watch is None and first_batch is not None and spec.mode != "io":
        watch = _watch_uncompiled(built, first_batch, identity)
    effective = settings.read_back(
        built.model,
        built.optimizer,
        None if watch is None else watch.dtype,
        settings.product_errors(identity.device),
    )
    network = strategies.unwrap(built.model)
    effective.update(
        threads=torch.get_num_threads(),
        loader=describe(loader),
        precision=built.eager.describe(),
        compiled=optimizations.compiled_facts(built.model),
        cuda_graph=None if built.graphed is None else built.graphed.describe(),
        channels_last={
            "weights": optimizations.weights_channels_last(network),
            "activations": None if watch is None else watch.channels_last,
        },
        non_blocking={
            # The tutorials' loop copies and waits, and so does a step that was not told otherwise.
            "in_force": needs_own_step(spec) and built.eager.non_blocking,
            "pinned": _pinned(first_batch) if identity.is_cuda else None,
        },
        owns_parameters=optimizations.owns_parameters(built.model, built.optimizer),
        schedule=type(built.scheduler).__name__,
        learning_rate=None if built.rate is None else built.rate.describe(),
        first_batch=None if first_batch is None else _fingerprint(first_batch),
    )
    return effective


def not_in_force(spec: LaunchSpec, effective: dict[str, Any]) -> list[str]:
    """Return one sentence for each setting that the spec asks for and that is not in force."""
    problems = settings.not_in_force(spec, effective)
    if spec.mode != "io":
        problems += optimizations.not_in_force(spec.optimizations, effective)
    scaled = "scaler" in effective["precision"]
    if spec.mode != "io" and scaled != (spec.precision == "fp16"):
        problems.append(f"a gradient scaler is {'' if scaled else 'not '}in force with {spec.precision}")
    return problems


def _watch_uncompiled(built: Assembly, batch: Sequence[Any], identity: Identity) -> settings.ActivationWatch:
    """Run the step's own forward pass on the network inside, without training it, and watch that."""
    network = strategies.unwrap(built.model)
    watch = settings.ActivationWatch(network)
    was_training = network.training
    network.eval()
    with torch.no_grad():
        built.eager.loss(network, batch[0].to(identity.device), batch[1].to(identity.device))
    network.train(was_training)
    return watch


def _pinned(batch: Optional[Sequence[Any]]) -> Optional[bool]:
    """Say whether a batch came in pinned memory; None for one that lies on a device already."""
    if batch is None or batch[0].device.type != "cpu":
        return None
    return bool(batch[0].is_pinned())


def _fingerprint(batch: Sequence[Any]) -> dict[str, Any]:
    """Return what the first batch looked like, and a digest of its first sample: no two ranks may have the same."""
    data, target = batch[0], batch[1]
    sample = data[:1].detach().cpu().contiguous()
    return {
        "shape": list(data.shape),
        "dtype": str(data.dtype).replace("torch.", ""),
        "target_shape": list(target.shape),
        "mean": float(data.float().mean()),
        "deviation": float(data.float().std()),
        "sample": hashlib.sha256(sample.numpy().tobytes()).hexdigest()[:32],
    }
