"""Compilers find what they made for the same stack, and never what they made for another one."""

from __future__ import annotations

import dataclasses

import pytest

from perf.launch.caches import CACHES, compiler_caches
from perf.launch.stack import Stack

STACK = Stack("s", "/stack/bin/python", {"torch": "2.14.1", "cuda": "13.0"})


@pytest.fixture
def folder(make_spec):
    """Return the folder of a stack's launch on a side."""

    def folder(stack=STACK, **changes):
        return compiler_caches(make_spec(cache_dir="/cache", **changes), stack, {})["TRITON_CACHE_DIR"]

    return folder


def test_launches_of_a_stack_share_a_folder(folder):
    """Whatever they train, and however often."""
    assert folder(launch="0001") == folder(launch="0002", precision="bf16")
    assert folder().startswith("/cache/compiled/")
    assert folder().endswith("/triton")


def test_stacks_and_sides_have_folders_of_their_own(folder):
    """Another Python, version, set-up line, wrapper or variable is another stack; so is a comparison's other side."""
    others = [
        dataclasses.replace(STACK, python="/other/bin/python"),
        dataclasses.replace(STACK, facts={**STACK.facts, "torch": "2.9.1"}),
        dataclasses.replace(STACK, setup=("module load torch",)),
        dataclasses.replace(STACK, wrapper=("apptainer", "exec", "a.sif")),
        dataclasses.replace(STACK, environment={"NVIDIA_TF32_OVERRIDE": "0"}),
    ]
    found = [folder(), folder(side="old"), folder(side="new"), *(folder(stack) for stack in others)]
    assert len(found) == len(set(found))


@pytest.mark.parametrize("name", CACHES)
def test_a_variable_that_is_set_is_left(make_spec, name):
    """A site that keeps its caches on the node's own disk goes on doing so."""
    found = compiler_caches(make_spec(cache_dir="/cache"), STACK, {name: "/local/cache"})
    assert {*CACHES} - {name} == {*found}
