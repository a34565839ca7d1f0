"""The walls of the house that import-linter can't see, and a proof that each check can fail."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

from tests import source_checks as checks

ROOT = Path(__file__).resolve().parents[1]
WORKER = [*sorted(ROOT.glob("models/**/*.py")), *sorted(ROOT.glob("perf/training/**/*.py"))]
PLANTED = sorted(ROOT.glob("perf/faults/inject/*.py"))
"""Loaded by the stack's Python where a fault is planted, from their own folder, which is put on its path."""
BOTH_SIDES = [ROOT / "perf" / "__init__.py", *sorted(ROOT.glob("perf/contract/*.py")), *PLANTED]
DRIVER = [path for path in sorted(ROOT.glob("perf/**/*.py")) if path not in WORKER]
LOOSE = sorted(ROOT.glob("*.py"))  # conftest.py, noxfile.py
EVERYTHING = [*WORKER, *DRIVER, *LOOSE, *sorted(ROOT.glob("tests/**/*.py"))]

REFERENCE_READER = "references.py"
"""The one module of perf.verdict that may open files: it reads perf/references/<system>.toml."""

SIMULATION = {"perf.verdict.noise", "perf.verdict.simulate", "perf.verdict.trials", "perf.verdict.vectorized"}
"""Tries the verdict's rules on made-up noise: a command of its own, with numpy, which the driver's environment does not
have. So nothing else can import it."""

IMPORT_ALL = """
import importlib, importlib.abc, sys

class Wall(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        for closed in {closed!r}:
            if name == closed or name.startswith(closed + "."):
                raise ModuleNotFoundError(f"closed by the test: {{name}}", name=name)
        return None

sys.meta_path.insert(0, Wall())
sys.path.insert(0, {root!r})
for name in {modules!r}:
    importlib.import_module(name)
"""


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Parse one file of the tree."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def findings(check, paths, **options) -> list[str]:
    """Run one check over files; each finding starts with path and line."""
    return [
        f"{path.relative_to(ROOT)}:{finding}" for path in paths for finding in check(parsed(path), **options)
    ]


def too_new_for_39(path: Path) -> list[str]:
    """Say where a file's grammar is newer than Python 3.9, the oldest that a stack may have."""
    try:
        ast.parse(path.read_text(encoding="utf-8"), filename=str(path), feature_version=(3, 9))
    except SyntaxError as error:
        return [f"{path.name}:{error.lineno}: {error.msg}"]
    return []


def module_name(path: Path, root: Path) -> str:
    """Return the dotted name by which a file below root is imported."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_all(root: Path, modules: list[str], closed: list[str]) -> subprocess.CompletedProcess[str]:
    """Import modules of a tree in a fresh Python in which some names can't be imported."""
    program = IMPORT_ALL.format(closed=closed, root=str(root), modules=modules)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )


# --- the tree keeps the rules


def test_tree_is_found():
    """The lists that the checks below run over are not empty, or the checks would hold anything."""
    assert all([WORKER, DRIVER, LOOSE])
    assert all(path.is_file() for path in BOTH_SIDES)


def test_optional_parts_are_imported_late():
    """A stack without line_profiler or DALI imports every worker file all the same."""
    others = [path for path in (*WORKER, *BOTH_SIDES) if path not in PLANTED]
    assert [] == findings(checks.late_imports_only, others)
    assert [] == findings(checks.late_imports_only, PLANTED, beside={path.stem for path in PLANTED})


def test_worker_parses_as_python_39():
    """The worker's grammar is Python 3.9's."""
    assert [] == [finding for path in [*WORKER, *BOTH_SIDES] for finding in too_new_for_39(path)]


def test_worker_evaluates_no_union_types():
    """``int | None`` stands in the worker's lazy annotations only, since Python 3.9 can't evaluate it."""
    assert [] == findings(checks.no_unions_at_run_time, [*WORKER, *BOTH_SIDES])


def test_verdict_touches_no_files():
    """A verdict depends on its arguments alone: no clock, no environment, no files but a reference."""
    inside = [path for path in DRIVER if path.is_relative_to(ROOT / "perf" / "verdict")]
    paths = [path for path in inside if module_name(path, ROOT) not in SIMULATION]
    readers = [path for path in paths if path.name == REFERENCE_READER]
    others = [path for path in paths if path not in readers]
    assert [] == findings(checks.no_input_or_output, others)
    assert [] == findings(checks.no_input_or_output, readers, may_read=True)


def test_only_cluster_runs_scheduler_commands():
    """sbatch, squeue, bsub and their like are started in perf.cluster and nowhere else."""
    paths = [
        path for path in [*WORKER, *DRIVER, *LOOSE] if not path.is_relative_to(ROOT / "perf" / "cluster")
    ]
    assert [] == findings(checks.no_scheduler_commands, paths)


def test_nothing_beside_the_checkout_is_read():
    """The tree works wherever it is cloned: no path leads to a folder beside it."""
    own = {Path(__file__).resolve(), Path(checks.__file__).resolve()}
    assert [] == findings(checks.nothing_outside, [path for path in EVERYTHING if path not in own])


def test_loose_driver_files_import_no_worker():
    """conftest.py and noxfile.py, which import-linter does not see, import neither torch nor the worker."""
    assert [] == findings(checks.no_worker_imports, LOOSE)


def test_driver_imports_without_the_stack():
    """Every driver module can be imported where torch, the worker and the development tools are missing."""
    names = [module_name(path, ROOT) for path in DRIVER if path.name != "__main__.py" and path not in PLANTED]
    closed = [
        "torch",
        "torchvision",
        "models",
        "perf.training",
        "numpy",
        "scipy",
        "hypothesis",
        "line_profiler",
    ]
    done = import_all(ROOT, [name for name in names if name not in SIMULATION], closed)
    assert 0 == done.returncode, done.stderr


def test_every_test_states_a_behaviour():
    """A test without a sentence leaves its reader to guess what broke."""
    paths = [*sorted(ROOT.glob("perf/test_*.py")), *sorted(ROOT.glob("tests/**/test_*.py"))]
    assert [] == findings(checks.tests_state_behaviour, paths)


# --- the checks can fail


@pytest.mark.parametrize(
    ("check", "source", "line"),
    [
        (checks.late_imports_only, "import torch\nimport line_profiler\n", 2),
        (checks.late_imports_only, "try:\n    import nvidia.dali\nexcept ImportError:\n    pass\n", 2),
        (checks.late_imports_only, "class Loader:\n    from nvidia.dali import fn\n", 2),
        (checks.no_unions_at_run_time, "def f(x: int | None): ...\n", 1),
        (checks.no_unions_at_run_time, "from __future__ import annotations\nisinstance(1, int | str)\n", 2),
        (checks.no_unions_at_run_time, "from __future__ import annotations\nMaybe = list[int] | None\n", 2),
        (checks.no_input_or_output, "import os\n", 1),
        (checks.no_input_or_output, "from subprocess import run\n", 1),
        (checks.no_input_or_output, "def f(path):\n    return path.read_text()\n", 2),
        (checks.no_input_or_output, "def f(path):\n    return open(path).read()\n", 2),
        (checks.no_input_or_output, "from datetime import datetime\ndatetime.now()\n", 2),
        (checks.no_input_or_output, "print('a limit')\n", 1),
        (checks.no_scheduler_commands, "subprocess.run(['sbatch', 'job.sh'])\n", 1),
        (checks.no_scheduler_commands, "os.system('squeue --me')\n", 1),
        (checks.no_scheduler_commands, "shutil.which('/usr/bin/bsub')\n", 1),
        (checks.no_scheduler_commands, "command = ['scancel', job]\nstart(command)\n", 1),
        (checks.nothing_outside, "x = open('../shared/limits.toml')\n", 1),
        (checks.nothing_outside, "x = Path(__file__).parents[2] / 'shared' / 'limits.toml'\n", 1),
        (checks.nothing_outside, "x = ROOT.parent.joinpath('shared')\n", 1),
        (checks.tests_state_behaviour, "x = 1\ndef test_x():\n    assert 1 == x\n", 2),
        (checks.no_worker_imports, "def fixture():\n    import torch.nn\n", 2),
        (checks.no_worker_imports, "from perf import training\n", 1),
        (checks.no_worker_imports, "from models.resnet import build\n", 1),
    ],
)
def test_planted_violation_is_found(check, source, line):
    """Each rule names the line of code that breaks it."""
    found = check(ast.parse(source))
    assert [str(line)] == [finding.split(":")[0] for finding in found]


@pytest.mark.parametrize(
    ("check", "source"),
    [
        (
            checks.late_imports_only,
            "import json, torch, numpy, perf.contract\ndef f():\n    import line_profiler\n",
        ),
        (checks.late_imports_only, "if TYPE_CHECKING:\n    import line_profiler\n"),
        (
            checks.no_unions_at_run_time,
            "from __future__ import annotations\ndef f(x: int | None) -> str | None: ...\n",
        ),
        (checks.no_unions_at_run_time, "flags = os.O_CREAT | os.O_EXCL\nboth = mask | 1\n"),
        (checks.no_input_or_output, "import math\ndef f(text):\n    return text.replace('a', 'b').strip()\n"),
        (checks.no_scheduler_commands, "raise SiteError('squeue answered nothing')\n"),
        (checks.no_scheduler_commands, "subprocess.run(['srun', 'python'])\n"),
        (checks.nothing_outside, "folder = tmp_path / 'shared'\n"),
        (checks.no_worker_imports, "import perf.records\nfrom perf import variants\n"),
    ],
)
def test_what_is_allowed_is_not_found(check, source):
    """A rule leaves its neighbours alone: optional imports that are late, text that only mentions a command."""
    assert [] == check(ast.parse(source))


def test_reference_reader_may_read_but_not_write():
    """The reader of reference files may open one, and is found when it writes one."""
    source = "def f(path):\n    open(path, 'rb')\n    open(path, 'w')\n    path.write_text('')\n"
    found = checks.no_input_or_output(ast.parse(source), may_read=True)
    assert ["3", "4"] == [finding.split(":")[0] for finding in found]


def test_grammar_newer_than_39_is_found(tmp_path):
    """A match statement in a worker file is found with its line."""
    planted = tmp_path / "worker.py"
    planted.write_text("x = 1\nmatch x:\n    case 1:\n        pass\n", encoding="utf-8")
    assert 1 == len(too_new_for_39(planted))


def test_driver_that_needs_torch_is_found(tmp_path):
    """A driver module that imports torch, even inside a try of something else, does not pass the wall."""
    (tmp_path / "perf").mkdir()
    (tmp_path / "perf" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "perf" / "leak.py").write_text("import json\nimport torch\n", encoding="utf-8")
    done = import_all(tmp_path, ["perf.leak"], ["torch"])
    assert 1 == done.returncode
    assert "closed by the test: torch" in done.stderr


IMPORTS = {
    "models/__init__.py": "import tqdm\n",
    "perf/__init__.py": "import rich\n",
    "perf/contract/__init__.py": "from perf.contract import text\n",
    "perf/contract/text.py": "import msgspec\n",
    "perf/ending.py": "",
    "perf/training/__init__.py": "import torch\nimport perf.records\nimport line_profiler\n",
    "perf/training/loop.py": "import torchvision\nimport models\n",
    "perf/records.py": "def f():\n    import torch\n",
    "perf/new_room/__init__.py": "from perf.training import loop\n",
    "perf/verdict/__init__.py": "from perf import launch\n",
    "perf/launch/__init__.py": "import json\n",
    "models/net.py": "import perf.training\n",
}


def test_import_contracts_find_what_is_planted(tmp_path):
    """Each contract of pyproject.toml, run by import-linter on a tree with one leak a contract, is broken by it."""
    for name, source in IMPORTS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source, encoding="utf-8")
    for name in ("pyproject.toml", "tests/lint_contracts.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    lint_imports = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    done = subprocess.run(
        lint_imports, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert 1 == done.returncode, done.stdout + done.stderr
    assert "0 kept, 6 broken" in done.stdout
    for leak in (
        "perf.records -> torch (l.2)",
        "perf.new_room -> perf.training.loop (l.1)",
        "models.net -> perf.training (l.1)",
        "models is not allowed to import tqdm (l.1)",
        "perf is not allowed to import rich (l.1)",
        "perf.contract.text is not allowed to import msgspec (l.1)",
        "perf.training is not allowed to import perf.records (l.2)",
        "perf.verdict is not allowed to import perf.launch (l.1)",
    ):
        assert leak in done.stdout
    assert "import line_profiler" not in done.stdout
