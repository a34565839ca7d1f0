from __future__ import annotations

import os
import subprocess
import sys

import pytest

from perf.launch.environment import Driver, stack_environment, stack_python_path
from perf.machine import REPOSITORY

DRIVER = Driver("/driver", frozenset({"/target/packages"}), reads_python_path=True)


@pytest.mark.parametrize(
    "name",
    [
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "GROUP_RANK",
        "MASTER_ADDR",
        "MASTER_PORT",
        "TORCHELASTIC_RUN_ID",
        "PET_NNODES",
        "PYTHON_EXEC",
        "PYTHONSAFEPATH",
        "LOGLEVEL",
        "PYTEST_XDIST_WORKER",
        "STACKPROOF_LAUNCH",
        "STACKPROOF_DRIVER",
    ],
)
def test_what_an_outer_launcher_and_pytest_say_is_dropped(name):
    """A worker must not take itself for a rank of somebody else's launch, nor torchrun its options from elsewhere."""
    assert {} == stack_environment({name: "1"}, DRIVER)


@pytest.mark.parametrize(
    "name", ["NCCL_P2P_DISABLE", "TORCH_NCCL_BLOCKING_WAIT", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"]
)
def test_what_the_caller_set_for_the_stack_is_kept(name):
    """The caller's settings of NCCL, CUDA and libraries are part of what is measured."""
    assert {name: "1"} == stack_environment({name: "1"}, DRIVER)


def test_only_the_drivers_own_entries_leave_the_python_path():
    """A module's packages stay; the driver's environment, its packages and relative entries go."""
    value = "/module/torch:/driver/lib/python3.11/site-packages::.:/target/packages:/driver2"
    assert {"PYTHONPATH": "/module/torch:/driver2"} == stack_environment({"PYTHONPATH": value}, DRIVER)


def test_a_python_path_that_held_nothing_else_is_not_set_at_all():
    """An empty PYTHONPATH would mean the working directory."""
    assert {} == stack_environment({"PYTHONPATH": "/driver/lib"}, DRIVER)


def test_a_driver_that_ignores_the_python_path_leaves_it_to_the_stack():
    """Under `python -E` nothing of the driver came from PYTHONPATH, so a folder with a pytest in it is the stack's."""
    driver = Driver("/driver", DRIVER.folders, reads_python_path=False)
    assert "/target/packages" == stack_python_path("/target/packages", driver)


def test_a_module_with_torch_and_pytest_alike_is_kept(tmp_path):
    """Where the driver's pytest happens to come from the module that carries torch, the module is the stack."""
    (tmp_path / "torch").mkdir()
    driver = Driver("", frozenset({os.path.realpath(tmp_path)}), reads_python_path=True)
    assert str(tmp_path) == stack_python_path(str(tmp_path), driver)


def test_a_link_into_the_drivers_environment_is_seen_through(tmp_path):
    """The same folder under another name does not slip through."""
    (tmp_path / "driver/lib").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(tmp_path / "driver/lib")
    driver = Driver(str(tmp_path / "driver"), frozenset(), reads_python_path=True)
    assert "" == stack_python_path(str(tmp_path / "alias"), driver)


def test_this_driver_knows_where_its_own_pytest_came_from():
    """The running driver names the folder of the pytest that runs this test, and whether it reads PYTHONPATH."""
    driver = Driver.this()
    assert os.path.realpath(os.path.dirname(os.path.dirname(pytest.__file__))) in driver.folders
    assert (not sys.flags.ignore_environment) == driver.reads_python_path


def test_a_driver_under_e_says_so():
    """The flag -E of the driver's Python is noticed."""
    code = "from perf.launch.environment import Driver; print(Driver.this().reads_python_path)"
    done = subprocess.run(
        [sys.executable, "-E", "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert "False" == done.stdout.strip()
