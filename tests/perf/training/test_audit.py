"""Which samples were delivered is counted from what was delivered."""

from __future__ import annotations

import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.training.audit import audit_facts, drain_indexed
from perf.training.datasets import Numbers
from perf.training.loaders import LoaderPlan, native_loader
from perf.training.meter import Meter
from tests.perf.training.helpers import separable

SIZE = 75

indices = st.lists(st.integers(0, SIZE - 1), max_size=200)


def members_of(seen: str) -> set[int]:
    """The indices of a bitmap, by the contract's words: bit i % 8 of byte i // 8 is sample i."""
    packed = zlib.decompress(base64.b64decode(seen, validate=True))
    return {i for i in range(8 * len(packed)) if packed[i // 8] >> (i % 8) & 1}


@given(indices)
def test_the_bitmap_holds_what_was_delivered(delivered):
    """No sample more, none less, however often it came."""
    facts = audit_facts(delivered, SIZE, 10)

    assert set(delivered) == members_of(facts["seen"])
    assert len(set(delivered)) == facts["distinct"]


@given(indices, indices, st.integers(0, 250))
def test_the_digest_is_of_the_order_of_the_first_indices(one, other, prefix):
    """Digests are equal exactly where the first indices are, in their order."""
    orders = [audit_facts(delivered, SIZE, prefix)["order"] for delivered in (one, other)]

    assert (one[:prefix] == other[:prefix]) is (orders[0] == orders[1])


@given(indices, st.randoms(use_true_random=False), st.integers(0, 80))
def test_a_cut_epoch_compares_with_a_whole_one(delivered, random, prefix):
    """What comes behind the prefix changes the set but not the digest."""
    longer = delivered[:prefix] + random.sample(delivered[prefix:], len(delivered[prefix:]))

    assert audit_facts(delivered, SIZE, prefix)["order"] == audit_facts(longer, SIZE, prefix)["order"]


@pytest.mark.parametrize("index", [-1, SIZE, 10**12])
def test_an_index_outside_the_data_set_is_an_error(index):
    """A loader that invents samples is found out, and not counted from the other end."""
    with pytest.raises(IndexError, match=r"index outside 0\.\.74"):
        audit_facts([0, index], SIZE, 2)


def test_an_epoch_of_nothing_has_an_empty_set():
    """No index, no bit, and the digest of nothing."""
    facts = audit_facts([], SIZE, 0)

    assert (0, set()) == (facts["distinct"], members_of(facts["seen"]))
    assert facts["order"] == audit_facts([3], SIZE, 0)["order"]


def drain(device, batches: int | None, timed_steps: int = 100) -> tuple[bool, list[int], Meter]:
    meter = Meter(
        device, warmup_steps=2, rewarm_steps=0, timed_steps=timed_steps, min_seconds=0.0, stop_when_timed=True
    )
    plan = LoaderPlan(8, 0, 0, 1, distributed=False, pin_memory=False, seed=1)
    found: list[int] = []
    return drain_indexed(native_loader(Numbers(separable(44, 1)), plan), meter, found, batches), found, meter


def test_indices_are_kept_in_the_order_of_delivery(device):
    """A whole epoch holds every sample once, shuffled, and each step's samples were counted."""
    whole, found, meter = drain(device, None)

    assert whole is True
    assert list(range(44)) == sorted(found) != found
    assert 6 == meter.total_steps


def test_an_epoch_is_cut_after_its_batches(device):
    """A later epoch needs only enough batches to show its order; it is not called whole."""
    whole, found, meter = drain(device, 3)

    assert whole is False
    assert drain(device, None)[1][:24] == found
    assert 3 == meter.total_steps


def test_an_audit_ends_where_its_meter_says_so(device):
    """A window that stops training stops the loader too."""
    assert drain(device, None, timed_steps=2)[0] is False
