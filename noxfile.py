"""stackproof's buttons. `nox -s NAME` presses one; what follows after `--` goes to the command under it.

Try it:      nox -s smoke
On GPUs:     nox -s gpu_perf -- --stack=/path/to/the/stack/under/test/bin/python
On this:     nox -s tests lint

STACKPROOF_TORCH       what `env` installs as torch (default: the versions that CI uses)
STACKPROOF_WHEELHOUSE  a folder of wheels: install from it and from nowhere else
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # before anything that an older Python could stumble over
    sys.exit(
        "stackproof: this nox runs under Python {}.{}, and 3.11 or newer is needed. Install nox with a newer Python, "
        "for example in a venv: python3.11 -m venv .venv && .venv/bin/pip install nox".format(
            *sys.version_info[:2]
        )
    )

import contextlib
import hashlib
import os
import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Dict, List, Optional, Sequence

import nox
from nox.command import CommandFailed

if TYPE_CHECKING:
    from types import FrameType

# `requires`, which lets sessions share an environment, came with this release.
nox.needs_version = ">=2025.2.9"
nox.options.sessions = []  # `nox` alone lists the buttons and presses none
nox.options.error_on_missing_interpreters = True

ROOT = Path(__file__).resolve().parent
DRIVER_CONSTRAINTS = ROOT / "constraints.txt"
DEV_CONSTRAINTS = ROOT / "constraints-dev.txt"
TORCH = "torch==2.14.1 torchvision==0.29.1"
STAMP = "stackproof-stamp"

# The PATH that the caller had. Where a session has an environment, nox puts that one first on PATH, and the search
# for the stack under test (the first python3 with torch) must not find it.
CALLER_PATH = os.environ.get("PATH", os.defpath)

# nox gives a child 0.3 s after Ctrl-C and 0.2 s after SIGTERM. The driver needs longer, to end its launches and to
# cancel its jobs: 30 s is the time that a busy scheduler's scancel may take, 10 s that of a rank in native code.
INTERRUPT_SECONDS = 30
TERMINATE_SECONDS = 10

WORKER = ("models", "perf/training", "perf/contract", "perf/ending.py", "perf/__init__.py")

# Which Python `env` and `driver` have prepared, by session name. With --no-venv it is the one that runs nox.
prepared: Dict[str, str] = {}


# --- the buttons --------------------------------------------------------------------------------------------------


@nox.session(default=False, venv_backend="none", requires=["env"])
def smoke(session: nox.Session) -> None:
    """Run the whole suite in small on the CPU, report included. No GPU, no cluster, some minutes.

    Two groups at a time, each rank with one thread: a neighbour on another core changes such a step by 3 %, and smoke
    is there for facts. `-- -n 0` runs one after the other. Launches are forks, which train the same, bit for bit;
    `-- --launcher=fresh` starts each anew, as other profiles do on a CPU, and takes more than twice as long.
    """
    python = python_of(session, "env")
    suite = [
        python,
        "-m",
        "pytest",
        *targets("perf", session.posargs),
        "--profile",
        "smoke",
        # One word: pytest takes the value of an option that it does not know yet for a path, and loads conftests there.
        f"--stack={python}",
        "--launcher=fork",
        # The node's lock would make the two wait for each other.
        *(["--numprocesses=2", "--share-node"] if len(os.sched_getaffinity(0)) > 1 else []),
    ]
    finish(session, *suite, *session.posargs)


@nox.session(default=False, venv_backend="none", requires=["driver"])
def gpu_perf(session: nox.Session) -> None:
    """Run the suite on GPUs: here, or as jobs with `-- --site=FILE`. `--stack=PYTHON` says what is under test."""
    # -E -s: a module's PYTHONPATH, or packages in the user's home, can't replace the driver's own.
    isolated = [python_of(session, "driver"), "-E", "-s"]
    if any(word == "--site" or word.startswith("--site=") for word in session.posargs):
        # With --here it runs in the allocation that one holds.
        suite = ["-m", "perf.cluster", "run"]
    else:
        suite = ["-m", "pytest", *targets("perf", session.posargs), "--profile", "quick", "--device", "cuda"]
    nothing = (
        "nothing was judged. Where there is no GPU, `nox -s smoke` runs the suite on the CPU; where there is a "
        "scheduler, `nox -s gpu_perf -- --site=FILE` submits it (docs/sites.md)"
    )
    finish(session, *isolated, *suite, *session.posargs, hints={12: nothing})


@nox.session(default=False, venv_backend="none", requires=["driver"])
def calibrate(session: nox.Session) -> None:
    """Write what this system is known to do: A/A launches, their spread, references. `-- --help` says more.

    `-- RUN` takes the launches of a stored run; `-- -- --stack=PYTHON` hands what follows the second dashes to pytest.
    """
    python = python_of(session, "driver")
    hints = {3: "nothing was written; `-- --yes` writes what was shown"}
    finish(session, python, "-E", "-s", "-m", "perf.calibration", *session.posargs, hints=hints)


@nox.session(default=False, venv_backend="none", requires=["driver"])
def compare(session: nox.Session) -> None:
    """Compare two stacks, launched in turn: `-- OLD NEW [--margin 2%] [--budget 20min] [-k WORDS]`.

    Each is the path of a Python, or with `--site=FILE` a name in it. `-- --bisect GOOD STACK STACK` finds the first
    bad one of several in order. Torch is never installed; docs/compare.md says more.
    """
    python = python_of(session, "driver")
    hints = {
        10: "too noisy, or too few launches, for the question: a wider --margin, more --launches, or a quieter node",
        12: "nothing was judged; the reasons stand with the skipped tests (`-- OLD NEW -rs`)",
    }
    finish(session, python, "-E", "-s", "-m", "perf.comparing", *session.posargs, hints=hints)


@nox.session(default=False, venv_backend="none", requires=["driver"])
def data(session: nox.Session) -> None:
    """Stage real data, on a machine with network. `-- --help` says what and where."""
    finish(session, python_of(session, "driver"), "-E", "-s", "-m", "perf.data", *session.posargs)


@nox.session(default=False, venv_backend="none", requires=["driver"])
def report(session: nox.Session) -> None:
    """Draw a run's report again, or several runs beside each other: `-- RUN [RUN ...] [-o FILE]`."""
    finish(session, python_of(session, "driver"), "-E", "-s", "-m", "perf.report", "html", *session.posargs)


@nox.session(default=False, venv_backend="none", requires=["driver"])
def wheelhouse(session: nox.Session) -> None:
    """Download the driver's wheels into wheelhouse/, for a site without network.

    There: ``python3 -m venv .venv``, ``.venv/bin/pip install --no-index --find-links wheelhouse nox``, and then
    ``STACKPROOF_WHEELHOUSE=wheelhouse .venv/bin/nox -s gpu_perf``. For another Python or processor than this one's,
    say which: ``nox -s wheelhouse -- --only-binary=:all: --python-version 3.12 --platform manylinux2014_aarch64``.
    """
    download = [python_of(session, "driver"), "-m", "pip", "download", "-d", str(ROOT / "wheelhouse")]
    finish(session, *download, "--require-hashes", "-r", str(DRIVER_CONSTRAINTS), *session.posargs)


@nox.session(default=False, venv_backend="none", requires=["env"])
def selfcheck(session: nox.Session) -> None:
    """Plant every fault that this machine carries, and see it caught and named. `-- --device cuda` for GPUs'."""
    python = python_of(session, "env")
    stack = [] if any(word.startswith("--stack") for word in session.posargs) else [f"--stack={python}"]
    finish(session, python, "-m", "perf.faults.selfcheck", *stack, *session.posargs)


@nox.session(default=False, venv_backend="none", requires=["env"])
def tests(session: nox.Session) -> None:
    """Run the suite's own tests, some at a time where there are cores for it; `-- -n 0` runs one after the other."""
    # Each may start processes with torch in them, of 1 GB and more.
    many = min(4, len(os.sched_getaffinity(0)))
    side_by_side = [f"--numprocesses={many}"] if many > 1 and not session.posargs else []
    suite = [python_of(session, "env"), "-m", "pytest", *side_by_side, *targets("tests", session.posargs)]
    finish(session, *suite, *session.posargs)


@nox.session(default=False, venv_backend="none", requires=["env"])
def slurm_tests(session: nox.Session) -> None:
    """Run the tests that need a real Slurm. They start one of two nodes here, and stop it. Debian's packages, root."""
    python = python_of(session, "env")
    session.run(python, "tests/slurm/packages.py", env={"PATH": CALLER_PATH}, external=True)
    suite = [python, "-m", "pytest", *targets("tests/slurm", session.posargs)]
    finish(session, *suite, *session.posargs)


@nox.session(default=False, venv_backend="none", requires=["env"])
def lint(session: nox.Session) -> None:
    """Check format, style, types and who imports whom. Runs every check, then says which failed."""
    python = Path(python_of(session, "env"))
    scripts = python.parent
    checks = [
        [str(python), "-m", "ruff", "format", "--check"],
        [str(python), "-m", "ruff", "check"],
        [str(python), "-m", "mypy"],
        # Again for the worker: mypy 2.x goes down to 3.10. The next check holds the floor of 3.9.
        [str(python), "-m", "mypy", "--python-version", "3.10", *WORKER],
        [str(scripts / "vermin"), "--target=3.9-", "--violations", "--no-tips", *WORKER],
        [str(scripts / "vermin"), "--target=3.8-", "--violations", "--no-tips", "noxfile.py"],
        [str(scripts / "lint-imports"), "--no-logo"],
    ]
    failed = []
    for check in checks:
        try:
            session.run(*check, external=True)
        except CommandFailed:
            failed.append(shlex.join(check))
    if failed:
        session.error("failed: " + "; ".join(failed))


# --- the environments ---------------------------------------------------------------------------------------------


@nox.session(default=False, reuse_venv=True)
def env(session: nox.Session) -> None:
    """Make the one environment of smoke, tests and lint: .nox/env, with pip's torch."""
    torch = os.environ.get("STACKPROOF_TORCH", "").strip() or TORCH
    prepared["env"] = fill(session, DEV_CONSTRAINTS, shlex.split(torch))


@nox.session(default=False, reuse_venv=True)
def driver(session: nox.Session) -> None:
    """Make the driver's own environment: .nox/driver, without torch. The stack brings that."""
    prepared["driver"] = fill(session, DRIVER_CONSTRAINTS, [])


def fill(session: nox.Session, constraints: Path, unhashed: Sequence[str]) -> str:
    """Install what is missing into a session's environment, and return its Python.

    Two pip calls, since one hashed line makes pip demand a hash for every line. An environment that was filled from
    the same constraints and the same requirements is left alone: the stamp file says so, and takes no time.

    Parameters
    ----------
    session
        Its environment is filled. With ``--no-venv`` there is none, and nothing is installed.
    constraints
        Requirements file in which every line has its hash.
    unhashed
        Requirements (and pip options) that are installed afterwards, without hashes.
    """
    if session.venv_backend == "none":
        session.log(
            f"--no-venv: nothing is installed; {sys.executable} must hold what {constraints.name} lists"
        )
        return sys.executable
    # nox has it relative to the noxfile's folder. Absolute, but not resolved: bin/python is a link out of the venv.
    home = Path(session.virtualenv.location).absolute()
    python = str(home / "bin" / "python")
    stamp = home / STAMP
    wanted = fingerprint(constraints.read_bytes(), unhashed)
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        session.log(f"{home} is up to date")
        return python
    if session.run_install(python, "-c", "pass", silent=True, log=False) is None:
        # run_install does nothing, and says so by None, under -R and --no-install. So would session.install.
        session.log(
            f"{home} is left as it is, though {constraints.name} or the torch that is asked for has changed"
        )
        return python
    sources = wheel_sources(session)
    stamp.unlink(missing_ok=True)  # an installation that is interrupted must not pass for a finished one
    session.install("--require-hashes", "-r", str(constraints), *sources)
    if unhashed:
        session.log("torch is several GB: this takes some minutes the first time")
        session.install(*unhashed, *sources)
    partial = stamp.with_name(STAMP + ".part")
    partial.write_text(wanted, encoding="utf-8")
    partial.replace(stamp)
    return python


def fingerprint(constraints: bytes, unhashed: Sequence[str]) -> str:
    """Return what identifies the contents of an environment: a hash over all that was asked for."""
    return hashlib.sha256(b"\0".join([constraints, *(word.encode() for word in unhashed)])).hexdigest() + "\n"


def wheel_sources(session: nox.Session) -> List[str]:
    """Return pip's options for STACKPROOF_WHEELHOUSE, and none where it is unset."""
    named = os.environ.get("STACKPROOF_WHEELHOUSE")
    if not named:
        return []
    folder = Path(session.invoked_from, named).absolute()
    if not folder.is_dir():
        session.error(
            f"STACKPROOF_WHEELHOUSE names {folder}, which is not a folder. "
            "Make one with `nox -s wheelhouse` on a machine with network and copy it here, or unset the variable."
        )
    return ["--no-index", "--find-links", str(folder)]


def python_of(session: nox.Session, environment: str) -> str:
    """Return the Python of `env` or `driver`, which must have been prepared by now or in an earlier run."""
    if environment in prepared:
        return prepared[environment]
    # Reached with --no-dependencies (which nox's --parallel uses for its children): an earlier run made it.
    python = session.cache_dir.parent.absolute() / environment / "bin" / "python"
    if not python.exists():
        session.error(
            f"{python} is missing. Make it with `nox -s {environment}`, or leave out --no-dependencies."
        )
    return str(python)


# --- running ------------------------------------------------------------------------------------------------------


def finish(session: nox.Session, *command: str, hints: Optional[Dict[int, str]] = None) -> None:
    """Run a session's last command, and end nox with the command's own exit status where that is not 0.

    nox turns every failure into 1, and the suite's statuses say more than that (10 inconclusive, 11 invalid,
    12 nothing judged). Sessions that were to follow are not run. A death by signal n becomes 128 + n, as in a shell.
    `hints` holds a sentence for a status that needs one, beyond what the command has said.
    """
    signal.signal(signal.SIGTERM, forward_termination)
    try:
        session.run(
            *command,
            env={"PATH": CALLER_PATH},
            external=True,
            interrupt_timeout=INTERRUPT_SECONDS,
            terminate_timeout=TERMINATE_SECONDS,
        )
    except CommandFailed as failure:
        status = exit_status(failure.return_code)
        if hints and status in hints:
            session.warn(hints[status])
        raise SystemExit(status) from failure


def exit_status(return_code: Optional[int]) -> int:
    """Return the exit status for what became of a command: None could not start, negative died by a signal."""
    if return_code is None:
        return 1
    return return_code if return_code >= 0 else 128 - return_code


def targets(folder: str, arguments: Sequence[str]) -> List[str]:
    """Return what pytest is to collect besides its arguments: the folder, unless they name something in it."""
    for previous, argument in zip(["", *arguments], arguments):
        if argument.startswith(folder + "/") and not previous.startswith("--"):
            return []
    return [folder]


def forward_termination(_number: int, _frame: Optional[FrameType]) -> None:
    """Treat SIGTERM as Ctrl-C. nox itself would die of it and leave its child running, which a cancelled CI job does.

    The child gets SIGINT, which pytest answers by tearing down its fixtures and so its launches. Linux only
    (/proc); elsewhere the child gets nox's SIGTERM after INTERRUPT_SECONDS.
    """
    try:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    except OSError:
        children = []
    for child in children:
        with contextlib.suppress(ProcessLookupError):  # it ended by itself just now
            os.kill(int(child), signal.SIGINT)
    raise KeyboardInterrupt
