"""Pictures in plotly.js's own words. Pure: figure in, JSON-like data out.

Colours are names such as ``@side-0``; the page replaces them by its theme's, so that one file serves light and dark.
"""

from __future__ import annotations

import html
import importlib.util
import math
from pathlib import Path
from typing import Any

from perf.report.figures.model import Axis, Figure, Line, Series
from perf.report.text import clean

__all__ = ["NoPlotly", "drawing", "library"]

ROLES = 8
"""Colours of sides; the ninth side begins again, with another dash and symbol."""

_MOST_IN_LEGEND = 14
"""A longer legend is a list, and hides the picture on a phone; the pointer's box names each line."""

_ROW, _FRAME, _HEIGHT = 30, 110, 380
"""Pixels of a category, of all around the categories, and of a picture without categories."""


class NoPlotly(RuntimeError):
    """plotly's JavaScript can't be found."""


def library() -> str:
    """Return plotly.js, minified, from the installed package, without importing it (that takes a second).

    The package has no smaller bundle, so all of it goes into each report: 4.8 MB.

    Raises
    ------
    NoPlotly
        If the package is missing or lacks the file.
    """
    found = importlib.util.find_spec("plotly")
    places = list(found.submodule_search_locations or []) if found else []
    for place in places:
        path = Path(place, "package_data", "plotly.min.js")
        if path.is_file():
            return path.read_text(encoding="utf-8")
    where = (
        f"{places[0]} has no package_data/plotly.min.js" if places else "it is not installed in this Python"
    )
    raise NoPlotly(f"the report's pictures need the package plotly: {where} (constraints.txt lists it)")


def drawing(figure: Figure) -> dict[str, Any]:
    """Return ``data`` and ``layout`` for ``Plotly.newPlot``, and ``rows``: the categories, for the page's layout."""
    rows = figure.y.categories
    legend = [series for series in figure.series if series.in_legend]
    layout: dict[str, Any] = {
        "xaxis": _axis(figure.x),
        "yaxis": _axis(figure.y),
        "showlegend": 1 < len(legend) <= _MOST_IN_LEGEND,
        "barmode": "stack" if figure.stacked else "group",
        "height": _FRAME + _ROW * len(rows) if rows else _HEIGHT,
        "shapes": [_shape(line) for line in figure.lines],
        "annotations": [
            _note(line, log=(figure.x if line.axis == "x" else figure.y).log)
            for line in figure.lines
            if line.category is None
        ],
    }
    for band in figure.bands:
        layout["shapes"].append(
            {
                "type": "rect",
                "x0": band.low,
                "x1": band.high,
                "y0": band.category - 0.4,
                "y1": band.category + 0.4,
                "fillcolor": "@band",
                "line": {"width": 0},
                "layer": "below",
            }
        )
    return {"data": [_trace(series) for series in figure.series], "layout": layout, "rows": list(rows)}


def _axis(axis: Axis) -> dict[str, Any]:
    found: dict[str, Any] = {"title": {"text": _safe(axis.title)}}
    if axis.log:
        found["type"] = "log"
    if axis.from_zero:
        found["rangemode"] = "tozero"
    if axis.ticks:
        found |= {"tickmode": "array", "tickvals": list(axis.ticks)}
    if axis.categories:
        found |= {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": list(axis.categories),
            "autorange": "reversed",
        }
    return found


def _trace(series: Series) -> dict[str, Any]:
    colour = f"@{_role(series.role)}"
    trace: dict[str, Any] = {"name": _safe(series.name), "x": list(series.x), "y": list(series.y)}
    if series.hover:
        trace |= {"hoverinfo": "text", "hovertext": [_safe(text) for text in series.hover]}
    if series.kind == "bars":
        trace |= {"type": "bar", "orientation": "h" if series.along_x else "v", "marker": {"color": colour}}
    else:
        mode = "markers" if series.kind == "points" else "lines" if series.size == 0 else "lines+markers"
        trace |= {"type": "scatter", "mode": mode}
        if series.kind == "line":
            trace["line"] = {"color": colour, "dash": series.line, "width": 1.2 if series.size == 0 else 2}
        if series.size:
            trace["marker"] = {"color": colour, "symbol": series.symbol, "size": series.size}
            if series.symbol.endswith("-open"):
                trace["marker"]["line"] = {"color": colour, "width": 2}
    if series.low and series.high:
        trace["error_x" if series.along_x else "error_y"] = _ends(series)
    return trace


def _ends(series: Series) -> dict[str, Any]:
    """Return an interval's ends as distances from the value; none where an end is missing."""
    values = series.x if series.along_x else series.y
    above: list[float | None] = []
    below: list[float | None] = []
    for value, low, high in zip(values, series.low, series.high, strict=True):
        number = value if isinstance(value, (int, float)) else None
        above.append(None if number is None or high is None else max(0.0, high - number))
        below.append(None if number is None or low is None else max(0.0, number - low))
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "color": "@interval",
        "thickness": 1.5,
        "width": 5,
    }


def _role(role: str) -> str:
    name, _, place = role.partition("-")
    return f"side-{int(place) % ROLES}" if name == "side" and place.isdigit() else role


def _shape(line: Line) -> dict[str, Any]:
    """Return a line across the picture, or across one category."""
    across: dict[str, Any] = (
        {"x0": line.at, "x1": line.at} if line.axis == "x" else {"y0": line.at, "y1": line.at}
    )
    other, reference = ("y", "yref") if line.axis == "x" else ("x", "xref")
    if line.category is None:
        across |= {f"{other}0": 0, f"{other}1": 1, reference: "paper"}
    else:
        across |= {f"{other}0": line.category - 0.42, f"{other}1": line.category + 0.42}
    return {"type": "line", "line": {"color": f"@{line.role}", "width": 2, "dash": "dash"}, **across}


def _note(line: Line, *, log: bool) -> dict[str, Any]:
    """Return the words beside a line; on a logarithmic axis plotly wants a note's place as a logarithm."""
    at = math.log10(line.at) if log else line.at
    note: dict[str, Any] = {
        "text": _safe(line.text),
        "showarrow": False,
        "font": {"color": f"@{line.role}", "size": 11},
    }
    if line.axis == "x":
        return note | {"x": at, "y": 1, "yref": "paper", "yanchor": "bottom", "xanchor": "center"}
    return note | {"y": at, "x": 1, "xref": "paper", "xanchor": "right", "yanchor": "bottom"}


def _safe(text: str) -> str:
    """Escape foreign text: plotly reads its texts as a kind of HTML. A line feed starts a new line."""
    return "<br>".join(html.escape(part) for part in clean(text, keep_lines=True).split("\n"))
