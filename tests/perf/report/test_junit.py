from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.records import VerdictRecord
from perf.report.junit import failure_properties, properties, run_properties

pytest_plugins = ["pytester"]

NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)


def test_properties_begin_with_the_verdict(verdict):
    """Every field that a judgement has is a property, numbers in full, each reason its own."""
    assert [
        ("verdict", "fail"),
        ("variant", "resnet50-ddp-2gpu-nccl-bf16-native8"),
        ("against", "resnet50-dp-2gpu-bf16-native8"),
        ("group", "resnet50"),
        ("metric", "step time"),
        ("unit", "ratio"),
        ("estimate", "1.31"),
        ("low", "1.24"),
        ("high", "1.38"),
        ("limit", "1.0"),
        ("launches", "10"),
        ("detectable", "0.04"),
        ("statistical", "true"),
        ("reason", "a"),
        ("reason", "b"),
    ] == properties(verdict(reasons=["a", "b"]))


@given(NUMBERS, NUMBERS)
def test_numbers_can_be_read_back_exactly(estimate, limit):
    """A script that reads JUnit gets the number that was judged; what is null has no property."""
    record = VerdictRecord("r", "t", "g", "v", "", "m", "u", estimate, None, None, limit, "pass", 5, None)
    found = dict(properties(record))
    assert {"estimate": estimate, "low": None, "limit": limit} == {
        name: float(found[name]) if name in found else None for name in ("estimate", "low", "limit")
    }
    assert "against" not in found


def test_properties_survive_junit_xml(pytester, verdict):
    """Pytest writes the properties of a hostile judgement into XML that a parser reads back."""
    record = verdict(variant="<x>&\x1b[31m", reasons=["a\x00b\nc", "“größer” ]]>"])
    fields = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    pytester.makepyfile(
        f"""
        from perf.records import VerdictRecord
        from perf.report.junit import properties

        def test_limit(request):
            request.node.user_properties.extend(properties(VerdictRecord(**{fields!r})))
        """
    )
    result = pytester.runpytest_inprocess("--junitxml=junit.xml", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    found = [(p.get("name"), p.get("value")) for p in ET.parse(pytester.path / "junit.xml").iter("property")]
    assert properties(record) == found
    assert ("variant", r"<x>&\x1b[31m") in found


@pytest.mark.parametrize("statistical", [True, False])
def test_an_exact_fact_says_that_it_is_one(verdict, statistical):
    """Whether noise had a say in the verdict can be read from the properties."""
    assert ("statistical", str(statistical).lower()) in properties(verdict(statistical=statistical))


def test_a_failed_launch_says_who_failed_first():
    """Rank, host, each GPU, the log and the other ranks' states; control characters are shown."""
    facts = {
        "launch": "l",
        "rank": 0,
        "host": "n\x1b1",
        "gpus": ["a", "b"],
        "status": "exit status 3",
        "phase": "in phase window",
        "log_path": "/log",
        "folder": "/f",
        "others": [{"rank": 1, "gpus": [], "state": "was running"}],
    }
    assert [
        ("failed_launch", "l"),
        ("failed_rank", "0"),
        ("failed_host", "n\\x1b1"),
        ("failed_gpu", "a"),
        ("failed_gpu", "b"),
        ("failed_status", "exit status 3"),
        ("failed_phase", "in phase window"),
        ("failed_log", "/log"),
        ("failed_folder", "/f"),
        ("other_rank", "1: was running"),
    ] == failure_properties(facts)


def test_no_facts_no_properties():
    """An error that carries no facts, and a launch in which no single rank failed first, invent none."""
    assert [] == failure_properties({})
    assert [("failed_launch", "l")] == failure_properties(
        {"launch": "l", "rank": None, "gpus": [], "host": ""}
    )


def test_a_suite_names_its_run():
    """Where the files are, from which a CI page leads to the report."""
    assert [
        ("stackproof_run", "r1"),
        ("stackproof_folder", "/x/r1"),
        ("stackproof_profile", "quick"),
    ] == run_properties("/x/r1", "quick")


def test_a_diagnosis_is_a_property_of_its_own(verdict):
    """It comes last, in one piece; a judgement without one has no such property."""
    found = properties(verdict(diagnosis={"text": "Rank 1 of n1\x1b comes late.", "phase": "optimizer"}))

    assert ("diagnosis", "Rank 1 of n1\\x1b comes late.") == found[-1]
    assert "diagnosis" not in dict(properties(verdict()))
