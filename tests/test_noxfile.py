"""The buttons, pressed for real: nox runs the repository's noxfile in a project of a few lines."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BUTTONS = (
    "smoke",
    "gpu_perf",
    "calibrate",
    "compare",
    "data",
    "report",
    "wheelhouse",
    "selfcheck",
    "tests",
    "slurm_tests",
    "lint",
)

# The inner suite: takes the options that the buttons pass, writes down how it was called, ends as it is told to.
CONFTEST = """
import json, os, sys

def pytest_addoption(parser):
    for name in ("--profile", "--stack", "--device", "--launcher", "--end-with"):
        parser.addoption(name)
    parser.addoption("--share-node", action="store_true")
    parser.addoption("--numprocesses", type=int)

def pytest_sessionfinish(session):
    option = session.config.option
    told = {"profile": option.profile, "device": option.device,
            "stack": option.stack, "launcher": option.launcher, "path": os.environ["PATH"], "python": sys.executable,
            "at_a_time": option.numprocesses, "share_node": option.share_node,
            "isolated": [sys.flags.ignore_environment, sys.flags.no_user_site], "args": session.config.args}
    with open("told.json", "w") as file:
        json.dump(told, file)
    if option.end_with:
        session.exitstatus = int(option.end_with)
"""

DATA = """
import json, os, sys, time

if "--linger" in sys.argv:
    try:
        print("started", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        open("torn-down", "w").close()
        raise
else:
    import leaf
    print(json.dumps({"prefix": sys.prefix, "path": os.environ["PATH"], "leaf": leaf.WORD}))
"""


@pytest.fixture
def project(tmp_path):
    """A project with our noxfile, a suite of one test, and one dependency that is a wheel on disk."""
    (tmp_path / "perf").mkdir()
    (tmp_path / "tests").mkdir()
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    shutil.copy(ROOT / "noxfile.py", tmp_path)
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n", encoding="utf-8")
    (tmp_path / "perf" / "data.py").write_text(DATA, encoding="utf-8")
    for name in ("perf/test_speed.py", "tests/test_sums.py"):
        (tmp_path / name).write_text("def test_it():\n    assert 2 == 1 + 1\n", encoding="utf-8")
    pinned = f"leaf==1.0 --hash=sha256:{wheel(wheels, 'leaf')}\n"
    for name in ("constraints.txt", "constraints-dev.txt"):
        (tmp_path / name).write_text(pinned, encoding="utf-8")
    wheel(wheels, "torchlike")
    return tmp_path


def wheel(folder: Path, name: str) -> str:
    """Write the smallest wheel that pip installs, and return its SHA-256."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": "WORD = 'from the wheel'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {path: hashlib.sha256(text.encode()).digest() for path, text in files.items()}
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')},\n"
        for path, digest in digests.items()
    )
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(inner, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def surroundings(**variables: str) -> dict[str, str]:
    """Return an environment without the settings of an outer nox, pip and Python, and with these variables."""
    outer = ("NOX", "PIP_", "PYTHON", "STACKPROOF_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    quiet = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    return {**kept, **quiet, **variables}


def press(project: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run nox in the project; both streams end up in stdout."""
    return subprocess.run(
        [sys.executable, "-m", "nox", *arguments],
        cwd=project,
        env=surroundings(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def noxfile():
    """The noxfile as a module, for the functions in it that only compute."""
    spec = importlib.util.spec_from_file_location("stackproof_noxfile", ROOT / "noxfile.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class FakeSession:
    """A nox session with an environment folder that exists, in which pip only writes down what it was told."""

    venv_backend = "virtualenv"

    def __init__(self, folder: Path, *, no_install: bool = False, broken: bool = False):
        self.virtualenv = type("Environment", (), {"location": str(folder)})
        self.invoked_from = str(folder.parent)
        self.no_install, self.broken = no_install, broken
        self.installed, self.said = [], []

    def run_install(self, *command, **options):
        return None if self.no_install else ""

    def install(self, *arguments):
        self.installed.append(arguments)
        if self.broken:
            raise KeyboardInterrupt

    def log(self, sentence):
        self.said.append(sentence)

    def error(self, sentence):
        raise RuntimeError(sentence)


# --- exit statuses and command lines


def test_smoke_runs_its_profile_with_its_own_python_as_the_stack(project):
    """Smoke trains with the very Python that runs pytest, by fork, two groups at a time, and keeps the suite's 10."""
    done = press(project, "--no-venv", "-s", "smoke", "--", "--end-with", "10")
    assert 10 == done.returncode, done.stdout
    told = json.loads((project / "told.json").read_text(encoding="utf-8"))
    assert ("smoke", told["python"], ["perf"]) == (told["profile"], told["stack"], told["args"])
    assert "fork" == told["launcher"]
    several = len(os.sched_getaffinity(0)) > 1
    assert (2 if several else None, several) == (told["at_a_time"], told["share_node"])


def test_gpu_perf_with_a_site_file_goes_to_the_scheduler(project):
    """--site, in either form, hands everything to perf.cluster, isolated as ever; its exit status is kept."""
    told = "import json, sys; print(json.dumps([sys.flags.ignore_environment, sys.argv[1:]])); sys.exit(11)\n"
    (project / "perf" / "cluster.py").write_text(told)
    for site in (["--site=a b.toml"], ["--site", "a b.toml"]):
        done = press(project, "--no-venv", "-s", "gpu_perf", "--", *site, "-k", "x y")

        assert 11 == done.returncode, done.stdout
        assert json.dumps([1, ["run", *site, "-k", "x y"]]) in done.stdout


def test_gpu_perf_is_isolated_and_sees_the_callers_path(project):
    """gpu_perf ignores PYTHONPATH and the user's site, searches the caller's PATH, and keeps the suite's 12."""
    path = os.pathsep.join([str(project / "module" / "bin"), os.environ["PATH"]])
    options = ("--profile", "full", "--stack", "/modules/torch/bin/python", "--end-with", "12")
    done = press(project, "--no-venv", "-s", "gpu_perf", "--", *options, PATH=path)
    assert 12 == done.returncode, done.stdout
    told = json.loads((project / "told.json").read_text(encoding="utf-8"))
    assert "`nox -s smoke` runs the suite on the CPU" in done.stdout
    expected = {
        "profile": "full",
        "device": "cuda",
        "stack": "/modules/torch/bin/python",
        "path": path,
        "isolated": [1, 1],
    }
    assert expected.items() <= told.items()


def test_sessions_run_until_one_fails(project):
    """A session that ends with 0 does not end nox; one that fails does, with its own number."""
    (project / "tests" / "test_sums.py").write_text(
        "def test_it():\n    assert 3 == 1 + 1\n", encoding="utf-8"
    )
    done = press(project, "--no-venv", "-s", "smoke", "tests", "gpu_perf")
    assert 1 == done.returncode
    assert 1 == done.stdout.count("1 passed")
    assert 1 == done.stdout.count("1 failed")


@pytest.mark.parametrize("words", [[], ["--", "tests/test_sums.py"]])
def test_the_suites_own_tests_run_some_at_a_time(project, words):
    """Where there are cores for it; whoever names tests or options gets just these."""
    press(project, "--no-venv", "-s", "tests", *words)

    cores = min(4, len(os.sched_getaffinity(0)))
    expected = cores if cores > 1 and not words else None
    assert expected == json.loads((project / "told.json").read_text())["at_a_time"]


@pytest.mark.parametrize(("status", "ran"), [(0, True), (1, False)])
def test_slurm_tests_need_slurms_packages(project, status, ran):
    """slurm_tests fails, rather than skips, where packages are missing; it collects tests/slurm and nothing else."""
    folder = project / "tests" / "slurm"
    folder.mkdir()
    (folder / "packages.py").write_text(f"raise SystemExit({status})\n", encoding="utf-8")
    (folder / "test_cluster.py").write_text("def test_it():\n    assert 2 == 1 + 1\n", encoding="utf-8")
    done = press(project, "--no-venv", "-s", "slurm_tests")
    assert status == done.returncode
    assert ran is ("1 passed" in done.stdout)


def test_the_suites_own_tests_leave_slurm_alone(tmp_path):
    """Whoever collects tests/ collects nothing of tests/slurm, which needs packages that a laptop lacks."""
    shutil.copy(ROOT / "pytest.ini", tmp_path)
    for name in ("tests/test_sums.py", "tests/slurm/test_cluster.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("def test_it():\n    assert 2 == 1 + 1\n", encoding="utf-8")
    counts = []
    for folder in ("tests", "tests/slurm"):
        command = [sys.executable, "-m", "pytest", folder, "--collect-only", "-qq"]
        done = subprocess.run(
            command, cwd=tmp_path, env=surroundings(), capture_output=True, text=True, check=False
        )
        counts.append(done.stdout.split())
    assert [["tests/test_sums.py:", "1"], ["tests/slurm/test_cluster.py:", "1"]] == counts


def test_termination_is_passed_on(project):
    """SIGTERM to nox, as a cancelled CI job sends it, interrupts the child, which then clears up."""
    process = subprocess.Popen(
        [sys.executable, "-m", "nox", "--no-venv", "-s", "data", "--", "--linger"],
        cwd=project,
        env=surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        assert any("started" in line for line in process.stdout)
        process.send_signal(signal.SIGTERM)
        output = process.stdout.read()
    assert (project / "torn-down").exists(), output
    assert 0 != process.returncode


# --- environments


def test_driver_environment_from_wheels_on_disk(project):
    """The driver's environment is made once from hashed wheels, then left alone; another hash is refused."""
    first = press(project, "-s", "data", STACKPROOF_WHEELHOUSE="wheels")
    assert 0 == first.returncode, first.stdout
    told = json.loads(next(line for line in first.stdout.splitlines() if line.startswith("{")))
    assert (str(project / ".nox" / "driver"), "from the wheel") == (told["prefix"], told["leaf"])
    assert os.environ["PATH"] == told["path"]

    # Without STACKPROOF_WHEELHOUSE: there is no network to install from, and no need to.
    again = press(project, "-s", "wheelhouse", "--", "--no-index", "--find-links", "wheels")
    assert 0 == again.returncode, again.stdout
    assert "is up to date" in again.stdout
    assert ["leaf-1.0-py3-none-any.whl"] == [path.name for path in (project / "wheelhouse").iterdir()]

    (project / "constraints.txt").write_text(
        "torchlike==1.0 --hash=sha256:" + "0" * 64 + "\n", encoding="utf-8"
    )
    refused = press(project, "-s", "driver", STACKPROOF_WHEELHOUSE="wheels")
    assert 1 == refused.returncode
    assert "DO NOT MATCH THE HASHES" in refused.stdout


@pytest.fixture
def constraints(tmp_path, monkeypatch):
    """A constraints file, an empty environment folder beside it, and no setting of the outer world."""
    monkeypatch.delenv("STACKPROOF_WHEELHOUSE", raising=False)
    (tmp_path / "env").mkdir()
    path = tmp_path / "constraints.txt"
    path.write_text("leaf==1.0 --hash=sha256:00\n", encoding="utf-8")
    return path


def test_fill_hashes_in_one_call_and_torch_in_another(noxfile, constraints, monkeypatch):
    """One hashed line would make pip demand hashes for torch, so there are two calls, each offline if asked for."""
    monkeypatch.setenv("STACKPROOF_WHEELHOUSE", ".")
    session = FakeSession(constraints.parent / "env")
    assert str(constraints.parent / "env" / "bin" / "python") == noxfile.fill(
        session, constraints, ["torch==2.14.1"]
    )
    offline = ("--no-index", "--find-links", str(constraints.parent))
    expected = [("--require-hashes", "-r", str(constraints), *offline), ("torch==2.14.1", *offline)]
    assert expected == session.installed


@pytest.mark.parametrize("changed", ["constraints", "torch"])
def test_fill_installs_again_when_what_is_asked_for_changes(noxfile, constraints, changed):
    """A filled environment is left alone until a line of the constraints or the torch that is asked for changes."""
    home = constraints.parent / "env"
    noxfile.fill(FakeSession(home), constraints, ["torch==2.14.1"])
    same, other = FakeSession(home), FakeSession(home)
    noxfile.fill(same, constraints, ["torch==2.14.1"])
    assert [] == same.installed
    if changed == "constraints":
        constraints.write_text("leaf==1.1 --hash=sha256:00\n", encoding="utf-8")
    noxfile.fill(other, constraints, ["torch==2.14.1" if changed == "constraints" else "torch==2.13.0"])
    assert 2 == len(other.installed)


def test_fill_does_not_trust_an_interrupted_installation(noxfile, constraints):
    """Ctrl-C while pip runs leaves an environment that the next run installs into again."""
    home = constraints.parent / "env"
    noxfile.fill(FakeSession(home), constraints, [])
    constraints.write_text("leaf==1.1 --hash=sha256:00\n", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        noxfile.fill(FakeSession(home, broken=True), constraints, [])
    constraints.write_text("leaf==1.0 --hash=sha256:00\n", encoding="utf-8")
    session = FakeSession(home)
    noxfile.fill(session, constraints, [])
    assert 1 == len(session.installed)


def test_fill_under_no_install_says_that_it_is_out_of_date(noxfile, constraints):
    """Nox -R installs nothing, and an environment that was not filled is not stamped as if it were."""
    session = FakeSession(constraints.parent / "env", no_install=True)
    noxfile.fill(session, constraints, [])
    assert [] == session.installed
    assert "is left as it is" in session.said[-1]
    assert [] == list((constraints.parent / "env").iterdir())


def test_wheelhouse_that_is_not_there_is_named(noxfile, constraints, monkeypatch):
    """A wrong STACKPROOF_WHEELHOUSE is an error with the folder and what to do, not a search on the network."""
    monkeypatch.setenv("STACKPROOF_WHEELHOUSE", "elsewhere")
    with pytest.raises(RuntimeError, match="elsewhere, which is not a folder"):
        noxfile.fill(FakeSession(constraints.parent / "env"), constraints, [])


# --- what a user sees first


def test_nox_alone_lists_the_buttons(project):
    """Without -s nothing runs; every button stands there with a sentence."""
    done = press(project)
    assert 0 == done.returncode
    lines = {line.split()[1]: line for line in done.stdout.splitlines() if line.startswith("- ")}
    assert set(BUTTONS) <= lines.keys()
    assert all(" -> " in line and line.endswith(".") for line in lines.values())


def test_old_python_gets_one_sentence(tmp_path):
    """Under a Python that is too old the noxfile says which is needed, before it imports anything of nox's."""
    program = (
        "import runpy, sys; sys.version_info = (3, 9, 2); sys.modules['nox'] = None; "
        f"runpy.run_path({str(ROOT / 'noxfile.py')!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert 1 == done.returncode
    assert 1 == done.stderr.count("\n")
    assert "under Python 3.9, and 3.11 or newer is needed" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["perf"]),
        (["-k", "ddp"], ["perf"]),
        (["perf/test_floors.py", "-x"], []),
        (["-x", "perf/test_floors.py::test_it"], []),
        (["--site", "perf/site.toml"], ["perf"]),
        (["perfect"], ["perf"]),
    ],
)
def test_a_named_file_replaces_the_folder(noxfile, arguments, expected):
    """Naming a test file runs that file; the value of an option does not count as one."""
    assert expected == noxfile.targets("perf", arguments)


@pytest.mark.parametrize(("return_code", "expected"), [(12, 12), (-9, 137), (None, 1)])
def test_death_by_signal_reads_as_in_a_shell(noxfile, return_code, expected):
    """A killed command gives 128 + signal, one that could not start gives 1."""
    assert expected == noxfile.exit_status(return_code)
