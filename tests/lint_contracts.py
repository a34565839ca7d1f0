"""A contract type of our own for import-linter: these modules import only what is listed.

import-linter knows how to forbid a list. The worker needs the opposite, since it must run in a stack that holds
nothing but torch: anything that is not allowed is forbidden, whatever it is called.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

from importlinter import Contract, ContractCheck, fields, output
from importlinter.domain.helpers import module_expressions_to_modules

if TYPE_CHECKING:
    from collections.abc import Collection
    from collections.abc import Set as AbstractSet

    from grimp import ImportGraph
    from importlinter.domain.imports import ModuleExpression


def is_allowed(imported: str, allowed: Collection[str], standard_library: AbstractSet[str]) -> bool:
    """Whether a module may be imported: it, or a package that holds it, is listed or in the standard library.

    Parameters
    ----------
    imported
        Dotted name of the imported module.
    allowed
        Dotted names; each stands for itself and what is below it.
    standard_library
        Top-level names of the standard library.
    """
    parts = imported.split(".")
    names = {".".join(parts[: length + 1]) for length in range(len(parts))}
    return parts[0] in standard_library or not names.isdisjoint(allowed)


class OnlyContract(Contract):
    """The source modules import the standard library, the allowed modules, and nothing else.

    Direct imports are checked, those inside functions and under TYPE_CHECKING too. In `allowed_modules` a name
    stands for the module and everything below it; in `source_modules` it stands for the module alone, so that
    ``perf`` means ``perf/__init__.py`` and ``models.**`` means all modules below ``models``.
    """

    type_name = "only"

    source_modules = fields.SetField(subfield=fields.ModuleExpressionField())
    allowed_modules = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Collect every direct import of a source module that is neither allowed nor standard library."""
        # import-linter replaces each field by its parsed value; the class attribute's type is the field's.
        expressions = cast("set[ModuleExpression]", self.source_modules)
        sources = sorted(module.name for module in module_expressions_to_modules(graph, expressions))
        missing = [name for name in sources if name not in graph.modules]
        if missing:
            msg = f"Module '{missing[0]}' does not exist. Correct source_modules of contract {self.name!r}."
            raise ValueError(msg)
        allowed = cast("list[str]", self.allowed_modules)
        broken = [
            (importer, imported, detail["line_number"])
            for importer in sources
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if not is_allowed(imported, allowed, sys.stdlib_module_names)
            for detail in graph.get_import_details(importer=importer, imported=imported)
        ]
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line an import that is not allowed."""
        broken: list[tuple[str, str, Any]] = check.metadata["broken"]
        for importer, imported, line in broken:
            output.print_error(f"{importer} is not allowed to import {imported} (l.{line})", bold=False)
        output.new_line()
