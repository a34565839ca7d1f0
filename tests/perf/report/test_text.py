from __future__ import annotations

import math
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.report.text import (
    MISSING,
    bounded,
    clean,
    duration,
    fit,
    interval,
    memory,
    milliseconds,
    number,
    out_of_reach,
    share,
)

VALUES = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12)
# Every code point, lone surrogates too, and those that do harm more often than by chance.
HARMFUL = st.sampled_from("\x1b\x00\n\t\r\x9b\u202e\u200b\u2028é日–✗")
ANY_TEXT = st.lists(st.integers(0, 0x10FFFF).map(chr) | HARMFUL).map("".join)
POSITIVE = st.floats(min_value=1e-9, max_value=1e12)


@given(VALUES, st.integers(2, 6))
def test_a_number_is_written_to_the_digits_asked_for(value, digits):
    """Reading a written number gives the value back, to half a unit of its last significant digit."""
    assert math.isclose(value, float(number(value, digits)), rel_tol=0.5001 * 10 ** (1 - digits))


@given(st.floats(min_value=1e-4, max_value=1e12))
def test_a_number_of_everyday_size_has_no_exponent(value):
    """From 0.0001 up a number is digits and at most one point: nobody has to count powers of ten."""
    assert re.fullmatch(r"\d+(\.\d+)?", number(value))


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_shown_as_missing(value):
    """A reading that could not be had is never written as 0."""
    written = {number(value), milliseconds(value), share(value), memory(value), duration(value)}
    assert {MISSING} == written
    assert "0" == number(0.0)


@given(VALUES, POSITIVE, POSITIVE, VALUES)
def test_bounds_that_are_told_apart_by_the_interval_are_told_apart_in_writing(low, below, above, limit):
    """Both ends of an interval differ in writing, and every number is right to the decimals that it is given."""
    estimate = low + below
    high = estimate + above
    written = bounded(estimate, low, high, limit)
    decimals = {len(text.partition(".")[2]) for text in written}
    assert 1 == len(decimals)
    resolution = 0.5001 * 10 ** -decimals.pop()
    for value, text in zip((estimate, low, high, limit), written, strict=True):
        assert math.isclose(value, float(text), rel_tol=1e-12, abs_tol=resolution)
    if high - low > 1e-7 and high - low > 1e-11 * abs(high):
        assert written[1] != written[2]


def test_a_bound_just_beside_the_limit_is_not_written_like_the_limit():
    """A fail whose lower bound is 1.004 against 1.00 does not read as 1.00 against 1.00."""
    assert ("1.071", "1.004", "1.137", "1.000") == bounded(1.071, 1.004, 1.137, 1.0)


@pytest.mark.parametrize(
    ("expected", "values"),
    [
        ("1.31 [1.24–1.38] ratio", (1.31, 1.24, 1.38, 1.0, "ratio")),
        ("1.013 [1.002–1.024]", (1.0131, 1.0021, 1.0239, 0.9, "")),
        ("0.010 [-0.020 to 0.030] share", (0.01, -0.02, 0.03, 0.5, "share")),
        ("853.0 samples/s", (853.0, None, None, None, "samples/s")),
        ("1.310 [?–1.400]", (1.31, None, 1.4, 1.0, "")),
        ("0 ratio", (0.0, None, None, 0.0, "ratio")),
        (MISSING, (None, None, None, 1.0, "ratio")),
        (MISSING, (math.nan, math.nan, math.inf, 1.0, "ratio")),
    ],
)
def test_an_interval_reads_like_a_sentence_of_numbers(expected, values):
    """Estimate, bounds and unit; 'to' where a dash could be taken for a sign; '?' for a bound that is not known."""
    assert expected == interval(*values)


@pytest.mark.parametrize(
    ("expected", "seconds"),
    [
        ("0.4 s", 0.42),
        ("1 s", 0.96),
        ("8 s", 8.2),
        ("1 min 00 s", 59.7),
        ("2 min 05 s", 125.0),
        ("1 h 00 min", 3599.6),
        ("3 h 10 min", 11_400.0),
        ("0.0 s", -3.0),
    ],
)
def test_a_duration_is_written_as_people_say_it(expected, seconds):
    """Seconds, minutes or hours; rounding never gives 60 seconds; a clock that was set back gives 0."""
    assert expected == duration(seconds)


@given(st.floats(min_value=0.0, max_value=1e7))
def test_a_duration_is_right_to_its_last_part(seconds):
    """Adding up the parts of a written duration gives the seconds back, to half of the last part."""
    units = {"s": 1, "min": 60, "h": 3600}
    parts = re.findall(r"([\d.]+) (s|min|h)", duration(seconds))
    last = 0.1 if "." in parts[-1][0] else units[parts[-1][1]]
    assert abs(sum(float(amount) * units[unit] for amount, unit in parts) - seconds) <= 0.5001 * last


def test_memory_is_written_in_binary_units():
    """1 GiB is 1024 MiB."""
    assert ["512.0 MiB", "1.00 GiB", "1.50 GiB"] == [memory(size) for size in (2**29, 2**30, 3 * 2**29)]


@settings(max_examples=60)
@given(ANY_TEXT)
def test_cleaned_text_can_be_printed(text):
    """No control, invisible or direction-changing character and no lone surrogate is left, whatever comes in."""
    cleaned = clean(text)
    assert not {unicodedata.category(character) for character in cleaned} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    cleaned.encode("utf-8")


@settings(max_examples=60)
@given(ANY_TEXT, st.sampled_from(["ascii", "latin-1", "utf-8", "cp437", "no-such-encoding"]))
def test_fitted_text_can_be_written_in_its_encoding(text, encoding):
    """Text for a console never raises UnicodeEncodeError; for an encoding that Python lacks it is ASCII."""
    fitted = fit(text, encoding)
    fitted.encode("ascii" if encoding == "no-such-encoding" else encoding)


def test_escapes_show_what_was_there():
    """A terminal sequence in a log line is visible and harmless; line feeds stay where they are asked for."""
    assert r"\x1b[31mred\n" == clean("\x1b[31mred\n")
    assert "a\nb    c" == clean("a\nb\tc", keep_lines=True)
    assert r"\u202egnp.exe" == clean("\u202egnp.exe")


def test_the_suites_own_signs_have_plain_stand_ins():
    """On a console without UTF-8 the signs of the tables turn into ASCII, not into escapes."""
    assert "1.2-1.4 +-2 % 3 x X fail" == fit("1.2–1.4 ±2 % 3 × ✗ fail", "ascii")
    assert "✗ fail" == fit("✗ fail", "utf-8")


def test_a_file_that_is_out_of_reach_is_told_with_the_reason():
    """The name is that which the reader knows; an error without words of the system's is told in its own."""
    assert "a can't be written: Is a directory" == out_of_reach(
        "a", IsADirectoryError(21, "Is a directory", "b")
    )
    assert "a can't be read: gone" == out_of_reach("a", OSError("gone"), "read")
