from __future__ import annotations

from perf.report.account import spent
from perf.report.figures.account import account_picture


def test_the_picture_has_a_bar_a_group(launch):
    """Three parts are stacked; without a launch there is no picture."""
    figure = account_picture(spent([launch()]))
    assert (3, ("mnist",), True) == (len(figure.series), figure.y.categories, figure.stacked)
    assert account_picture([]) is None
