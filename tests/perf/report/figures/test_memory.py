from __future__ import annotations

from perf.report.figures.launches import by_group, sides
from perf.report.figures.memory import memory_pictures


def test_the_fullest_device_counts(launch):
    """3 GiB/2 on one of two devices is 1536 MiB."""
    (figure,) = memory_pictures(by_group(sides([launch()])))
    assert [1536.0] == figure.series[0].x
    assert "(MiB)" in figure.x.title


def test_no_device_that_tells_no_picture(launch):
    """On a CPU torch does not say what it takes."""
    assert [] == memory_pictures(by_group(sides([launch(peak_memory_bytes=[{}, {}])])))
