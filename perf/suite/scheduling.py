"""Distribution over xdist workers: a group is measured by one worker, whatever tests of it there are.

A test that holds a group against another one (a larger network against a smaller, training against the machine's rates)
belongs to the first, and takes the other's launches again where another worker has that group.

xdist's own ``--dist loadgroup`` marks a group by changing the node id of an item, which pytest 9.2 ignores; so the
group is found from the node id, by the catalogue.

Groups that need most GPUs come first, of these the longest: what is left for the end is short and needs one, so that no
GPU then waits. `perf.suite.planning` plans with the same order. xdist's own, by number of tests, began a group of 15
launches on two GPUs last.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from perf.catalogue import GROUPS, group_of_node_id
from perf.profiles import Profile
from perf.suite.plan import launches_planned

EPOCHS = 3
"""What a launch of whole epochs takes longer than one of a window: 13 s and 4.4 s for ``mnist_cnn`` on H200s."""


def weight(node_id: str, profile: Profile) -> int:
    """Return `group_weight` of a test's group; 0 for a test without a group."""
    name = group_of_node_id(node_id)
    return 0 if name is None else group_weight(name, profile)


MOST_LAUNCHES = 10_000
"""More than a group has of them."""


def group_weight(name: str, profile: Profile) -> int:
    """Return how much a group has to do: first how many GPUs it needs, then how many launches of a window it has."""
    members = [member for member in GROUPS[name].members if member.runs_in(profile.name)]
    launches = sum(EPOCHS if member.plan == "epochs" else 1 for member in members)
    gpus = max((member.variant.gpus for member in members), default=0)
    return MOST_LAUNCHES * gpus + launches_planned(GROUPS[name], profile) * launches


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
    """LoadScopeScheduling whose scope is the group; tests without a group are scopes of their own."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        # Scopes go out in the order in which the workers collected them, which is by weight.
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group_of_node_id(nodeid) or nodeid
