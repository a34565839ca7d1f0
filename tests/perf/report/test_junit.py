from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.records import VerdictRecord
from perf.report.junit import properties

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
