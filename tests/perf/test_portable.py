from __future__ import annotations

import dataclasses

import pytest
from launch_records import record_of

from perf import portable
from perf.catalogue import GROUPS, home
from perf.contract import Rate
from perf.portable import card_of, devices_of, fractions_of, medians, step_of, systems_to_show
from perf.workloads import WORKLOADS

SINGLE = home("mnist_cnn-single-1gpu-fp32-native")
MNIST = WORKLOADS["mnist_cnn"]


def launch(variant="mnist_cnn-single-1gpu-fp32-native", **changes):
    return record_of(home(variant), **changes)


def card(value=1e6, **changes):
    (member,) = GROUPS["rates@machine-gpu"].members
    return record_of(member, rates={"matmul_fp32": Rate(value, "FLOP/s")}, **changes)


def test_a_step_s_work_is_the_workload_s():
    """One sample's FLOP and bytes, its network's operators, at the batch that was run."""
    step = step_of(launch())

    assert (64, MNIST.flops, MNIST.sample_bytes, MNIST.operators, "fp32", 1) == (
        step.samples,
        step.flops,
        step.copied_bytes,
        step.operators,
        step.precision,
        step.ranks,
    )


@pytest.mark.parametrize(
    ("changes", "field", "expected"),
    [
        ({"mode": "synthetic"}, "copied_bytes", 0),
        ({"loader": "resident"}, "copied_bytes", 0),
        ({"device": "cpu"}, "copied_bytes", 0),
        ({"loader": "batched"}, "copied_bytes", MNIST.sample_bytes),
        ({"optimizations": ["cuda_graph"]}, "operators", None),
        ({"optimizations": ["channels_last", "compile"]}, "operators", None),
        ({"strategy": "dp", "gpus": 4}, "operators", 4 * MNIST.operators),
        ({"strategy": "ddp", "ranks_per_node": 2, "nodes": 3}, "ranks", 6),
        ({"strategy": "dp", "gpus": 4}, "ranks", 1),
        ({"device": "cpu", "strategy": "ddp", "ranks_per_node": 2}, "flops", 2 * MNIST.flops),
        ({"strategy": "ddp", "ranks_per_node": 2}, "flops", MNIST.flops),
    ],
)
def test_how_it_is_run_changes_a_step_s_work(changes, field, expected):
    """Data that lie on the device are not copied, a graph is one launch, DataParallel launches for all its devices."""
    assert expected == getattr(step_of(launch(**changes)), field)


@pytest.mark.parametrize(
    "changes", [{"mode": "io"}, {"plan": "audit"}, {"workload": "machine", "plan": "rates"}]
)
def test_what_trains_nothing_has_no_step(changes):
    """A loader alone, an audit and the card itself."""
    assert step_of(launch(**changes)) is None
    assert {} == fractions_of(launch(**changes), {"matmul_fp32": 1.0})


def test_enlarged_images_have_the_gradients_of_their_network():
    """224x224 changes the activations, not the parameters."""
    assert "resnet50" == step_of(launch(workload="resnet50_224")).gradients_of


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, 1), ({"strategy": "dp", "gpus": 4}, 4), ({"strategy": "ddp", "ranks_per_node": 2, "nodes": 2}, 4)],
)
def test_samples_are_shared_by_devices(changes, expected):
    """GPUs of DataParallel, ranks of DDP."""
    assert expected == devices_of(launch(**changes))


def test_a_card_is_the_median_over_valid_launches_of_one_kind_of_device():
    """A rate that could not be had is not on it."""
    launches = [
        card(1.0),
        card(3.0),
        card(2.0),
        card(99.0, valid=False),
        card(None),
        card(50.0, device="cpu"),
    ]

    assert {"matmul_fp32": 2.0} == card_of(launches, "cuda")
    assert {} == card_of([launch()], "cuda")


def test_fractions_are_those_of_one_device():
    """Two ranks at twice the throughput use each GPU as one does."""
    rates = {"matmul_fp32": 1e9}
    alone = fractions_of(launch(samples_per_second=100.0), rates)
    two = fractions_of(launch(strategy="ddp", ranks_per_node=2, samples_per_second=200.0), rates)

    assert {"matrix": 100.0 * MNIST.flops / 1e9} == pytest.approx(alone)
    assert alone == two


def test_a_launch_that_is_not_fit_has_no_fractions():
    """Neither has one without a throughput."""
    rates = {"matmul_fp32": 1e9}

    assert (
        {} == fractions_of(launch(valid=False), rates) == fractions_of(launch(samples_per_second=0.0), rates)
    )


def test_medians_are_over_launches():
    """Of the bounds that all of them have."""
    rates = {"matmul_fp32": MNIST.flops, "kernel_launches": 1.0}
    launches = [launch(samples_per_second=value) for value in (1.0, 3.0, 2.0)]

    assert 2.0 == medians(launches, rates)["matrix"]
    spared = dataclasses.replace(launches[0], optimizations=["compile"])
    assert ["matrix"] == list(medians([*launches, spared], rates))
    assert {} == medians([], rates)


def test_a_table_that_can_not_be_read_is_a_note_in_a_report(tmp_path, monkeypatch):
    """The run's own numbers are shown all the same."""
    monkeypatch.setattr(portable, "KNOWN_FILE", tmp_path / "known.toml")
    assert systems_to_show()[0] is None
    (tmp_path / "known.toml").write_text("schema = 1\n", encoding="utf-8")
    table, (note,) = systems_to_show()

    assert table is None
    assert "known.toml:1" in note
