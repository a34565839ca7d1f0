from __future__ import annotations

from pathlib import Path

from perf.machine import REPOSITORY
from perf.report.troubleshooting import page
from perf.verdict.advice import TRY


def rows():
    """The cells of every row but the heads."""
    lines = [line for line in page().splitlines() if line.startswith("| ") and "what you see" not in line]
    return [line.strip("| ").split(" | ") for line in lines]


def test_the_page_is_what_the_command_prints():
    """docs/troubleshooting.md is made by `python -m perf.report.troubleshooting`, and by nobody else."""
    assert page() == (Path(REPOSITORY) / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


def test_every_row_says_what_to_do():
    """A complaint without a cure helps nobody, and no complaint is there twice."""
    assert all(len(row) == 2 and row[1].strip() for row in rows()), rows()
    assert len(rows()) == len({tuple(row) for row in rows()})


def test_phases_and_checks_of_a_machine_are_on_it():
    """What the code knows is what the page holds."""
    seen = " ".join(row[0] for row in rows())

    assert all(f"the time is in {phase}" in seen for phase in TRY)
    for name in (
        "distinct GPUs",
        "cores",
        "/dev/shm",
        "open files",
        "processes",
        "port",
        "free GPUs",
        "stack",
    ):
        assert f"preflight, {name}:" in seen
