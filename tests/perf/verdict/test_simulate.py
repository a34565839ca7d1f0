from __future__ import annotations

import pytest

from perf.verdict.noise import KINDS
from perf.verdict.simulate import POWER_ROWS, main, report


def test_the_report_covers_every_noise_and_row():
    """The printed simulation has a line for each noise and spread, each row of the power table, and each other rule."""
    lines = list(report(100))
    for kind in KINDS:
        assert any(line.startswith(kind.name) for line in lines)
    first_cells = [line for line in lines if line.startswith(("clean", "disturbed")) and "/" in line]
    assert len(POWER_ROWS) == len(first_cells)
    for word in ("Fixed limits", "One sample", "Floors", "Stalls", "True power"):
        assert any(line.startswith(word) for line in lines)


def test_too_few_pairs_are_refused(capsys):
    """A number of pairs that can't show anything is an error with the least number."""
    with pytest.raises(SystemExit) as left:
        main(["--pairs", "10"])
    assert 2 == left.value.code
    assert "at least 100" in capsys.readouterr().err


def test_the_command_prints_the_report(monkeypatch, capsys):
    """The command writes the report's lines as they come."""
    monkeypatch.setattr("perf.verdict.simulate.report", lambda pairs: iter([f"{pairs} pairs", ""]))
    assert 0 == main(["--pairs", "200"])
    assert "200 pairs\n\n" == capsys.readouterr().out
