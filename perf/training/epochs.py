"""How an epoch is trained or drained: by the tutorials' loop, by a step of its own, or either under a profile."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from perf.contract import NSYS_FILE, TRACE_FILE, LaunchSpec
from perf.training import settings
from perf.training.assembly import Assembly, needs_own_step
from perf.training.audit import drain_indexed
from perf.training.clocks import Clock
from perf.training.identity import Identity
from perf.training.loop import drain, train, train_with
from perf.training.meter import Meter
from perf.training.phases import PhaseTimer, train_in_phases, train_with_in_phases
from perf.training.tracing import Tracer, make_tracer, train_traced
from perf.training.watched import Watched

LINE_PROFILE = "train-rank-{rank}.lprof"


@dataclass
class Epochs:
    """What runs an epoch of a launch, and what it leaves besides the steps' times.

    Attributes
    ----------
    one
        Trains (or drains) one epoch, given its number, and says whether it was whole.
    phases
        Times of each step's phases, where they are asked for.
    tracer
        Of a launch that is traced.
    line_profile
        Name of the file with this rank's line profile.
    indices
        Of an audit: the samples that each epoch delivered, in their order.
    """

    one: Callable[[int], bool]
    phases: Optional[PhaseTimer] = None
    tracer: Optional[Tracer] = None
    line_profile: Optional[str] = None
    indices: list[list[int]] = field(default_factory=list)

    def trace_file(self, spec: LaunchSpec, rank: int) -> Optional[str]:
        """Return the name of the trace that a rank leaves; Nsight Systems leaves one for all ranks of a launch."""
        if self.tracer is None:
            return None
        if spec.trace == "nsys":
            return NSYS_FILE if rank == 0 else None
        return TRACE_FILE.format(rank=rank)


def epochs_of(
    spec: LaunchSpec,
    identity: Identity,
    built: Assembly,
    loss_function: Callable[..., Any],
    feed: Watched,
    meter: Meter,
    clock: Callable[[], Clock],
) -> Epochs:
    """Return what runs the epochs of a launch.

    Parameters
    ----------
    feed
        Delivers the batches, and keeps the first one.
    clock
        Makes a clock for the phases of a step.

    Raises
    ------
    perf.training.settings.Unavailable
        A profile was asked for that this kind of step can't have.
    perf.training.settings.NotInForce
        A line profile was asked for, and the stack has no line_profiler.
    """
    device, model, optimizer = identity.device, built.model, built.optimizer
    if spec.plan == "audit":
        return _audited(spec, feed, meter)
    if spec.mode == "io":
        return Epochs(lambda epoch: drain(feed, meter))
    if needs_own_step(spec):
        return _own_step(spec, built, feed, meter, clock)
    if spec.phases:
        timer = PhaseTimer(clock())
        return Epochs(
            lambda epoch: train_in_phases(model, device, feed, loss_function, optimizer, meter, timer),
            phases=timer,
        )
    if spec.trace:
        # A step behind the window's beginning, where ranks agree on its length by a collective of their own.
        tracer = make_tracer(spec, identity.rank, device, meter.warmup_steps + 1)
        return Epochs(
            lambda epoch: train_traced(model, device, feed, loss_function, optimizer, meter, tracer),
            tracer=tracer,
        )
    if spec.line_profile:
        name = LINE_PROFILE.format(rank=identity.rank)
        return Epochs(
            _profiled(
                lambda f: lambda epoch: f(model, device, feed, loss_function, optimizer, meter),
                os.path.join(spec.out_dir, name),
            ),
            line_profile=name,
        )
    return Epochs(lambda epoch: train(model, device, feed, loss_function, optimizer, meter))


def _audited(spec: LaunchSpec, feed: Watched, meter: Meter) -> Epochs:
    """Return what only takes batches, and writes down which samples they were."""
    indices: list[list[int]] = []

    def audit(epoch: int) -> bool:
        indices.append([])
        return drain_indexed(feed, meter, indices[-1], spec.later_epoch_batches if epoch else None)

    return Epochs(audit, indices=indices)


def _own_step(
    spec: LaunchSpec, built: Assembly, feed: Watched, meter: Meter, clock: Callable[[], Clock]
) -> Epochs:
    """Return what trains by a step that is more than the tutorials' loop."""
    if spec.line_profile or spec.trace:
        raise settings.Unavailable(
            "traces and line profiles are of the tutorials' loop; mixed precision, another memory format and a "
            "CUDA graph train in a step of their own"
        )
    if spec.phases and built.graphed is not None:
        raise settings.Unavailable(
            "a CUDA graph replays a step as one piece, which has no phases to be timed"
        )
    if spec.phases:
        timer = PhaseTimer(clock())
        return Epochs(
            lambda epoch: train_with_in_phases(built.eager.in_phases, built.model, feed, meter, timer),
            phases=timer,
        )
    return Epochs(lambda epoch: train_with(built.step, built.model, feed, meter))


def _profiled(bind: Callable[[Any], Callable[[int], bool]], path: str) -> Callable[[int], bool]:
    """Return the training of an epoch under line_profiler; its statistics are written after each epoch."""
    try:
        from line_profiler import LineProfiler
    except ImportError as error:
        raise settings.NotInForce(
            "a line profile was asked for, but this stack has no line_profiler; "
            "install it there or leave --line-profile out"
        ) from error
    profiler = LineProfiler()
    one_epoch = bind(profiler(train))

    def profiled(epoch: int) -> bool:
        whole = one_epoch(epoch)
        profiler.dump_stats(path)
        return whole

    return profiled
