"""Writing a report: one HTML file that loads nothing, from what `perf.report.contents` has put together."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from perf.report import links
from perf.report.contents import Contents, gather
from perf.report.figures.model import Figure
from perf.report.lines import source_rows
from perf.report.output import write_named
from perf.report.plotly import drawing, library
from perf.report.scripting import finite
from perf.report.stored import StoredRun
from perf.report.tables import SYMBOLS
from perf.report.text import clean, memory, milliseconds, number, share

__all__ = ["COMPARISON", "REPORT", "page", "render", "write"]

REPORT = "report.html"
COMPARISON = "comparison.html"
"""What a page of several runs is called, in the folder of the last."""

_TEMPLATES = Path(__file__).parent / "templates"


def write(runs: Sequence[StoredRun], path: Path | None = None) -> Path:
    """Write the page of one run, or of several beside each other, and return where it is.

    Parameters
    ----------
    runs
        In the order in which they are held against each other: the first is what the others are compared with.
    path
        Where to; ``report.html`` (``comparison.html`` for several runs) in the last run's folder if None.

    Raises
    ------
    ValueError
        If there is no run.
    NoPlotly
        If plotly's JavaScript can't be found.
    OSError
        If the file can't be written.
    """
    contents = gather(runs)
    if path is None:
        path = runs[-1].folder / (REPORT if len(runs) == 1 else COMPARISON)
    write_named(path, page(contents, path.absolute().parent))
    return path


def page(contents: Contents, folder: Path) -> str:
    """Return the page as text.

    Parameters
    ----------
    contents
        What it holds.
    folder
        Where it will lie: links to the runs' files are relative to it.
    """
    pictures = [figure for section in contents.sections for figure in section.figures]
    return render(
        "page.html.j2",
        pictures,
        contents=contents,
        profile_rows=source_rows,
        within=lambda target: links.relative(Path(target), [run for _, run in contents.runs], folder),
    )


def render(template: str, pictures: Sequence[Figure], **values: Any) -> str:
    """Return a page of one of our templates, with its pictures, scripts and policy.

    Parameters
    ----------
    template
        Its file's name.
    pictures
        Every figure that it shows; the template asks for each one's place and height.
    values
        What it is given beside them.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        # Everything, whatever a template is called: what is printed came from logs, hosts and file names.
        autoescape=True,
        # Control characters too: they have no place in a page, and reorder what is read.
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "memory": memory,
        "milliseconds": milliseconds,
        "number": number,
        "share": share,
        "sign": lambda verdict: SYMBOLS.get(verdict, "·"),
        # Beside the rest, since macros and included templates see no other values.
        **{name: value for name, value in values.items() if callable(value)},
    }
    drawings = [drawing(figure) for figure in pictures]
    places = {id(figure): place for place, figure in enumerate(pictures)}
    scripts = [_script(_plain(library())), _script(_read("report.js"))]
    return environment.get_template(template).render(
        **values,
        place_of=lambda figure: places[id(figure)],
        drawings=[_data(found) for found in drawings],
        heights=[found["layout"]["height"] for found in drawings],
        scripts=scripts,
        policy=_policy(scripts),
        style=Markup(_read("report.css")),  # noqa: S704 - our own file
    )


def _shown(value: Any) -> Any:
    """Show a printed value's control characters as escapes; what is markup already, we made ourselves."""
    return (
        clean(value, keep_lines=True) if isinstance(value, str) and not isinstance(value, Markup) else value
    )


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _plain(script: str) -> str:
    """Refuse a script that would end its own element; plotly's own does not, and must not begin to."""
    if "</script" in script.lower():
        raise ValueError("plotly.min.js holds </script and can't be put into a page as it is")
    return script


def _script(text: str) -> Markup:
    return Markup(text)  # noqa: S704 - plotly's file and our own, neither has foreign text in it


def _policy(scripts: Sequence[Markup]) -> str:
    """Return the page's content security policy: only these scripts run, and nothing is loaded from anywhere.

    So a browser refuses what an escape that was forgotten would let in.
    """
    hashes = [base64.b64encode(hashlib.sha256(str(script).encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _data(found: dict[str, Any]) -> Markup:
    """Return a picture's data for a script element of type application/json: ASCII, and without a markup character."""
    text = json.dumps(finite(found), separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - escaped just above
