from __future__ import annotations

import pytest
from reference_texts import CONFIGURATION, HEAD, VARIANT, occasion, reference, whole

from perf.tomlfile import TomlError
from perf.verdict.references import ExpectedFailure, is_over, parse
from perf.verdict.references import read as read_file
from perf.verdict.system import System

EXPECTED = """
[[expected_failure]]
variant = "v"
metric = "loader_share"
reason = "one slow disk, ticket 12"
expires = 2026-12-24
"""


def fine(variant):
    """Nothing is wrong with any variant's name."""
    return


def read(text):
    return parse(text, "f.toml", fine)


def test_a_whole_file_is_read():
    """System, configuration, occasions with their provenance, spread, margin and tolerance come out as they stand."""
    more = "spread = 0.01\nmargin = 0.03\ntolerance = 0.1\nreason = 'shared node'"
    found = read(whole(reference(more, occasion() + occasion("2026-11-09", "n2")), EXPECTED))

    assert (System("none", 0, None, "C"), False) == (found.system, found.single_node)
    one = found.references[VARIANT, "throughput"]
    assert (CONFIGURATION, "2027-05-01") == (one.configuration, one.expires)
    assert (0.01, 0.03, 0.1, "shared node") == (one.spread, one.margin, one.tolerance, one.reason)
    assert [("2026-11-02", "n1"), ("2026-11-09", "n2")] == [(o.date, o.node) for o in one.occasions]
    first = one.occasions[0]
    assert ("torch 2.14.1", "r1", (), "maria") == (first.stack, first.run, first.jobs, first.recorded_by)
    assert (98.0, 99.0, 100.0, 101.0, 102.0) == first.values
    expected = ExpectedFailure("v", "loader_share", "one slow disk, ticket 12", "2026-12-24")
    assert {("v", "loader_share"): expected} == found.expected_failures


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (whole(reference().replace("samples/s", "images/s")), r"9: .*\.unit: of throughput is 'samples/s'"),
        (whole(reference().replace("higher", "lower")), r"10: .*\.direction: of throughput is 'higher'"),
        (whole(reference("tolerance = -0.1\nreason = 'x'")), r"14: .*\.tolerance: expected a relative loss"),
        (whole(reference("tolerance = 5\nreason = 'x'")), "such as 0.05 for 5 %, got 5"),
        (whole(reference("tolerance = 0.1")), r"\.tolerance: a tolerance and its reason go together"),
        (whole(reference("reason = 'x'")), r"14: .*\.reason: a tolerance and its reason go together"),
        (
            whole(reference("spread = 0.01\nmargin = 0.02")),
            r"15: .*\.margin: is 0.02; .* at least three times",
        ),
        (
            whole(reference("margin = 0.02")),
            r"\.margin: is 0.02; a margin is at least three times the spread",
        ),
        (whole(reference("tolerence = 0.1")), r"14: .*\.tolerence: unknown key; did you mean 'tolerance'\?"),
        (whole(reference().replace("workers = 1", "workers = 2")), r"\.fingerprint: is .* it was edited"),
        (whole(reference(occasions="")), r"8: .* has no occasion"),
        (
            whole(reference(occasions=occasion() + occasion())),
            r"occasion\[2\]\.date: n1 on 2026-11-02 is there twice",
        ),
        (
            whole(reference(occasions=occasion(launches="[1, 2]"))),
            r"launches: expected a list of at least 5 numbers",
        ),
        (whole(reference(occasions=occasion(launches="[1, 2, 3, 4, 0]"))), "numbers above 0"),
        (
            whole(reference(occasions=occasion(date="'yesterday'"))),
            r"\.date: expected a date such as 2026-11-28",
        ),
        (whole(reference().replace(".throughput", ".thruput")), r"\.thruput: .*did you mean 'throughput'\?"),
        (whole(reference(), reference()), r": \[reference\..*throughput\]: written twice"),
        (whole(reference("unit = 'samples/s'")), r"14: unit: written twice"),
        (
            whole(EXPECTED, EXPECTED),
            r"expected_failure\[2\]\.metric: v is expected to fail in loader_share twice",
        ),
        (whole(EXPECTED.replace("reason", "because")), r"8: expected_failure\[1\]: lacks the key 'reason'"),
        (HEAD.replace("schema = 1", "schema = 9"), r"1: schema: is 9, this suite reads up to 1"),
        (HEAD.replace("gpus = 0", "gpus = 0\ncores = 3"), r"6: system\.cores: unknown key"),
        ("schema = 1\n", r"1: the file: lacks the table \[system\]"),
        (whole("\n[refrence.x]\n"), r"8: refrence: unknown key; did you mean 'reference'\?"),
    ],
)
def test_a_hand_edited_mistake_names_line_and_key(text, words):
    """Whatever people get wrong is an error with file, line and key, and what was expected."""
    with pytest.raises(TomlError, match=words) as error:
        read(text)
    assert str(error.value).startswith("f.toml:")


def test_an_unknown_variant_is_an_error_at_its_line():
    """What is wrong with a variant's name is asked of who knows the variants, for references and expected failures."""

    def complaint(variant):
        return f"{variant} is unknown; did you mean x?"

    with pytest.raises(TomlError, match=r"f\.toml:8: .*is unknown; did you mean x\?"):
        parse(whole(), "f.toml", complaint)
    with pytest.raises(TomlError, match=r"f\.toml:9: expected_failure\[1\]\.variant: v is unknown"):
        parse(whole(EXPECTED), "f.toml", complaint)


def test_a_file_that_is_no_text_is_an_error_with_its_name(tmp_path):
    """A file is read as UTF-8; bytes that are none, and a file that is not there, are errors that name it."""
    path = tmp_path / "a.toml"
    path.write_text(whole(), encoding="utf-8")
    assert str(path) == read_file(path, fine).where

    path.write_bytes(b"\xff")
    with pytest.raises(TomlError, match=r"a\.toml: can't be read as text in UTF-8"):
        read_file(path, fine)
    with pytest.raises(TomlError, match=r"b\.toml: can't be read"):
        read_file(tmp_path / "b.toml", fine)


def test_what_expires_on_a_date_is_over_on_it():
    """The last day is the one before."""
    assert [False, True, True] == [is_over("2026-11-28", f"2026-11-{day}") for day in (27, 28, 29)]
