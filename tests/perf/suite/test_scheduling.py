from __future__ import annotations

import pytest

from perf.catalogue import GROUPS
from perf.profiles import PROFILES
from perf.suite.scheduling import MOST_LAUNCHES, GroupScheduling, weight


@pytest.mark.parametrize(
    ("node_id", "expected"),
    [
        ("perf/test_ddp.py::test_a[ddp@mnist_cnn-cpu-1]", "ddp@mnist_cnn-cpu"),
        ("perf/test_ddp.py::test_b[ddp@mnist_cnn-cpu-2]", "ddp@mnist_cnn-cpu"),
        ("perf/test_throughput.py::test_c[mnist_cnn-single-1cpu-fp32-native]", "loader@mnist_cnn-cpu"),
        ("perf/test_loader.py::test_d[loader@mnist_cnn-cpu-1]", "loader@mnist_cnn-cpu"),
        ("tests/test_e.py::test_e[1-2]", "tests/test_e.py::test_e[1-2]"),
        ("tests/test_e.py::test_f", "tests/test_e.py::test_f"),
    ],
)
def test_a_test_goes_where_its_group_goes(node_id, expected):
    """Tests of one group have one scope, across files; a test without a group is a scope of its own."""
    scheduler = object.__new__(GroupScheduling)

    assert expected == scheduler._split_scope(node_id)


def test_every_group_has_a_scope_of_its_own():
    """Where a group's name begins with another's, the longer one is taken."""
    scheduler = object.__new__(GroupScheduling)

    assert list(GROUPS) == [scheduler._split_scope(f"perf/test_x.py::test_y[{name}]") for name in GROUPS]
    assert list(GROUPS) == [scheduler._split_scope(f"perf/test_x.py::test_y[{name}-1]") for name in GROUPS]


def test_groups_that_need_most_gpus_come_first_then_the_longest():
    """15 launches on two GPUs before 15 on one, whole epochs as several launches, a test without a group last."""
    quick = PROFILES["quick"]
    names = ("ddp@mnist_cnn-gpu-1", "loader@mnist_cnn-gpu", "default@mnist_cnn-gpu", "samples@mnist_cnn-gpu")
    weights = [weight(f"perf/test_x.py::test_y[{name}]", quick) for name in names]

    assert sorted(weights, reverse=True) == weights == list(dict.fromkeys(weights))
    epochs = weight("perf/x.py::test[epochs@mnist_cnn-gpu]", quick)
    assert 3 == (epochs - MOST_LAUNCHES) / (weights[2] - MOST_LAUNCHES)
    assert 0 == weight("tests/test_e.py::test_f", quick)
