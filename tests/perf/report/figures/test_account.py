from __future__ import annotations

from perf.report.account import Held, held, spent
from perf.report.figures.account import account_picture


def test_the_picture_has_a_bar_a_group(launch):
    """Three parts are stacked; without a launch there is no picture."""
    figure = account_picture(spent([launch()]), held([launch()]))
    assert (3, ("mnist",), True) == (len(figure.series), figure.y.categories, figure.stacked)
    assert account_picture([], Held(0.0, 0.0)) is None


def test_the_picture_tells_what_gpus_were_held_for(launch):
    """Beside a run on GPUs stand their seconds; beside one without, nothing."""
    told = account_picture(spent([launch()]), Held(800.0, 300.0))
    quiet = account_picture(spent([launch()]), Held(0.0, 0.0))

    assert "GPUs were held for 13 min 20 s, 37.5 % of it timed." in told.table.note
    assert "GPU" not in quiet.table.note
