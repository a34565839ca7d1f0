"""The 3-D U-Net: layers, training step, learning, validation, in both sizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

from models import unet3d
from models.density_data import Crops
from models.interface import load_workload

FULL, TINY = unet3d.SIZES[""], unet3d.SIZES["tiny"]
STEPS = 44


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small batches on shared cores are slower with several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache folder for the boxes of the tiny size."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def crops(cache: str) -> Crops:
    """The training samples of the tiny size."""
    dataset, _ = TINY.train_set(None, cache)
    assert isinstance(dataset, Crops)
    return dataset


def count(module: nn.Module) -> int:
    """Number of a module's parameters."""
    return sum(parameter.numel() for parameter in module.parameters())


def batch(samples: int, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Random input and target in the shapes of the tiny size."""
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn((samples, 4, 16, 16, 16), generator=generator),
        torch.rand((samples, 5, 16, 16, 16), generator=generator) - 0.5,
    )


def test_sizes_are_found_by_name() -> None:
    """The loader of workloads knows both sizes, and they are what a workload must be."""
    assert FULL is load_workload("unet3d")
    assert TINY is load_workload("unet3d_tiny")
    assert (4096, 512) == (FULL.TRAIN_SAMPLES, FULL.VALIDATION_SAMPLES)
    assert (4096, 512) == (TINY.TRAIN_SAMPLES, TINY.VALIDATION_SAMPLES)
    assert (32, 32) == (FULL.BATCH_SIZE, FULL.VALIDATION_BATCH_SIZE)


def test_the_network_is_the_tutorials() -> None:
    """Layers have the tutorial's channels, kernels and activations, and there are 116,977,029 parameters."""
    with torch.device("meta"):
        model = unet3d.UNet3d(FULL.WIDTHS)
    convolutions = [
        module for module in model.modules() if isinstance(module, (nn.Conv3d, nn.ConvTranspose3d))
    ]
    assert [
        (4, 64), (64, 128), (128, 256), (256, 512), (512, 512), (512, 512),
        (512, 512), (1024, 512), (1024, 256), (512, 128), (256, 64), (128, 5),
    ] == [(layer.in_channels, layer.out_channels) for layer in convolutions]  # fmt: skip
    assert {((4, 4, 4), (2, 2, 2), (1, 1, 1))} == {
        (layer.kernel_size, layer.stride, layer.padding) for layer in convolutions
    }
    kinds = [type(module).__name__ for module in model.modules()]
    assert (6, 6, 6, 5) == tuple(
        kinds.count(kind) for kind in ("Conv3d", "LeakyReLU", "ConvTranspose3d", "ReLU")
    )
    assert [] == list(model.buffers())
    assert 116_977_029 == FULL.PARAMETERS == count(model)
    assert (2, 5, 64, 64, 64) == model(torch.empty((2, 4, 64, 64, 64), device="meta")).shape


def test_the_tiny_network_has_its_stated_parameters_and_shapes() -> None:
    """The tiny size is the same class, down to one point at the bottom, with outputs inside (-1, 1)."""
    model = TINY.build_model()
    assert isinstance(model, unet3d.UNet3d)
    assert TINY.PARAMETERS == count(model)
    bottom: list[torch.Size] = []
    model.down[-1].register_forward_hook(lambda _module, _inputs, output: bottom.append(output.shape))
    output = model(batch(3)[0])
    assert (3, 5, 16, 16, 16) == output.shape
    assert (1, 1, 1) == bottom[0][2:]
    assert output.abs().max() < 1


def test_every_level_is_skipped_past_to_its_own_partner() -> None:
    """The input of each level on the way up ends with what its partner of equal side gave on the way down."""
    model = TINY.build_model()
    down: list[torch.Tensor] = []
    up: list[torch.Tensor] = []
    for level in model.down:
        level.register_forward_hook(lambda _module, _inputs, output: down.append(output))
    for level in [*model.up, model.last]:
        level.register_forward_hook(lambda _module, inputs, _output: up.append(inputs[0]))
    model(batch(1)[0])
    assert torch.equal(down[-1], up[0])
    for before, after in zip(down[-2::-1], up[1:], strict=True):
        assert torch.equal(before, after[:, -before.shape[1] :])
        assert 2 * before.shape[1] == after.shape[1]


def test_weights_start_with_the_tutorials_deviation() -> None:
    """Weights are normal with deviation 0.02, biases 0, and the seed decides."""
    torch.manual_seed(1)
    model = TINY.build_model()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert 0 == parameter.abs().sum()
        else:
            # The smallest has 4096 weights: 1.1 % of noise, four times that is allowed.
            assert pytest.approx(0.02, rel=0.045) == parameter.detach().std().item()
    torch.manual_seed(1)
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), TINY.build_model().parameters(), strict=True)
    )


def test_optimizer_and_schedule_are_the_tutorials() -> None:
    """Adam starts at 2e-4 and the rate falls along a cosine to 0 at the last epoch; or it stays."""
    for name, expected in (("", [2e-4, 1e-4, 0.0]), ("constant", [2e-4] * 3)):
        optimizer = TINY.make_optimizer(TINY.build_model(), fused=False)
        scheduler = TINY.make_scheduler(optimizer, name, epochs=2)
        rates = []
        for _ in range(3):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
        assert isinstance(optimizer, torch.optim.Adam)
        assert pytest.approx(expected) == rates


def test_unknown_names_are_errors() -> None:
    """A name that isn't in the lists is refused, also if another workload has such a schedule."""
    optimizer = TINY.make_optimizer(TINY.build_model(), "adam")
    with pytest.raises(ValueError, match="optimizer 'sgd' is not one of adam"):
        TINY.make_optimizer(TINY.build_model(), "sgd")
    with pytest.raises(ValueError, match="schedule 'step' is not one of cosine, constant"):
        TINY.make_scheduler(optimizer, "step", epochs=2)


def test_a_step_moves_every_parameter() -> None:
    """After one step of training no parameter is where it was: every layer gets a gradient."""
    torch.manual_seed(1)
    model = TINY.build_model()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = TINY.make_optimizer(model)
    data, target = batch(TINY.BATCH_SIZE)
    loss = TINY.loss_function(model(data), target)
    torch.autograd.backward(loss)
    optimizer.step()
    assert pytest.approx(0.25, rel=0.05) == loss.item()  # mean distance of an output near 0 from -0.5 to 0.5
    assert not any(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_training_reduces_the_loss(crops: Crops, seed: int) -> None:
    """In 44 steps the mean loss of the last tenth is well below that of the first."""
    torch.manual_seed(seed)
    crops.start_epoch(0, seed)
    model = TINY.build_model()
    optimizer = TINY.make_optimizer(model)
    losses = []
    for data, target in DataLoader(Subset(crops, range(STEPS * TINY.BATCH_SIZE)), TINY.BATCH_SIZE):
        optimizer.zero_grad()
        loss = TINY.loss_function(model(data), target)
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    tenth = STEPS // 10
    assert STEPS == len(losses)
    # Of 50 seeds (torch 2.14.1, CPU) the median came to 0.78 of the first tenth and the worst to 0.83.
    assert sum(losses[-tenth:]) < 0.9 * sum(losses[:tenth])


def test_validation_is_the_mean_over_samples() -> None:
    """The loss is the mean over all samples, also when the last batch is smaller, and there is no accuracy."""
    torch.manual_seed(1)
    model = TINY.build_model()
    data, target = batch(5)
    loss, accuracy = TINY.validate(model, torch.device("cpu"), DataLoader(TensorDataset(data, target), 2))
    with torch.no_grad():
        expected = (model(data) - target).abs().mean().item()
    assert pytest.approx(expected, rel=1e-5) == loss
    assert accuracy is None


@pytest.mark.parametrize("training", [True, False])
def test_validation_leaves_the_mode_as_it_was(training: bool) -> None:
    """A model in training goes on in training; validation itself runs without gradients."""
    model = TINY.build_model().train(training)
    modes = []
    model.register_forward_hook(lambda *_: modes.append((model.training, torch.is_grad_enabled())))
    TINY.validate(model, torch.device("cpu"), [batch(1)])
    assert [(False, False)] == modes
    assert training is model.training


def test_validation_reads_the_device_at_the_end_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one `.item()` call, which waits for a device, however many batches there are."""
    read = torch.Tensor.item
    calls = []

    def item(tensor: torch.Tensor) -> float | int | bool:
        calls.append(tensor)
        return read(tensor)

    monkeypatch.setattr(torch.Tensor, "item", item)
    TINY.validate(TINY.build_model(), torch.device("cpu"), [batch(1)] * 3)
    assert 1 == len(calls)


def test_validation_of_nothing_is_an_error() -> None:
    """An empty loader, which gave the tutorial a loss of nan, is named, and the mode is still restored."""
    model = TINY.build_model()
    with pytest.raises(ValueError, match="delivered no batch"):
        TINY.validate(model, torch.device("cpu"), [])
    assert model.training


def test_both_sets_have_the_stated_sizes_and_say_where_they_came_from(cache: str) -> None:
    """The sets are shaped for the network, are cut out of different boxes and share one provenance."""
    train, where = TINY.train_set(None, cache)
    validation, where_validation = TINY.validation_set(None, cache)
    assert (TINY.TRAIN_SAMPLES, TINY.VALIDATION_SAMPLES) == (len(train), len(validation))
    assert [(4, 16, 16, 16), (5, 16, 16, 16)] == [part.shape for part in validation[0]]
    assert [(4, 48, 48, 48), (4, 32, 32, 32)] == [part.tensors()[0].shape for part in (train, validation)]
    assert ("generated", TINY.TRAIN_SAMPLES) == (where["kind"], where["samples"])
    assert {**where, "samples": TINY.VALIDATION_SAMPLES} == where_validation
    assert Path(cache) == Path(str(where["folder"])).parent
