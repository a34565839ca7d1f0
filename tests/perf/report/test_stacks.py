from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from perf.machine import system_facts
from perf.report.stacks import environment_lines, stack_key, stack_labels

OLD = {"python": "3.11.9", "torch": "2.6.0", "torch_path": "/a/torch", "cuda": "12.4"}

TEXT = st.text(st.sampled_from("ab \n\x1b"), max_size=4)
STACKS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["old", "new"]) | st.none(),
        "torch": st.sampled_from(["2.6.0", "2.7.0"]) | st.none(),
        "torch_path": st.sampled_from(["/a", "/b"]),
        "cuda": st.sampled_from(["12.4", None]),
        "numpy": st.sampled_from(["1.26", "2.0"]),
    },
)


@settings(max_examples=50)
@given(st.lists(STACKS, max_size=6))
def test_different_stacks_have_different_names(stacks):
    """Two stacks are never drawn under one name, and equal ones always are."""
    labels = stack_labels(stacks)
    assert {stack_key(stack) for stack in stacks} == set(labels)
    assert len(labels) == len(set(labels.values()))
    assert all(labels.values())


def test_a_stack_is_named_as_briefly_as_possible():
    """Its name, else its torch, else where its torch lies; a part that does not make a stack is ignored."""
    new = OLD | {"torch": "2.7.0"}
    moved = OLD | {"torch_path": "/b/torch"}
    assert ["old", "new"] == list(stack_labels([OLD | {"name": "old"}, OLD | {"name": "new"}]).values())
    assert ["torch 2.6.0", "torch 2.7.0"] == list(stack_labels([OLD, new, OLD]).values())
    assert ["torch 2.6.0 at /a/torch", "torch 2.6.0 at /b/torch"] == list(stack_labels([OLD, moved]).values())
    assert stack_key(OLD) == stack_key(OLD | {"gloo": True})


def test_the_header_says_what_somebody_must_know():
    """System, CPU, GPUs, stack, host, data and suite a line each; unknown parts and all else are left out."""
    gpu = {"index": 0, "name": "NVIDIA H100", "uuid": "GPU-1", "memory_bytes": 80 * 2**30}
    stack = {"python_path": "/not/shown", "name": "new", "torch": "2.6.0", "cuda": None}
    stack["gpus"] = [gpu, gpu, {"name": "T4"}]
    lines = environment_lines(
        {
            "options": {"secret": "not shown"},
            "user": "not shown",
            "host": "n1",
            "system": "Linux",
            "kernel": "6.1",
            "distribution": None,
            "cpu_model": "AMD EPYC 9654",
            "cores": 192,
            "cores_allowed": 32,
            "memory_bytes": 2**38,
            "stack": stack,
            "data": {"source": "generated", "train": {"samples": 60_000}},
            "suite": {"version": "0.1.0", "commit": None, "changed": False},
        }
    )
    assert [
        "system  Linux, 6.1",
        "cpu     AMD EPYC 9654, 32 of 192 cores allowed, 256.00 GiB",
        "gpus    2 × NVIDIA H100 (80.00 GiB), 1 × T4",
        "stack   name new, torch 2.6.0",
        "host    n1",
        "data    source generated, train samples 60000",
        "suite   version 0.1.0, changed no",
    ] == lines


def test_this_machines_facts_give_a_header():
    """What the suite itself writes to environment.json names the system, the CPU, the host and the suite."""
    facts = system_facts()
    lines = environment_lines(facts | {"stack": {"torch": "2.6.0"}})
    assert ["system", "cpu", "stack", "host", "suite"] == [line.split()[0] for line in lines]
    assert f"host    {facts['host']}" in lines


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.sampled_from(
            ["system", "cpu_model", "cores", "cores_allowed", "memory_bytes", "stack", "host", "data"]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["torch", "gpus", "name", "memory_bytes"]), inner, max_size=3
                )
            ),
            max_leaves=10,
        ),
    )
)
def test_any_environment_gives_a_header(environment):
    """Whatever JSON the file holds, each line has a name and something after it, and no name comes twice."""
    lines = environment_lines(environment)
    assert all(line[len("system  ") :] for line in lines)
    names = [line[: len("system")].strip() for line in lines]
    assert len(names) == len(set(names))
    assert {"system", "cpu", "gpus", "stack", "host", "data"} >= set(names)
