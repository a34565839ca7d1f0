"""Distribution over xdist workers: a group is measured by one worker, whatever tests of it there are.

A test that holds a group against another one (a larger network against a smaller, training against the machine's rates)
belongs to the first, and takes the other's launches again where another worker has that group.

xdist's own ``--dist loadgroup`` marks a group by changing the node id of an item, which pytest 9.2 ignores; so the
group is found from the node id, by the catalogue.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

from perf.catalogue import group_of_node_id


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
    """LoadScopeScheduling whose scope is the group; tests without a group are scopes of their own."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of_node_id(nodeid) or nodeid
