"""A run for other programs."""

from __future__ import annotations

import csv
import io
import re

from hypothesis import given
from hypothesis import strategies as st
from launch_records import record

from perf.records import VerdictRecord
from perf.report.export import CSV_COLUMNS, as_csv, as_prometheus, escaped_label
from perf.report.stored import StoredRun
from perf.report.summary import summarize

SAMPLE = re.compile(
    r'^stackproof_[a-z_]+\{[a-z]+="(?:[^"\\\n]|\\\\|\\"|\\n)*"(?:,[a-z]+="(?:[^"\\\n]|\\\\|\\"|\\n)*")*\} \S+$'
)


def run_of(tmp_path, variant: str = "v", test: str = "t[a]"):
    """Return a stored run of one launch and one judgement, and its summary."""
    verdict = VerdictRecord(
        "r", test, "g", variant, "", "step_time", "ratio", 1.5, None, 2.0, 1.02, "fail", 10, None
    )
    stored = StoredRun(tmp_path / "run", records=[record(variant=variant)], verdicts=[verdict])
    return stored, summarize(stored.records, stored.verdicts)


def test_csv_holds_one_number_a_row(tmp_path):
    """What is not known is empty, and no cell is a formula."""
    rows = list(csv.DictReader(io.StringIO(as_csv(*run_of(tmp_path, variant="=cmd()")))))
    assert set(CSV_COLUMNS) == set(rows[0])
    assert {"measured", "judged"} == {row["kind"] for row in rows}
    (judged,) = [row for row in rows if row["kind"] == "judged"]
    assert ("1.5", "", "2.0", "fail") == (judged["value"], judged["low"], judged["high"], judged["verdict"])
    assert "'=cmd()" == judged["variant"]


def test_prometheus_lines_are_whole_and_typed(tmp_path):
    """Every sample has its TYPE before it, and hostile names stay inside their quotes."""
    text = as_prometheus(*run_of(tmp_path, variant='a"b\\c\n} 1', test="x\x1b[31m"))
    assert text.endswith("\n")
    typed = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            typed.add(line.split()[2])
        elif not line.startswith("#"):
            assert SAMPLE.match(line), line
            assert line.partition("{")[0] in typed
    assert 'verdict="fail"} 1.0' in text
    assert 'verdict="pass"} 0.0' in text
    assert "\x1b" not in text


@given(st.text())
def test_a_label_never_ends_its_own_quotes(text):
    """Whatever it holds."""
    assert SAMPLE.match(f'stackproof_x{{a="{escaped_label(text)}"}} 1.0') or any(
        c in text for c in "\x85\u2028\u2029"
    )
