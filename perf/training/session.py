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
from perf.training.assembly import Assembly, assemble, not_in_force, read_back
from perf.training.audit import audit_facts
from perf.training.clocks import Clock, CudaClock, HostClock
from perf.training.collectives import count_collectives, without_sync
from perf.training.datasets import shorten
from perf.training.delivery import check_delivery
from perf.training.epochs import epochs_of
from perf.training.feed import Feed, open_feed
from perf.training.held_up import LEAST_STRETCH, EitherClock
from perf.training.identity import Identity, device_name, gpu_uuid
from perf.training.learned import digest, loss_tenths
from perf.training.loaders import ends_in_part, set_epoch
from perf.training.memory import DeviceMemory
from perf.training.meter import Meter, halves
from perf.training.operators import OperatorWatch, available
from perf.training.ring import RingLoader
from perf.training.stackinfo import stack_info
from perf.training.state import State
from perf.training.watched import Watched

SEEDS_A_LAUNCH = 4096
"""Room for the seeds of a launch's ranks, so that no rank draws what another one draws, in this launch or the next."""


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
        feed: Optional[Feed] = None,
    ) -> None:
        self._spec = spec
        self._identity = identity
        self._workload = workload
        self._state = state
        self._startup = startup
        self._binding = binding
        self._feed = feed
        self._started_at = time.time()
        self._memory = DeviceMemory(identity.devices if identity.is_cuda else [])
        self._window_edges: list[list[float]] = []
        self._epochs: list[EpochRecord] = []
        self._operators = self._make_operator_watch()

    def run(self) -> RankRecord:
        """Train and return what was measured."""
        spec, identity = self._spec, self._identity
        self._enter("data")
        # A ring's workers are at work from here on, while samples are looked at and the network is built.
        feed = self._feed or open_feed(spec, identity, self._workload)
        loader = feed.loader
        if spec.plan != "audit":
            check_delivery(spec.loader, loader, identity.device)
        self._enter("build")
        built = assemble(spec, identity, self._workload)
        # Every rank drops other activations; the initial parameters came from the common seed.
        torch.manual_seed(spec.seed + 1 + identity.rank)
        if isinstance(feed.batches, RingLoader):
            feed.batches.filled()
        meter = self._make_meter(loader)
        self._state.counts(lambda: meter.total_steps)
        self._enter("warm-up")
        real = feed.batches is loader
        watched = Watched(feed.batches, meter, partial=real and ends_in_part(loader), waits=real)
        epochs = epochs_of(
            spec, identity, built, self._workload.loss_function, watched, meter, lambda: self._clock(loader)
        )
        self._train(epochs.one, loader, built, meter)
        # Before anything is looked at, which takes memory too.
        peak, reserved = self._memory.peaks()
        self._enter("read-back")
        # An audit's batches are numbers, with nothing to look at.
        first_batch = None if spec.plan == "audit" else watched.first_batch
        effective = read_back(spec, identity, built, loader, first_batch)
        problems = not_in_force(spec, effective)
        if problems:
            raise settings.NotInForce("; ".join(problems))
        step_seconds = meter.step_seconds()
        fewest = spec.timed_steps
        if spec.max_seconds > 0:
            fewest = min(fewest, contract.FEWEST_STEPS)
            fewest -= fewest // contract.SPARED
        if len(step_seconds) < fewest:
            raise RuntimeError(
                f"the window holds {len(step_seconds)} steps, {fewest} were asked for: "
                f"{meter.total_steps} steps were trained, {meter.warmup_steps} of them as warm-up"
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
        first, last, finite = loss_tenths(meter.losses, meter.loss_steps, meter.total_steps)
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
            data=feed.provenance,
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
            epochs=self._with_audits(epochs.indices),
            parameters=built.parameters,
            parameters_digest=None if spec.mode == "io" else digest(strategies.unwrap(built.model)),
            peak_memory_bytes=peak,
            reserved_memory_bytes=reserved,
            allocator_retries=self._memory.retries,
            effective=effective,
            threads={**usage.threads(), **(self._binding or {})},
            startup_seconds=self._startup,
            telemetry=usage.usage(),
            phase_seconds=epochs.phases.seconds if epochs.phases else None,
            line_profile=epochs.line_profile,
            drain_seconds=meter.drain_seconds,
            window_edges=self._window_edges,
            operators=self._operators.per_step(len(step_seconds)) if self._operators else None,
            trace=epochs.trace_file(spec, identity.rank),
            trace_facts=None if epochs.tracer is None else epochs.tracer.facts(),
            # A graph's replays take the memory of its capture, of which the allocator's counters say nothing.
            window_peak_memory_bytes={} if "cuda_graph" in spec.optimizations else self._memory.window_peak,
            clock=meter.clock,
        )

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
        queue = contract.PREFETCH_ROUNDS * loader.num_workers * (loader.prefetch_factor or 0)
        if spec.mode == "synthetic":
            queue = 0
        # A window opens behind a step, and leaves an epoch's partial batch out.
        whole = len(loader) - (spec.mode != "synthetic" and ends_in_part(loader))
        if spec.timed_steps > 0 and 0 < queue >= whole:
            raise RuntimeError(
                f"{loader.num_workers} loader workers need {queue} steps of every epoch to fill their queue, and an "
                f"epoch has {whole} of whole batches: no step of it would be timed; take fewer workers, smaller "
                "batches or longer epochs"
            )
        if spec.timed_steps > 0 and whole < 2:
            raise RuntimeError(
                f"an epoch has {len(loader)} steps, {whole} of them of whole batches, and a window begins behind "
                "one: no step of it would be timed; take smaller batches or longer epochs"
            )
        meter = Meter(
            EitherClock(identity.device) if self._may_be_held_up(whole - queue) else self._clock(loader),
            warmup_steps=max(spec.warmup_steps, queue),
            rewarm_steps=queue,
            timed_steps=spec.timed_steps,
            min_seconds=spec.min_seconds,
            max_seconds=spec.max_seconds,
            warmup_seconds=spec.warmup_seconds,
            captured="cuda_graph" in spec.optimizations,
            stop_when_timed=spec.plan == "window",
            agree=lambda steps: strategies.largest(steps, identity.device),
            align=strategies.wait_for_all,
        )
        meter.on_window = self._note_window
        meter.on_dropped = self._drop_window
        return meter

    def _may_be_held_up(self, steps: int) -> bool:
        """Return whether the host may hold its device up, in a launch whose window may be dropped and taken anew.

        Ranks would have to drop it together; of two windows the profile of operators would count both, and a trace
        have the first. A graph's replays are queued in no time, and so are batches that come in groups and are copied
        without waiting, or made on the device: a median by the host's clock would be that of the quick ones.

        Parameters
        ----------
        steps
            Of an epoch that a window may have.
        """
        spec, identity = self._spec, self._identity
        alone = identity.is_cuda and identity.world_size == 1 and len(identity.devices) == 1
        plain = spec.plan == "window" and not spec.watch_operators and not spec.trace
        even = spec.mode == "synthetic" or (spec.mode == "full" and spec.loader in ("native", "batched"))
        queued = {"cuda_graph", "non_blocking"} & set(spec.optimizations)
        return alone and plain and even and not queued and steps >= LEAST_STRETCH

    def _clock(self, loader: Any) -> Clock:
        # Draining a loader keeps the host busy alone, but for one that makes its batches on the device.
        on_gpu = self._spec.mode != "io" or hasattr(loader, "fetch")
        return CudaClock(self._identity.devices) if self._identity.is_cuda and on_gpu else HostClock()

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
        """Tell of the window's edges, and read the allocator's counters there; on the host, and waits for nothing."""
        if not opens:
            self._window_edges[-1].append(self._state.edge(opens))
        if self._operators is not None:
            self._operators.window(opens)
        self._memory.window(opens)
        if opens:
            self._window_edges.append([self._state.edge(opens)])

    def _drop_window(self) -> None:
        """Tell that a stretch has ended that is no part of the window, and forget where it began."""
        self._state.edge(False)
        self._window_edges.pop()

    def _with_audits(self, indices: list[list[int]]) -> list[EpochRecord]:
        if not indices:
            return self._epochs
        size = self._spec.epoch_samples or self._spec.train_samples
        prefix = min(len(delivered) for delivered in indices)
        return [
            EpochRecord(**{**vars(epoch), **audit_facts(delivered, size, prefix)})
            for epoch, delivered in zip(self._epochs, indices)
        ]
