from __future__ import annotations

import io
import json
import sys

import pytest

from perf.cluster.__main__ import main

SOUND = "#!/bin/bash\n#SBATCH --ntasks=1\npython train.py\n"
TRAP = "#!/bin/bash\n#SBATCH --ntasks=2\npython train.py\n"


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "job.sh"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def test_sound_script_ends_with_0(script, capsys):
    """Without findings the status is 0, and one line says so."""
    assert 0 == main(["lint", script(SOUND)])
    assert "no known trap found\n" == capsys.readouterr().out


def test_trap_ends_with_1(script, capsys):
    """With findings the status is 1, and each has its place, its name, why, and what to write."""
    path = script(TRAP)
    assert 1 == main(["lint", path])
    first, why, remedy = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{path}:3: tasks-never-run: the job has 2 tasks")
    assert why.startswith("    Why: ")
    assert remedy.startswith("    Write: ")


def test_json_holds_every_finding(script, capsys):
    """--json prints findings with their fields, and a schema number."""
    path = script(TRAP)
    assert 1 == main(["lint", "--json", path])
    told = json.loads(capsys.readouterr().out)
    assert (1, [path]) == (told["schema"], told["scripts"])
    (finding,) = told["findings"]
    assert (path, 3, "tasks-never-run") == (finding["script"], finding["line"], finding["name"])
    assert {"script", "line", "name", "what", "why", "remedy"} == finding.keys()


def test_json_without_findings(script, capsys):
    """--json prints an empty list where nothing was found."""
    assert 0 == main(["lint", "--json", script(SOUND)])
    assert [] == json.loads(capsys.readouterr().out)["findings"]


def test_standard_input(monkeypatch, capsys):
    """A dash stands for standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TRAP.encode())))
    assert 1 == main(["lint", "-"])
    assert capsys.readouterr().out.startswith("-:3: tasks-never-run")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"\x7fELF\0\0", "holds zero bytes"), (b"#" * 1_000_001, "is larger than")],
)
def test_what_is_no_script_is_refused(script, capsys, content, sentence):
    """A program or a huge file is an error, not a clean script."""
    assert 2 == main(["lint", script(content)])
    assert sentence in capsys.readouterr().err


def test_missing_script_is_an_error(tmp_path, capsys):
    """A script that can't be read ends with 2, and no finding is printed."""
    assert 2 == main(["lint", str(tmp_path / "missing.sh")])
    told = capsys.readouterr()
    assert ("", True) == (told.out, "missing.sh can't be read: No such file or directory" in told.err)


def test_script_can_not_write_to_the_terminal(script, capsys):
    """Control characters of a script are shown as escapes, and start no line of their own."""
    hostile = "#SBATCH --ntasks=2 --cpus-per-task='\x1b[2J\n'\nsrun python train.py\n"
    main(["lint", script(hostile)])
    assert "\x1b" not in capsys.readouterr().out
