"""A launch's network, optimizer and step are put together as the spec says, and read back from what ran."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from perf.training import assembly, optimizations
from perf.training.assembly import assemble, needs_own_step, not_in_force, read_back
from perf.training.loaders import LoaderPlan, make_loader
from perf.training.settings import NotInForce, Unavailable
from tests.perf.training.helpers import TinyWorkload, make_spec, separable

CPU = torch.device("cpu")


@pytest.fixture
def train(cpu, tmp_path):
    """Train a few steps as a spec says and return the spec and what was read back."""

    def run(*, steps: int = 3, **changes):
        spec = make_spec(tmp_path, parameters=TinyWorkload.PARAMETERS, **changes)
        built = assemble(spec, cpu, TinyWorkload())
        plan = LoaderPlan(spec.batch_size, spec.workers, 0, 1, distributed=False, pin_memory=False, seed=1)
        loader = make_loader(spec.loader, separable(44, 1), plan, CPU)
        batches = list(loader)
        for data, target in batches[:steps]:
            built.step(data, target)
        return spec, read_back(spec, cpu, built, loader, batches[0])

    return run


def test_what_was_asked_for_is_in_force(train):
    """Nothing is amiss in a plain launch, and all that was read back is JSON."""
    spec, effective = train()

    assert [] == not_in_force(spec, effective)
    assert effective == json.loads(json.dumps(effective, allow_nan=False))
    assert {"autocast": None} == effective["precision"]
    assert effective["owns_parameters"] is True
    assert effective["cuda_graph"] is None


@pytest.mark.parametrize("loader", ["native", "batched", "resident"])
def test_the_loader_is_read_back_by_its_name(train, loader):
    """Each loader says itself which one it is."""
    spec, effective = train(loader=loader)

    assert loader == effective["loader"]["loader"]
    assert [] == not_in_force(spec, effective)
    other = dataclasses.replace(spec, loader="dali")
    assert any("loader.loader should be dali" in problem for problem in not_in_force(other, effective))


def test_bf16_is_in_force_by_its_activations(train):
    """Autocast shows in the first layer's output, not in a flag."""
    spec, effective = train(precision="bf16")

    assert [] == not_in_force(spec, effective)
    assert ("bfloat16", "float32") == (effective["activation_dtype"], effective["parameter_dtype"])
    dropped = {**effective, "activation_dtype": "float32"}
    assert ["activations should be bfloat16, are float32"] == not_in_force(spec, dropped)


def test_fp16_without_a_scaler_is_not_in_force(train):
    """float16 gradients vanish without one."""
    spec, effective = train(precision="bf16")
    spec = dataclasses.replace(spec, precision="fp16")
    found = not_in_force(spec, {**effective, "activation_dtype": "float16"})

    assert ["a gradient scaler is not in force with fp16"] == found


def test_a_compiled_network_is_watched_uncompiled_after_training(train):
    """Its dtype is seen, and dynamo's counters say that it was compiled."""
    spec, effective = train(optimizations=["compile"], precision="bf16")

    assert [] == not_in_force(spec, effective)
    assert "bfloat16" == effective["activation_dtype"]
    assert effective["compiled"]["frames"] >= 1


def test_a_network_that_was_compiled_and_is_not_the_one_that_trains_is_named(train, monkeypatch):
    """The defect of source 003: a scripted handle that nobody used."""
    torch._dynamo.utils.counters.clear()

    class Handle(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self._orig_mod = model

        def forward(self, x):
            return self._orig_mod(x)

    monkeypatch.setattr(optimizations, "compile_model", Handle)
    spec, effective = train(optimizations=["compile"])

    assert any("the model that trains is not that one" in p for p in not_in_force(spec, effective))


def test_a_flag_that_a_default_overwrote_is_named(train, monkeypatch):
    """The defect of source 003: asked for in the configuration, dropped on the way."""
    monkeypatch.setattr(
        assembly.optimizations,
        "make_optimizer",
        lambda workload, model, name, asked: workload.make_optimizer(model, name),
    )
    spec, effective = train(optimizations=["fused"])

    assert ["fused was asked for and is not in force"] == not_in_force(spec, effective)


def test_a_network_of_another_size_is_not_in_force(cpu, tmp_path):
    """The catalogue's number of parameters is held against the network."""
    with pytest.raises(NotInForce, match="tiny should have 68 parameters, has 67"):
        assemble(make_spec(tmp_path, parameters=68), cpu, TinyWorkload())


def test_what_is_not_available_is_refused_before_anything_is_built(cpu, tmp_path):
    """The reason comes at once, not after the data were made."""
    spec = make_spec(tmp_path, optimizations=["cuda_graph"], parameters=TinyWorkload.PARAMETERS)

    with pytest.raises(Unavailable, match="cuda_graph: only GPUs have graphs"):
        assemble(spec, cpu, TinyWorkload())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"precision": "tf32"}, False),
        ({"precision": "default"}, False),
        ({"precision": "bf16"}, True),
        ({"precision": "fp16"}, True),
        ({"optimizations": ["fused", "compile", "autotune"]}, False),
        ({"optimizations": ["channels_last"]}, True),
        ({"optimizations": ["non_blocking"]}, True),
        ({"optimizations": ["cuda_graph"]}, True),
    ],
)
def test_the_tutorials_loop_trains_what_it_can(tmp_path, changes, expected):
    """Only what changes the loop's own lines needs a step of its own; line profiles stay comparable otherwise."""
    assert expected is needs_own_step(make_spec(tmp_path, **changes))


@pytest.mark.parametrize(
    ("passed", "own", "there"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_copies_that_do_not_block_are_those_of_the_step_that_trains(
    cpu, tmp_path, monkeypatch, passed, own, there
):
    """Read from the step's object, not from the spec; the tutorials' loop has none, and waits for its copies."""
    spec = make_spec(tmp_path, parameters=TinyWorkload.PARAMETERS)
    built = assemble(spec, cpu, TinyWorkload())
    built.eager.non_blocking = passed
    monkeypatch.setattr(assembly, "needs_own_step", lambda spec: own)
    plan = LoaderPlan(spec.batch_size, 0, 0, 1, distributed=False, pin_memory=False, seed=1)
    loader = make_loader("native", separable(44, 1), plan, CPU)

    assert {"in_force": there, "pinned": None} == read_back(spec, cpu, built, loader, None)["non_blocking"]


def test_first_batches_are_told_apart(train):
    """The digest is of the first sample; shape, type and statistics stand beside it."""
    _, effective = train()
    first = effective["first_batch"]

    assert ([8, 4], "float32", [8]) == (first["shape"], first["dtype"], first["target_shape"])
    assert 32 == len(first["sample"])
