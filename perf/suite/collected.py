"""pytest's hooks for which perf tests there are in a run, in which order, and which of them are skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from perf.catalogue import COMPARING, GROUPS, group_of_node_id
from perf.suite.options import Options
from perf.suite.outcomes import TALLY
from perf.suite.selection import PERF, members_of, need_of, why_not
from perf.suite.session import SESSION, Session
from perf.suite.telling import places_of_groups

COMPARISONS = "test_compare.py"
"""The file in it that compares two stacks."""

PROFILING = "test_profiles.py"
"""The file in it that is run where profiles are asked for."""

PORTABLE = "test_portable.py"
"""The file in it that is run with ``--portable-floors`` only."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Keep comparisons and the rest apart: they are hundreds of tests that one run never mixes."""
    if collection_path.parent != config.rootpath / PERF or not collection_path.name.startswith("test_"):
        return None
    options = config.stash[SESSION].options
    if collection_path.name == PORTABLE and not options.portable_floors:
        return True
    if collection_path.name == PROFILING and not options.extras:
        return True
    comparing = options.profile in COMPARING
    return True if comparing != (collection_path.name == COMPARISONS) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Count perf tests and leave out what the profile does not run."""
    session = config.stash[SESSION]
    perf = [item for item in items if need_of(item.iter_markers())]
    config.stash[TALLY].collected += len(perf)
    left_out = [item for item in perf if not _in_profile(item, session.options)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    if session.options.profile in COMPARING:
        places = places_of_groups(GROUPS.values())
        items.sort(key=lambda item: min((places[m.group] for m in members_of(item)), default=-1))
        return
    if hasattr(config, "workerinput"):
        from perf.suite.scheduling import weight

        items.sort(key=lambda item: -weight(item.nodeid, session.options.sized_profile))
    if session.options.budget is not None:
        from perf.suite.planning import rank

        # What there is no time for is what tells least.
        ranks = {name: rank(name) for name in GROUPS}
        items.sort(key=lambda item: ranks.get(group_of_node_id(item.nodeid) or "", -1))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note which members the selected tests name, and for a budget what else they are launched for."""
    found = session.config.stash[SESSION]
    found.named = frozenset(member for item in session.items for member in members_of(item))
    if found.options.budget is not None:
        from perf.suite.planning import extra_launches

        needs = [(need_of(item.iter_markers()), members_of(item)) for item in session.items]
        tests = [(need, members) for need, members in needs if need is not None]
        found.extra_launches = extra_launches(tests, found.options.extras)


def _in_profile(item: pytest.Item, options: Options) -> bool:
    return all(member.runs_in(options.profile) for member in members_of(item))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, with the reason, what this machine can't run."""
    need = need_of(item.iter_markers())
    session = item.config.stash[SESSION]
    if need is None:
        return
    if session.options.records:
        _skip_what_is_not_stored(item, session)
        return
    machine = session.measuring.stacks.machine
    reason = why_not(need, machine, machine.device(session.options.device))
    if reason is None and session.options.budget is not None:
        group = group_of_node_id(item.nodeid)
        members = session.measuring.members_of(group) if group else []
        reason = session.measuring.budget.why_not(
            members, session.options.sized_profile, session.extra_launches
        )
    if reason:
        pytest.skip(reason)


def _skip_what_is_not_stored(item: pytest.Item, session: Session) -> None:
    """Skip a test whose launches the stored runs do not hold."""
    for member in members_of(item):
        reason = session.measuring.source.lacks(member)
        if reason:
            pytest.skip(reason)
