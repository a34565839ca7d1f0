"""Optimizations are switched on, refused with a reason, and read back from what ran."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from perf.contract import OPTIMIZATIONS
from perf.training import optimizations
from perf.training.settings import Unavailable
from tests.perf.training.helpers import TinyWorkload

ROOT = Path(__file__).resolve().parents[3]
CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


def refuse(*names, device=CPU, strategy="single", precision="fp32", loader="native"):
    optimizations.refuse_unavailable(
        names, device=device, strategy=strategy, precision=precision, loader=loader
    )


@pytest.mark.parametrize(
    ("names", "changes", "reason"),
    [
        (["non_blocking"], {}, "non_blocking: a CPU has no copy to a device"),
        (["non_blocking"], {"device": GPU, "loader": "resident"}, "the loader resident makes its batches"),
        (["cuda_graph"], {}, "cuda_graph: only GPUs have graphs"),
        (["cuda_graph"], {"device": GPU, "strategy": "ddp"}, "would have to hold NCCL's work"),
        (["autotune"], {}, "autotune: cuDNN is not in use"),
        (["compile"], {"strategy": "dp"}, "does not compile the replicas of DataParallel"),
        ([], {"precision": "fp16"}, "fp16: float16 is for GPUs; on a CPU use bf16"),
        ([], {"precision": "tf32"}, "tf32: only NVIDIA GPUs since Ampere"),
    ],
)
def test_what_is_not_available_says_why(names, changes, reason):
    """The reason begins with the switch's name."""
    with pytest.raises(Unavailable, match=reason):
        refuse(*names, **changes)


def test_what_a_cpu_has_is_not_refused():
    """Memory formats, fused optimizers, compilers and bfloat16 are there on a CPU."""
    refuse("channels_last", "fused", precision="bf16")


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"TORCHDYNAMO_DISABLE": "1"}, "TORCHDYNAMO_DISABLE=1 is set"),
        ({"PATH": "", "CXX": ""}, "there is no C compiler on PATH"),
    ],
)
def test_a_compiler_that_is_not_there_is_named(monkeypatch, variables, reason):
    """torch.compile would fail at the first step, or silently not compile."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(Unavailable, match=f"compile: {reason}"):
        refuse("compile")


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (torch.nn.Conv2d(3, 4, 3), torch.channels_last),
        (torch.nn.Conv3d(3, 4, 3), torch.channels_last_3d),
        (torch.nn.ConvTranspose3d(3, 4, 3), torch.channels_last_3d),
        (torch.nn.Linear(3, 4), torch.channels_last),
    ],
)
def test_the_memory_format_is_that_of_the_networks_convolutions(layer, expected):
    """Images or volumes, as the convolutions say."""
    assert expected is optimizations.memory_format(torch.nn.Sequential(layer))


def test_weights_are_looked_at_in_memory():
    """Strides decide, and only where they can: not with one channel or kernels of one pixel."""
    images = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Conv2d(8, 8, 1))

    assert optimizations.weights_channels_last(images) is False
    assert optimizations.weights_channels_last(images.to(memory_format=torch.channels_last)) is True
    assert optimizations.weights_channels_last(torch.nn.Conv2d(1, 8, 3)) is None
    assert optimizations.weights_channels_last(torch.nn.Linear(2, 2)) is None


class Workload(TinyWorkload):
    """A tiny workload whose optimizer is chosen by name."""

    def make_optimizer(self, model, name="", **flags):
        kind = {"": torch.optim.SGD, "adam": torch.optim.Adam, "adadelta": torch.optim.Adadelta}[name]
        return kind(model.parameters(), lr=0.01, **flags)


def test_a_fused_optimizer_is_fused():
    """Adam has a fused form, and its flag is read back from its groups."""
    model = Workload().build_model()
    optimizer = optimizations.make_optimizer(Workload(), model, "adam", ["fused"])

    assert optimizer.param_groups[0]["fused"] is True
    assert not optimizations.make_optimizer(Workload(), model, "adam", []).param_groups[0]["fused"]


def test_an_optimizer_without_a_fused_form_says_so():
    """Adadelta has none: that is an outcome, not a crash."""
    with pytest.raises(Unavailable, match="fused: torch .* has no fused Adadelta here"):
        optimizations.make_optimizer(Workload(), Workload().build_model(), "adadelta", ["fused"])


@pytest.mark.parametrize(("name", "capturable"), [("adam", True), ("adadelta", True), ("", None)])
def test_an_optimizer_is_made_fit_for_a_graph(name, capturable):
    """Those that keep a step count keep it on the device; SGD has none."""
    optimizer = optimizations.make_optimizer(Workload(), Workload().build_model(), name, ["cuda_graph"])

    assert capturable is optimizer.param_groups[0].get("capturable")


def test_an_optimizer_that_cannot_be_captured_says_so():
    """One that has no such flag, and whose state a graph would freeze."""

    class Stateful(Workload):
        def make_optimizer(self, model, name="", **flags):
            optimizer = torch.optim.Rprop(model.parameters(), **flags)
            optimizer.defaults.pop("capturable", None)
            return optimizer

    with pytest.raises(Unavailable, match="cuda_graph: Rprop can't be captured"):
        optimizations.make_optimizer(Stateful(), Workload().build_model(), "", ["cuda_graph"])


def test_what_compiles_for_inductor_is_ended_and_not_waited_for(monkeypatch):
    """Its process is killed, and torch's own end of it then finds nothing to do; a pool of another kind is left."""
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    pool, other = SimpleNamespace(process=sleeper, running=True), SimpleNamespace()
    module = SimpleNamespace(_pool_set={1: pool, 2: other}.values())
    monkeypatch.setitem(sys.modules, "torch._inductor.async_compile", module)
    optimizations.end_compilers()

    assert -signal.SIGKILL == sleeper.wait(10)
    assert not pool.running


@pytest.mark.parametrize("module", [None, SimpleNamespace()])
def test_without_inductor_nothing_is_ended(monkeypatch, module):
    """Most launches compile nothing, and another torch may keep no such pools."""
    monkeypatch.setitem(sys.modules, "torch._inductor.async_compile", module)
    optimizations.end_compilers()


def test_the_compile_process_of_this_torch_is_ended():
    """Torch's pool is what this takes it for: after it the process ends at once, and without a word."""
    code = (
        "import os, sys, time\n"
        "from torch._inductor.async_compile import AsyncCompile, SubprocPool\n"
        "from perf.training.optimizations import end_compilers\n"
        "pool = AsyncCompile.process_pool()\n"
        "assert isinstance(pool, SubprocPool), pool\n"
        "end_compilers()\n"
        "assert pool.process.wait(10) < 0 and not pool.running\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert (0, "", "") == (ended.returncode, ended.stdout, ended.stderr)


def test_a_compiled_model_shows_what_was_compiled():
    """After a call dynamo counts a graph; a wrapper that is never called counts none."""
    model = torch.nn.Linear(3, 2)
    assert {"wrapped": False, "frames": 0, "graphs": 0, "breaks": 0} == optimizations.compiled_facts(model)
    compiled = optimizations.compile_model(model)

    assert {"wrapped": True, "frames": 0, "graphs": 0, "breaks": 0} == optimizations.compiled_facts(compiled)
    compiled(torch.randn(4, 3)).sum().backward()
    found = optimizations.compiled_facts(compiled)
    assert found["wrapped"]
    assert found["frames"] >= 1
    assert found["graphs"] >= 1
    assert 0 == found["breaks"]


def test_the_optimizer_owns_the_parameters_of_the_model_that_trains():
    """A model that was built twice, and stepped once, is found out."""
    model, other = Workload().build_model(), Workload().build_model()

    assert optimizations.owns_parameters(model, Workload().make_optimizer(model)) is True
    assert optimizations.owns_parameters(other, Workload().make_optimizer(model)) is False


def effective(**changes):
    """Settings read back with nothing switched on."""
    return {
        "channels_last": {"weights": False, "activations": False},
        "non_blocking": {"in_force": False, "pinned": True},
        "optimizer_flags": {"fused": None},
        "compiled": {"wrapped": False, "frames": 0},
        "cuda_graph": None,
        "cudnn_benchmark": False,
        "owns_parameters": True,
        **changes,
    }


IN_FORCE = effective(
    channels_last={"weights": True, "activations": True},
    non_blocking={"in_force": True, "pinned": True},
    optimizer_flags={"fused": True},
    compiled={"wrapped": True, "frames": 1},
    cuda_graph={"replays": 5},
    cudnn_benchmark=True,
)


def test_what_is_in_force_is_no_problem():
    """Everything that was asked for, and nothing that was not."""
    assert [] == optimizations.not_in_force(OPTIMIZATIONS, IN_FORCE)
    assert [] == optimizations.not_in_force([], effective())


@pytest.mark.parametrize("name", OPTIMIZATIONS)
def test_a_dropped_flag_is_named(name):
    """The defect of source 003: a flag that a default overwrote, and a run at a third of its speed."""
    problems = optimizations.not_in_force([name], effective())

    assert f"{name} was asked for and is not in force" in problems


@pytest.mark.parametrize("name", ["non_blocking", "fused", "compile", "cuda_graph"])
def test_a_flag_that_nobody_asked_for_is_named(name):
    """A foot of the ladder that climbs by itself would hide the rung's gain."""
    problems = optimizations.not_in_force([n for n in OPTIMIZATIONS if n != name], IN_FORCE)

    assert [f"{name} was not asked for and is in force"] == problems


@pytest.mark.parametrize(
    ("names", "changes", "sentence"),
    [
        (["compile"], {"compiled": {"wrapped": True, "frames": 0}}, "the model that trains is not that one"),
        (
            ["channels_last"],
            {"channels_last": {"weights": True, "activations": False}},
            "activations are not",
        ),
        (["non_blocking"], {"non_blocking": {"in_force": True, "pinned": False}}, "not in pinned memory"),
        (["cuda_graph"], {"cuda_graph": {"replays": 0}}, "no graph was replayed"),
        ([], {"owns_parameters": False}, "does not step the parameters of the model that trains"),
    ],
)
def test_a_switch_without_effect_is_named(names, changes, sentence):
    """A switch that is set and does nothing is not in force: the compiled model that nobody calls, say."""
    assert any(sentence in problem for problem in optimizations.not_in_force(names, effective(**changes)))
