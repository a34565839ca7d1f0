"""What a batch script's job is: its size, and the launches in it. Pure; a number that the script hides stays None."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from perf.cluster.lint.reader import Command, Script, inner, options, own_length
from perf.whole import whole

MPI = {"mpirun", "mpiexec", "orterun"}
LAUNCHERS = {"srun", "jsrun", *MPI}
"""Programs that start one process a task. Everything else in a batch script runs once, on the job's first node."""

TRAINERS = ("python", "torchrun", "kernprof", "accelerate", "deepspeed")
"""What a line that trains begins with, or holds behind a launcher or a container."""


@dataclass(frozen=True)
class Size:
    """What was asked for; None where the script does not say it in digits."""

    nodes: int | None
    tasks: int | None
    tasks_per_node: int | None
    cores: int | None
    """Cores a task."""
    gpus: int | None
    """GPUs a node."""
    gpus_per_task: int | None

    @property
    def several_tasks(self) -> bool:
        """Whether more than one task is certain."""
        return (self.tasks or 0) > 1

    @property
    def several_nodes(self) -> bool:
        """Whether more than one node is certain."""
        return (self.nodes or 0) > 1


@dataclass(frozen=True)
class Launch:
    """One line that trains.

    Attributes
    ----------
    command
        The whole command.
    launcher
        srun, jsrun or mpirun where it begins with one; else empty.
    own
        The launcher's own options, long names.
    size
        The job's size with the launcher's own options laid over it.
    torchrun
        The words from torchrun (or `python -m torch.distributed.run`) on; empty where it starts none.
    words
        All words, also those of a command inside `bash -c`.
    """

    command: Command
    launcher: str
    own: dict[str, str]
    size: Size
    torchrun: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def line(self) -> int:
        """Where it stands."""
        return self.command.line


def count(text: str | None) -> int | None:
    """Read a count: "4", and the last part of "gpu:a100:4". None for a variable, a range or a word."""
    if text is None:
        return None
    return whole(text.split(",")[0].rpartition(":")[2])


def size_of(script: Script) -> Size:
    """Return the size of the job that a script's directives ask for, with Slurm's defaults (sbatch(1))."""
    asked = {each.name: each.value for each in script.directives if each.read}
    nodes = count(asked["--nodes"]) if "--nodes" in asked else None
    tasks, per_node = _tasks(asked, nodes if "--nodes" in asked else 1)
    if "--nodes" not in asked and tasks == 1:
        nodes = 1
    return _with_gpus(asked, Size(nodes, tasks, per_node, count(asked.get("--cpus-per-task")), None, None))


def step_size(own: dict[str, str], job: Size) -> Size:
    """Return the size of a step: srun's own options laid over the job's."""
    nodes = count(own["--nodes"]) if "--nodes" in own else job.nodes
    tasks, per_node = job.tasks, job.tasks_per_node
    if own.keys() & {"--nodes", "--ntasks", "--ntasks-per-node"}:
        tasks, per_node = _tasks(own, nodes)
    cores = count(own["--cpus-per-task"]) if "--cpus-per-task" in own else job.cores
    return _with_gpus(own, Size(nodes, tasks, per_node, cores, job.gpus, job.gpus_per_task))


def _tasks(asked: dict[str, str], nodes: int | None) -> tuple[int | None, int | None]:
    """Return tasks and tasks a node. Without a word on either, Slurm starts one task a node."""
    tasks = count(asked.get("--ntasks"))
    per_node = count(asked.get("--ntasks-per-node"))
    if "--ntasks" not in asked:
        if "--ntasks-per-node" not in asked:
            per_node = 1
        tasks = None if nodes is None or per_node is None else nodes * per_node
    elif per_node is None and nodes == 1:
        per_node = tasks
    return tasks, per_node


def _with_gpus(asked: dict[str, str], size: Size) -> Size:
    each = count(asked["--gpus-per-task"]) if "--gpus-per-task" in asked else size.gpus_per_task
    gpus = _gpus(asked, size.nodes)
    if gpus is None and "--gpus-per-task" in asked and each is not None and size.tasks_per_node is not None:
        gpus = each * size.tasks_per_node
    return replace(size, gpus=size.gpus if gpus is None else gpus, gpus_per_task=each)


def _gpus(asked: dict[str, str], nodes: int | None) -> int | None:
    if "--gpus-per-node" in asked:
        return count(asked["--gpus-per-node"])
    for part in asked.get("--gres", "").split(","):
        if part.startswith("gpu"):
            each = count(part)
            return 1 if each is None else each
    if "--gpus" in asked and nodes == 1:
        return count(asked["--gpus"])
    return None


def launches(script: Script) -> list[Launch]:
    """Return the lines of a script that train, in order."""
    job = size_of(script)
    found = []
    for command in script.commands:
        words = tuple(word for each in inner(command) for word in each.words)
        if not trains(words):
            continue
        launcher = command.program if command.program in LAUNCHERS else ""
        own = options(command.words) if launcher == "srun" else {}
        size = step_size(own, job) if launcher == "srun" else job
        found.append(Launch(command, launcher, own, size, _torchrun(words), words))
    return found


def trains(words: Sequence[str]) -> bool:
    """Say whether a command runs a Python program: a script, a module, or one of the launchers for it."""
    names = [PurePosixPath(word).name for word in words]
    for index, name in enumerate(names):
        if name in {"torchrun", "kernprof", "accelerate", "deepspeed"} and not words[index].startswith("-"):
            return "--version" not in words[index:]
        if name.rstrip("0123456789.") == "python":
            rest = words[index + 1 :]
            if any(word.endswith(".py") or word == "-m" for word in rest):
                return not any(word in {"pip", "venv", "line_profiler"} for word in rest)
    return False


def _torchrun(words: Sequence[str]) -> tuple[str, ...]:
    for index, word in enumerate(words):
        if PurePosixPath(word).name == "torchrun" or word in {
            "torch.distributed.run",
            "torch.distributed.launch",
        }:
            return tuple(words[index:])
    return ()


def torchrun_options(words: Sequence[str]) -> dict[str, str]:
    """Return torchrun's own options; it takes dashes and underscores alike."""
    plain = tuple(
        word.replace("_", "-") if word.startswith("--") and "=" not in word else word for word in words
    )
    found = options(plain[: 1 + own_length(plain)])
    return {name.replace("_", "-"): value for name, value in found.items()}
