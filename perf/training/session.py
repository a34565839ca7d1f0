"""One rank's work from the built model to its record: build, warm up, time, validate, read back."""

from __future__ import annotations

import math
import os
import time
from typing import Any, Callable, Optional, cast

import torch
from torch.utils.data import DataLoader, Dataset

from models.interface import Workload
from perf import contract
from perf.contract import EpochRecord, LaunchSpec, RankRecord
from perf.training import settings, strategies, usage
from perf.training.assembly import Assembly, assemble, needs_own_step, not_in_force, read_back
from perf.training.audit import audit_facts, drain_indexed
from perf.training.collectives import count_collectives, without_sync
from perf.training.identity import Identity, device_name, gpu_uuid
from perf.training.learned import digest, loss_tenths
from perf.training.loaders import (
    LoaderPlan,
    Numbers,
    RingLoader,
    check_delivery,
    make_loader,
    set_epoch,
    shorten,
)
from perf.training.loop import drain, train, train_with
from perf.training.meter import Clock, CudaClock, HostClock, Meter, Watched, halves
from perf.training.operators import OperatorWatch, available
from perf.training.phases import PhaseTimer, train_in_phases, train_with_in_phases
from perf.training.stackinfo import stack_info
from perf.training.state import State
from perf.training.tracing import Tracer, make_tracer, train_traced

PREFETCH_ROUNDS = 2
"""After a loader's start, batches come from a filling queue for workers x prefetch steps; twice that is thrown away."""

SEEDS_A_LAUNCH = 4096
"""Room for the seeds of a launch's ranks, so that no rank draws what another one draws, in this launch or the next."""

LINE_PROFILE = "train-rank-{rank}.lprof"


class Session:
    """Everything that one rank does in one launch."""

    def __init__(
        self,
        spec: LaunchSpec,
        identity: Identity,
        workload: Workload,
        state: State,
        startup: dict[str, float],
        binding: Optional[dict[str, Any]] = None,
    ) -> None:
        self._spec = spec
        self._identity = identity
        self._workload = workload
        self._state = state
        self._startup = startup
        self._binding = binding
        self._started_at = time.time()
        self._retries_at_opening: dict[str, int] = {}
        self._retries: dict[str, int] = {}
        self._window_edges: list[list[float]] = []
        self._epochs: list[EpochRecord] = []
        self._phases: Optional[PhaseTimer] = None
        self._line_profile: Optional[str] = None
        self._operators = self._make_operator_watch()
        self._tracer: Optional[Tracer] = None

    def run(self) -> RankRecord:
        """Train and return what was measured."""
        spec, identity = self._spec, self._identity
        self._enter("data")
        dataset, provenance = self._workload.train_set(spec.data_root, spec.cache_dir)
        self._check_facts(dataset)
        loader = self._make_loader(dataset)
        self._enter("build")
        built = assemble(spec, identity, self._workload)
        # Every rank drops other activations; the initial parameters came from the common seed.
        torch.manual_seed(spec.seed + 1 + identity.rank)
        feed: Any = RingLoader(loader, identity.device) if spec.mode == "synthetic" else loader
        meter = self._make_meter(loader)
        self._enter("warm-up")
        indices: list[list[int]] = []
        watched = Watched(feed, meter)
        self._train(self._epoch_function(built, watched, meter, indices), loader, built, meter)
        # Before anything is looked at, which takes memory too.
        peak, reserved = (
            self._per_device(read)
            for read in (torch.cuda.max_memory_allocated, torch.cuda.max_memory_reserved)
        )
        self._enter("read-back")
        # An audit's batches are numbers, with nothing to look at.
        first_batch = None if spec.plan == "audit" else watched.first_batch
        effective = read_back(spec, identity, built, loader, first_batch)
        problems = not_in_force(spec, effective)
        if problems:
            raise settings.NotInForce("; ".join(problems))
        step_seconds = meter.step_seconds()
        fewest = min(spec.timed_steps, contract.FEWEST_STEPS) if spec.max_seconds > 0 else spec.timed_steps
        if len(step_seconds) < fewest:
            raise RuntimeError(
                f"the window holds {len(step_seconds)} steps, {fewest} were asked for: "
                f"{meter.total_steps} steps were trained, {spec.warmup_steps} of them as warm-up"
            )
        if spec.save_model and identity.rank == 0 and spec.mode != "io":
            torch.save(
                strategies.unwrap(built.model).state_dict(), os.path.join(spec.out_dir, contract.MODEL_FILE)
            )
        if spec.strategy == "ddp" and first_batch is not None and spec.mode != "io":
            effective["ddp"].update(
                count_collectives(
                    built.model, built.eager.loss, first_batch, identity.device, spec.ddp_switches
                )
            )
            self._refuse_unasked_silence(effective["ddp"]["all_reduces"])
        first, last, finite = loss_tenths(meter.losses)
        return RankRecord(
            run=spec.run,
            launch=spec.launch,
            variant=spec.variant,
            rank=identity.rank,
            world_size=identity.world_size,
            local_rank=identity.local_rank,
            host=identity.host,
            pid=os.getpid(),
            started_at=self._started_at,
            device_names=[device_name(device) for device in identity.devices],
            gpu_uuids=[gpu_uuid(device) for device in identity.devices] if identity.is_cuda else [],
            stack=stack_info(),
            data=dict(provenance),
            warmup_steps=meter.warmup_steps,
            step_seconds=step_seconds,
            window_seconds=meter.window_seconds,
            window_samples=meter.window_samples,
            wait_seconds=meter.wait_seconds,
            halves=halves(step_seconds),
            total_steps=meter.total_steps,
            loss_first=first,
            loss_last=last,
            losses_finite=finite,
            first_step_seconds=meter.first_step_seconds,
            epochs=self._with_audits(indices),
            parameters=built.parameters,
            parameters_digest=None if spec.mode == "io" else digest(strategies.unwrap(built.model)),
            peak_memory_bytes=peak,
            reserved_memory_bytes=reserved,
            allocator_retries=self._retries,
            effective=effective,
            threads={**usage.threads(), **(self._binding or {})},
            startup_seconds=self._startup,
            telemetry=usage.usage(),
            phase_seconds=self._phases.seconds if self._phases else None,
            line_profile=self._line_profile,
            drain_seconds=meter.drain_seconds,
            window_edges=self._window_edges,
            operators=self._operators.per_step(len(step_seconds)) if self._operators else None,
            trace=self._trace_file(),
            trace_facts=None if self._tracer is None else self._tracer.facts(),
        )

    def _trace_file(self) -> Optional[str]:
        """Return the name of the trace that this rank leaves; Nsight Systems leaves one for all ranks of a launch."""
        if self._tracer is None:
            return None
        if self._spec.trace == "nsys":
            return contract.NSYS_FILE if self._identity.rank == 0 else None
        return contract.TRACE_FILE.format(rank=self._identity.rank)

    def _refuse_unasked_silence(self, all_reduces: float) -> None:
        """Hold the number of all-reduces of a step against the switch ``nosync``."""
        silent = "nosync" in self._spec.ddp_switches
        if silent != (all_reduces == 0):
            raise settings.NotInForce(
                f"a step has {all_reduces:g} all-reduces, and nosync was {'' if silent else 'not '}asked for"
            )

    def _enter(self, phase: str) -> None:
        self._startup[f"until_{phase.replace('-', '_')}"] = time.time() - self._started_at
        self._state.enter(phase)

    def _check_facts(self, dataset: Any) -> None:
        """Hold the driver's catalogue against the workload, so that neither drifts from the other unseen."""
        for name, planned, found in (
            ("training samples", self._spec.train_samples, len(dataset)),
            (
                "training samples (as the workload says)",
                self._spec.train_samples,
                self._workload.TRAIN_SAMPLES,
            ),
            ("validation samples", self._spec.validation_samples, self._workload.VALIDATION_SAMPLES),
            ("parameters (as the workload says)", self._spec.parameters, self._workload.PARAMETERS),
        ):
            if planned != found:
                raise settings.NotInForce(
                    f"{self._spec.workload}: the catalogue says {planned} {name}, found {found}"
                )

    def _make_loader(self, dataset: Any) -> Any:
        spec, identity = self._spec, self._identity
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
        loader = make_loader(spec.loader, counted, plan, identity.device)
        if spec.plan != "audit":
            check_delivery(spec.loader, loader, identity.device)
        return loader

    def _make_operator_watch(self) -> Optional[OperatorWatch]:
        if not self._spec.watch_operators:
            return None
        if not available():
            raise settings.Unavailable(
                "a profile of operators was asked for, and this torch was built without Kineto"
            )
        return OperatorWatch(self._identity.is_cuda)

    def _make_meter(self, loader: Any) -> Meter:
        spec, identity = self._spec, self._identity
        clock = self._clock()
        queue = PREFETCH_ROUNDS * loader.num_workers * (loader.prefetch_factor or 0)
        if spec.mode == "synthetic":
            queue = 0
        if queue >= len(loader):
            raise RuntimeError(
                f"{loader.num_workers} loader workers need {queue} steps of every epoch to fill their queue, and an "
                f"epoch has {len(loader)}: no step of it would be timed; take fewer workers or longer epochs"
            )
        meter = Meter(
            clock,
            warmup_steps=max(spec.warmup_steps, queue),
            rewarm_steps=queue,
            timed_steps=spec.timed_steps,
            min_seconds=spec.min_seconds,
            max_seconds=spec.max_seconds,
            stop_when_timed=spec.plan == "window",
            agree=lambda steps: strategies.largest(steps, identity.device),
            align=strategies.wait_for_all,
        )
        meter.on_window = self._note_window
        return meter

    def _clock(self) -> Clock:
        on_gpu = self._identity.is_cuda and self._spec.mode != "io"
        return CudaClock(self._identity.devices) if on_gpu else HostClock()

    def _epoch_function(
        self, built: Assembly, feed: Watched, meter: Meter, indices: list[list[int]]
    ) -> Callable[[int], bool]:
        """Return what trains (or drains) one epoch, given its number, and says whether it was whole."""
        spec, device, loss_function = self._spec, self._identity.device, self._workload.loss_function
        model, optimizer = built.model, built.optimizer
        if spec.plan == "audit":

            def audit(epoch: int) -> bool:
                indices.append([])
                return drain_indexed(feed, meter, indices[-1], spec.later_epoch_batches if epoch else None)

            return audit
        if spec.mode == "io":
            return lambda epoch: drain(feed, meter)
        if needs_own_step(spec):
            return self._epoch_of_own_step(built, feed, meter)
        if spec.phases:
            timer = self._phases = PhaseTimer(self._clock())
            return lambda epoch: train_in_phases(model, device, feed, loss_function, optimizer, meter, timer)
        if spec.trace:
            # A step behind the window's beginning, where ranks agree on its length by a collective of their own.
            begins = meter.warmup_steps + 1
            tracer = self._tracer = make_tracer(spec, self._identity.rank, device, begins)
            return lambda epoch: train_traced(model, device, feed, loss_function, optimizer, meter, tracer)
        if spec.line_profile:
            return self._profiled(
                lambda f: lambda epoch: f(model, device, feed, loss_function, optimizer, meter)
            )
        return lambda epoch: train(model, device, feed, loss_function, optimizer, meter)

    def _epoch_of_own_step(self, built: Assembly, feed: Watched, meter: Meter) -> Callable[[int], bool]:
        """Return what trains one epoch by a step that is more than the tutorials' loop."""
        spec = self._spec
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
            timer = self._phases = PhaseTimer(self._clock())
            return lambda epoch: train_with_in_phases(built.eager.in_phases, built.model, feed, meter, timer)
        return lambda epoch: train_with(built.step, built.model, feed, meter)

    def _profiled(self, bind: Callable[[Any], Callable[[int], bool]]) -> Callable[[int], bool]:
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
        self._line_profile = LINE_PROFILE.format(rank=self._identity.rank)
        path = os.path.join(self._spec.out_dir, self._line_profile)

        def profiled(epoch: int) -> bool:
            whole = one_epoch(epoch)
            profiler.dump_stats(path)
            return whole

        return profiled

    def _train(
        self,
        one_epoch: Callable[[int], bool],
        loader: Any,
        built: Assembly,
        meter: Meter,
    ) -> None:
        """Run epochs until the plan is fulfilled. Only the time of the epochs themselves is taken."""
        spec = self._spec
        epoch = 0
        while epoch < spec.epochs or (spec.plan == "window" and not meter.finished):
            set_epoch(loader, epoch, spec.seed * SEEDS_A_LAUNCH + self._identity.rank)
            strategies.wait_for_all()
            meter.start_epoch()
            with without_sync(built.model, spec.ddp_switches):
                whole = one_epoch(epoch)
            seconds, batches, samples, first_batch = meter.end_epoch()
            if spec.mode != "io" and whole:
                built.scheduler.step()
            validation = self._validate(built.model) if spec.plan in ("epochs", "solution") else {}
            self._epochs.append(
                EpochRecord(epoch, seconds, batches, samples, whole, first_batch, **validation)  # type: ignore[arg-type]
            )
            epoch += 1

    def _validate(self, model: torch.nn.Module) -> dict[str, Optional[float]]:
        """Validate on rank 0, as the tutorials do; the other ranks wait."""
        spec = self._spec
        validation: dict[str, Optional[float]] = {}
        if self._identity.rank == 0:
            dataset, _ = self._workload.validation_set(spec.data_root, spec.cache_dir)
            subset = shorten(cast("Dataset[Any]", dataset), spec.validate_samples)
            loader: DataLoader[Any] = DataLoader(
                subset, batch_size=self._workload.VALIDATION_BATCH_SIZE, num_workers=spec.workers
            )
            before = time.perf_counter()
            loss, accuracy = self._workload.validate(strategies.unwrap(model), self._identity.device, loader)
            validation = {
                "validation_loss": loss if math.isfinite(loss) else None,
                "validation_accuracy": accuracy,
                "validation_seconds": time.perf_counter() - before,
                "validation_samples": len(loader.dataset),  # type: ignore[arg-type]
            }
        strategies.wait_for_all()
        return validation

    def _note_window(self, opens: bool) -> None:
        """Read the allocator's retries at the window's edges and tell of them; on the host, and waits for nothing."""
        if not opens:
            self._window_edges[-1].append(self._state.edge(opens))
        if self._operators is not None:
            self._operators.window(opens)
        now = self._per_device(lambda d: int(torch.cuda.memory_stats(d).get("num_alloc_retries", 0)))
        if opens:
            self._retries_at_opening = now
            self._window_edges.append([self._state.edge(opens)])
            return
        for device, retries in now.items():
            self._retries[device] = self._retries.get(device, 0) + retries - self._retries_at_opening[device]

    def _per_device(self, reading: Callable[[torch.device], int]) -> dict[str, int]:
        if not self._identity.is_cuda:
            return {}
        return {str(device): int(reading(device)) for device in self._identity.devices}

    def _with_audits(self, indices: list[list[int]]) -> list[EpochRecord]:
        if not indices:
            return self._epochs
        size = self._spec.epoch_samples or self._spec.train_samples
        prefix = min(len(delivered) for delivered in indices)
        return [
            EpochRecord(**{**vars(epoch), **audit_facts(delivered, size, prefix)})
            for epoch, delivered in zip(self._epochs, indices)
        ]
