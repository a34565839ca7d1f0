from __future__ import annotations

import re
from pathlib import Path

import pytest

from perf.report.summary import summarize
from perf.report.tables import SYMBOLS, print_report
from perf.verdict.outcome import Verdict

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
LONG = "resnet152-ddp-4gpu-nccl-bf16-native8+synthetic+channels_last+compiled+graph"


@pytest.fixture
def report(paper):
    """Prints launches and judgements; returns the text."""

    def make(records, verdicts, width=80, encoding="utf-8", *, terminal=False, **options):
        console = paper(width, encoding, terminal=terminal)
        print_report(console, summarize(records, verdicts), **options)
        return console.file.getvalue()

    return make


def squeezed(text):
    """Return text without white space, so that what was folded is whole again."""
    return "".join(text.split())


@pytest.mark.parametrize("width", [80, 120, 200])
def test_everything_is_there_at_every_width(report, launch, verdict, width):
    """Ids, tests, numbers and reasons stand in full at 80, 120 and 200 columns, and no line is wider."""
    text = report(
        [launch(variant=LONG, launch=str(n), median_step_seconds=0.075 + n / 1e4) for n in range(5)],
        [verdict(variant=LONG)],
        width,
    )
    assert all(len(line) <= width for line in text.splitlines())
    assert LONG in text.split()
    assert verdict().test in text.split()
    assert verdict().against in text.split()
    numbers = ("75.20", "±0.2 %", "853.0", "2.0 %", "1.50 GiB", "1.31 [1.24–1.38] ratio", "1.00", "4.0 %")
    for words in (*numbers, "step time"):
        assert words in text
    assert squeezed(verdict().reasons[0]) in squeezed(text)
    assert not CONTROL.search(text)


def test_a_short_row_is_one_line_at_120_columns(report, launch):
    """Where there is room a variant is a line: plan, launches, step, spread, rate, wait, memory, remarks."""
    text = report([launch(launch=str(n), flags=["unsteady"]) for n in range(5)], [], 120)
    (line,) = [line for line in text.splitlines() if line.startswith(launch().variant)]
    numbers = "window 5 75.10 ±0.0 % 853.0 2.0 % 1.50 GiB 5 unsteady"
    assert f"{launch().variant} {numbers}" == " ".join(line.split())


def test_a_short_judgement_is_one_line_at_200_columns(report, verdict):
    """Where there is room a judgement is a line: verdict, test, variant and all its numbers."""
    text = report([], [verdict(test="test_loader", variant="a", against="", verdict="pass", reasons=[])], 200)
    (line,) = [line for line in text.splitlines() if "test_loader" in line]
    assert "✓ pass test_loader a step time 1.31 [1.24–1.38] ratio 1.00 10 4.0 %" == " ".join(line.split())


def test_verdicts_are_told_apart_without_colour(report, verdict):
    """Each verdict has a sign of its own beside its word, in UTF-8 and in ASCII, with colour and without."""
    words = [str(word) for word in Verdict]
    verdicts = [verdict(verdict=word, test=f"test_{word}") for word in words]
    # One more for a failure that was expected.
    assert 6 == len(set(SYMBOLS.values()))
    for encoding in ("utf-8", "ascii"):
        text = report([], verdicts, 200, encoding)
        signs = {
            word: re.search(rf"^(\S+) {word} +test_{word}", text, re.MULTILINE).group(1) for word in words
        }
        assert 5 == len(set(signs.values()))
    assert "✗" not in text


def test_colour_adds_nothing_but_colour(report, launch, verdict):
    """On a terminal the same characters are printed as in a pipe."""
    plain = report([launch()], [verdict()])
    coloured = report([launch()], [verdict()], terminal=True)
    assert plain == re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert plain != coloured


def test_reasons_are_told_for_all_that_is_not_a_pass(report, verdict):
    """What failed comes first; a pass is told only if there is a remark; a missing reason is said to be missing."""
    text = report(
        [],
        [
            verdict(verdict="pass", test="test_quiet", reasons=[]),
            verdict(
                verdict="pass", test="test_remark", reasons=["the limit is overridden: known bad switch"]
            ),
            verdict(verdict="inconclusive", test="test_noisy", reasons=["too noisy", "try more launches"]),
            verdict(verdict="unreferenced", test="test_new", reasons=[]),
            verdict(verdict="fail", test="test_slow"),
        ],
    )
    why = text.partition("\nWhy\n")[2]
    heads = re.findall(r"^\S (\w+)  (test_\w+)$", why, re.MULTILINE)
    assert [
        ("fail", "test_slow"),
        ("inconclusive", "test_noisy"),
        ("unreferenced", "test_new"),
        ("pass", "test_remark"),
    ] == heads
    for sentence in ("too noisy", "try more launches", "known bad switch", "no reason was recorded"):
        assert sentence in why


def test_what_has_no_reference_for_one_reason_is_told_once(report, verdict):
    """A new system has dozens of them, and a fail among them must be seen."""
    names = [f"metric_{number}" for number in range(9)]
    text = report(
        [],
        [
            *(
                verdict(
                    verdict="unreferenced", test=f"test_{name}", metric=name, reasons=["no references here"]
                )
                for name in names
            ),
            verdict(verdict="unreferenced", test="test_other", reasons=["one launch"]),
        ],
    )
    why = text.partition("\nWhy\n")[2]
    assert ["9 measurements", "test_other"] == re.findall(r"^\S unreferenced  (.+)$", why, re.MULTILINE)
    assert 1 == why.count("no references here")
    assert all(name in why for name in names)


def test_launches_that_were_left_out_are_told_with_reasons(report, launch):
    """How many of which variant, and how often each reason was met."""
    broken = launch(valid=False, reasons=["GPU 0 was throttled: 93 °C"])
    text = report([launch(), broken, broken], [])
    assert "2 launches were not fit to be used" in " ".join(text.split())
    assert "2 × GPU 0 was throttled: 93 °C" in text
    assert "2 invalid" in text


def test_all_passed_needs_no_why(report, launch, verdict):
    """A clean run has no section of reasons."""
    assert "\nWhy\n" not in report([launch()], [verdict(verdict="pass", reasons=[])])


def test_hostile_text_is_harmless(report, launch, verdict):
    """Markup, terminal sequences, bidirectional marks and lone surrogates in any field are shown, not obeyed."""
    bad = "[red]x[/red]\x1b[2J\x07\u202e[/]\ud800"
    shown = r"[red]x[/red]\x1b[2J\x07\u202e[/]\ud800"
    text = report(
        [
            launch(variant=bad, flags=[bad]),
            launch(variant=bad, valid=False, reasons=[bad], stack={"torch": bad}),
        ],
        [verdict(test=bad, variant=bad, against=bad, metric=bad, unit=bad, verdict=bad, reasons=[bad])],
        300,
        environment=[bad],
        folder=Path("/tmp/" + bad.replace("\ud800", "")),
        notes=[bad],
    )
    assert not CONTROL.search(text)
    assert "\u202e" not in text
    assert text.count(shown) >= 12
    text.encode()


def test_the_account_ends_the_report(report, verdict):
    """Notes, the price of the judgements, the verdicts, and where the files are: the last lines."""
    folder = Path("/scratch") / "/".join(["a-long-folder"] * 12) / "20261127T101500Z-abcdef"
    text = report(
        [], [verdict(), verdict(verdict="pass", reasons=[])], folder=folder, notes=["left out: line 3"]
    )
    assert [
        "note: left out: line 3",
        "2 judgements, chance of a false fail in a clean run at most 0.05 %",
        "verdicts: 1 pass, 1 fail",
        # Not wrapped: a path is there to be copied.
        f"files: {folder}",
    ] == text.splitlines()[-4:]


def test_too_many_judgements_are_warned_of(report, verdict):
    """Beyond 45 judgements the report says that a single fail may be chance."""
    assert "WARNING: more than 1 %" in " ".join(
        report([], [verdict(verdict="pass", reasons=[])] * 46).split()
    )


def test_an_empty_run_says_so(report):
    """Nothing measured and nothing judged are said in words."""
    text = report([], [])
    assert "no launch was recorded" in text
    assert "nothing was judged" in text
    assert "verdicts: none" in text


def test_stacks_and_groups_are_named_only_where_they_differ(report, launch):
    """One stack needs no column; two do. A variant in two groups is told apart by its group."""
    one = report([launch()], [], 200)
    assert "torch" not in one
    assert "in mnist" not in one
    two = report([launch(), launch(stack={"torch": "2.7.0"})], [], 200)
    assert "torch 2.6.0" in two
    assert "torch 2.7.0" in two
    groups = report([launch(), launch(group="other")], [], 200)
    assert "in mnist" in groups
    assert "in other" in groups


def test_what_is_special_about_a_plan_is_said(report, launch):
    """The mode, unless it is the usual one, and that a profiler ran."""
    text = report([launch(mode="synthetic"), launch(line_profiles=["train-rank-0.lprof"])], [], 200)
    assert "window synthetic" in text
    assert "window profiled" in text


def test_the_environment_heads_the_report(report, launch):
    """Where the run was made, and on which data, is read before any number."""
    text = report([launch()], [], environment=["system  4x H100"])
    assert text.startswith("system  4x H100\ndata    mnist_cnn: source generated\n\nMeasured\n")


def test_a_diagnosis_stands_below_the_reasons(report, verdict):
    """The paragraph that a person can act on is printed whole, and made safe."""
    text = report([], [verdict(reasons=["too slow"], diagnosis={"text": "Rank 1 of n1\x1b comes late."})])

    assert text.index("too slow") < text.index("comes late.")
    assert "\x1b" not in text
