"""The data loader: its share of a step, and which samples it delivers."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import pytest

from perf.catalogue import Pair, groups, pairs, variants
from perf.limits import LOADER_SHARE
from perf.suite.feeding import batches_an_epoch
from perf.suite.judge import Judge
from perf.suite.source import Measurement
from perf.workloads import WORKLOADS

_FULL_AND_SYNTHETIC = [
    Pair(g, g.member("single", mode="full"), g.member("single", mode="synthetic")) for g in groups("loader")
]


@pytest.mark.parametrize("pair", pairs(_FULL_AND_SYNTHETIC))
def test_loader_share_is_within_its_limit(pair: Pair, limits: Judge) -> None:
    """The part of a step that the real loader costs, 1 - T(synthetic) / T(full), stays below its limit."""
    limits.share(pair.new, pair.base, LOADER_SHARE)


@pytest.fixture(scope="session", params=variants(plan=("audit",)))
def audit(request: pytest.FixtureRequest, bench: Any) -> Measurement:
    """A loader alone, with the indices of the samples that it delivered."""
    return bench.measure(request.param)  # type: ignore[no-any-return]


def test_epoch_has_the_right_number_of_steps(audit: Measurement) -> None:
    """An epoch has ceil(ceil(N / W) / b) steps on each of W ranks: 938 for MNIST at batch 64 on one."""
    variant = audit.member.variant
    workload = WORKLOADS[variant.workload]
    ranks = variant.ranks_per_node * variant.nodes
    expected = batches_an_epoch(workload.train_samples, ranks, variant.batch_size)
    assert [expected] * ranks == [epochs[0].batches for epochs in audit.first.epochs]
    assert all(epochs[0].complete for epochs in audit.first.epochs)


def test_epoch_delivers_every_sample_once(audit: Measurement) -> None:
    """Over all ranks an epoch delivers every sample, and no two ranks the same one but for the sampler's padding."""
    variant = audit.member.variant
    samples = WORKLOADS[variant.workload].train_samples
    ranks = variant.ranks_per_node * variant.nodes
    first = [epochs[0] for epochs in audit.first.epochs]
    padded = -(-samples // ranks) * ranks
    seen = [_members_of(epoch.seen) for epoch in first]
    where = f"the loaders of {variant.id} on {' and '.join(sorted(set(audit.first.host)))}"
    assert padded == sum(epoch.samples for epoch in first), (
        f"{where} delivered another number of samples in an epoch than the sampler gave them: look at who fills or "
        "drops the last batch"
    )
    assert samples == len(set().union(*seen)), (
        f"{where} left samples out, or gave one to several ranks: look at the sampler and at its rank and world size"
    )
    assert padded - samples == sum(len(rank) for rank in seen) - len(set().union(*seen))


def test_epochs_are_shuffled_anew(audit: Measurement) -> None:
    """Two epochs deliver their samples in different orders, on every rank; so do two ranks."""
    for epochs in audit.first.epochs:
        assert len(epochs) == len({epoch.order for epoch in epochs})
    assert len(audit.first.epochs) == len({epochs[0].order for epochs in audit.first.epochs})


def _members_of(seen: str | None) -> set[int]:
    """Return the sample indices of an audit's bitmap."""
    assert seen is not None
    packed = zlib.decompress(base64.b64decode(seen))
    return {8 * place + bit for place, byte in enumerate(packed) for bit in range(8) if byte >> bit & 1}
