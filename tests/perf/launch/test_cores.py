from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.launch.cores import bound, in_order, parts


@pytest.mark.parametrize(
    ("cores", "gpus", "usable", "expected"),
    [
        ([0, 1, 2, 3], 2, None, [[0, 1], [2, 3]]),
        ([0, 1, 2, 3, 4], 2, None, [[0, 1], [2, 3]]),
        ([0, 8, 1, 9], 4, None, [[0], [8], [1], [9]]),
        ([0, 1, 2, 3], 2, 2, [[0], [2]]),
        ([5, 6], 4, None, [[5], [6], [5], [6]]),
        ([0, 1, 2, 3], 1, None, [[0, 1, 2, 3]]),
    ],
)
def test_every_gpu_has_as_many_cores_as_the_others(cores, gpus, usable, expected):
    """What is left over goes to none; a quota makes the parts smaller; with fewer cores than GPUs some share one."""
    assert expected == parts(cores, gpus, usable)


@given(
    st.lists(st.integers(0, 500), unique=True, min_size=1, max_size=200),
    st.integers(1, 16),
    st.integers(1, 300),
)
def test_parts_do_not_overlap_where_there_is_a_core_for_each(cores, gpus, usable):
    """No core is in two parts, and all of them together are not more than may be busy."""
    found = parts(cores, gpus, usable)
    every = [core for part in found for core in part]
    assert gpus == len(found)
    assert set(every) <= set(cores)
    if gpus <= min(len(cores), usable):
        assert len(every) == len(set(every)) <= usable


def test_threads_of_one_core_stand_beside_each_other(tmp_path):
    """Sockets first, then physical cores; where the system does not say, by number."""
    for core, (socket, physical) in {
        0: (0, 0),
        1: (0, 1),
        2: (1, 0),
        3: (1, 1),
        4: (0, 0),
        5: (0, 1),
    }.items():
        folder = tmp_path / f"sys/devices/system/cpu/cpu{core}/topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{socket}\n")
        (folder / "core_id").write_text(f"{physical}\n")
    assert [0, 4, 1, 5, 2, 3] == in_order({0, 1, 2, 3, 4, 5}, tmp_path)
    assert [1, 7] == in_order({7, 1}, tmp_path / "none")


def test_a_thread_is_bound_and_what_it_had_comes_back():
    """Also after an error; None binds nothing."""
    before = os.sched_getaffinity(0)
    one = {min(before)}
    seen = []

    def fail():
        with bound(one):
            seen.append(os.sched_getaffinity(0))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with bound(None):
        seen.append(os.sched_getaffinity(0))
    assert [one, before, before] == [*seen, os.sched_getaffinity(0)]
