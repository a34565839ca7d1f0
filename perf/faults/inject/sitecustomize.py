"""Loaded by the worker's Python before anything else, where a fault is planted: this folder is on its PYTHONPATH.

Standard library only and Python 3.9: it runs in the stack under test. What a fault changes is torch's or Python's own,
as a broken stack would have it; never the suite's code.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable
from typing import Any

PLANT = "STACKPROOF_PLANT"
HERE = os.path.dirname(os.path.abspath(__file__))


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function with a module when that module has been imported."""

    def __init__(self) -> None:
        self._hooks: dict[str, list[Callable[[Any], None]]] = {}
        self._finding: set[str] = set()

    def add(self, name: str, hook: Callable[[Any], None]) -> None:
        """Call `hook` after the import of the module `name`."""
        self._hooks.setdefault(name, []).append(hook)

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find the module where it is, and have its loader call the hooks."""
        if name not in self._hooks or name in self._finding:
            return None
        self._finding.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._finding.discard(name)
        if spec is None or spec.loader is None:
            return None
        plain, hooks = spec.loader.exec_module, self._hooks[name]

        def exec_module(module: Any) -> None:
            plain(module)
            for hook in hooks:
                hook(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def main() -> None:
    """Plant what the environment names; do nothing where it names nothing."""
    name = os.environ.get(PLANT)
    if not name:
        return
    finder = AfterImport()
    sys.meta_path.insert(0, finder)
    sys.path.insert(0, HERE)
    try:
        import planted
    finally:
        sys.path.remove(HERE)
    planted.PLANTS[name](finder.add, lambda: int(os.environ.get("RANK", "0")))


main()
