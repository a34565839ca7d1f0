"""A step that is more than the tutorials' loop trains the same network; it says which precision it used."""

from __future__ import annotations

import pytest
import torch

from perf.training.loop import train, train_with
from perf.training.steps import EagerStep, make_scaler
from tests.perf.training.helpers import TinyWorkload, separable

CPU = torch.device("cpu")


class Counter:
    """A meter that stops after some steps and keeps the losses."""

    def __init__(self, steps: int) -> None:
        self.steps, self.losses = steps, []

    def step(self, loss, samples):
        self.losses.append(float(loss.detach()))
        return len(self.losses) == self.steps


def batches(count: int, size: int = 8):
    data = separable(count * size, 1)
    return torch.utils.data.DataLoader(data, batch_size=size)


def built(**changes):
    torch.manual_seed(3)
    workload = TinyWorkload()
    model = workload.build_model()
    optimizer = workload.make_optimizer(model)
    settings = {"precision": "fp32", **changes}
    return model, EagerStep(model, CPU, workload.loss_function, optimizer, **settings), optimizer, workload


def test_a_step_does_what_the_plain_loop_does():
    """In fp32 without optimizations parameters and losses are those of the tutorials' loop, bit for bit."""
    model, step, _, _ = built()
    torch.manual_seed(5)
    found = Counter(6)
    train_with(step, model, batches(6), found)
    plain, _, optimizer, workload = built()
    torch.manual_seed(5)
    expected = Counter(6)
    train(plain, CPU, batches(6), workload.loss_function, optimizer, expected)

    assert expected.losses == found.losses
    for one, other in zip(plain.parameters(), model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_training_ends_where_the_meter_says_so():
    """True is a whole epoch, False one that the meter ended."""
    model, step, _, _ = built()

    assert train_with(step, model, batches(3), Counter(99)) is True
    assert train_with(step, model, batches(3), Counter(2)) is False


def test_bf16_runs_under_autocast():
    """Activations are bfloat16, parameters and gradients stay float32, and the step says so."""
    model, step, _, _ = built(precision="bf16")
    seen = []
    layer = next(m for m in model.modules() if isinstance(m, torch.nn.Linear))
    layer.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    data, target = next(iter(batches(1)))
    loss = step(data, target)

    assert [torch.bfloat16] == seen
    assert {torch.float32} == {p.dtype for p in model.parameters()} | {
        p.grad.dtype for p in model.parameters()
    }
    assert torch.isfinite(loss)
    assert {"autocast": "bfloat16"} == step.describe()


def test_fp32_has_neither_autocast_nor_scaler():
    """What was not asked for is not there."""
    _, step, _, _ = built()

    assert {"autocast": None} == step.describe()
    assert make_scaler("bf16") is None


def test_inputs_are_brought_into_the_memory_format():
    """A network of images sees channels-last inputs, with the same values."""
    seen = []

    class Look(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(()))

        def forward(self, x):
            seen.append(x)
            return (x * self.scale).mean(dim=(1, 2, 3))

    model = Look()
    step = EagerStep(
        model,
        CPU,
        lambda output, target: ((output - target) ** 2).mean(),
        torch.optim.SGD(model.parameters(), lr=0.1),
        precision="fp32",
        memory_format=torch.channels_last,
    )
    data = torch.randn(4, 3, 5, 5)
    step(data, torch.zeros(4))

    assert seen[0].is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(data, seen[0])


class FakeScaler:
    """Scales by two, as a gradient scaler does by its own number."""

    def scale(self, loss):
        return 2 * loss

    def step(self, optimizer):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad /= 2
        optimizer.step()

    def update(self):
        pass

    def get_scale(self):
        return 2.0


@pytest.mark.parametrize(("supports", "reads"), [(True, False), (False, True)])
def test_a_scaler_that_reads_the_device_is_said(supports, reads):
    """Unless the optimizer takes the scale itself, the scaler asks the device in every step; the record says so."""
    _, step, optimizer, _ = built()
    step.scaler = FakeScaler()
    optimizer._step_supports_amp_scaling = supports

    assert {"autocast": None, "scaler": {"scale": 2.0, "reads_device_each_step": reads}} == step.describe()


def test_a_scaled_step_trains_like_an_unscaled_one():
    """The scale goes into the loss before, and out of the gradients after, backward."""
    model, step, _, _ = built()
    step.scaler = FakeScaler()
    plain, unscaled, _, _ = built()
    data, target = next(iter(batches(1)))
    torch.manual_seed(9)
    step(data, target)
    torch.manual_seed(9)
    unscaled(data, target)

    for one, other in zip(plain.parameters(), model.parameters(), strict=True):
        assert torch.allclose(one, other)
