"""Merge the rank records of a launch into its launch record. Pure."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from perf.contract import EpochRecord, LaunchRecord, LaunchSpec, RankRecord, Rate
from perf.launch.validity import flags_of, reasons_of, unfit_of


def merge(
    spec: LaunchSpec,
    ranks: Sequence[RankRecord],
    launch_seconds: float,
    telemetry: dict[str, Any] | None = None,
    stack: Mapping[str, Any] | None = None,
) -> LaunchRecord:
    """Merge the records of all ranks.

    Parameters
    ----------
    spec
        What was launched.
    ranks
        One record a rank, in any order.
    launch_seconds
        From the start of the launch's first process to the end of its last.
    telemetry
        What was observed beside it (`perf.launch.telemetry.summary`); None where nobody looked.
    stack
        What the stack said of itself before; None where nobody asked.

    Returns
    -------
    LaunchRecord
        `samples_per_second` is what all ranks delivered in their windows over the slowest rank's window.
        `median_step_seconds` is the largest of the ranks' median steps. `epoch_seconds` is the slowest rank's, epoch
        by epoch. `loss_first` and `loss_last` are means over the ranks, null if a rank has none. What can't be
        computed because a rank timed no step is 0, with a reason. `telemetry` has the ranks' own under ``ranks``.

    Raises
    ------
    ValueError
        If the records are not those of all ranks.
    """
    records = sorted(ranks, key=lambda record: record.rank)
    if [record.rank for record in records] != list(range(spec.world_size)):
        raise ValueError(
            f"launch {spec.launch}: expected the records of ranks 0 to {spec.world_size - 1}, "
            f"got those of {', '.join(str(record.rank) for record in records) or 'none'}"
        )
    # Judged on what was measured; a number that JSON can't hold is replaced only afterwards.
    unfit = unfit_of(spec, records, telemetry)
    reasons = [*reasons_of(spec, records, stack), *unfit]
    clean = [_finite_record(record) for record in records]
    first = clean[0]
    windows = [record.window_seconds for record in clean]
    window = max(windows)
    samples = sum(record.window_samples for record in clean)
    return LaunchRecord(
        run=spec.run,
        launch=spec.launch,
        variant=spec.variant,
        group=spec.group,
        round=spec.round,
        escalation=spec.escalation,
        plan=spec.plan,
        workload=spec.workload,
        strategy=spec.strategy,
        device=spec.device,
        backend=spec.backend,
        nodes=spec.nodes,
        ranks_per_node=spec.ranks_per_node,
        gpus=spec.gpus,
        precision=spec.precision,
        loader=spec.loader,
        mode=spec.mode,
        batch_size=spec.batch_size,
        workers=spec.workers,
        cores=spec.cores,
        seed=spec.seed,
        started_at=min(record.started_at for record in clean),
        launch_seconds=launch_seconds,
        stack=first.stack,
        data=first.data,
        host=[record.host for record in clean],
        device_names=[name for record in clean for name in record.device_names],
        gpu_uuids=[record.gpu_uuids for record in clean],
        step_seconds=[record.step_seconds for record in clean],
        median_step_seconds=max(_median(record.step_seconds) for record in clean),
        halves=[record.halves for record in clean],
        window_seconds=window,
        window_seconds_per_rank=windows,
        warmup_steps=max(record.warmup_steps for record in clean),
        samples=samples,
        samples_per_second=samples / window if window > 0 else 0.0,
        wait_seconds=[record.wait_seconds for record in clean],
        total_steps=[record.total_steps for record in clean],
        loss_first=_mean([record.loss_first for record in clean]),
        loss_last=_mean([record.loss_last for record in clean]),
        losses_finite=_all([record.losses_finite for record in records]),
        first_step_seconds=max(
            (record.first_step_seconds for record in clean if record.first_step_seconds is not None),
            default=None,
        ),
        epoch_seconds=slowest_epochs(clean),
        epochs=[record.epochs for record in clean],
        parameters=first.parameters,
        parameters_digests=[record.parameters_digest for record in clean],
        peak_memory_bytes=[record.peak_memory_bytes for record in clean],
        reserved_memory_bytes=[record.reserved_memory_bytes for record in clean],
        allocator_retries=sum(sum(record.allocator_retries.values()) for record in clean),
        effective=[record.effective for record in clean],
        threads=[record.threads for record in clean],
        startup_seconds=[record.startup_seconds for record in clean],
        telemetry=finite({**(telemetry or {}), "ranks": [record.telemetry for record in clean]}),
        valid=not reasons,
        reasons=reasons,
        flags=flags_of(spec, records, telemetry),
        phase_seconds=_phases(clean),
        line_profiles=[record.line_profile for record in clean if record.line_profile is not None],
        optimizations=list(spec.optimizations),
        optimizer=spec.optimizer,
        schedule=spec.schedule,
        drain_seconds=[record.drain_seconds for record in clean],
        rates=slowest_rates([record.rates for record in clean]),
        side=spec.side,
        launcher=spec.launcher,
        unfit=unfit,
        operators=[record.operators for record in clean if record.operators is not None],
        bucket_cap_mb=spec.bucket_cap_mb,
        ddp_switches=list(spec.ddp_switches),
        traces=[record.trace for record in clean if record.trace is not None],
        trace_facts=[record.trace_facts for record in clean if record.trace_facts is not None],
        window_peak_memory_bytes=[record.window_peak_memory_bytes for record in clean],
        clocks=[record.clock for record in clean],
    )


def slowest_epochs(ranks: Sequence[RankRecord]) -> list[float]:
    """Return the seconds of each epoch on its slowest rank, in the order of the epochs' numbers."""
    seconds: dict[int, float] = {}
    for record in ranks:
        for epoch in record.epochs:
            seconds[epoch.index] = max(epoch.seconds, seconds.get(epoch.index, 0.0))
    return [seconds[index] for index in sorted(seconds)]


def slowest_rates(ranks: Sequence[Mapping[str, Rate]]) -> dict[str, Rate]:
    """Return each rate as the slowest of the ranks that measured it has it; one that a rank could not have is null."""
    found: dict[str, Rate] = {}
    for rates in ranks:
        for name, rate in rates.items():
            known = found.setdefault(name, rate)
            if known.value is not None and (rate.value is None or rate.value < known.value):
                found[name] = rate
    return found


def finite(value: Any) -> Any:
    """Return a copy of a JSON-like value in which every number that is not finite is null.

    In a list such a number is left out: a list is a series of readings, and null is none.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value if not (isinstance(item, float) and not math.isfinite(item))]
    return value


def _finite_record(record: RankRecord) -> RankRecord:
    """Return a record that JSON can hold and that keeps to the contract.

    Where the contract wants a number, 0 stands for one that is not finite; the launch is invalid anyway.
    """
    clean = _finite_fields(record)
    clean["epochs"] = [EpochRecord(**_finite_fields(epoch)) for epoch in record.epochs]
    return RankRecord(**clean)


def _finite_fields(record: RankRecord | EpochRecord) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in dataclasses.fields(record):
        value = finite(getattr(record, field.name))
        if value is None and field.type == "float":
            value = 0.0
        if isinstance(value, dict) and "any" not in field.type.lower():
            value = {key: item for key, item in value.items() if item is not None}
        values[field.name] = value
    return values


def _median(steps: Sequence[float]) -> float:
    return statistics.median(steps) if steps else 0.0


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def _all(values: Sequence[bool | None]) -> bool | None:
    """Return false if one is false, null if none is false and one is not known, else true."""
    if False in values:
        return False
    return None if None in values else True


def _phases(ranks: Sequence[RankRecord]) -> list[dict[str, list[float]]] | None:
    phases = [record.phase_seconds for record in ranks if record.phase_seconds is not None]
    return phases if len(phases) == len(ranks) else None
