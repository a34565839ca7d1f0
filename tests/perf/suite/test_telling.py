"""The order in which comparisons are asked."""

from __future__ import annotations

from perf.catalogue import COMPARING, GROUPS
from perf.suite.telling import places_of_groups


def test_what_tells_most_is_asked_first():
    """Several devices before one, the real loader before synthetic data, variants before quotients of them."""
    places = places_of_groups(GROUPS.values())
    order = [
        "compare@mnist_cnn-ddp-2cpu-gloo-fp32-native",
        "compare@mnist_cnn-single-1cpu-fp32-native",
        "compare@mnist_cnn-single-1cpu-fp32-native-synthetic",
        "compare-loader@mnist_cnn-cpu",
    ]
    assert order == sorted(order, key=places.__getitem__)
    assert len(set(places.values())) == len(GROUPS)


def test_what_a_stack_is_accepted_by_comes_before_the_rest():
    """Profile compare's groups before those of compare-full alone."""
    mine = [group for group in GROUPS.values() if group.question.startswith("compare")]
    places = places_of_groups(mine)
    accepted = [places[group.name] for group in mine if COMPARING[0] in group.profiles]
    rest = [places[group.name] for group in mine if COMPARING[0] not in group.profiles]
    assert max(accepted) < min(rest)
