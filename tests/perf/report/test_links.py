from __future__ import annotations

import pytest

from perf.report.links import relative


@pytest.fixture
def run(tmp_path):
    """A run's folder with one log of a launch whose name is odd."""
    log = tmp_path / "run" / "launches" / "a b#1" / "stderr.log"
    log.parent.mkdir(parents=True)
    log.touch()
    return tmp_path / "run"


def test_links_are_relative_and_quoted(run):
    """A file of the run is reached from the page's folder; characters with a meaning in addresses are quoted."""
    log = run / "launches" / "a b#1" / "stderr.log"
    assert "./launches/a%20b%231/stderr.log" == relative(log, [run], run)
    assert "./run/launches/a%20b%231/stderr.log" == relative(log, [run], run.parent)


def test_a_moved_run_is_found_by_the_end_of_the_path(run):
    """The record's path is the old one; what follows 'launches' counts."""
    assert relative(run / "gone" / "launches" / "a b#1" / "stderr.log", [run], run).endswith("stderr.log")


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../secret", "launches/../../secret", "launches/missing", ""]
)
def test_nothing_outside_a_run_is_linked(run, target):
    """A path in a record may be anything: outside, missing or empty, there is no link, or only the run itself."""
    from pathlib import Path

    (run.parent / "secret").touch()
    assert relative(Path(target), [run], run) in ("", "./.")
