"""The report in a real browser. What it is drawn from is made up (helpers/made_up.py) or was measured (docs)."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path

import pytest

from perf.report.page import write
from perf.report.stored import load

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

import chromium
import made_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(bool(chromium.missing()), reason=chromium.missing() or "there is one"),
    # selenium leaves its connections to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

REAL = Path(__file__).resolve().parents[3] / "docs" / "measurements" / "2026-11-28-h100-whole"
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>"


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """The pages of a failing run, of a measured one, and of one whose every foreign text is hostile."""
    folder = tmp_path_factory.mktemp("reports")
    failing = made_up.failing_run(folder / "failing")
    found = made_up.launches(["loader@mnist_cnn-gpu", "ddp@mnist_cnn-gpu"], run="hostile", steps=50)
    verdicts = made_up.judged(found, run="hostile")
    hostile = made_up.write_run(
        folder / "hostile",
        [
            dataclasses.replace(
                r,
                host=[HOSTILE] * 2,
                group=r.group + HOSTILE,
                variant=r.variant + HOSTILE,
                launch=r.launch + HOSTILE,
            )
            for r in found
        ],
        [
            dataclasses.replace(
                v, test=HOSTILE, variant=HOSTILE, group=HOSTILE, reasons=[HOSTILE], verdict=word
            )
            for v, word in zip(verdicts, ("fail", HOSTILE), strict=True)
        ],
        environment={"host": HOSTILE, HOSTILE: {"name": HOSTILE}},
        outcomes=[made_up.records.OutcomeRecord(HOSTILE, o, "", 1.0, HOSTILE) for o in ("failed", "skipped")],
        events=[made_up.records.Event("failed", 1.0, HOSTILE, HOSTILE, HOSTILE, text=HOSTILE)],
    )
    return {
        "failing": write([load(failing)]),
        "real": write([load(REAL)], folder / "real.html"),
        "hostile": write([load(hostile)]),
    }


@pytest.fixture(scope="module")
def page():
    """One browser for all tests of this file."""
    with chromium.browser() as found:
        yield found


@pytest.mark.parametrize("name", ["failing", "real", "hostile"])
def test_a_report_draws_every_picture_without_an_error_or_a_request(page, reports, name):
    """Each picture appears when one scrolls to it; the console stays empty, and nothing but the file is asked for."""
    page.open(reports[name])
    count = page.run("return document.querySelectorAll('.plot').length")
    assert 5 <= count
    for place in range(count):
        page.draw(f"#plot-{place}".replace("#plot", "article:has(#plot") + ")")
    assert {"yes"} == set(
        page.run("return [...document.querySelectorAll('.plot')].map(p => p.dataset.drawn)")
    )
    assert [] == page.console()
    assert {reports[name].resolve().as_uri()} == page.requests()


def test_what_is_hostile_stays_text(page, reports):
    """A host, a variant, a test or a reason called <script> runs nothing and becomes no element, pictures included."""
    page.open(reports["hostile"])
    for section in ("#floors", "#steps"):
        page.draw(section)
    assert page.run("return document.title").startswith("stackproof:")
    assert 0 == page.run("return document.querySelectorAll('main img, header img, main script').length")
    assert HOSTILE in page.run("return document.body.textContent")
    assert [] == page.console()


def test_the_policy_stops_what_an_escape_would_let_in(page, reports):
    """A script that gets into the page all the same does not run: only the page's own scripts have leave."""
    page.open(reports["real"])
    page.run(
        "const s = document.createElement('script'); s.textContent = 'window.owned = 1'; document.body.append(s)"
    )
    assert page.run("return window.owned") is None
    assert any("Content Security Policy" in message for message in page.console())


def test_the_filter_leaves_what_holds_every_word(page, reports):
    """Typing two words hides all rows and pictures that lack one of them, and says how many are left."""
    page.open(reports["failing"])
    page.run(
        "const w = document.getElementById('words'); w.value = 'LADDER  tf32'; w.dispatchEvent(new Event('input'))"
    )
    shown = page.run(
        "return [...document.querySelectorAll('[data-search]')].filter(e => !e.hidden).map(e => e.dataset.search)"
    )
    assert shown
    assert all("ladder" in text and "tf32" in text for text in shown)
    found = re.fullmatch(
        r"(\d+) of (\d+) shown", page.run("return document.getElementById('shown').textContent")
    )
    assert len(shown) == int(found[1]) < int(found[2])
    page.run("const w = document.getElementById('words'); w.value = ''; w.dispatchEvent(new Event('input'))")
    assert 0 == page.run("return document.querySelectorAll('[data-search][hidden]').length")


def test_a_verdict_can_be_hidden(page, reports):
    """Without its tick, no judgement with that verdict is shown."""
    page.open(reports["failing"])
    count = (
        "return [...document.querySelectorAll('tr[data-verdict=fail]')].filter(e => e.offsetParent).length"
    )
    assert 2 == page.run(count)
    page.run("document.querySelector('#chips input[value=fail]').click()")
    assert 0 == page.run(count)


def test_a_pointer_over_a_launch_tells_its_number(page, reports):
    """The box at the pointer has the launch, its host and its throughput with the unit."""
    page.open(reports["real"])
    page.draw("#floors")
    where = page.run(
        "const p = document.querySelector('#floors .plot .scatterlayer .point').getBoundingClientRect();"
        "return [p.x + p.width / 2, p.y + p.height / 2]"
    )
    for step in (-3, 0):
        page.command("Input.dispatchMouseEvent", type="mouseMoved", x=where[0] + step, y=where[1])
    text = page.until("return document.querySelector('#floors .hoverlayer .hovertext')?.textContent")
    assert re.search(r"main-\d+ on vm.*\d samples/s", text)


def test_dark_and_light_follow_the_system_and_the_button(page, reports):
    """Paper and the pictures' ink are as the system prefers, and the button turns them round."""
    paper = "return getComputedStyle(document.body).backgroundColor"
    ink = "return getComputedStyle(document.querySelector('#limits .plot .xtitle')).fill"
    page.open(reports["real"], scheme="dark")
    page.draw("#limits")
    dark = (page.run(paper), page.run(ink))
    page.run("document.getElementById('theme').click()")
    page.until(f"{ink.replace('return ', 'return (')}) !== '{dark[1]}'")
    light = (page.run(paper), page.run(ink))
    assert (("rgb(20, 23, 27)", "rgb(230, 233, 236)"), ("rgb(255, 255, 255)", "rgb(27, 31, 36)")) == (
        dark,
        light,
    )


@pytest.mark.parametrize("name", ["failing", "real", "hostile"])
@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_is_wider_than_a_phone(page, reports, name, width):
    """The page never scrolls sideways; wide tables do so inside their own boxes."""
    page.open(reports[name], width=width, height=800)
    for section in ("#judged", "#floors", "#steps"):
        page.draw(section)
    page.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert width == page.run("return document.documentElement.scrollWidth")


def test_paper_gets_every_picture_its_table_and_light_colours(page, reports):
    """Printing, also from a dark screen, draws all pictures and opens their tables, and leaves the filter away."""
    page.open(reports["real"], scheme="dark")
    pdf = page.command("Page.printToPDF", printBackground=True)["data"]
    assert 50_000 < len(pdf)
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    page.until("return [...document.querySelectorAll('.plot')].every(p => p.dataset.drawn === 'yes')")
    assert page.run("return [...document.querySelectorAll('#floors details.behind')].every(d => d.open)")
    page.prefer("dark", media="print")
    assert "none" == page.run("return getComputedStyle(document.getElementById('filter')).display")
    assert "rgb(255, 255, 255)" == page.run("return getComputedStyle(document.body).backgroundColor")
    page.run("window.dispatchEvent(new Event('afterprint'))")
    page.prefer("dark")
    assert "rgb(20, 23, 27)" == page.run("return getComputedStyle(document.body).backgroundColor")
    assert not page.run("return [...document.querySelectorAll('#floors details.behind')].some(d => d.open)")


def test_a_picture_that_cannot_be_drawn_says_so(page, reports, tmp_path):
    """Broken data leave a sentence in the picture's place, and an error in the console; the rest is drawn."""
    broken = tmp_path / "broken.html"
    text = reports["real"].read_text(encoding="utf-8")
    broken.write_text(re.sub(r'(id="data-0">)\{', r"\1{{", text, count=1), encoding="utf-8")
    page.open(broken)
    page.draw("#limits")
    assert "could not be drawn" in page.run("return document.getElementById('plot-0').textContent")
    assert any("SyntaxError" in message for message in page.console())
    page.draw("#floors")
    assert "yes" == page.run("return document.querySelector('#floors .plot').dataset.drawn")
