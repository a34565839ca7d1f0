"""What perf tests ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perf.suite.outcomes import UNEXPECTED
from perf.suite.session import SESSION


@pytest.fixture(scope="session")
def bench(request: pytest.FixtureRequest) -> Any:
    """Measures variants: `bench.measure(member)` returns the launches of a member, its whole group measured."""
    return request.config.stash[SESSION].measuring.source


@pytest.fixture(scope="session")
def known_systems() -> Any:
    """What variants reached of their machines' rates on known systems."""
    from perf.portable import known_systems as read
    from perf.suite.library import complaint

    return read(complaint)


@pytest.fixture(scope="session")
def profiles(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Profiles that were asked for: ``line-profile``, ``phases``, ``torch-trace``, ``nsys``."""
    return request.config.stash[SESSION].options.extras


@pytest.fixture(scope="session")
def run_folder(request: pytest.FixtureRequest) -> Path:
    """The run's folder, which the names of profiles in records are relative to."""
    return request.config.stash[SESSION].run.folder


@pytest.fixture
def limits(request: pytest.FixtureRequest) -> Any:
    """Judges measurements against limits and references, and records the verdict."""
    node = request.node

    def surprise(reason: str) -> None:
        node.stash[UNEXPECTED] = reason

    return request.config.stash[SESSION].judge(node.name, node.user_properties, surprise)
