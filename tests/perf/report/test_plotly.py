from __future__ import annotations

import pytest

from perf.report import plotly
from perf.report.figures.model import Axis, Band, Figure, Line, Series, Table

HOSTILE = "<b>x</b>&amp;\x1b[31m"


def drawing(*series, x=Axis("x (s)"), y=Axis("y"), **rest):  # noqa: B008 - frozen
    return plotly.drawing(Figure("k", "t", "c", x, y, list(series), Table((), []), **rest))


def test_foreign_texts_are_escaped():
    """plotly reads its texts as markup: names and hovers hold none, and no control character; lines stay lines."""
    found = drawing(Series(HOSTILE, [1.0], [2.0], hover=[f"{HOSTILE}\nsecond"]))
    escaped = "&lt;b&gt;x&lt;/b&gt;&amp;amp;\\x1b[31m"
    assert (escaped, [f"{escaped}<br>second"]) == (found["data"][0]["name"], found["data"][0]["hovertext"])


def test_intervals_are_distances_along_their_axis():
    """Ends become distances from the value; a missing end has none."""
    (trace,) = drawing(Series("s", [2.0, 3.0], ["a", "b"], low=[1.5, None], high=[4.0, None], along_x=True))[
        "data"
    ]
    assert ([2.0, None], [0.5, None]) == (trace["error_x"]["array"], trace["error_x"]["arrayminus"])
    assert "error_y" not in trace


def test_kinds_become_traces():
    """Bars lie along x where asked for; a line of size 0 has no markers; colours are names of the theme."""
    bars, line, thin, points = drawing(
        Series("b", [1.0], ["a"], kind="bars", along_x=True, role="side-9"),
        Series("l", [1.0], [1.0], kind="line", line="dash"),
        Series("t", [1.0], [1.0], kind="line", size=0),
        Series("p", [1.0], [1.0], role="fail", symbol="x"),
    )["data"]
    assert ("bar", "h", "@side-1") == (bars["type"], bars["orientation"], bars["marker"]["color"])
    assert ("lines+markers", "dash") == (line["mode"], line["line"]["dash"])
    assert ("lines", "markers") == (thin["mode"], points["mode"])
    assert ("@fail", "x") == (points["marker"]["color"], points["marker"]["symbol"])


def test_axes_have_what_they_were_given():
    """Scale, start, ticks and categories; categories run from the top."""
    layout = drawing(
        x=Axis("n", log=True, from_zero=True, ticks=(1.0, 2.0)),
        y=Axis("", categories=("a", "b")),
        stacked=True,
    )["layout"]
    assert ("log", "tozero", [1.0, 2.0]) == tuple(
        layout["xaxis"][k] for k in ("type", "rangemode", "tickvals")
    )
    assert (["a", "b"], "reversed") == (layout["yaxis"]["categoryarray"], layout["yaxis"]["autorange"])
    assert "stack" == layout["barmode"]


def test_lines_and_bands_lie_where_they_belong():
    """A limit crosses the picture with its words, at the logarithm on a log axis; a floor crosses its category only."""
    layout = drawing(
        x=Axis("n", log=True),
        lines=[
            Line("x", 100.0, "limit"),
            Line("x", 5.0, "floor", category=2),
            Line("y", 3.0, "median", role="ideal"),
        ],
        bands=[Band(1.0, 2.0, 0)],
    )["layout"]
    limit, floor, median, band = layout["shapes"]
    assert (100.0, "paper") == (limit["x0"], limit["yref"])
    assert (1.58, 2.42) == (floor["y0"], floor["y1"])
    assert (3.0, "@ideal") == (median["y0"], median["line"]["color"])
    assert (1.0, 2.0, "@band") == (band["x0"], band["x1"], band["fillcolor"])
    assert [2.0, 3.0] == [layout["annotations"][0]["x"], layout["annotations"][1]["y"]]


def test_long_legends_are_left_out():
    """More than fourteen entries hide the picture; one alone says nothing."""
    many = [Series(str(i), [1.0], [1.0]) for i in range(15)]
    assert [False, True, False] == [drawing(*many[:n])["layout"]["showlegend"] for n in (1, 14, 15)]


def test_the_library_is_plotlys_and_can_stand_in_a_page():
    """It defines Plotly and does not end its own element."""
    text = plotly.library()
    assert "window.Plotly" in text
    assert "</script" not in text.lower()


def test_a_missing_library_is_named(monkeypatch, tmp_path):
    """The error says which package, and where the file should have been."""
    monkeypatch.setattr(plotly.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(plotly.NoPlotly, match="package plotly: it is not installed"):
        plotly.library()
    fake = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
    monkeypatch.setattr(plotly.importlib.util, "find_spec", lambda name: fake)
    with pytest.raises(plotly.NoPlotly, match="has no package_data/plotly.min.js"):
        plotly.library()
