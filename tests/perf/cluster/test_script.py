"""Job scripts: golden text for every example site, shellcheck, and bash itself with hostile words."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.cluster.local import Local
from perf.cluster.lsf import Lsf
from perf.cluster.scheduler import Request
from perf.cluster.script import ScriptParts, comment, script_text
from perf.cluster.sites import load_site
from perf.cluster.slurm import Slurm

ROOT = Path(__file__).parents[3]
GOLDEN = Path(__file__).parent / "golden"
EXAMPLES = sorted((ROOT / "docs" / "sites").glob("*.toml"))
HOSTILE = "a b $(touch pwned) `touch pwned` \"'\\\n; touch pwned\n-n *"

RECORD = "import json, sys; json.dump(sys.argv[1:], open('told.json', 'w')); sys.exit(int(sys.argv[1]))"


def example_script(path: Path) -> str:
    """Return the script of one example site for a job of two nodes."""
    site = load_site(path)
    kind = {"slurm": Slurm, "lsf": Lsf}.get(site.scheduler.kind)
    scheduler = Local({}) if kind is None else kind(site, {})
    folder = Path("/project/stackproof/results/20261128T064136Z-a1b2c3/jobs/2node-4gpu")
    request = Request(
        name="20261128T064136Z-a1b2c3.2node-4gpu",
        script=folder / "job.sh",
        output=folder / "stdout",
        folder=folder,
        nodes=site.node.most,
        gpus=site.node.gpus,
        cores=site.node.cores,
        seconds=5400,
        exclusive=site.scheduler.exclusive,
    )
    python = "/project/stackproof/.nox/driver/bin/python"
    stack = next(iter(site.stacks))
    return script_text(
        ScriptParts(
            run="20261128T064136Z-a1b2c3",
            job="2node-4gpu",
            folder=str(folder),
            repository="/project/stack proof",
            command=(
                python, "-E", "-s", "-m", "pytest", f"@{folder}/nodeids.txt",
                f"--site={folder.parents[1]}/site.toml", f"--stack={stack}",
            ),
            submitted_with=tuple(scheduler.submit_words(request)),
        )
    )  # fmt: skip


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_each_example_site_has_its_golden_script(path):
    """What is submitted at a site changes only where somebody sees it; STACKPROOF_GOLDEN=1 writes the files anew."""
    golden = GOLDEN / f"{path.stem}.sh"
    text = example_script(path)
    if os.environ.get("STACKPROOF_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")

    assert golden.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_shellcheck_finds_nothing_in_the_golden_scripts(path):
    """The scripts are clean for people who read them with the same eyes."""
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed (apt-get install shellcheck)")
    done = subprocess.run(
        ["shellcheck", str(GOLDEN / f"{path.stem}.sh")], capture_output=True, text=True, check=False
    )

    assert 0 == done.returncode, done.stdout


def run_script(folder: Path, command: tuple[str, ...], repository: Path | None = None, **more):
    """Write a script with this command into a folder and run it to its end."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = ScriptParts("run", "job", str(folder), str(repository or folder), command, ("sbatch", HOSTILE))
    (folder / "job.sh").write_text(script_text(parts), encoding="utf-8")
    return subprocess.run(
        ["bash", str(folder / "job.sh")], capture_output=True, text=True, timeout=60, check=False, **more
    )


@pytest.mark.parametrize(
    "word",
    [
        "a b",
        "$(touch pwned)",
        "`touch pwned`",
        "it's",
        '"',
        "a\nb",
        "-rf",
        "*",
        "\\",
        "$HOME",
        "~",
        "",
        "!!",
        "#x",
        "é\t",
    ],
)
def test_a_word_reaches_the_command_as_it_is(tmp_path, word):
    """Spaces, substitutions, quotes, line feeds and a leading dash are no shell's business, in paths neither."""
    folder = tmp_path / f"job {HOSTILE.replace('/', '')}"
    done = run_script(folder, (sys.executable, "-c", RECORD, "0", word))

    assert 0 == done.returncode, done.stderr
    assert ["0", word] == json.loads((folder / "told.json").read_text())
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize(
    ("status", "expected"), [(0, 0), (1, 0), (10, 0), (11, 0), (12, 0), (2, 2), (4, 4), (137, 137)]
)
def test_the_end_marker_holds_pytests_status_and_the_job_fails_only_where_pytest_did_not_finish(
    tmp_path, status, expected
):
    """A number beyond its limit is no failed job; a run that was interrupted is."""
    done = run_script(tmp_path / "job", (sys.executable, "-c", RECORD, str(status)))

    assert expected == done.returncode
    assert str(status) == (tmp_path / "job" / "exit_code").read_text().split()[0]


def test_a_second_start_measures_nothing(tmp_path):
    """A requeued job leaves the first start's files alone and says that it came twice."""
    run_script(tmp_path / "job", (sys.executable, "-c", RECORD, "0", "first"))
    before = (tmp_path / "job" / "exit_code").read_text()

    done = run_script(tmp_path / "job", (sys.executable, "-c", RECORD, "0", "second"))

    assert 75 == done.returncode
    assert "started before" in done.stderr
    assert ["0", "first"] == json.loads((tmp_path / "job" / "told.json").read_text())
    assert before == (tmp_path / "job" / "exit_code").read_text()
    assert (tmp_path / "job" / "started_again").exists()


def test_a_repository_that_is_not_there_ends_the_job(tmp_path):
    """A node that lacks the file system says so instead of collecting nothing."""
    done = run_script(tmp_path / "job", (sys.executable, "-c", RECORD, "0"), repository=tmp_path / "gone")

    assert 74 == done.returncode
    assert "74" == (tmp_path / "job" / "exit_code").read_text().split()[0]


def test_the_warning_before_the_limit_ends_pytest_in_order(tmp_path):
    """USR1 to the script becomes SIGTERM for pytest, whose own ending is waited for and kept."""
    folder = tmp_path / "job"
    folder.mkdir()
    body = (
        "import signal, sys, time, pathlib\n"
        "def end(number, frame):\n"
        "    time.sleep(0.3); pathlib.Path('ended').touch(); sys.exit(2)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "pathlib.Path('ready').touch()\n"
        "time.sleep(60)\n"
    )
    parts = ScriptParts("run", "job", str(folder), str(folder), (sys.executable, "-c", body), ("sbatch",))
    (folder / "job.sh").write_text(script_text(parts), encoding="utf-8")
    process = subprocess.Popen(["bash", str(folder / "job.sh")], start_new_session=True)
    while not (folder / "ready").exists():
        time.sleep(0.02)
    # To the whole session, as LSF does: pytest itself must not die of it.
    os.killpg(process.pid, signal.SIGUSR1)

    assert 2 == process.wait(timeout=60)
    assert (folder / "ended").exists()
    status, _, caught = (folder / "exit_code").read_text().split()
    assert ("2", "USR1") == (status, caught)


def test_a_line_feed_does_not_end_a_comment():
    """Whatever the submitting command holds, the script's head stays a comment."""
    assert ["# a", "# rm -rf /", "#", "# b"] == comment("a\nrm -rf /\r\nb")


@settings(max_examples=20)
@given(
    st.lists(
        st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=20),
        min_size=1,
    )
)
def test_bash_reads_back_the_words_that_were_written(words):
    """Any words at all: bash's own parsing gives them back."""
    parts = ScriptParts("r", "j", "/f", "/r", ("printf", "%s\\0", *words), ("sbatch",))
    text = script_text(parts)
    start = text.index("    exec printf")
    command = text[start : text.index("\n) &", start)]
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)

    assert words == done.stdout.decode().split("\0")[:-1]
