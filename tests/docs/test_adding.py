"""docs/adding.md, followed to the letter in a copy of the checkout."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from perf import records

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(python|diff|toml) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MEASURED = ROOT / "docs" / "measurements" / "2026-11-28-h100-whole"


def section(title):
    """Return the text of one section of the page."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def edited(text, block):
    """Return a file with a block's lines in: what is not to be added is there, in that order; what is taken is gone."""
    lines = text.splitlines()
    at: int | None = None
    before = []
    for line in block.splitlines():
        mark, rest = line[:1], line[1:]
        if mark == "+" and at is None:
            before.append(rest)
        elif mark == "+":
            lines.insert(at, rest)
            at += 1
        else:
            at = lines.index(rest, at or 0)
            lines[at:at] = before
            at += len(before) + (mark != "-")
            before = []
            if mark == "-":
                del lines[at]
    return "\n".join(lines) + "\n"


@dataclass
class Copy:
    """A copy of the checkout, and what was changed in it."""

    folder: Path
    touched: list[str]

    def run(self, *words, **environment):
        """Run a module of the copy."""
        variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}
        return subprocess.run(
            [sys.executable, "-m", *words],
            cwd=self.folder,
            env={**variables, **environment},
            capture_output=True,
            text=True,
            timeout=540,
            check=False,
        )


@pytest.fixture
def follow(tmp_path):
    """Return a function that does what a section says in a copy of the checkout."""

    def follow(title):
        folder = tmp_path / "checkout"
        for name in ("perf", "models"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("conftest.py", "pytest.ini"):
            shutil.copyfile(ROOT / name, folder / name)
        blocks = BLOCK.findall(section(title))
        assert blocks, title
        for kind, name, text in blocks:
            path = folder / name
            assert path.exists() == (kind == "diff"), name
            path.write_text(edited(path.read_text(encoding="utf-8"), text) if kind == "diff" else text)
        return Copy(folder, [name for _, name, _ in blocks])

    return follow


def test_a_workload_is_two_files_and_trains(follow, tmp_path):
    """Its work is counted as the page says, and smoke trains it alone and on two ranks, with every fact in order."""
    copy = follow("A workload")
    assert 2 == len(copy.touched)

    counted = json.loads(copy.run("perf.training.work", "perceptron").stdout)
    assert json.loads(re.search(r'\{"workload": "perceptron".*\}', section("A workload"))[0]) == counted
    done = copy.run(
        *("pytest", "perf", "-q", "-p", "no:cacheprovider"),
        *("--profile=smoke", "--share-node", "-k", "perceptron"),
        *(
            f"--stack={sys.executable}",
            f"--results={tmp_path / 'results'}",
            f"--cache-dir={tmp_path / 'cache'}",
        ),
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    launched = Counter(r.variant for r in records.Run((tmp_path / "results" / "latest").resolve()).records())
    assert {"perceptron-single-1cpu-fp32-native": 1, "perceptron-ddp-2cpu-gloo-fp32-native": 1} == launched


def judged(copy, tmp_path, *words):
    """Judge the stored launches of two H100s in a copy; return the process and its verdicts."""
    done = copy.run(
        *("pytest", *words, "-q", "-p", "no:cacheprovider"),
        *(f"--records={MEASURED}", f"--results={tmp_path / 'results'}"),
    )
    found = records.Run((tmp_path / "results" / "latest").resolve()).verdicts()
    return done, {verdict.metric: verdict for verdict in found}


def test_a_limit_is_two_files_and_can_be_missed(follow, tmp_path):
    """Launches that were measured keep it; below what they showed they don't, and so few of them can't condemn."""
    copy = follow("A limit")
    assert 2 == len(copy.touched)

    done, verdicts = judged(copy, tmp_path, "perf/test_first_step.py")
    assert 0 == done.returncode, done.stdout + done.stderr
    assert ("pass", 1.5) == (verdicts["first_step"].verdict, verdicts["first_step"].limit)

    limits = copy.folder / "perf" / "limits.py"
    limits.write_text(limits.read_text().replace('"first_step",\n    1.5,', '"first_step",\n    0.2,'))
    done, verdicts = judged(copy, tmp_path, "perf/test_first_step.py")
    assert 10 == done.returncode, done.stdout + done.stderr
    assert "inconclusive" == verdicts["first_step"].verdict


def test_a_metric_is_unreferenced_until_a_reference_holds_it(follow, tmp_path):
    """Two files; the estimate is there, in its unit."""
    copy = follow("A metric")
    assert 2 == len(copy.touched)

    done, verdicts = judged(copy, tmp_path, "perf/test_launch_time.py")
    assert 0 == done.returncode, done.stdout + done.stderr
    assert ("unreferenced", "s") == (verdicts["launch_time"].verdict, verdicts["launch_time"].unit)
    assert 5.0 < verdicts["launch_time"].estimate < 60.0


def test_a_site_is_one_file_and_its_jobs_can_be_looked_at(follow, tmp_path):
    """The dry run asks for the partition and account, four GPUs at most, and loads the stack's modules."""
    copy = follow("A site")
    assert ["mysite.toml"] == copy.touched

    done = copy.run("perf.cluster", "--site=mysite.toml", "--dry-run", f"--results={tmp_path / 'results'}")
    assert 0 == done.returncode, done.stdout + done.stderr
    assert "--partition=gpu" in done.stdout
    assert "--account=proj42" in done.stdout


def test_a_scheduler_is_a_module_and_a_word(follow, tmp_path):
    """A site may name it, its command is shown, and a mistyped one is told with the nearest word."""
    copy = follow("A scheduler")
    site = copy.folder / "mysite.toml"
    site.write_text(
        '[scheduler]\nkind = "nice"\n[node]\ngpus = 0\ncores = 2\n[stacks.s]\npython = "python3"\n'
    )

    done = copy.run("perf.cluster", "--site=mysite.toml", "--dry-run", f"--results={tmp_path / 'results'}")
    assert 0 == done.returncode, done.stdout + done.stderr
    assert "nice -n 10 bash" in done.stdout

    site.write_text(site.read_text().replace('"nice"', '"nica"'))
    done = copy.run("perf.cluster", "--site=mysite.toml", "--dry-run", f"--results={tmp_path / 'results'}")
    assert 0 != done.returncode
    assert "did you mean 'nice'?; expected one of slurm, lsf, local, nice" in done.stderr + done.stdout


def test_a_block_is_put_where_its_neighbours_are():
    """Added lines follow what stands before them in the block, or come before what stands behind them."""
    assert "a\nx\nb\n" == edited("a\nb\n", " a\n+x\n")
    assert "x\ny\na\nb\n" == edited("a\nb\n", "+x\n+y\n a\n")
    assert "a\nc\nd\n" == edited("a\nb\nd\n", "-b\n+c\n")
    assert "a\nx\nb\ny\n" == edited("a\nb\n", " a\n+x\n b\n+y\n")
    with pytest.raises(ValueError, match="not in list"):
        edited("a\n", " z\n+x\n")
