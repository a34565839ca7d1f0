"""One rank's launch, from the built model to its record, with a workload that trains in microseconds."""

from __future__ import annotations

import base64
import math
import os
import zlib

import line_profiler
import pytest
import torch

from perf import contract
from perf.training.audit import audit_facts
from perf.training.datasets import Numbers
from perf.training.feed import open_feed
from perf.training.identity import Identity
from perf.training.loaders import LoaderPlan, native_loader
from perf.training.phases import PHASES
from perf.training.session import Session
from perf.training.settings import NotInForce
from perf.training.state import State
from tests.perf.training.helpers import TinyWorkload, make_spec

STEPS_AN_EPOCH = 23
"""180 samples in batches of 8."""


# --- what DDP says


def test_ddps_all_reduces_are_counted_after_training(run, process_group):
    """As many as DDP has buckets; the parameters are those that training left."""
    record = run(strategy="ddp", backend="gloo", variant="tiny-ddp-1cpu-gloo-fp32-native0")
    again = run(strategy="ddp", backend="gloo", variant="tiny-ddp-1cpu-gloo-fp32-native0")
    ddp = record.effective["ddp"]

    assert (1.0, 0.0) == (ddp["all_reduces"], ddp["broadcasts"])
    assert [4 * TinyWorkload.PARAMETERS] == ddp["bucket_bytes"]
    assert again.parameters_digest == record.parameters_digest


def test_under_no_sync_nothing_is_said(run, process_group):
    """Every step is under no_sync; one that was not would all-reduce."""
    record = run(strategy="ddp", backend="gloo", ddp_switches=["nosync"])

    assert 0.0 == record.effective["ddp"]["all_reduces"]


# --- windows


def test_a_window_holds_the_steps_that_were_asked_for(run):
    """Warm-up is not in it; samples, halves and waits are the window's."""
    record = run()

    assert (4, 6, 10, 48) == (
        record.warmup_steps,
        len(record.step_seconds),
        record.total_steps,
        record.window_samples,
    )
    assert 0 < sum(record.step_seconds) <= record.window_seconds
    assert 0 < record.wait_seconds < record.window_seconds
    assert 2 == len(record.halves)
    assert record.first_step_seconds > 0


def test_a_window_goes_on_over_epochs(run):
    """Training goes on until the window is full; each epoch is recorded with what was delivered, the last one cut."""
    record = run(timed_steps=39)

    assert 39 == len(record.step_seconds)
    assert [(0, 23, 180, True), (1, 22, 176, False)] == [
        (e.index, e.batches, e.samples, e.complete) for e in record.epochs
    ]
    # 18 steps of the first epoch, whose last batch of 4 samples is in no window; 21 of the second, behind its first.
    assert 18 * 8 + 21 * 8 == record.window_samples
    assert 45 == record.total_steps
    assert all(epoch.seconds >= epoch.first_batch_seconds > 0 for epoch in record.epochs)


def test_a_window_lasts_its_least_time(run):
    """More steps are taken where those that were asked for would not fill `min_seconds`."""
    record = run(warmup_steps=20, min_seconds=0.3)

    assert len(record.step_seconds) > 6


def test_a_warm_up_that_would_take_too_long_is_shorter(run):
    """What the spec gives a warm-up reaches the meter, and the record has the steps that were taken."""
    record = run(warmup_steps=40, warmup_seconds=1e-9)

    assert (contract.FEWEST_WARM_UP, 10, 6) == (
        record.warmup_steps,
        record.warmup_steps,
        len(record.step_seconds),
    )


@pytest.mark.parametrize(
    ("optimizations", "expected"), [(["cuda_graph"], True), (["fused"], False), ([], False)]
)
def test_the_meter_knows_whether_a_graph_is_captured(tmp_path, cpu, monkeypatch, optimizations, expected):
    """A warm-up that ended before it would leave the capture in the window."""

    class Asked(Exception):
        pass

    def meter(*clock, captured, **rest):
        raise Asked(captured)

    monkeypatch.setattr("perf.training.session.Meter", meter)
    monkeypatch.setattr("perf.training.session.assemble", lambda *arguments: None)
    spec = make_spec(tmp_path, optimizations=optimizations)
    with pytest.raises(Asked, match=str(expected)):
        Session(spec, cpu, TinyWorkload(), State(str(tmp_path), 0), {}).run()


def test_a_rings_workers_are_at_work_while_samples_are_looked_at(tmp_path, cpu, monkeypatch):
    """The ring begins with its making, and looking at three samples takes 0.2 s of a launch of unet3d."""
    began = []
    monkeypatch.setattr(
        "perf.training.feed.RingLoader", lambda loader, device: began.append("ring") or loader
    )

    def check(*arguments):
        began.append("check")
        raise NotInForce("seen")

    monkeypatch.setattr("perf.training.session.check_delivery", check)
    spec = make_spec(tmp_path, mode="synthetic")
    with pytest.raises(NotInForce, match="seen"):
        Session(spec, cpu, TinyWorkload(), State(str(tmp_path), 0), {}).run()

    assert ["ring", "check"] == began


def test_a_window_that_would_take_too_long_is_shorter(run):
    """With a limit the window has the fewest steps that are allowed, and the record is complete all the same."""
    record = run(warmup_steps=20, timed_steps=200, min_seconds=0.001, max_seconds=0.001)

    assert contract.FEWEST_STEPS == len(record.step_seconds)


def test_a_window_that_an_epochs_end_cuts_short_is_a_window(run):
    """Of 90 steps 41 are warm-up: one of fifty lacks, and a worker's queue would take four of the next epoch."""
    limits = {"min_seconds": 0.001, "max_seconds": 0.001}
    record = run(batch_size=2, workers=1, warmup_steps=41, timed_steps=200, **limits)

    assert (49, 90) == (len(record.step_seconds), record.total_steps)
    assert [90] == [epoch.batches for epoch in record.epochs]


def test_the_record_says_who_measured_what(run):
    """Names from the spec, rank and devices from the process, stack and data from what was loaded."""
    record = run()

    assert ("run", "main-0001", "tiny-single-1cpu-fp32-native0") == (
        record.run,
        record.launch,
        record.variant,
    )
    assert (0, 1, 0, "node", ["cpu"], []) == (
        record.rank,
        record.world_size,
        record.local_rank,
        record.host,
        record.device_names,
        record.gpu_uuids,
    )
    assert torch.__version__ == record.stack["torch"]
    assert "tiny" == record.data["kind"]
    assert TinyWorkload.PARAMETERS == record.parameters
    assert (1, len(os.sched_getaffinity(0))) == (record.threads["torch"], record.threads["cores_allowed"])
    assert ({}, {}, {}) == (record.peak_memory_bytes, record.reserved_memory_bytes, record.allocator_retries)
    assert {} == record.window_peak_memory_bytes
    assert record.telemetry["cpu_seconds"] > 0
    assert record.phase_seconds is record.line_profile is None


def test_the_time_before_training_is_recorded_by_phase(run, tmp_path):
    """What the worker measured before is kept, and the phases follow each other."""
    startup = run().startup_seconds
    until = [startup[f"until_{phase}"] for phase in ("data", "build", "warm_up", "read_back")]

    assert 1.5 == startup["imports"]
    assert sorted(until) == until
    assert '"read-back"' in (tmp_path / "state-0.json").read_text(encoding="utf-8")


def test_the_loss_falls_and_parameters_are_digested(run):
    """One seed gives one training, bit for bit; another seed another."""
    one, same, other = run(timed_steps=60), run(timed_steps=60), run(timed_steps=60, seed=1001)

    assert one.loss_last < one.loss_first
    assert one.losses_finite is True
    assert (one.parameters_digest, one.loss_last) == (same.parameters_digest, same.loss_last)
    assert one.parameters_digest != other.parameters_digest
    assert 32 == len(one.parameters_digest)


def test_a_loss_that_is_not_finite_is_said_so(run):
    """NaN in any step makes both means null, and the record can be written all the same."""

    class Exploding(TinyWorkload):
        loss_function = staticmethod(lambda output, target: output.sum() * math.nan)
        validate = staticmethod(lambda *_: (math.inf, 0.5))

    record = run(Exploding(), plan="epochs", epochs=1)

    assert (None, None, False) == (record.loss_first, record.loss_last, record.losses_finite)
    assert (None, 0.5) == (record.epochs[0].validation_loss, record.epochs[0].validation_accuracy)


# --- modes and plans


def test_mode_synthetic_has_no_waits_and_trains(run):
    """Batches come from the ring; an epoch is as long as the real one."""
    record = run(mode="synthetic", timed_steps=40)

    assert STEPS_AN_EPOCH == record.epochs[0].batches
    assert 40 * 8 == record.window_samples
    assert record.loss_last < record.loss_first
    assert record.parameters_digest is not None


def test_mode_io_trains_nothing(run):
    """Batches are counted; there is no loss, no digest, and the parameters stay as they were."""
    record = run(mode="io")

    assert 6 == len(record.step_seconds)
    assert (None, None, None, None) == (
        record.loss_first,
        record.loss_last,
        record.losses_finite,
        record.parameters_digest,
    )
    assert record.effective["activation_dtype"] is None


def test_plan_epochs_trains_and_validates_whole_epochs(run):
    """Every epoch is whole, validated, and followed by a step of the schedule."""
    record = run(plan="epochs", epochs=3, timed_steps=30)

    assert [(i, STEPS_AN_EPOCH, 180, True) for i in range(3)] == [
        (e.index, e.batches, e.samples, e.complete) for e in record.epochs
    ]
    assert 30 == len(record.step_seconds)
    assert 3 * STEPS_AN_EPOCH == record.total_steps
    assert pytest.approx(0.1 * 0.5**3) == record.effective["optimizer_flags"]["lr"]
    for epoch in record.epochs:
        assert 50 == epoch.validation_samples
        assert epoch.validation_seconds > 0
        assert 0.5 < epoch.validation_accuracy <= 1
    assert record.epochs[2].validation_loss < record.epochs[0].validation_loss
    assert record.epochs[0].distinct is record.epochs[0].seen is None


def test_epochs_and_validation_can_be_shortened(run):
    """An epoch of 64 samples has 8 steps; validation takes the first samples only."""
    record = run(plan="epochs", epochs=2, epoch_samples=64, validate_samples=20)

    assert [(8, 64), (8, 64)] == [(e.batches, e.samples) for e in record.epochs]
    assert [20, 20] == [e.validation_samples for e in record.epochs]


def test_other_ranks_wait_while_rank_0_validates(run):
    """Validation is rank 0's; the others have none in their records."""
    record = run(
        plan="epochs", epochs=1, identity=Identity(1, 2, 1, "n", [torch.device("cpu")]), ranks_per_node=1
    )

    assert record.epochs[0].validation_loss is record.epochs[0].validation_samples is None


def test_plan_audit_counts_what_was_delivered(run):
    """A whole first epoch with every sample once, a cut second one in another order."""
    record = run(mode="io", plan="audit", epochs=2, later_epoch_batches=5)
    first, second = record.epochs

    assert (23, 180, True, 180) == (first.batches, first.samples, first.complete, first.distinct)
    assert (5, 40, False, 40) == (second.batches, second.samples, second.complete, second.distinct)
    assert first.order != second.order
    seen = zlib.decompress(base64.b64decode(first.seen))
    assert set(range(180)) == {i for i in range(8 * len(seen)) if seen[i // 8] >> i % 8 & 1}


def test_orders_cover_what_every_epoch_delivered(run):
    """A whole epoch's digest is of as many indices as the cut one had, so that the two can be compared."""
    first = run(mode="io", plan="audit", epochs=2, later_epoch_batches=5).epochs[0]
    plan = LoaderPlan(8, 0, 0, 1, distributed=False, pin_memory=False, seed=1000)
    dataset, _ = TinyWorkload().train_set(None, "")
    delivered = [index for indices in native_loader(Numbers(dataset), plan) for index in indices.tolist()]

    assert audit_facts(delivered, 180, 40)["order"] == first.order


def test_an_audit_of_a_shortened_epoch_has_its_size(run):
    """The bitmap is as long as the data set that was used."""
    record = run(mode="io", plan="audit", epochs=1, epoch_samples=120)

    assert (120, 15) == (
        record.epochs[0].distinct,
        len(zlib.decompress(base64.b64decode(record.epochs[0].seen))),
    )


def test_phases_are_measured_for_every_step(run):
    """All five, one entry a step, warm-up included."""
    record = run(phases=True)

    # One rank alone has nobody to talk to.
    assert {**dict.fromkeys(PHASES, 10), "communication": 0} == {
        phase: len(s) for phase, s in record.phase_seconds.items()
    }
    assert all(seconds >= 0 for phase in record.phase_seconds.values() for seconds in phase)
    assert 6 == len(record.step_seconds)


def test_a_line_profile_is_written_beside_the_record(run, tmp_path):
    """The file holds the hits of each line of the training loop."""
    record = run(line_profile=True)
    stats = line_profiler.load_stats(str(tmp_path / record.line_profile))

    assert "train-rank-0.lprof" == record.line_profile
    ((place, lines),) = stats.timings.items()
    assert place[0].endswith("loop.py")
    assert 10 in {hits for _, hits, _ in lines}


def test_ddp_is_recorded_as_ddp(run, process_group):
    """A process group of one: wrapper, backend and buckets were read back, and the loss falls."""
    record = run(strategy="ddp", backend="gloo", timed_steps=40)

    assert ("DistributedDataParallel", "gloo") == (record.effective["strategy"], record.effective["backend"])
    assert "DistributedSampler" == record.effective["loader"]["sampler"]
    assert 4 * TinyWorkload.PARAMETERS == sum(record.effective["ddp"]["bucket_bytes"])
    assert record.loss_last < record.loss_first


def test_ddp_is_shuffled_anew_each_epoch(run, process_group):
    """The distributed sampler is told of every epoch; it would repeat its order otherwise."""
    epochs = run(strategy="ddp", backend="gloo", mode="io", plan="audit", epochs=3).epochs

    assert 3 == len({epoch.order for epoch in epochs})
    assert [180] * 3 == [epoch.distinct for epoch in epochs]


# --- devices, and the model that is kept


def test_data_that_were_opened_before_are_what_is_trained_on(tmp_path, cpu, monkeypatch):
    """They are not opened once more, and their workers not begun again."""
    spec = make_spec(tmp_path, mode="synthetic")
    feed = open_feed(spec, cpu, TinyWorkload())
    monkeypatch.setattr("perf.training.session.open_feed", None)
    record = Session(spec, cpu, TinyWorkload(), State(str(tmp_path), 0), {}, feed=feed).run()

    assert "tiny" == record.data["kind"]
    assert spec.timed_steps == len(record.step_seconds)


@pytest.mark.parametrize(("changes", "there"), [({"save_model": True}, True), ({}, False)])
def test_a_trained_model_is_kept_where_that_was_asked_for(run, tmp_path, changes, there):
    """The parameters lie beside the record, as the tutorials' --save-model leaves them, and load into the network."""
    record = run(**changes)
    kept = list(tmp_path.rglob("model.pt"))

    assert there is bool(kept)
    if there:
        state = torch.load(kept[0], weights_only=True)
        model = TinyWorkload().build_model()
        model.load_state_dict(state)
        assert record.parameters == sum(p.numel() for p in model.parameters())
