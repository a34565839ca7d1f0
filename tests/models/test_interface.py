"""What a workload must offer, and how the worker finds one."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

from models import interface, mnist_cnn
from models.interface import Workload, load_workload

# Held by mypy: the module has every name of the interface, with fitting types.
workload: Workload = mnist_cnn


def test_a_workload_is_found_by_its_name() -> None:
    """The name of a module in models/ gives that module."""
    assert mnist_cnn is load_workload("mnist_cnn")


@pytest.mark.parametrize("name", ["os.path", "../perf", "mnist_cnn;", "", "__init__", "Mnist"])
def test_hostile_names_are_refused_before_an_import(name: str) -> None:
    """A name that is no plain module name is never imported."""
    with pytest.raises(ValueError, match="is no module name"):
        load_workload(name)


def test_an_unknown_workload_is_named() -> None:
    """A misspelt name says which file was expected."""
    with pytest.raises(ValueError, match=r"no workload 'mnist_cmn': models/mnist_cmn\.py doesn't exist"):
        load_workload("mnist_cmn")


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("resnet50", 23_712_932),
        ("resnet50_224", 23_712_932),
        ("resnet50_tiny", 564_452),
        ("unet3d_tiny", 440_517),
    ],
)
def test_a_size_is_found_by_the_networks_name_and_its_own(name: str, parameters: int) -> None:
    """Sizes are entries of a module; without one the published size is meant."""
    assert parameters == load_workload(name).PARAMETERS


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet50_huge", r"models/resnet50\.py has the sizes '', '224', 'tiny'"),
        ("mnist_cnn_tiny", r"models/mnist_cnn\.py has no sizes"),
        ("nothing_tiny", r"models/nothing_tiny\.py doesn't exist"),
    ],
)
def test_an_unknown_size_is_named(name: str, message: str) -> None:
    """A size that is not there is refused with those that are."""
    with pytest.raises(ValueError, match=message):
        load_workload(name)


def test_a_module_that_is_no_workload_says_what_it_lacks() -> None:
    """Other modules of the package are refused with the missing names."""
    with pytest.raises(ValueError, match=r"models/idx\.py is no workload: it lacks PARAMETERS, .*, validate"):
        load_workload("idx")


def test_a_missing_import_inside_a_workload_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a workload's own import fails, the error names that module, not the workload."""
    (tmp_path / "broken.py").write_text("import not_installed_anywhere\n")
    monkeypatch.setattr(sys.modules["models"], "__path__", [str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        load_workload("broken")


def test_the_required_names_are_those_of_the_protocol() -> None:
    """The run-time check knows all constants and functions that the interface documents."""
    assert {
        *("PARAMETERS", "BATCH_SIZE", "VALIDATION_BATCH_SIZE", "TRAIN_SAMPLES", "VALIDATION_SAMPLES"),
        *("SAMPLE_SHAPE", "TARGET_SHAPE", "OPTIMIZERS", "SCHEDULES"),
        *("build_model", "loss_function", "make_optimizer", "make_scheduler"),
        *("train_set", "validation_set", "validate"),
    } == set(interface._members())


def test_the_data_functions_take_the_same_arguments_by_name() -> None:
    """`data_root` and `cache_dir` can be passed by name to every workload."""
    for name in ("train_set", "validation_set"):
        assert ["data_root", "cache_dir"] == list(inspect.signature(getattr(mnist_cnn, name)).parameters)
