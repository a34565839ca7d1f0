"""A session whose settings are not in force, or whose plan can't be kept, has no record and says why."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn
from torch.utils.data import Subset

from perf.training.settings import NotInForce
from perf.training.strategies import wrap
from tests.perf.training.helpers import TinyWorkload


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": 68}, r"the catalogue says 68 parameters \(as the workload says\), found 67"),
        ({"train_samples": 60_000}, "the catalogue says 60000 training samples, found 180"),
        ({"validation_samples": 51}, "the catalogue says 51 validation samples, found 50"),
        ({"loader": "ffcv"}, "loader 'ffcv' is not one"),
        ({"threads": 2}, "threads should be 2, is 1"),
        ({"ranks_per_node": 2}, "world_size should be 2, is 1"),
        ({"backend": "gloo"}, "backend should be gloo, is none"),
    ],
)
def test_a_launch_that_is_not_what_was_asked_for_has_no_record(run, changes, message):
    """The worker refuses with what was expected and what was found."""
    with pytest.raises(NotInForce, match=message):
        run(**changes)


def test_a_network_of_another_size_is_not_in_force(run):
    """The parameters are counted in the model that was built, not taken from the workload's word."""

    class Larger(TinyWorkload):
        def build_model(self) -> nn.Module:
            return nn.Sequential(super().build_model(), nn.Linear(3, 3))

    with pytest.raises(NotInForce, match="tiny should have 67 parameters, has 79"):
        run(Larger())


def test_a_data_set_of_another_size_is_not_in_force(run):
    """Samples are counted in the data set itself."""

    class Fewer(TinyWorkload):
        def train_set(self, data_root, cache_dir):
            dataset, provenance = super().train_set(data_root, cache_dir)
            return Subset(dataset, range(100)), provenance

    with pytest.raises(NotInForce, match="180 training samples, found 100"):
        run(Fewer())


def test_precision_that_is_not_in_force_has_no_record(run):
    """A model that computes in bfloat16 is not what fp32 asks for, and is what ``default`` leaves alone."""

    class Through(nn.Module):
        def __init__(self, dtype: torch.dtype) -> None:
            super().__init__()
            self.dtype = dtype

        def forward(self, data: torch.Tensor) -> torch.Tensor:
            return data.to(self.dtype)

    class Casting(TinyWorkload):
        def build_model(self) -> nn.Module:
            return nn.Sequential(Through(torch.bfloat16), Through(torch.float32), super().build_model())

    with pytest.raises(NotInForce, match="activations should be float32, are bfloat16"):
        run(Casting())
    assert "bfloat16" == run(Casting(), precision="default").effective["activation_dtype"]


def test_a_plan_that_can_not_fill_its_window_says_so(run):
    """One short epoch does not hold 100 timed steps."""
    with pytest.raises(
        RuntimeError, match=r"the window holds 18 steps, 100 were asked for: 23 steps were trained, 4"
    ):
        run(plan="epochs", epochs=1, timed_steps=100)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"workers": 1, "epoch_samples": 32},
            "1 loader workers need 4 steps of every epoch .* has 4 of whole batches",
        ),
        # The fifth batch is a partial one, which is in no window.
        (
            {"workers": 1, "epoch_samples": 36},
            "1 loader workers need 4 steps of every epoch .* has 4 of whole batches",
        ),
        (
            {"epoch_samples": 12},
            "an epoch has 2 steps, 1 of them of whole batches, and a window begins behind one",
        ),
        ({"epoch_samples": 8}, "an epoch has 1 steps, 1 of them"),
        ({"epoch_samples": 5}, "an epoch has 1 steps, 0 of them"),
        ({"epoch_samples": 8, "mode": "synthetic", "workers": 2}, "an epoch has 1 steps, 1 of them"),
    ],
)
def test_an_epoch_that_is_too_short_to_be_timed_is_refused_at_once(run, changes, message):
    """Such a window would never open or hold a step, and the launch would run until its time limit."""
    with pytest.raises(RuntimeError, match=message):
        run(**changes)


@pytest.mark.parametrize(("samples", "counted"), [(5, 1), (36, 5)])
def test_an_audit_is_not_refused_for_epochs_that_are_short(run, samples, counted):
    """Nothing is timed in it: each batch counts, though a loader's queue would take them all."""
    record = run(mode="io", plan="audit", epochs=2, epoch_samples=samples, workers=1, timed_steps=0)

    assert [counted] * 2 == [epoch.batches for epoch in record.epochs]


def test_a_stack_without_line_profiler_says_so(run, monkeypatch):
    """A line profile that can't be had is an error with its reason and what to do."""
    monkeypatch.setitem(sys.modules, "line_profiler", None)

    with pytest.raises(
        NotInForce, match=r"this stack has no line_profiler; install it there or leave --line-profile"
    ):
        run(line_profile=True)


def test_a_step_that_talks_though_it_should_not_is_an_error(run, process_group, monkeypatch):
    """A switch that was asked for and is not in force measures nothing under a wrong name."""
    monkeypatch.setattr("perf.training.session.count_collectives", lambda *_: {"all_reduces": 2.0})

    with pytest.raises(NotInForce, match="2 all-reduces, and nosync was asked for"):
        run(strategy="ddp", backend="gloo", ddp_switches=["nosync"])


def test_a_knob_that_is_not_in_force_is_an_error(run, process_group, monkeypatch):
    """DDP's own account of itself is held against what was asked for."""
    monkeypatch.setattr("perf.training.assembly.strategies.wrap", _without_knobs)

    with pytest.raises(NotInForce, match="ddp.bucket_cap_bytes should be 1048576"):
        run(strategy="ddp", backend="gloo", bucket_cap_mb=1)


def _without_knobs(model, strategy, identity, *_):
    return wrap(model, strategy, identity)
