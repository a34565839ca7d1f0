from __future__ import annotations

from pathlib import Path

import pytest

from perf.faults.catalogue import FAULTS
from perf.faults.table import catcher, table
from perf.machine import REPOSITORY


def test_a_row_says_what_catches_the_fault_and_what_came_of_it():
    """A fault that was not planted yet is not called caught."""
    rows = table(FAULTS.values(), {"rank-killed": "caught and named"}).splitlines()[2:]

    assert len(FAULTS) == len(rows)
    (killed,) = [row for row in rows if "`rank-killed`" in row]
    assert killed.endswith("| the launch fails, and says why | caught and named |")
    assert all(row.endswith("| not yet |") for row in rows if row != killed)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_page_about_faults_holds_the_catalogue(fault):
    """Each row of docs/faults.md but its last cell is the catalogue's."""
    page = (Path(REPOSITORY) / "docs" / "faults.md").read_text(encoding="utf-8")

    assert f"| `{fault.name}` | {fault.kind} | {fault.what} | {catcher(fault)} |" in page
