from __future__ import annotations

from pathlib import Path

import pytest

from perf.faults.catalogue import FAULTS
from perf.faults.selfcheck.results import Row
from perf.faults.table import catcher, result, table
from perf.machine import REPOSITORY


def test_a_row_says_what_catches_the_fault_and_what_came_of_it():
    """A fault that was not planted yet is not called caught."""
    found = {"rank-killed": Row("rank-killed", carried=True, caught=True, named=True, seconds=12.4)}
    rows = table(FAULTS.values(), found).splitlines()[2:]

    assert len(FAULTS) == len(rows)
    (killed,) = [row for row in rows if "`rank-killed`" in row]
    assert killed.endswith("| the launch fails, and says why | caught and named, 12 s |")
    assert all(row.endswith("| not yet |") for row in rows if row != killed)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (None, "not yet"),
        (Row("x", carried=False, why_not="needs a GPU"), "not yet"),
        (Row("x", carried=True, seconds=3.0), "not caught"),
        (Row("x", carried=True, caught=True, seconds=3.0), "caught, not named, 3 s"),
    ],
)
def test_what_was_not_caught_is_not_called_so(row, said):
    """Neither what was not planted nor what was missed reads as caught."""
    assert said == result(row)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_page_about_trust_holds_the_catalogue(fault):
    """Each row of docs/trust.md but its last cell is the catalogue's."""
    page = (Path(REPOSITORY) / "docs" / "trust.md").read_text(encoding="utf-8")

    assert f"| `{fault.name}` | {fault.kind} | {fault.what} | {catcher(fault)} |" in page
