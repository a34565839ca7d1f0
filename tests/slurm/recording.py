"""Real outputs of Slurm's commands, written as fixtures for the tests that have no Slurm.

`pytest tests/slurm --record` writes them anew into tests/perf/cluster/recorded/.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path

RECORDED = Path(__file__).resolve().parents[1] / "perf" / "cluster" / "recorded"

Answer = tuple[list[str], "subprocess.CompletedProcess[str]"]


def text_of(title: str, version: str, answers: Iterable[Answer], replace: dict[str, str]) -> str:
    """Return a recorded file: comments, then each command with its exit status, standard output and error.

    Parameters
    ----------
    title
        One sentence: what state the job was in.
    version
        What `sbatch --version` says.
    answers
        Each command with what came of it.
    replace
        Words of this machine, and what stands for them in the file.
    """
    lines = [
        f"# {title}",
        f"# Recorded from {version} (tests/slurm, two nodes on one machine). Whole outputs.",
    ]
    for command, done in answers:
        lines += ["", f"$ {shlex.join(command)}", f"[exit {done.returncode}]"]
        for stream, text in (("stdout", done.stdout), ("stderr", done.stderr)):
            if text:
                lines += [f"[{stream}]", text.removesuffix("\n")]
    text = "\n".join(lines) + "\n"
    for word, stand_in in replace.items():
        text = text.replace(word, stand_in)
    return text


def read(text: str) -> list[Answer]:
    """Return what a recorded file holds: each command with its exit status, standard output and error."""
    answers: list[Answer] = []
    stream = None
    for line in text.splitlines():
        if line.startswith("$ "):
            answers.append((shlex.split(line[2:]), subprocess.CompletedProcess([], 0, "", "")))
            stream = None
        elif line.startswith("[exit ") and answers and stream is None:
            answers[-1][1].returncode = int(line[len("[exit ") : -1])
        elif line in {"[stdout]", "[stderr]"} and answers:
            stream = line[1:-1]
        elif stream is not None:
            setattr(answers[-1][1], stream, getattr(answers[-1][1], stream) + line + "\n")
    for index, (command, done) in enumerate(answers):
        done.args = command
        # The empty line before the next command belongs to neither of them.
        last = "stderr" if done.stderr else "stdout"
        if index + 1 < len(answers):
            setattr(done, last, getattr(done, last).removesuffix("\n"))
    return answers


def file_for(name: str, version: str) -> Path:
    """Return where a recording lies: recorded/slurm-22.05.8/timeout.txt."""
    return RECORDED / version.replace("slurm-wlm", "slurm").replace(" ", "-") / f"{name}.txt"
