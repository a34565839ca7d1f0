from __future__ import annotations

from perf.report.figures.devices import devices
from perf.report.samples import GAUGES, Look, Sampled


def look(time, power, card="0: u"):
    return Look(time, card, dict.fromkeys(GAUGES) | {"power_watts": power})


def test_a_card_is_a_line_with_gaps_between_launches():
    """Times count from the first look; between two launches nothing is drawn; what is unknown has no picture."""
    found = devices(
        [
            Sampled("l1", "v", [look(100.0, 90.0), look(101.0, 400.0)]),
            Sampled("l2", "v", [look(110.0, None), look(111.0, 410.0)]),
        ]
    )
    (figure,) = found
    assert ([0.0, 1.0, None, 11.0, None], [90.0, 400.0, None, 410.0, None]) == (
        figure.series[0].x,
        figure.series[0].y,
    )
    assert ("v", "l1", "0: u", "2", "245.0 W", "90.00 W", "400.0 W") == figure.table.rows[0]
    assert "(W)" in figure.y.title


def test_a_file_that_was_cut_is_said():
    """The caption tells that the end is missing."""
    (figure,) = devices([Sampled("l", "v", [look(1.0, 2.0)], cut=True)])
    assert "its end is missing" in figure.caption
    assert [] == devices([])
