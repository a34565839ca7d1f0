"""The stack under test: which Python it is, and what its torch says of itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perf.launch.environment import stack_environment
from perf.launch.setup import setup_shell
from perf.launch.text import harmless, last_lines
from perf.machine import REPOSITORY

PROBE = "perf.training.probe"
PROBE_SECONDS = 180.0
"""The first import of torch reads thousands of files; on a busy parallel file system that has taken minutes."""

HOW_TO_NAME = (
    "Name the stack: `--stack /path/to/python` (a Python that imports torch and torchvision), or load the module that "
    "puts it first on PATH."
)
REQUIRED = {"python": str, "torch": str, "torchvision": str, "gpus": list}


class StackError(Exception):
    """No usable stack. The message says what was tried and how to name one."""


@dataclass(frozen=True)
class Stack:
    """A Python with its torch. `python` is what is run; `facts` is what its probe said.

    `setup` (shell commands) and `wrapper` (words) are what a site file says has to come before it, `environment` the
    variables of its processes, `step_options` words for whatever starts them on a node.
    """

    name: str
    python: str
    facts: dict[str, Any] = field(default_factory=dict)
    setup: tuple[str, ...] = ()
    wrapper: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    step_options: tuple[str, ...] = ()

    def before(self, node_number: str = "0") -> list[str]:
        """Return the words before the Python: a fresh shell that runs the setup lines, and the wrapper."""
        return [*setup_shell(self.setup, node_number), *self.wrapper]


@dataclass(frozen=True)
class Probed:
    """The answer of one candidate: facts, or why there are none. `has_torch` says whether torch at least is there."""

    facts: dict[str, Any] | None
    problem: str = ""
    has_torch: bool = False


def find_stack(
    option: str | None,
    search_path: str,
    environ: Mapping[str, str],
    *,
    timeout: float = PROBE_SECONDS,
    probe_module: str = PROBE,
    name: str = "--stack",
) -> Stack:
    """Find the Python to measure and ask it what it is. Starts each candidate once.

    Parameters
    ----------
    option
        ``--stack``: a path, or a name on `search_path`. It alone is tried then.
    search_path
        The caller's PATH. The first ``python3`` on it that imports torch is taken, else the driver's own Python.
    environ
        The caller's environment.
    timeout
        Seconds that one candidate may take.
    probe_module
        What is run to ask.
    name
        What the option is called, for messages.

    Raises
    ------
    StackError
        If the named Python is none or lacks torch or torchvision; if the first Python with a torch lacks torchvision
        (a Python further down would be another stack than the caller's); if no candidate imports torch.
    """
    if option is not None:
        python = named_python(option, search_path, name)
        probed = probe(python, environ, timeout, probe_module)
        if probed.facts is None:
            raise StackError(f"{name} {harmless(option)}: {probed.problem}\n{HOW_TO_NAME}")
        return _stack(python, probed.facts, [])
    passed_over: list[str] = []
    on_path = candidates(search_path)
    own = os.path.abspath(sys.executable)
    last = [] if any(_same_python(python, own) for python in on_path) else [own]
    for python in on_path + last:
        probed = probe(python, environ, timeout, probe_module)
        if probed.facts is not None:
            return _stack(python, probed.facts, passed_over)
        if probed.has_torch:
            raise StackError(
                f"{harmless(python)} has a torch, but can't be measured: {probed.problem}\n{HOW_TO_NAME}"
            )
        passed_over.append(f"{harmless(python)}: {probed.problem}")
    tried = "\n".join(f"  {line}" for reason in passed_over for line in reason.splitlines())
    raise StackError(
        f"no Python with torch was found. Tried every python3 on PATH, then this Python:\n{tried}\n{HOW_TO_NAME}"
    )


def named_python(option: str, search_path: str, name: str = "--stack") -> str:
    """Return the absolute path of the Python that the user named. Its last link is kept: a venv is one.

    Raises
    ------
    StackError
        If there is no such program, or it can't be executed.
    """
    wanted = os.path.expanduser(option)
    if os.sep in wanted:
        python = os.path.abspath(wanted)
        if not os.path.isfile(python):
            folder = os.path.isdir(python)
            hint = "; it is a folder: did you mean its bin/python?" if folder else ""
            raise StackError(
                f"{name} {harmless(option)}: there is no file {harmless(python)}{hint}\n{HOW_TO_NAME}"
            )
        if not os.access(python, os.X_OK):
            raise StackError(
                f"{name} {harmless(option)}: {harmless(python)} can't be executed by you\n{HOW_TO_NAME}"
            )
        return python
    found = shutil.which(wanted, path=search_path)
    if found is None:
        raise StackError(
            f"{name} {harmless(option)}: no program of that name on PATH ({harmless(search_path)})\n{HOW_TO_NAME}"
        )
    return os.path.abspath(found)


def candidates(search_path: str, name: str = "python3") -> list[str]:
    """Return every `name` on a search path, in its order, each once.

    Folders are resolved (/bin may be /usr/bin), the program is not: all virtual environments of one Python link to
    the same file and differ in what they hold.
    """

    def found() -> Iterator[tuple[str, str]]:
        for folder in search_path.split(os.pathsep):
            path = os.path.join(folder, name)
            if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):
                yield os.path.realpath(folder), path

    first: dict[str, str] = {}
    for folder, path in found():
        first.setdefault(folder, path)
    return list(first.values())


def probe(python: str, environ: Mapping[str, str], timeout: float, module: str = PROBE) -> Probed:
    """Run the probe in one Python and read its answer. The process is killed with its children at the limit."""
    return probe_with([python, "-m", module], stack_environment(environ), timeout)


def probe_with(words: Sequence[str], environment: Mapping[str, str], timeout: float) -> Probed:
    """Run a probe's whole command, in just this environment, and read its answer."""
    try:
        process = subprocess.Popen(
            list(words),
            cwd=REPOSITORY,
            # As launches have it: the card that the probe counts as 1 is the one that a rank counts as 1.
            env={**environment, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="backslashreplace",
            start_new_session=True,
        )
    except OSError as error:
        return Probed(None, f"can't be started ({error.strerror})")
    try:
        output, errors = process.communicate(timeout=timeout)
    except BaseException as error:
        # A shell-script shim may have children that hold the pipes open.
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        return Probed(None, f"gave no answer within {timeout:g} s")
    return read_answer(output, errors, process.returncode)


def read_answer(output: str, errors: str, status: int) -> Probed:
    """Read what a probe printed: one line of JSON, perhaps after a module's banner. Pure."""
    facts = _last_object(output)
    tail = "\n".join(f"    | {line}" for line in last_lines(errors if errors.strip() else output, count=5))
    said = f"; its last lines:\n{tail}" if tail else ""
    if status != 0 or facts is None:
        for package in ("torch", "torchvision"):
            if f"No module named '{package}'" in errors:
                return Probed(None, f"has no {package}{said}", has_torch=package != "torch")
        how = "printed no facts" if status == 0 else ended(status)
        return Probed(None, f"its probe {how}{said}")
    for key, kind in REQUIRED.items():
        if not isinstance(facts.get(key), kind):
            has_torch = isinstance(facts.get("torch"), str)
            if key in ("torch", "torchvision") and facts.get(key) is None:
                return Probed(None, f"has no {key}{said}", has_torch)
            return Probed(
                None, f"its probe gave {key} = {facts.get(key)!r:.60}, expected {kind.__name__}", has_torch
            )
    return Probed(facts, has_torch=True)


def ended(status: int) -> str:
    """Say how a process ended, given what ``subprocess`` calls its return code."""
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = "no name on this system"
    return f"was killed by signal {-status} ({name})"


def _last_object(output: str) -> dict[str, Any] | None:
    for line in reversed(output.splitlines()):
        if line.lstrip().startswith("{"):
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                return value
    return None


def _same_python(path: str, other: str) -> bool:
    """Say whether two programs are one environment's Python: python and python3 of one folder lead to one file."""
    return (os.path.realpath(os.path.dirname(path)), os.path.realpath(path)) == (
        os.path.realpath(os.path.dirname(other)),
        os.path.realpath(other),
    )


def _stack(python: str, facts: Mapping[str, Any], passed_over: list[str]) -> Stack:
    """Name a stack after its torch; the full path is in `python`."""
    return Stack(f"torch {harmless(facts['torch'])}", python, {**facts, "passed_over": passed_over})
