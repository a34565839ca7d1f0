"""What the house asks of source text and import-linter can't express: each rule is a function over one file.

A function takes a parsed file and returns its findings, each as ``line: sentence``; an empty list means that the
rule holds. tests/test_architecture.py runs them over the tree, and over planted violations.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

ALWAYS_THERE = {"models", "numpy", "perf", "torch", "torchvision"}
"""What a worker file may import at the top, besides the standard library."""

SCHEDULER_COMMANDS = frozenset(
    "sbatch salloc squeue sacct scancel scontrol sinfo sstat bsub bjobs bkill bhist bacct bqueues".split()
)
"""Commands that talk to a scheduler's controller. srun is none of them: it starts a launch's ranks."""

PROCESS_STARTERS = frozenset(
    "run Popen call check_call check_output getoutput getstatusoutput system popen execvp execv which "
    "create_subprocess_exec create_subprocess_shell posix_spawn posix_spawnp".split()
)

WORLD_MODULES = frozenset(
    "asyncio ctypes fcntl ftplib glob http io logging mmap multiprocessing os pickle random requests secrets select "
    "shelve shutil signal socket sqlite3 ssl subprocess tempfile threading time urllib".split()
)
"""Standard modules through which code reads or changes more than its arguments. `datetime` and `pathlib` are not
here: they are values too. What touches the world in them is found by the names of the calls."""

READS = frozenset({"exists", "is_dir", "is_file", "open", "read_bytes", "read_text", "stat"})
WRITES = frozenset(
    "chmod glob hardlink_to iterdir mkdir now rename rglob rmdir symlink_to today touch unlink utcnow "
    "write_bytes write_text".split()
)
BUILTIN_TYPES = frozenset(
    "bool bytes complex dict float frozenset int list object set str tuple type".split()
)


def late_imports_only(tree: ast.Module, beside: Collection[str] = ()) -> list[str]:
    """Optional parts (line_profiler, DALI, anything beyond torch and numpy) are imported inside functions.

    `beside` are modules that lie in the file's own folder, which is on the path when it is imported.
    """
    return [
        f"{node.lineno}: {root} is optional: import it inside the function that needs it"
        for node in _executed_at_import(tree.body)
        for root in _imported_roots(node)
        if root not in ALWAYS_THERE and root not in sys.stdlib_module_names and root not in beside
    ]


def no_unions_at_run_time(tree: ast.Module) -> list[str]:
    """Python 3.9 has no ``int | None`` as a value; in an annotation it may stand once annotations are lazy."""
    lazy = any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
        for node in tree.body
    )
    return [
        f"{node.lineno}: {ast.unparse(node)} is evaluated, and Python 3.9 can't: write Optional or Union"
        for node in _walk(tree, skip_annotations=lazy)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.BitOr)
        and (_is_type(node.left) or _is_type(node.right))
    ]


def no_input_or_output(tree: ast.Module, *, may_read: bool = False) -> list[str]:
    """Nothing but the arguments goes in and nothing but the result comes out.

    Parameters
    ----------
    tree
        The parsed file.
    may_read
        Whether files may be opened for reading.
    """
    findings = []
    for node in ast.walk(tree):
        findings += [
            f"{node.lineno}: imports {root}, which reaches beyond the arguments"
            for root in _imported_roots(node)
            if root in WORLD_MODULES
        ]
        if not isinstance(node, ast.Call):
            continue
        name = _called(node)
        if isinstance(node.func, ast.Name) and name in {"input", "print"}:
            findings.append(f"{node.lineno}: calls {name}()")
        elif isinstance(node.func, ast.Attribute) and name in WRITES:
            findings.append(f"{node.lineno}: calls .{name}()")
        elif name in READS and not (may_read and _only_reads(node)):
            findings.append(f"{node.lineno}: calls {name}()")
    return findings


def no_scheduler_commands(tree: ast.Module) -> list[str]:
    """Nothing starts a scheduler's command: perf.cluster does, and the tests guard it there.

    A literal that is such a command, or a command line of one, is found as an argument of a call that starts a
    process, and as the first word of a list or tuple, wherever that is put together.
    """
    findings = []
    for node in ast.walk(tree):
        literals: list[ast.expr] = []
        if isinstance(node, ast.Call) and _called(node) in PROCESS_STARTERS:
            literals = [
                child for argument in node.args for child in ast.walk(argument) if isinstance(child, ast.expr)
            ]
        elif isinstance(node, (ast.List, ast.Tuple)) and node.elts and isinstance(node.ctx, ast.Load):
            literals = [node.elts[0]]
        for literal in literals:
            words = (
                literal.value.split()
                if isinstance(literal, ast.Constant) and isinstance(literal.value, str)
                else []
            )
            command = words[0].rpartition("/")[2] if words else ""
            if command in SCHEDULER_COMMANDS:
                findings.append(f"{literal.lineno}: {command} belongs in perf.cluster")
    return sorted(set(findings))


def nothing_outside(tree: ast.Module) -> list[str]:
    """No path leads out of the checkout: none climbs out by ``..``, none goes from a parent into ``shared``."""
    findings = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "../shared" in node.value:
            findings.append(f"{node.lineno}: names a folder beside the checkout")
        elif isinstance(node, (ast.BinOp, ast.Call)) and "shared" in _literals(node):
            text = ast.unparse(node)
            if any(here in text for here in (".parent", "__file__", "cwd()", "pardir")):
                findings.append(f"{node.lineno}: leads to a folder beside the checkout")
    return sorted(set(findings))


def no_worker_imports(tree: ast.Module) -> list[str]:
    """A driver file that is in no package (conftest.py, noxfile.py) keeps to the driver's side of the wall too."""
    return [
        f"{node.lineno}: the driver imports {closed[-1]}"
        for node in ast.walk(tree)
        if (closed := [name for name in _imported_names(node) if _is_workers(name)])
    ]


def tests_state_behaviour(tree: ast.Module) -> list[str]:
    """Every test function says in one sentence which behaviour it holds."""
    return [
        f"{node.lineno}: {node.name} has no docstring: say in one sentence what holds"
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]


def _executed_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when the file is imported, those in if, try, with and class bodies included."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        yield statement
        if isinstance(statement, ast.If) and ast.unparse(statement.test).endswith("TYPE_CHECKING"):
            yield from _executed_at_import(statement.orelse)
            continue
        for field in ("body", "orelse", "finalbody"):
            yield from _executed_at_import(getattr(statement, field, []))
        for handler in getattr(statement, "handlers", []):
            yield from _executed_at_import(handler.body)


def _imported_names(node: ast.AST) -> list[str]:
    """Return the dotted names that an import statement may bind; of any other node none."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def _imported_roots(node: ast.AST) -> list[str]:
    return sorted({name.split(".")[0] for name in _imported_names(node)})


def _is_workers(name: str) -> bool:
    return name.partition(".")[0] in {"models", "torch", "torchvision"} or f"{name}.".startswith(
        "perf.training."
    )


def _walk(node: ast.AST, *, skip_annotations: bool) -> Iterator[ast.AST]:
    yield node
    for field, value in ast.iter_fields(node):
        if skip_annotations and field in {"annotation", "returns"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, skip_annotations=skip_annotations)


def _literals(node: ast.BinOp | ast.Call) -> list[object]:
    """Return the values of the literals among an operator's operands or a call's arguments."""
    operands = [node.left, node.right] if isinstance(node, ast.BinOp) else node.args
    return [operand.value for operand in operands if isinstance(operand, ast.Constant)]


def _is_type(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript):
        return _is_type(node.value)
    if isinstance(node, ast.Constant):
        return node.value is None
    return isinstance(node, ast.Name) and node.id in BUILTIN_TYPES


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _only_reads(node: ast.Call) -> bool:
    """Whether no literal argument of a call (of ``open``, here) looks like a mode that writes."""
    given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
    modes = [
        a.value
        for a in given
        if isinstance(a, ast.Constant) and isinstance(a.value, str) and len(a.value) <= 3
    ]
    return not any(set("wax+") & set(mode) for mode in modes)
