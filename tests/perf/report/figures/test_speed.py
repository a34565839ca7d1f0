from __future__ import annotations

import sys
from pathlib import Path

import pytest

from perf.report.figures.launches import by_group, sides
from perf.report.figures.speed import floors, ladder, loaders, scaling, strategies, workers
from perf.report.summary import summarize

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

import made_up


def groups(*names, **options):
    return by_group(
        sides(made_up.launches([f"{name}@resnet50-gpu" for name in names], run="r", steps=20, **options))
    )


def test_strategies_are_held_against_each_other():
    """DataParallel, DDP and one process are bars of one picture, each with a dot a launch and its table row."""
    (figure,) = strategies(groups("dp"))
    bars, dots = figure.series
    assert ({"bars", "points"}, 3, 15) == ({bars.kind, dots.kind}, len(bars.x), len(dots.x))
    assert all(low <= x <= high for low, x, high in zip(bars.low, bars.x, bars.high, strict=True))
    assert ["5", "5", "5"] == [row[1] for row in figure.table.rows]
    assert "(ms)" in figure.x.title


def test_loaders_say_the_share_that_was_judged(verdict):
    """Io, synthetic and full are bars, and the caption has the loader's share with its limit and verdict."""
    row = verdict(
        metric="loader_share",
        group="loader@resnet50-gpu",
        estimate=0.2,
        low=0.1,
        high=0.3,
        limit=0.55,
        unit="share",
    )
    (figure,) = loaders(groups("loader"), summarize([], [row]).verdicts)
    assert {"full", "synthetic", "io"} == set(figure.y.categories)
    assert "0.20 [0.10–0.30] share, limit 0.55: fail" in figure.caption


def test_workers_are_a_line_in_their_order():
    """The sweep's points lie at 1, 2, 4 and 8 workers, whatever the order of launching."""
    (figure,) = workers(groups("workers"))
    assert ((1.0, 2.0, 4.0, 8.0), [1.0, 2.0, 4.0, 8.0]) == (figure.x.ticks, figure.series[0].x)
    assert sorted(figure.series[0].y) == figure.series[0].y


def test_workers_on_cores_are_bars_that_name_both():
    """What source 004 varied: 4 workers on 4, 8 and 10 cores, beside 1 on 1 and 8 on 8."""
    made = by_group(sides(made_up.launches(["cores@mnist_cnn-gpu"], run="r", steps=20)))
    (figure,) = workers(made)
    assert 5 == len(figure.y.categories)
    assert all("c4" in one or "c8" in one or "c10" in one or "c1" in one for one in figure.y.categories)
    assert "(samples/s)" in figure.x.title


def test_rungs_are_ratios_to_the_first_of_their_group():
    """Everything together takes less than half of the base's step."""
    (figure,) = ladder(groups("ladder"))
    found = dict(zip(figure.series[0].y, figure.series[0].x, strict=True))
    assert pytest.approx(0.5, abs=0.02) == found["bf16"]
    assert 9 == len(found)


def test_scaling_has_an_ideal_line():
    """Two devices should give twice the throughput of one process; the table has the efficiency."""
    (figure,) = scaling(groups("ddp"))
    ideal = figure.series[0]
    assert ([1.0, 2.0], "dash") == (ideal.x, ideal.line)
    assert pytest.approx(2.0) == ideal.y[1] / ideal.y[0]
    shares = [float(row[-1].removesuffix(" %")) for row in figure.table.rows]
    assert [pytest.approx(100.0), pytest.approx(89.0, abs=2.0), pytest.approx(89.0, abs=2.0)] == shares


def test_one_device_alone_does_not_scale():
    """Without a second number of devices there is no picture."""
    assert [] == scaling(groups("loader"))
    one = {
        name: [side for side in found if "2gpu" not in side.variant] for name, found in groups("ddp").items()
    }
    assert [] == scaling(one)


@pytest.mark.parametrize(("name", "word"), [("weak_real", "Weak"), ("strong", "Strong")])
def test_curves_of_scaling_say_which_kind_they_are(name, word):
    """1, 2, 4 and 8 devices beside the ideal line, in groups of their own."""
    (figure,) = scaling(groups(name))
    assert figure.caption.startswith(f"{word} scaling")
    assert (1.0, 2.0, 4.0, 8.0) == figure.x.ticks
    assert "ideal" == figure.series[0].role


def test_a_floor_is_a_line_across_its_own_row(verdict):
    """Only the variant that has a reference gets a line, and the caption says what it is; else that there is none."""
    found = groups("dp")
    variant = found["dp@resnet50-gpu"][1].variant
    row = verdict(
        metric="throughput", unit="samples/s", group="dp@resnet50-gpu", variant=variant, limit=900.0
    )
    (figure,) = floors(found, summarize([], [row]).verdicts)
    assert [(900.0, 1)] == [(line.at, line.category) for line in figure.lines]
    assert [] == figure.bands
    (without,) = floors(found, [])
    assert ([], True) == (without.lines, "No reference" in without.caption)
    assert 15 == len(without.series[0].x)


def test_a_reference_is_a_band_as_wide_above_as_below(verdict):
    """From the floor to as far above the reference, as a ratio; the caption says what it is."""
    found = groups("dp")
    row = verdict(
        metric="throughput",
        unit="samples/s",
        group="dp@resnet50-gpu",
        variant=found["dp@resnet50-gpu"][1].variant,
        limit=900.0,
        reference=1000.0,
    )
    (figure,) = floors(found, summarize([], [row]).verdicts)
    (band,) = figure.bands
    assert (900.0, pytest.approx(1000.0 / 0.9), 1) == (band.low, band.high, band.category)
    assert "reference 1000 samples/s" in band.text
    assert "The band is the tolerance on both sides of the reference." in figure.caption
