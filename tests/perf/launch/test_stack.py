from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.launch import stack
from perf.launch.stack import StackError, candidates, ended, find_stack, named_python, read_answer

FACTS = {"python": "3.11.7", "torch": "2.14.1", "torchvision": "0.29.1", "gpus": []}

NO_TORCH = "echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 1"
NO_TORCHVISION = "echo \"ModuleNotFoundError: No module named 'torchvision'\" >&2; exit 1"


def answer(**changes):
    """Return the shell line of a probe that answers; keywords replace facts."""
    return f"echo '{json.dumps({**FACTS, **changes})}'"


@pytest.fixture
def program(tmp_path):
    """Return a function that makes a program of a few shell lines, and gives its path."""

    def make(place, lines):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def find(tmp_path, monkeypatch, program):
    """Return `find_stack` with folders below tmp_path as PATH; the driver's own Python has no torch."""
    monkeypatch.setattr(sys, "executable", program("own/python", NO_TORCH))

    def find(option, *folders, **keywords):
        search_path = os.pathsep.join(str(tmp_path / folder) for folder in folders)
        return find_stack(option, search_path, {"PATH": os.environ["PATH"]}, **keywords)

    return find


def test_the_first_python_on_the_path_that_imports_torch_is_taken(find, program):
    """One without torch is passed over, and noted; one further down is not asked."""
    first = program("a/python3", NO_TORCH)
    second = program("b/python3", f"echo banner of a module; {answer()}")
    program("c/python3", "touch asked")
    found = find(None, "a", "b", "c")
    assert (second, "torch 2.14.1") == (found.python, found.name)
    assert "2.14.1" == found.facts["torch"]
    (reason,) = found.facts["passed_over"]
    assert reason.startswith(f"{first}: has no torch")


def test_the_drivers_own_python_is_the_last_resort(find, program):
    """With no torch on PATH the driver's own Python is measured, if it has one."""
    program("a/python3", NO_TORCH)
    own = program("own/python", answer(torch="2.6.0"))
    assert (own, "2.6.0") == (find(None, "a").python, find(None, "a").facts["torch"])


def test_without_any_torch_the_error_says_what_was_tried_and_how_to_name_one(find, program):
    """Each candidate stands in the error with its reason."""
    first = program("a/python3", NO_TORCH)
    second = program("b/python3", "exit 7")
    with pytest.raises(StackError) as caught:
        find(None, "a", "b")
    message = str(caught.value)
    assert f"{first}: has no torch" in message
    assert f"{second}: its probe ended with exit status 7" in message
    assert sys.executable in message
    assert "--stack /path/to/python" in message


def test_a_torch_without_torchvision_is_an_error_and_not_passed_over(find, program):
    """The next Python down the path would be another stack than the one that the caller loaded."""
    first = program("a/python3", NO_TORCHVISION)
    program("b/python3", answer())
    with pytest.raises(StackError, match="has no torchvision") as caught:
        find(None, "a", "b")
    assert first in str(caught.value)
    assert "| ModuleNotFoundError: No module named 'torchvision'" in str(caught.value)


def test_a_named_stack_is_taken_by_path_and_by_name(find, program):
    """--stack takes a path or a program on PATH, and nothing else is asked then."""
    program("a/python3", answer(torch="1.0"))
    named = program("b/python3.9", answer(torch="2.6.0"))
    assert named == find(named, "a").python
    assert named == find("python3.9", "a", "b").python


def test_a_named_stack_without_torch_is_an_error(find, program):
    """There is no second choice for who named one."""
    program("a/python3", answer())
    named = program("b/python", NO_TORCH)
    with pytest.raises(StackError, match="has no torch"):
        find(named, "a")


def test_a_candidate_that_gives_no_answer_is_ended_with_its_children(find, program, tmp_path):
    """A shim that hangs is given up at the limit, though a child of it holds the pipes."""
    program("a/python3", f"sleep 600 & echo $! > {tmp_path}/child; wait")
    program("b/python3", answer())
    found = find(None, "a", "b", timeout=2.0)
    assert "gave no answer within 2 s" in found.facts["passed_over"][0]
    child = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    assert not child.exists() or ") Z " in child.read_text()


def test_the_real_probe_is_asked_in_the_repository():
    """The running Python's own torch answers through perf.training.probe."""
    pytest.importorskip("torch", reason="this Python has no torch to ask")
    found = find_stack(sys.executable, "", dict(os.environ))
    assert found.facts["python"].startswith("3.")
    assert found.name == f"torch {found.facts['torch']}"
    assert found.facts["line_profiler"] is (importlib.util.find_spec("line_profiler") is not None)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("/nowhere/python", "there is no file /nowhere/python"),
        ("/usr", "it is a folder: did you mean its bin/python"),
        ("/etc/passwd", "can't be executed by you"),
        ("no-such-python", "no program of that name on PATH"),
        ("evil\x1b[2J", r"evil\\x1b\[2J: no program"),
    ],
)
def test_a_stack_that_is_no_program_is_refused_with_its_name(option, said):
    """The error says what is wrong with the named path, in harmless characters."""
    with pytest.raises(StackError, match=said):
        named_python(option, "/usr/bin:/bin")


def test_the_last_link_of_a_virtual_environment_is_kept(tmp_path):
    """A venv's python is a link; resolving it would measure the Python below."""
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    assert str(link) == named_python(str(link), "")


def test_each_python_is_a_candidate_once_and_links_to_one_file_are_not_the_same(tmp_path, program):
    """A folder under two names counts once; two environments of one Python count twice."""
    real = program("usr/bin/python3", "exit 1")
    (tmp_path / "bin").symlink_to(tmp_path / "usr/bin")
    for venv in ("v1", "v2"):
        (tmp_path / venv).mkdir()
        (tmp_path / venv / "python3").symlink_to(real)
    folders = ["usr/bin", "bin", "v1", "v2", "v1", "none"]
    path = os.pathsep.join(["", ".", *(str(tmp_path / folder) for folder in folders)])
    assert [real, str(tmp_path / "v1/python3"), str(tmp_path / "v2/python3")] == candidates(path)


def test_a_program_that_is_not_executable_is_no_candidate(program, tmp_path):
    """A python3 without execute permission is not on anybody's PATH."""
    Path(program("a/python3", "exit 0")).chmod(0o644)
    assert [] == candidates(str(tmp_path / "a"))


@pytest.mark.parametrize("package", ["torch", "torchvision"])
def test_a_probe_that_gives_null_for_a_package_lacks_it(package):
    """A probe may also say itself that a package is missing."""
    probed = read_answer(json.dumps({**FACTS, package: None}), "", 0)
    assert (None, f"has no {package}") == (probed.facts, probed.problem.split(";")[0])


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", "printed no facts"),
        ("[1]\n", "printed no facts"),
        ('{"python": ', "printed no facts"),
        (json.dumps({**FACTS, "gpus": 4}), "gave gpus = 4, expected list"),
    ],
)
def test_an_answer_that_is_none_says_so(output, said):
    """Output without the facts, or with facts of the wrong kind, is a problem and no stack."""
    probed = read_answer(output, "", 0)
    assert probed.facts is None
    assert said in probed.problem


@given(st.text(), st.text(), st.integers(-64, 255))
def test_any_output_of_a_probe_is_read_without_error(output, errors, status):
    """Whatever a candidate prints, it is facts or a problem, never both."""
    probed = read_answer(output, errors, status)
    assert (probed.facts is None) == bool(probed.problem)


def test_a_killed_probe_is_named_with_its_signal():
    """The signal's number and name are given, also where it has none."""
    assert "was killed by signal 9 (SIGKILL)" == ended(-9)
    assert "was killed by signal 63 (no name on this system)" == ended(-63)
    assert "ended with exit status 3" == ended(3)


def test_the_probe_is_the_workers():
    """The default probe is the module that the worker brings."""
    assert "perf.training.probe" == stack.PROBE
