from __future__ import annotations

import html.parser
import json
import re

import pytest

from perf.records import Event, OutcomeRecord
from perf.report import page as module
from perf.report.contents import gather
from perf.report.page import page, write
from perf.report.stored import StoredRun

HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\x1b[2J"


class Elements(html.parser.HTMLParser):
    """Collects every element with its attributes."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def elements(text):
    parser = Elements()
    parser.feed(text)
    return parser.found


@pytest.fixture
def hostile(tmp_path, launch, verdict):
    """A run in which every text from outside is hostile."""
    launches = [
        launch(
            variant=HOSTILE + str(n),
            group=HOSTILE,
            launch=HOSTILE,
            host=[HOSTILE] * 2,
            stack={"torch": HOSTILE},
        )
        for n in range(2)
    ]
    launches.append(launch(valid=False, reasons=[HOSTILE], line_profiles=[HOSTILE]))
    facts = dict.fromkeys(("launch", "host", "status", "note", "phase", "log_path", "folder"), HOSTILE)
    return StoredRun(
        tmp_path,
        {"host": HOSTILE, HOSTILE: [HOSTILE]},
        launches,
        [
            verdict(test=HOSTILE, variant=HOSTILE, metric=HOSTILE, unit=HOSTILE, reasons=[HOSTILE], verdict=w)
            for w in ("fail", HOSTILE)
        ],
        [HOSTILE],
        [
            Event("failed", 1.0, HOSTILE, HOSTILE, HOSTILE, text=HOSTILE),
            Event(
                "failed",
                1.0,
                failure={
                    **facts,
                    "rank": 0,
                    "gpus": [HOSTILE],
                    "log": [HOSTILE],
                    "others": [{"rank": 1, "gpus": [HOSTILE], "state": HOSTILE}],
                },
            ),
        ],
        [OutcomeRecord(HOSTILE, o, "", 1.0, HOSTILE) for o in ("failed", "skipped")],
    )


def test_a_hostile_run_adds_no_element_and_no_handler(hostile, launch, verdict):
    """Scripts are the page's own three kinds, there is no image, and no attribute is a handler."""
    found = elements(page(gather([hostile]), hostile.folder))
    kinds = [attributes.get("type", "") for tag, attributes in found if tag == "script"]
    assert {"application/json", "text/plain", ""} == set(kinds)
    assert 1 == kinds.count("")
    assert "img" not in {tag for tag, _ in found}
    assert not [name for _, attributes in found for name in attributes if name.startswith("on")]


def test_control_characters_do_not_reach_the_page(hostile):
    """An escape sequence is shown as text."""
    assert "\x1b" not in page(gather([hostile]), hostile.folder)


def test_nothing_is_loaded_from_anywhere(hostile):
    """No element has a source or a link but to files beside the page and places in it."""
    for tag, attributes in elements(page(gather([hostile]), hostile.folder)):
        for name in ("src", "href", "data", "action", "poster", "srcset"):
            if name in attributes:
                assert re.match(r"#|\./|data:,$", attributes[name]), (tag, attributes)
    style = module._read("report.css")
    assert not re.search(r"url\(|@import", style)


def test_the_policy_names_the_scripts_that_run(hostile):
    """Two hashes, and no leave to load anything."""
    found = elements(page(gather([hostile]), hostile.folder))
    (policy,) = [a["content"] for tag, a in found if tag == "meta" and a.get("http-equiv")]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert 2 == policy.count("sha256-")
    assert "unsafe-eval" not in policy


def test_every_picture_has_its_data_and_its_table(tmp_path, launch, verdict):
    """Data are JSON without a character of markup; behind each picture is a table with a row at least."""
    contents = gather([StoredRun(tmp_path, {}, [launch(), launch(variant="w")], [verdict()])])
    text = page(contents, tmp_path)
    figures = [figure for section in contents.sections for figure in section.figures]
    data = re.findall(r'<script type="application/json" id="data-(\d+)">(.*?)</script>', text)
    assert [str(place) for place in range(len(figures))] == [place for place, _ in data]
    assert all(json.loads(found)["data"] and "<" not in found for _, found in data)
    assert all(
        figure.table.rows and len(figure.table.columns) == len(figure.table.rows[0]) for figure in figures
    )
    assert len(figures) == text.count('<details class="behind">')


def test_a_page_is_written_whole(tmp_path, launch):
    """The file holds the sentence on top; no other file is left."""
    path = write([StoredRun(tmp_path, {}, [launch()])])
    assert tmp_path / "report.html" == path
    assert [path] == list(tmp_path.iterdir())
    assert "Nothing was judged." in path.read_text(encoding="utf-8")


def test_an_empty_run_has_a_page(tmp_path):
    """A run that was stopped before its first launch says that nothing was judged, and why each picture is missing."""
    text = page(gather([StoredRun(tmp_path)]), tmp_path)
    assert "Nothing was judged." in text
    assert "no sweep was run" in text


def test_two_runs_stand_beside_each_other(tmp_path, launch):
    """Their letters, the ratio of their steps, and what differs in their environments."""
    old = StoredRun(tmp_path / "old", {"stack": {"torch": "2.6"}}, [launch(run="old")])
    new = StoredRun(
        tmp_path / "new", {"stack": {"torch": "2.7"}}, [launch(run="new", median_step_seconds=0.1502)]
    )
    contents = gather([old, new])
    text = page(contents, tmp_path)
    assert [("A", tmp_path / "old"), ("B", tmp_path / "new")] == contents.runs
    assert [("stack.torch", "2.6", "2.7")] == contents.differs.rows
    assert "2.000" == contents.sections[0].figures[0].table.rows[0][2]
    assert "What differs between the runs" in text


def test_a_script_that_would_end_its_element_is_refused():
    """Should plotly's file ever hold the end of a script element, no broken page is written."""
    with pytest.raises(ValueError, match="</script"):
        module._plain("x </SCRIPT> y")
    with pytest.raises(ValueError, match="needs a run"):
        gather([])
