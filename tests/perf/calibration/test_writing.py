from __future__ import annotations

import dataclasses
import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_texts import CONFIGURATION, VARIANT, occasion, reference, whole

from perf.calibration.occasions import New
from perf.calibration.writing import MarginTooSmall, default_margin, new_file, with_occasions
from perf.verdict.references import Recorded, parse
from perf.verdict.spread import Spread
from perf.verdict.system import System

EXPIRES = datetime.date(2027, 5, 27)
RECORDED = Recorded("2026-11-28", "n1", "torch 2.14.1", "r2", (), "maria", (99.0, 100.0, 101.0, 100.5, 99.5))
NEW = New(VARIANT, "throughput", CONFIGURATION, RECORDED, RECORDED.values, Spread(5, 0.008, 0.019))


def fine(variant):
    """Nothing is wrong with any variant's name."""
    return


def write(text, *added, margin=None):
    return with_occasions(text, parse(text, "f.toml", fine), added, expires=EXPIRES, margin=margin)


def test_a_new_file_holds_the_system_and_can_be_read():
    """GPU model, count, power limit, CPU and whether there is a single node come back as they were given."""
    system = System('NVIDIA "H100"', 4, 699.5, "C")
    found = parse(new_file(system, single_node=True), "f.toml", fine)
    assert (system, True, {}) == (found.system, found.single_node, found.references)
    plain = parse(new_file(System("none", 0), single_node=False), "f.toml", fine)
    assert (System("none", 0), False) == (plain.system, plain.single_node)


def test_what_was_written_is_read_back():
    """A first occasion brings its reference: configuration, expiry, spread, and a margin that the spread allows."""
    text = write(new_file(System("none", 0), single_node=False), NEW)
    one = parse(text, "f.toml", fine).references[VARIANT, "throughput"]
    assert (RECORDED,) == one.occasions
    assert (CONFIGURATION, "2027-05-27") == (one.configuration, one.expires)
    assert (0.008, 0.025) == (one.spread, one.margin)


def test_comments_and_order_stay():
    """A second occasion is added at its place; every other line, comments included, is as it was."""
    text = whole(
        "# the quiet system\n" + reference("tolerance = 0.1 # shared\nreason = 'shared node'"), "# the end\n"
    )
    after = write(text, NEW)
    assert ["2026-11-02", "2026-11-28"] == [
        o.date for o in parse(after, "f.toml", fine).references[VARIANT, "throughput"].occasions
    ]
    lost = [line for line in text.splitlines() if line not in after.splitlines()]
    assert ["expires = 2027-05-01"] == lost
    assert 0 < after.index("# the quiet system") < after.index("# shared") < after.index("# the end")


def test_the_same_date_and_node_takes_the_old_ones_place():
    """Measuring twice on one day gives one occasion: the newer."""
    text = whole(reference(occasions=occasion("2026-11-28") + occasion("2026-11-09", "n2")))
    found = parse(write(text, NEW), "f.toml", fine).references[VARIANT, "throughput"].occasions
    assert [("2026-11-09", "r1"), ("2026-11-28", "r2")] == [(o.date, o.run) for o in found]


def test_another_configuration_replaces_the_reference():
    """Numbers of another configuration hold no longer, and nor does a tolerance that was written for them."""
    other = dataclasses.replace(NEW, configuration={**CONFIGURATION, "workers": 7})
    text = whole(reference("tolerance = 0.1\nreason = 'shared node'"))
    one = parse(write(text, other), "f.toml", fine).references[VARIANT, "throughput"]
    assert (RECORDED,) == one.occasions
    assert (None, 7) == (one.tolerance, one.configuration["workers"])


def test_a_margin_below_three_spreads_is_refused():
    """The message names the variant, its spread and the margin that it needs; a larger margin is written as given."""
    with pytest.raises(MarginTooSmall, match=r"2 % is below three .*spreads by 0\.8 % and needs 2\.5 %"):
        write(whole(), NEW, margin=0.02)
    found = parse(write(whole(), NEW, margin=0.03), "f.toml", fine)
    assert 0.03 == found.references[VARIANT, "throughput"].margin


@given(st.floats(0.0, 0.5))
def test_the_offered_margin_is_at_least_three_spreads_and_2_percent(sd):
    """It is rounded up to half a percent, and by no more."""
    margin = default_margin(sd)
    assert margin >= 0.02
    assert margin >= 3 * sd - 1e-9
    assert margin <= max(0.02, 3 * sd + 0.005 + 1e-9)
    assert round(margin / 0.005) * 0.005 == pytest.approx(margin)


NAMES = st.text(min_size=1, max_size=20).filter(lambda text: text.strip() and "\x00" not in text)


@given(NAMES, NAMES, NAMES, st.lists(st.floats(1e-3, 1e12), min_size=5, max_size=7))
def test_whatever_names_hold_is_read_back(node, stack, user, values):
    """Quotes, line feeds and brackets in a node's, stack's or user's name stay inside their text."""
    recorded = dataclasses.replace(RECORDED, node=node, stack=stack, recorded_by=user, values=tuple(values))
    text = write(whole(), dataclasses.replace(NEW, recorded=recorded))
    found = parse(text, "f.toml", fine).references[VARIANT, "throughput"].occasions[-1]
    assert (node, stack, user) == (found.node, found.stack, found.recorded_by)
    assert pytest.approx(values, rel=1e-5) == list(found.values)
