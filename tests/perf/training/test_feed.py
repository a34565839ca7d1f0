"""What a rank trains on, and when it may be opened."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from perf.training.feed import feeds_early, open_feed
from perf.training.identity import Identity
from perf.training.ring import RingLoader
from tests.perf.training.helpers import TinyWorkload, make_spec

GPU = Identity(0, 1, 0, "node", [torch.device("cuda", 0)])


@pytest.mark.parametrize(
    ("changes", "early"),
    [
        ({"mode": "synthetic"}, True),
        ({"mode": "synthetic", "strategy": "ddp"}, True),
        ({"mode": "synthetic", "numa": True}, False),
        ({"mode": "synthetic", "numa": True, "tied_cores": 2}, True),
        ({"mode": "synthetic", "loader": "resident"}, False),
        ({"mode": "synthetic", "loader": "batched"}, False),
        ({"mode": "full"}, False),
        ({"mode": "io"}, False),
    ],
)
def test_a_ring_of_torchs_own_workers_may_begin_before_the_gpu_is_touched(tmp_path, cpu, changes, early):
    """On a CPU there is nothing to begin before."""
    spec = make_spec(tmp_path, **changes)

    assert early is feeds_early(spec, GPU)
    assert not feeds_early(spec, cpu)


@pytest.mark.parametrize("mode", ["synthetic", "full"])
def test_a_feed_is_the_ranks_part_of_the_data(tmp_path, cpu, mode):
    """A ring of the loader's first batches, or the loader itself; and where the samples came from."""
    feed = open_feed(make_spec(tmp_path, mode=mode), cpu, TinyWorkload())

    assert "tiny" == feed.provenance["kind"]
    assert (mode == "full") is (feed.batches is feed.loader)
    if mode == "synthetic":
        assert isinstance(feed.batches, RingLoader)
        first = next(iter(open_feed(make_spec(tmp_path, mode="full"), cpu, TinyWorkload()).batches))
        assert torch.equal(first[0], next(iter(feed.batches))[0])


def test_each_rank_has_its_own_part(tmp_path, cpu):
    """Of an epoch that is divided among them."""
    spec = make_spec(tmp_path, strategy="ddp")
    ranks = [dataclasses.replace(cpu, rank=rank, world_size=2) for rank in range(2)]
    mine, other = (list(open_feed(spec, rank, TinyWorkload()).loader.sampler) for rank in ranks)

    assert not set(mine) & set(other)
    assert TinyWorkload.TRAIN_SAMPLES == len(mine) + len(other)
