"""The ResNet workloads: networks, sizes, their training steps and validation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from models import cifar_generated, resnet50, resnet152
from models.interface import Samples, Workload, load_workload

# Held by mypy: a size has every name of the interface, with fitting types.
workload50: Workload = resnet50.SIZES[""]
workload152: Workload = resnet152.SIZES[""]

NAMES = [f"{module}{size}" for module in ("resnet50", "resnet152") for size in ("", "_224", "_tiny")]
TINY = ["resnet50_tiny", "resnet152_tiny"]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small batches on shared cores are slower with several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The cache with the generated set, made once for this module and test_cifar_generated.py; read only."""
    path = tmp_path_factory.getbasetemp() / "cifar-cache"
    cifar_generated.ensure(str(path))
    return str(path)


@pytest.fixture(scope="module")
def train_set(cache: str) -> Samples:
    """The training samples of the tiny sizes, which they share."""
    return load_workload("resnet50_tiny").train_set(None, cache)[0]


def batch(count: int, side: int = 32, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Random images ``(count, 3, side, side)`` and classes."""
    source = torch.Generator().manual_seed(seed)
    return torch.randn(count, 3, side, side, generator=source), torch.randint(100, (count,), generator=source)


@pytest.mark.parametrize("name", NAMES)
def test_every_size_is_found_by_its_name_and_has_its_parameters(name: str) -> None:
    """The name of module and size gives the entry of SIZES, whose network is as large as stated, in float32."""
    module, _, size = name.partition("_")
    workload = load_workload(name)
    assert {"resnet50": resnet50, "resnet152": resnet152}[module].SIZES[size] is workload
    parameters = list(workload.build_model().parameters())
    assert workload.PARAMETERS == sum(p.numel() for p in parameters if p.requires_grad)
    assert {torch.float32} == {p.dtype for p in parameters}


def test_the_sources_numbers() -> None:
    """Parameters and batches are torchvision's and the source's; validation takes a thousand at once."""
    assert [
        (23_712_932, 128, 1000),
        (23_712_932, 64, 1000),
        (58_348_708, 128, 1000),
        (58_348_708, 64, 1000),
    ] == [
        (w.PARAMETERS, w.BATCH_SIZE, w.VALIDATION_BATCH_SIZE)
        for w in map(load_workload, ("resnet50", "resnet50_224", "resnet152", "resnet152_224"))
    ]


def test_an_unknown_size_names_those_that_exist() -> None:
    """A misspelt size is refused with the list of sizes."""
    with pytest.raises(ValueError, match=r"models/resnet50\.py has the sizes '', '224', 'tiny'"):
        load_workload("resnet50_225")


def test_the_deeper_network_is_deeper_when_tiny_too() -> None:
    """resnet152_tiny has more convolutions than resnet50_tiny."""
    counts = [
        sum(isinstance(layer, torch.nn.Conv2d) for layer in load_workload(name).build_model().modules())
        for name in TINY
    ]
    assert counts[0] < counts[1]


@pytest.mark.parametrize("side", [32, 224])
def test_a_score_for_each_of_a_hundred_classes(side: int) -> None:
    """Both image sizes go through the same network."""
    workload = load_workload("resnet50_tiny" if side == 32 else "resnet50_224")
    with torch.no_grad():
        output = workload.build_model().eval()(batch(2, side)[0])
    assert (2, 100) == output.shape


@pytest.mark.parametrize("name", TINY)
def test_one_step_gives_every_parameter_a_gradient_and_changes_it(name: str) -> None:
    """Forward, backward and an optimizer step reach all layers."""
    workload = load_workload(name)
    torch.manual_seed(1)
    model = workload.build_model()
    optimizer = workload.make_optimizer(model)
    before = [p.detach().clone() for p in model.parameters()]
    data, target = batch(workload.BATCH_SIZE)
    torch.autograd.backward(workload.loss_function(model(data), target))
    optimizer.step()
    for old, new in zip(before, model.parameters(), strict=True):
        assert new.grad is not None
        assert bool(torch.isfinite(new.grad).all())
        assert not torch.equal(old, new)


def test_the_loss_is_the_mean_negative_log_probability() -> None:
    """Cross entropy agrees with its definition in float64."""
    scores, target = torch.randn(7, 100, generator=torch.Generator().manual_seed(1)), torch.arange(7)
    numbers = scores.double().numpy()
    chances = np.exp(numbers) / np.exp(numbers).sum(axis=1, keepdims=True)
    expected = -np.log(chances[np.arange(7), np.arange(7)]).mean()
    assert pytest.approx(expected, rel=1e-5) == workload50.loss_function(scores, target).item()


def test_optimizer_and_schedule_are_the_sources() -> None:
    """SGD has rate 0.01 and momentum 0.9, and epochs leave the rate as it is."""
    workload = load_workload("resnet50_tiny")
    optimizer = workload.make_optimizer(workload.build_model())
    scheduler = workload.make_scheduler(optimizer, epochs=3)
    assert isinstance(optimizer, torch.optim.SGD)
    assert (0.01, 0.9) == (optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"])
    for _ in range(4):
        optimizer.step()
        scheduler.step()
    assert 0.01 == optimizer.param_groups[0]["lr"]


@pytest.mark.parametrize("name", NAMES)
def test_every_stated_choice_can_be_made(name: str) -> None:
    """All optimizers and schedules by name can be made; the first is the one without a name."""
    workload = load_workload(name)
    model = torch.nn.Linear(2, 2)
    made = [type(workload.make_optimizer(model, choice)) for choice in ("", *workload.OPTIMIZERS)]
    assert [torch.optim.SGD, torch.optim.SGD, torch.optim.Adam] == made
    optimizer = workload.make_optimizer(model)
    assert ("constant",) == workload.SCHEDULES
    assert type(workload.make_scheduler(optimizer)) is type(workload.make_scheduler(optimizer, "constant"))


def test_flags_go_to_the_optimizer_and_unknown_names_are_refused() -> None:
    """foreach arrives, an unknown flag is a TypeError, an unknown name a ValueError."""
    workload, model = load_workload("resnet50_tiny"), torch.nn.Linear(2, 2)
    assert workload.make_optimizer(model, foreach=True).defaults["foreach"] is True
    with pytest.raises(TypeError):
        workload.make_optimizer(model, no_such_flag=True)
    with pytest.raises(ValueError, match="optimizer 'sdg' is not one of sgd, adam"):
        workload.make_optimizer(model, "sdg")
    with pytest.raises(ValueError, match="schedule 'cosine' is not one of constant"):
        workload.make_scheduler(workload.make_optimizer(model), "cosine")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", TINY)
def test_training_reduces_the_loss_on_the_generated_set(name: str, seed: int, train_set: Samples) -> None:
    """In 44 steps the mean loss of the last tenth falls below that of the first."""
    workload = load_workload(name)
    torch.manual_seed(seed)
    model = workload.build_model()
    optimizer = workload.make_optimizer(model)
    tensors = train_set.tensors()
    losses = []
    for indices in torch.randperm(len(train_set))[: 44 * workload.BATCH_SIZE].split(workload.BATCH_SIZE):
        data, target = train_set.batch(tensors, indices)
        optimizer.zero_grad()
        loss = workload.loss_function(model(data), target)
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    assert 44 == len(losses)
    assert sum(losses[-4:]) < sum(losses[:4])


def test_validation_is_the_mean_over_samples() -> None:
    """Loss and accuracy are means over all samples, also when the last batch is smaller."""
    workload = load_workload("resnet50_tiny")
    torch.manual_seed(1)
    model = workload.build_model()
    data, target = batch(25)
    with torch.no_grad():
        output = model.eval()(data)
    target[:10] = output.argmax(dim=1)[:10]  # so that some are right
    loss, accuracy = workload.validate(
        model, torch.device("cpu"), DataLoader(TensorDataset(data, target), 10)
    )
    assert pytest.approx(workload.loss_function(output, target).item(), rel=1e-5) == loss
    assert int((output.argmax(dim=1) == target).sum()) / 25 == accuracy
    assert 10 / 25 <= accuracy


@pytest.mark.parametrize("training", [True, False])
def test_validation_leaves_the_mode_as_it_was(training: bool) -> None:
    """A model in training goes on in training; validation itself runs in evaluation, without gradients."""
    workload = load_workload("resnet50_tiny")
    model = workload.build_model().train(training)
    modes = []
    model.register_forward_hook(lambda *_: modes.append((model.training, torch.is_grad_enabled())))
    workload.validate(model, torch.device("cpu"), [batch(2)])
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
    workload = load_workload("resnet50_tiny")
    workload.validate(workload.build_model(), torch.device("cpu"), [batch(2)] * 5)
    assert 2 == len(calls)


def test_validation_of_nothing_is_an_error() -> None:
    """An empty loader is named instead of dividing by zero."""
    workload = load_workload("resnet50_tiny")
    with pytest.raises(ValueError, match="delivered no batch"):
        workload.validate(workload.build_model(), torch.device("cpu"), [])


@pytest.mark.parametrize("name", NAMES)
def test_both_sets_have_the_stated_sizes_and_say_where_they_came_from(name: str, cache: str) -> None:
    """The sets are whole, shaped for the network, and share one provenance but for the count."""
    workload = load_workload(name)
    train, where = workload.train_set(None, cache)
    validation, where_validation = workload.validation_set(None, cache)
    side = 224 if name.endswith("224") else 32
    assert (workload.TRAIN_SAMPLES, workload.VALIDATION_SAMPLES) == (len(train), len(validation))
    assert (3, side, side) == train[0][0].shape == validation[-1][0].shape
    assert ("generated", 50_000, str(Path(cache, cifar_generated.FOLDER))) == (
        where["kind"],
        where["samples"],
        where["folder"],
    )
    assert {**where, "samples": 10_000} == where_validation
