"""References from end to end: calibrate on one run, be held against it in the next, as a user does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from perf.suite.library import complaint, read_references

ROOT = Path(__file__).parents[3]
FLOOR = "test_throughput_is_not_below_its_floor[mnist_cnn-single-1cpu-fp32-native]"
SELECTED = ("perf/test_throughput.py", "-k", "floor and single-1cpu-fp32-native]", "--launches=5")


@pytest.fixture
def references(tmp_path):
    """An empty folder of references."""
    folder = tmp_path / "references"
    folder.mkdir()
    return folder


@pytest.fixture
def calibrated(suite, references, tmp_path):
    """References that were recorded from a run of the fake stack."""
    done = suite(*SELECTED)
    assert 0 == done.status, done.output
    command = [sys.executable, "-m", "perf.calibration", str(done.run.folder), "--yes", "--single-node"]
    recorded = subprocess.run(
        [*command, "--references", str(references)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert 0 == recorded.returncode, recorded.stdout + recorded.stderr
    (path,) = references.iterdir()
    return path


def judged(suite, references, *arguments, **settings):
    return suite(*SELECTED, f"--references={references}", *arguments, **settings)


def test_what_calibrate_wrote_is_what_the_next_run_is_held_against(suite, calibrated):
    """The same stack passes, though provisionally, and the report names the file."""
    done = judged(suite, calibrated.parent)
    assert 0 == done.status, done.output
    (verdict,) = [v for v in done.run.verdicts() if v.test == FLOOR]
    assert ("pass", True) == (verdict.verdict, verdict.statistical)
    assert verdict.low > verdict.limit > 0
    assert f"references: {calibrated}" in done.output
    assert "provisional" in done.output


def test_a_slower_stack_misses_its_floor(suite, calibrated):
    """20 % slower against one occasion: inconclusive, with exit status 10, the node, and what to do."""
    done = judged(suite, calibrated.parent, steps={"mnist_cnn": 0.0125})
    assert 10 == done.status, done.output
    assert "inconclusive" == done.verdicts[FLOOR]
    words = " ".join(done.output.split())
    assert re.search(r"fake on 20\d\d-\d\d-\d\d misses: it is (19|20)[.\d]* % below the reference", words)


def test_stored_launches_are_held_against_newer_references(suite, calibrated):
    """An old run is judged against references that were written after it."""
    done = judged(suite, calibrated.parent)
    again = suite(
        "perf", f"--records={done.run.folder}", f"--references={calibrated.parent}", "-k", "floor and single"
    )
    assert 0 == again.status, again.output
    assert "pass" == again.verdicts[FLOOR]


def test_a_miss_that_is_seen_again_on_another_date_fails(suite, calibrated):
    """With three occasions and a run that --confirms an earlier miss on the single node, the floor fails."""
    text = calibrated.read_text(encoding="utf-8")
    start = text.index("\n[[reference")
    block = text[start:].rstrip("\n") + "\n"
    dates = [re.sub(r"^date = .*", f"date = 2026-0{month}-01", block, flags=re.MULTILINE) for month in (3, 5)]
    calibrated.write_text(text.rstrip("\n") + "\n" + "".join(dates), encoding="utf-8")
    slow = {"mnist_cnn": 0.0125}
    changes = {"mnist_cnn": {"started_at": 1_790_000_000.0}}
    first = judged(suite, calibrated.parent, steps=slow, changes=changes)
    assert 10 == first.status, first.output
    assert "A miss counts when it is seen again on another date" in first.output

    second = judged(suite, calibrated.parent, f"--confirms={first.run.folder}", steps=slow)
    assert 1 == second.status, second.output
    assert "fail" == second.verdicts[FLOOR]
    assert "Missed twice" in second.output


def test_an_expected_failure_is_shown_as_one_and_its_end_too(suite, calibrated):
    """A known miss gives an x and status 0; when it is gone, an X says so, and the run stays green."""
    more = (
        '\n[[expected_failure]]\nvariant = "mnist_cnn-single-1cpu-fp32-native"\nmetric = "throughput"\n'
        'reason = "slow disk, ticket 12"\nexpires = 2099-01-01\n'
    )
    calibrated.write_text(calibrated.read_text(encoding="utf-8") + more, encoding="utf-8")
    slow = judged(suite, calibrated.parent, "-rx", steps={"mnist_cnn": 0.0125})
    assert 0 == slow.status, slow.output
    assert "1 xfailed" in slow.output
    assert "slow disk, ticket 12" in slow.output
    assert "expected fail" in slow.output

    healthy = judged(suite, calibrated.parent, "-rX")
    assert 0 == healthy.status, healthy.output
    assert "1 xpassed" in healthy.output
    assert "remove the expected failure" in healthy.output


def test_a_mistake_in_a_reference_file_stops_the_run_before_it_measures(suite, calibrated):
    """File, line, key, what was expected: pytest's usage error, status 4, and no launch."""
    text = calibrated.read_text(encoding="utf-8").replace('unit = "samples/s"', 'unit = "images/s"')
    calibrated.write_text(text, encoding="utf-8")
    line = text.split("\n").index('unit = "images/s"') + 1
    done = judged(suite, calibrated.parent)
    assert 4 == done.status
    assert f"{calibrated}:{line}: " in done.output
    assert "unit: of throughput is 'samples/s', got 'images/s'" in done.output
    assert "Traceback" not in done.output


def test_folders_that_are_not_there_are_usage_errors(suite, tmp_path):
    """A references folder or a run to confirm that is not there is told at once."""
    assert 4 == (done := suite("perf", "--references=/nowhere")).status
    assert "--references /nowhere is no folder" in done.output
    assert 4 == (done := suite("perf", f"--confirms={tmp_path}")).status
    assert "holds no records.jsonl" in done.output


@pytest.mark.parametrize(
    ("variant", "words"),
    [
        ("mnist_cnn-single-1cpu-fp32-nativ", "did you mean 'mnist_cnn-single-1cpu-fp32-native'"),
        ("mnist_cn-single-1cpu-fp32-native", "workload 'mnist_cn' is not one of"),
        (
            "mnist_cnn-single-1cpu-fp32-native+epoch",
            "'epoch' after the plus sign is no plan; did you mean 'epochs'",
        ),
        ("mnist_cnn-single-1cpu-fp32-native+window", "is no plan"),
    ],
)
def test_a_variant_that_is_not_known_gets_the_nearest_one(variant, words):
    """A name that was mistyped is told with what was probably meant."""
    assert words in (complaint(variant) or "")


@pytest.mark.parametrize(
    "variant",
    [
        "mnist_cnn-single-1cpu-fp32-native",
        "mnist_cnn-single-1cpu-fp32-native+epochs",
        "unet3d-ddp-64gpu-nccl-bf16-dali4",
    ],
)
def test_any_variant_that_could_be_run_may_have_a_reference(variant):
    """Also one that this catalogue does not hold: another machine has more GPUs."""
    assert complaint(variant) is None


def test_a_folder_is_read_in_the_order_of_names(references):
    """Every .toml file counts and nothing else."""
    text = 'schema = 1\n[system]\ngpu = "none"\ngpus = 0\n'
    for name in ("b.toml", "a.toml", "README.md"):
        (references / name).write_text(text, encoding="utf-8")
    assert ["a.toml", "b.toml"] == [Path(found.where).name for found in read_references(references)]
