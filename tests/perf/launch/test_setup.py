"""The shell in which a stack's setup lines run."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.launch.place import NODE
from perf.launch.setup import SETUP_FAILED, setup_shell

SHOW = [sys.executable, "-c", "import os, sys; print(os.environ.get('X'), sys.argv[1:])"]


def run(setup, *words, node="0", **environ):
    """Run a shell with the words behind it."""
    return subprocess.run(
        [*setup_shell(setup, node), *SHOW, *words],
        env={"PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_setup_needs_no_shell():
    """A stack that is only a Python is started as it is."""
    assert [] == setup_shell([], "0")


def test_setup_lines_run_in_order_and_reach_the_worker():
    """Later lines see what earlier ones set, functions and several commands in one line too."""
    done = run(['f() { X="$1 b"; }', "f a\nexport X", "cd /tmp && true"], "a b", "$(x)")

    assert "a b ['a b', '$(x)']" == done.stdout.strip()


@pytest.mark.parametrize("line", ["false", "no_such_command_here", "(exit 3)", "cd /nowhere"])
def test_a_line_that_fails_ends_the_launch_and_is_named(line):
    """Nothing is measured in half a stack."""
    done = run(["true", line])

    assert SETUP_FAILED == done.returncode
    assert "line 2 of the stack's setup failed" in done.stderr
    assert "" == done.stdout


def test_the_callers_shell_start_up_is_not_read(tmp_path):
    """What a person has in .bashrc is not part of the stack."""
    (tmp_path / ".bashrc").write_text("export X=mine\n")
    (tmp_path / ".profile").write_text("export X=mine\n")

    assert "None []" == run(["true"], HOME=str(tmp_path)).stdout.strip()


def test_a_tasks_node_stands_in_its_words():
    """Each task of a step puts its own node's number where it is asked for."""
    done = run([], f"--rank={NODE}", f"a/{NODE}/b", node="$NODE_ID", NODE_ID="1")

    assert "None ['--rank=1', 'a/1/b']" == done.stdout.strip()


@settings(max_examples=15)
@given(
    st.lists(
        st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=15),
        max_size=4,
    )
)
def test_any_words_pass_through_the_shell_as_they_are(words):
    """Quotes, dollars, line feeds and leading dashes of the worker's words are nothing to the shell."""
    done = subprocess.run(
        [*setup_shell(["true"], "0"), "printf", "%s\\0", "x", *words], capture_output=True, check=True
    )

    assert ["x", *words] == done.stdout.decode().split("\0")[:-1]
