"""A site's stacks: how they are started, and the check that the worker imported the right torch."""

from __future__ import annotations

import dataclasses
import json
import sys

import pytest
from launch_records import PAIR_GROUP, record_of

from perf.cluster.stacks import places_of, probe_site_stack, site_stack, stranger, wrong_torch
from perf.launch.place import HERE
from perf.launch.stack import Stack, StackError

FACTS = {"python": "3.9", "torch": "2.9.1+cu129", "torchvision": "0.24", "gpus": [], "torch_path": "/s/torch"}


@pytest.fixture
def answering(tmp_path):
    """A Python that answers every probe with these facts, and says what it was given."""
    script = tmp_path / "a python"
    script.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"told = {{'words': sys.argv[1:], 'x': os.environ.get('X'), 'y': os.environ.get('Y')}}\n"
        f"print(json.dumps({FACTS!r} | told))\n"
    )
    script.chmod(0o755)
    return script


def test_a_stack_is_asked_through_its_setup_wrapper_and_environment(site, answering):
    """What is asked is what will be measured, placeholders filled."""
    more = (
        f"[stacks.s]\npython = {json.dumps(str(answering))}\nsetup = ['export X=\"from setup\"']\n"
        "wrapper = ['env', 'Z={repository} and {results}']\n[stacks.s.environment]\nY = 'from the file'\n"
    )
    ours = site("local", node="cores = 2\n[node.environment]\nNCCL_DEBUG = 'WARN'", more=more)
    stack = site_stack(ours, "s", {"repository": "/re po", "results": "/r"})
    assert ("env", "Z=/re po and /r") == stack.wrapper
    assert {"NCCL_DEBUG": "WARN", "Y": "from the file"} == stack.environment

    probed = probe_site_stack(ours, stack, HERE, {"PATH": "/usr/bin:/bin"})

    assert (["-m", "perf.training.probe"], "from setup", "from the file") == (
        probed.facts["words"], probed.facts["x"], probed.facts["y"],
    )  # fmt: skip
    assert stack.setup == probed.setup


def test_another_torch_than_the_site_file_says_is_refused(site, answering):
    """A module that was changed under its name is found before anything is measured."""
    more = f"[stacks.s]\npython = {json.dumps(str(answering))}\ntorch = '2.14.1'\n"
    ours = site("local", node="cores = 2", more=more)

    with pytest.raises(
        StackError, match=r"\[stacks.s\]: torch 2.9.1\+cu129 was found, the site file says 2.14.1"
    ):
        probe_site_stack(ours, site_stack(ours, "s", {}), HERE)


def test_a_setup_that_fails_is_named(site):
    """The number of the line is in the message."""
    ours = site("local", node="cores = 2", more="[stacks.s]\nsetup = ['true', 'false']\n")

    with pytest.raises(StackError, match="line 2 of the stack's setup failed"):
        probe_site_stack(ours, site_stack(ours, "s", {}), HERE)


@pytest.mark.parametrize(
    ("asked", "found", "good"), [("", "2.9", True), ("2.9.1", "2.9.1+cu129", True), ("2.9", "2.9.1", False)]
)
def test_versions_are_equal_but_for_their_build(site, asked, found, good):
    """The part behind the plus is the build's."""
    ours = site(more=f"[stacks.s]\ntorch = '{asked}'\n")

    assert good == (wrong_torch(ours.stack("s"), found) == "")


def test_a_launch_with_another_torch_is_a_stranger():
    """A PYTHONPATH that brings another torch to the worker fails the launch, by version or by folder."""
    stack = Stack("s", "python3", FACTS)
    record = record_of(PAIR_GROUP.members[0], stack={"torch": "2.9.1+cu129", "torch_path": "/s/torch"})

    assert "" == stranger(stack, record)
    other = dataclasses.replace(record, stack={"torch": "2.9.1+cu129", "torch_path": "/home/me/torch"})
    assert "torch_path is /home/me/torch" in stranger(stack, other)
    older = dataclasses.replace(record, stack={"torch": "2.1"})
    assert "torch is 2.1" in stranger(stack, older)


def test_places_are_what_a_worker_reads_and_writes(site, tmp_path):
    """A container mounts these."""
    places = places_of(site(more="[data]\nroot = '/d'\n"), tmp_path, "/c")

    assert ("/d", "/c", str(tmp_path)) == (places["data"], places["cache"], places["results"])
