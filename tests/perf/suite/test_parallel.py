"""The suite on several made-up GPUs: DDP's knobs, the three ways, scaling; and what is said of them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from perf.suite.parallel import peak_in_words
from perf.suite.source import Measurement

GPUS = {"cores": 32, "gpus": 4}


def ran(suite, *arguments: str, **settings):
    done = suite(
        *("--profile", "full", "--device", "cuda", "--launches", "5", "-rs"), *arguments, **GPUS, **settings
    )
    assert "INTERNALERROR" not in done.output
    return done


def test_autotuning_under_dataparallel_is_caught_and_explained(suite):
    """Four times the step is beyond the bound; the reason says whose cache is lost, and what to do."""
    done = ran(
        suite,
        "perf/test_ways.py",
        "-k",
        "autotuning and mnist_cnn",
        steps={"native-autotune": 0.04},
    )

    assert 1 == done.status, done.output
    (verdict,) = [v for v in done.run.verdicts() if v.metric == "autotuned_dp"]
    assert "fail" == verdict.verdict
    assert "starts new threads for every forward pass" in " ".join(verdict.reasons)


def test_the_three_ways_are_told(suite):
    """Speed-up, memory on each GPU, the forward pass and its share; the published settings beside the fair ones."""
    done = ran(suite, "perf/test_ways.py", "-k", "mnist_cnn and not autotuning", steps={"-dp-": 0.02})

    assert 0 == done.status, done.output
    found = {v.metric: v for v in done.run.verdicts()}
    assert {"speed_up", "uneven_memory", "forward_share", "epoch_speed_up", "published_speed_up"} == set(
        found
    )
    assert "confounded" in " ".join(found["published_speed_up"].reasons)
    # On as many GPUs as there are: eight are skipped with the reason.
    assert {"dp@mnist_cnn-gpu", "dp4@mnist_cnn-gpu"} == {
        v.group for v in done.run.verdicts() if v.metric == "speed_up"
    }
    # 0.3 of 1.05, as the made-up phases have it.
    assert 0.3 / 1.05 == pytest.approx(found["forward_share"].estimate)
    memory = [v for v in done.run.verdicts() if v.metric == "uneven_memory" and "-dp-" in v.variant]
    assert 2.0 == memory[0].estimate


def test_communication_and_knobs_are_told(suite):
    """The share that no_sync saves, the all-reduces of each cap, the rank that is slowest, NCCL's transport."""
    done = ran(
        suite,
        "perf/test_ddp_knobs.py",
        "-k",
        "(talk or knobs) and mnist_cnn",
        steps={"-nosync-": 0.008},
    )

    assert 0 == done.status, done.output
    shares = [v for v in done.run.verdicts() if v.metric == "communication_share"]
    assert [pytest.approx(0.2, abs=0.02)] * 2 == [v.estimate for v in shares]
    counts = {v.variant: v for v in done.run.verdicts() if v.metric == "all_reduces"}
    capped = counts["mnist_cnn-ddp-2gpu-nccl-bucket25-fp32-native-synthetic"]
    assert 1.0 == capped.estimate
    assert "An unset bucket_cap_mb is not the same as 25" in " ".join(capped.reasons)


def told_of_memory(suite, field: str, ranks: dict[str, tuple[int, int]], *words: str) -> dict[str, str]:
    """Return what is said of each knob's memory where its ranks, and those of the defaults, peak so."""
    changes = {
        "ddp-2gpu-nccl-fp32-native-synthetic" if knob == "defaults" else f"nccl-{knob}-": {
            field: [{f"cuda:{rank}": size} for rank, size in enumerate(sizes)]
        }
        for knob, sizes in ranks.items()
    }
    done = ran(suite, "perf/test_ddp_knobs.py", "-k", "memory and mnist_cnn", *words, changes=changes)
    return {v.variant.split("-")[4]: v.reasons[0] for v in done.run.verdicts() if v.metric == "knob_memory"}


MEMORY = {
    "defaults": (10_000_000, 6_000_000),
    "bucket25": (10_000_000, 6_000_000),
    "bucket1": (6_000_000, 2_000_000),
    "view": (30_000_000, 26_000_000),
}


def test_memory_of_a_knob_is_that_of_its_windows(suite):
    """Ranks are held against each other one by one: that one takes more than the other is no noise."""
    told = told_of_memory(suite, "window_peak_memory_bytes", MEMORY)
    assert "bucket25: 9.537 MiB, +0 MiB a rank against the defaults." == told["bucket25"]
    assert "bucket1: 5.722 MiB, -3.815 MiB a rank against the defaults." == told["bucket1"]
    assert "view: 28.61 MiB, +19.07 MiB a rank against the defaults." == told["view"]


def test_memory_of_one_launch_a_side_is_told_with_what_it_is_worth(suite):
    """Nobody knows how far equal ones differ."""
    told = told_of_memory(suite, "window_peak_memory_bytes", MEMORY, "--launches", "1")
    assert told["bucket1"].startswith(
        "bucket1: 5.722 MiB, -3.815 MiB a rank against the defaults. One launch of a side"
    )


def test_memory_of_whole_launches_is_told_with_what_it_is_worth(suite):
    """Their peaks have differed by a copy of the gradients, 4.6 MiB of mnist_cnn: less says little."""
    told = told_of_memory(suite, "peak_memory_bytes", MEMORY)
    assert "bucket25: 9.537 MiB, +0 MiB a rank against the defaults." == told["bucket25"]
    assert "-3.815 MiB a rank against the defaults. Peaks of whole launches" in told["bucket1"]
    assert "a copy of the gradients (4.577 MiB here)" in told["bucket1"]
    assert "view: 28.61 MiB, +19.07 MiB a rank against the defaults." == told["view"]


@pytest.mark.parametrize(("base", "said"), [([7, 9], True), ([8, 8], False)])
def test_memory_that_equal_launches_differ_by_shows_nothing(base, said):
    """1 MiB less where the launches of one side differ by 2."""

    def side(sizes: list[int]) -> SimpleNamespace:
        launches = [
            SimpleNamespace(window_peak_memory_bytes=[{"cuda:0": size * 2**20}], parameters=10**6)
            for size in sizes
        ]
        return Measurement(SimpleNamespace(variant=SimpleNamespace(ddp_knobs=("view",))), launches)

    told = peak_in_words(side([7, 7]), side(base))
    assert told.startswith("view: 7 MiB, -1 MiB a rank against the defaults.")
    assert said is ("Equal launches differ by up to 2 MiB: nothing is shown." in told)


def test_a_transport_of_the_network_within_a_node_fails(suite):
    """NCCL over sockets between GPUs of one node is an exact fact, and has a remedy."""
    done = ran(
        suite,
        "perf/test_ddp_knobs.py",
        "-k",
        "no_network and talk and mnist_cnn",
        changes={"ddp-2gpu-nccl-fp32": {"telemetry": {"transports": {"NET/Socket": 2}}}},
    )

    assert 1 == done.status, done.output
    assert "NET/Socket" in done.output
    assert "NCCL_P2P_DISABLE" in done.output


def test_scaling_is_judged_at_every_world_size_that_there_is(suite):
    """2 and 4 GPUs are judged, 8 are skipped with the reason; a step that takes twice as long is beyond the limit."""
    done = ran(
        suite,
        "perf/test_scaling.py",
        "-k",
        "(weak or strong) and mnist_cnn and not data",
        steps={"ddp-4gpu": 0.02},
    )

    assert 1 == done.status, done.output
    verdicts = {v.test: v for v in done.run.verdicts() if v.metric == "scaling_overhead"}
    assert "pass" == verdicts["test_scaling_keeps_its_efficiency[weak@mnist_cnn-gpu-2]"].verdict
    failed = verdicts["test_scaling_keeps_its_efficiency[weak@mnist_cnn-gpu-4]"]
    assert "fail" == failed.verdict
    assert "efficiency alone was judged" in " ".join(failed.reasons)
    told = {v.test: v for v in done.run.verdicts() if v.metric == "scaling_efficiency"}
    strong = told["test_efficiency_is_told[strong@mnist_cnn-gpu-2of4]"]
    assert 0.5 == pytest.approx(strong.estimate, abs=0.02)
    assert "needs 8 GPUs, 4 here" in done.output
