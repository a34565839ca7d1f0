"""The rules for code that runs inside the stack under test."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "models").glob("*.py"))
ALLOWED = {"torch", "torchvision", "numpy", "models"}


def imported(tree: ast.AST) -> set[str]:
    """Full names of all modules that a source imports, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert 0 == node.level, "relative imports are not used"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_sources_import_only_what_every_stack_has(path: Path) -> None:
    """Only the standard library, torch, torchvision, numpy, models and perf.contract are imported."""
    names = imported(ast.parse(path.read_text(encoding="utf-8")))
    others = {name for name in names if name.split(".")[0] not in ALLOWED | sys.stdlib_module_names}
    assert set() == {name for name in others if not f"{name}.".startswith("perf.contract.")}


def test_importing_the_models_loads_nothing_else() -> None:
    """Beside torch, torchvision and numpy, a fresh process gets only models and the standard library."""
    code = f"""
import sys, numpy, numpy.typing, torch, torchvision, torch.utils.data
before = set(sys.modules)
for name in {[f"models.{path.stem}" for path in FILES if path.stem != "__init__"]!r}:
    __import__(name)
roots = {{name.split(".")[0] for name in set(sys.modules) - before}}
print(sorted(roots - sys.stdlib_module_names - {ALLOWED!r}))
"""
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert ("[]\n", 0) == (run.stdout, run.returncode), run.stderr
