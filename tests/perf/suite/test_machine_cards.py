"""A machine's own rates in a run: its card, and the fractions of it that variants use."""

from __future__ import annotations

from perf import records


def test_a_machine_has_a_card_whose_rates_are_measured_and_unreferenced(suite):
    """One launch of each group; a rate that the device lacks is skipped with its reason."""
    done = suite(
        "perf/test_machine.py", "-rs", "--device", "cuda", cores=8, gpus=2, rates={"matmul_tf32": None}
    )

    assert 0 == done.status, done.output
    assert ["machine-single-1gpu", "machine-ddp-2gpu-nccl"] == [r.variant for r in done.run.records()]
    metrics = {v.metric: v.unit for v in done.run.verdicts()}
    assert {"matmul_fp32", "host_to_device_pinned", "peer_copy", "all_reduce_unet3d"} < set(metrics)
    assert {"FLOP/s", "B/s", "1/s"} == set(metrics.values())
    assert {"unreferenced"} == set(done.verdicts.values())
    assert "matmul_tf32 can't be had here: the fake stack has none" in done.output


def test_smoke_looks_at_the_card_and_at_no_floor(suite):
    """Its ranks have one thread each, so its rates are not the machine's."""
    done = suite("perf/test_machine.py", "--profile", "smoke", cores=2)

    assert 0 == done.status, done.output
    assert "2 passed" in done.output
    assert not (done.run.folder / records.VERDICTS).exists()
    assert 2 == len(done.run.records())


def test_a_card_without_one_of_its_rates_is_not_whole(suite):
    """A rate that vanished is a fact, not a slow rate."""
    done = suite("perf/test_machine.py", "-k", "whole", cores=2, changes={"machine-single": {"rates": {}}})

    assert 1 == done.status, done.output


def test_portable_floors_are_judged_only_when_asked_for(suite):
    """Without the option there is no such test; with it, and no known system, a fraction is unreferenced."""
    plain = suite("perf", "-k", "portable or known_systems", "--collect-only", "-q", cores=8, gpus=2)
    asked = suite(
        "perf/test_portable.py",
        "-k",
        "mnist_cnn-single-1gpu-fp32-native]",
        "--portable-floors",
        cores=8,
        gpus=2,
    )

    assert "no tests collected" in plain.output
    assert 0 == asked.status, asked.output
    assert {"unreferenced"} == set(asked.verdicts.values())
    assert {"machine-single-1gpu", "mnist_cnn-single-1gpu-fp32-native"} < {
        r.variant for r in asked.run.records()
    }
    assert "No known system has a fraction of this variant" in asked.output
    assert "Of the machine's rates" in asked.output
