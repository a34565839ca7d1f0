"""A pytest plugin (``-p perf.cluster.collecting``): write down which tests would run and what each needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perf import contract
from perf.suite.selection import need_of


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare where the list goes."""
    parser.addoption(
        "--collect-to", metavar="FILE", help="write node ids and needs of the collected tests as JSON"
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Write the list, when selection and profile have had their say."""
    target = session.config.getoption("--collect-to")
    if not target:
        return
    found = []
    for item in session.items:
        need = need_of(item.iter_markers())
        found.append(
            {
                "node_id": item.nodeid,
                "device": need.device if need else "",
                "nodes": need.nodes if need else 1,
                "gpus": need.gpus if need else 0,
                "cores": need.cores if need else 1,
                "backends": sorted(need.backends) if need else [],
                "beside": sorted(need.beside) if need else [],
            }
        )
    contract.write_whole(str(Path(target)), json.dumps(found))
