from __future__ import annotations

from perf.contract import EpochRecord
from perf.report.figures.epochs import epochs
from perf.report.figures.launches import by_group, sides


def epoch(index, seconds, complete=True):
    return EpochRecord(index, seconds, 10, 640, complete, 0.5, validation_loss=0.25)


def test_whole_epochs_are_a_line(launch):
    """Medians over launches for each epoch that was whole on every rank; a cut one is left out."""
    ranks = [[epoch(0, 3.0), epoch(1, 2.0), epoch(2, 0.1, complete=False)]] * 2
    found = [
        launch(plan="epochs", epochs=ranks, epoch_seconds=[first, 2.0, 0.1]) for first in (3.0, 3.2, 3.4)
    ]
    (figure,) = epochs(by_group(sides(found)))
    assert ([1.0, 2.0], [3.2, 2.0], [3.0, 2.0], [3.4, 2.0]) == (
        figure.series[0].x,
        figure.series[0].y,
        figure.series[0].low,
        figure.series[0].high,
    )
    assert ("1", "3.200 [3.000–3.400] s", "3", "0.5000 s", "0.2500", "–") == figure.table.rows[0][1:]


def test_launches_without_epochs_have_no_picture(launch):
    """A window is no epoch."""
    assert [] == epochs(by_group(sides([launch()])))
    assert [] == epochs(by_group(sides([launch(plan="epochs", epochs=[[]], epoch_seconds=[1.0])])))
