from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.verdict.system import NO_GPU, System, match, system_of

H100 = System("NVIDIA H100 80GB HBM3", 4, 700.0, "Intel(R) Xeon(R) Platinum 8480+")


def test_the_same_system_comes_first_and_without_notes():
    """An exact match wins over one of which less is known, wherever it stands."""
    vague = replace(H100, cpu=None)
    first, second = match(H100, [vague, H100])
    assert (1, (), False) == (first.index, first.notes, first.provisional)
    assert (0, True) == (second.index, second.provisional)
    assert "the host's CPU is not known of the reference" in second.notes


@pytest.mark.parametrize(
    "other",
    [
        replace(H100, gpu="NVIDIA A100-SXM4-80GB"),
        replace(H100, gpus=2),
        replace(H100, power_limit_watts=500.0),
        replace(H100, cpu="AMD EPYC 9654"),
    ],
)
def test_what_is_known_to_differ_never_matches(other):
    """Another GPU, fewer GPUs a node, another power limit or another CPU is another system."""
    assert [] == match(H100, [other])


def test_the_order_of_falling_back():
    """Same, then larger nodes, then power limit unknown, then CPU unknown, then both."""
    known = [
        replace(H100, power_limit_watts=None, cpu=None),
        replace(H100, cpu=None),
        replace(H100, power_limit_watts=None),
        replace(H100, gpus=8),
        H100,
    ]
    assert [4, 3, 2, 1, 0] == [one.index for one in match(H100, known)]
    assert [False, False, True, True, True] == [one.provisional for one in match(H100, known)]


def test_larger_nodes_are_said():
    """A reference of nodes with 8 GPUs holds where 4 are visible, and the note says so."""
    (found,) = match(H100, [replace(H100, gpus=8)])
    assert ("the reference's nodes have 8 GPUs, 4 are visible here",) == found.notes


def test_a_power_limit_is_no_question_without_gpus():
    """A CPU system with the same CPU is the same system."""
    here = System(NO_GPU, 0, None, "x")
    assert ((), False) == ((found := match(here, [here])[0]).notes, found.provisional)


def test_a_run_tells_its_system():
    """GPUs come from the stack's probe, the limit from NVML, the CPU from the host; null is unknown."""
    environment = {
        "stack": {"gpus": [{"name": "G"}, {"name": "G"}]},
        "gpu_power_limits_watts": [700.0, 650.0],
        "cpu_model": "C",
    }
    assert System("G", 2, 650.0, "C") == system_of(environment)
    assert System("G", 2, None, "C") == system_of({**environment, "gpu_power_limits_watts": [None, None]})
    assert System(NO_GPU, 0, None, None) == system_of({"cpu_model": None})
    assert System("A + G", 2, None, None) == system_of({"stack": {"gpus": [{"name": "G"}, {"name": "A"}]}})


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(JSON, JSON, JSON)
def test_any_environment_is_some_system(stack, limits, cpu):
    """An environment.json of an older suite, or edited by hand, is no reason to fall over."""
    found = system_of({"stack": stack, "gpu_power_limits_watts": limits, "cpu_model": cpu})
    assert found.words
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", found.slug)


def test_names_of_files():
    """A file is named after the system, in letters that every shell and file system takes."""
    assert "4x-nvidia-h100-80gb-hbm3-700w-intel-xeon-platinum-8480" == H100.slug
    assert "cpu-amd-epyc-9654-96-core" == System(NO_GPU, 0, None, "AMD EPYC 9654 96-Core Processor").slug
