"""The network of the MNIST workload, its training step and its validation."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from models import mnist_cnn, mnist_data, mnist_generated


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small batches on shared cores are slower with several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def batch(count: int, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Normalized images ``(count, 1, 28, 28)`` and their classes."""
    images, labels = mnist_generated.draw(count, seed)
    data = (torch.from_numpy(images)[:, None].float() / 255 - 0.1307) / 0.3081
    return data, torch.from_numpy(labels).long()


def test_the_network_is_the_sources() -> None:
    """Layers and parameters are those of the example: 320 + 18,496 + 1,179,776 + 1,290."""
    counts = {
        name: sum(p.numel() for p in module.parameters())
        for name, module in mnist_cnn.build_model().named_children()
        if list(module.parameters())
    }
    assert {"conv1": 320, "conv2": 18_496, "fc1": 1_179_776, "fc2": 1_290} == counts
    assert mnist_cnn.PARAMETERS == sum(counts.values())


def test_outputs_are_log_probabilities() -> None:
    """The output has a row of ten log-probabilities for each image."""
    output = mnist_cnn.build_model()(batch(3)[0])
    assert (3, 10) == output.shape
    assert torch.allclose(torch.ones(3), output.exp().sum(dim=1))


def test_optimizer_and_schedule_are_the_sources() -> None:
    """Adadelta starts at 1.0 and each epoch multiplies the rate by 0.7."""
    optimizer = mnist_cnn.make_optimizer(mnist_cnn.build_model())
    scheduler = mnist_cnn.make_scheduler(optimizer)
    rates = []
    for _ in range(3):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert isinstance(optimizer, torch.optim.Adadelta)
    assert pytest.approx([1.0, 0.7, 0.49]) == rates


def test_steps_of_the_optimizer_lower_the_loss() -> None:
    """Five steps on one batch lower its loss (one needn't: Adadelta's first step has the size of a guess)."""
    torch.manual_seed(1)
    model = mnist_cnn.build_model()
    model.eval()  # without dropout, so that before and after are comparable
    optimizer = mnist_cnn.make_optimizer(model)
    data, target = batch(mnist_cnn.BATCH_SIZE)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = mnist_cnn.loss_function(model(data), target)
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_training_reduces_the_loss_on_the_generated_set() -> None:
    """Twenty ordinary steps on the stand-in bring the loss below where they began."""
    torch.manual_seed(1)
    model = mnist_cnn.build_model()
    optimizer = mnist_cnn.make_optimizer(model)
    losses = []
    batches = TensorDataset(*batch(20 * mnist_cnn.BATCH_SIZE))
    for data, target in DataLoader(batches, mnist_cnn.BATCH_SIZE):
        optimizer.zero_grad()
        loss = mnist_cnn.loss_function(model(data), target)
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-3:]) < sum(losses[:3])


def test_validation_is_the_mean_over_samples() -> None:
    """Loss and accuracy are means over all samples, also when the last batch is smaller."""
    torch.manual_seed(1)
    model = mnist_cnn.build_model()
    data, target = batch(25)
    loss, accuracy = mnist_cnn.validate(
        model, torch.device("cpu"), DataLoader(TensorDataset(data, target), 10)
    )
    with torch.no_grad():
        output = model.eval()(data)
    assert pytest.approx(mnist_cnn.loss_function(output, target).item(), rel=1e-5) == loss
    assert int((output.argmax(dim=1) == target).sum()) / 25 == accuracy


@pytest.mark.parametrize("training", [True, False])
def test_validation_leaves_the_mode_as_it_was(training: bool) -> None:
    """A model in training goes on in training; validation itself runs without dropout and gradients."""
    model = mnist_cnn.build_model().train(training)
    modes = []
    model.register_forward_hook(lambda *_: modes.append((model.training, torch.is_grad_enabled())))
    mnist_cnn.validate(model, torch.device("cpu"), [batch(2)])
    assert [(False, False)] == modes
    assert training is model.training


def test_validation_reads_the_device_at_the_end_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of `.item()` calls, each of which waits for a device, doesn't grow with the batches."""
    read = torch.Tensor.item
    calls = []

    def item(tensor: torch.Tensor) -> float | int | bool:
        calls.append(tensor)
        return read(tensor)

    monkeypatch.setattr(torch.Tensor, "item", item)
    mnist_cnn.validate(mnist_cnn.build_model(), torch.device("cpu"), [batch(2)] * 5)
    assert 2 == len(calls)


def test_validation_of_nothing_is_an_error() -> None:
    """An empty loader is named instead of dividing by zero."""
    with pytest.raises(ValueError, match="delivered no batch"):
        mnist_cnn.validate(mnist_cnn.build_model(), torch.device("cpu"), [])


def test_both_sets_have_the_stated_sizes_and_say_where_they_came_from(
    generated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sets are whole, shaped for the network, and share one provenance but for the count."""
    without_debian = functools.partial(mnist_data.find, debian_folder="/nonexistent")
    monkeypatch.setattr(mnist_data, "find", without_debian)
    train, where = mnist_cnn.train_set(None, str(generated.parent))
    validation, where_validation = mnist_cnn.validation_set(None, str(generated.parent))
    assert (mnist_cnn.TRAIN_SAMPLES, mnist_cnn.VALIDATION_SAMPLES) == (len(train), len(validation))
    assert (1, 28, 28) == train[0][0].shape
    assert ("generated", mnist_cnn.TRAIN_SAMPLES) == (where["kind"], where["samples"])
    assert {**where, "samples": mnist_cnn.VALIDATION_SAMPLES} == where_validation
