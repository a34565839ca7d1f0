"""Traps of starting, waiting and ending. A rule says nothing where the script leaves a number open."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

from perf.cluster.lint.findings import Finding, Job
from perf.cluster.lint.job import count, step_size, torchrun_options
from perf.cluster.lint.reader import Command, options


def directive_ignored(job: Job) -> Iterator[Finding]:
    """#SBATCH below the first command."""
    for line in sorted({each.line for each in job.script.directives if not each.read}):
        yield Finding(
            line,
            "directive-ignored",
            "this #SBATCH line stands below a command",
            "sbatch stops reading directives at the first line that is neither blank nor a comment",
            "move it above the first command",
        )


def memory_twice(job: Job) -> Iterator[Finding]:
    """Two of --mem, --mem-per-cpu and --mem-per-gpu."""
    asked = {each.name for each in job.script.directives if each.read} & {
        "--mem",
        "--mem-per-cpu",
        "--mem-per-gpu",
    }
    if len(asked) > 1:
        yield Finding(
            job.line_of(*asked),
            "memory-twice",
            f"{' and '.join(sorted(asked))} are both asked for",
            "they exclude each other, and srun inside the job ends with a fatal error",
            "keep one of them",
        )


def fixed_master_port(job: Job) -> Iterator[Finding]:
    """A rendezvous port that two jobs on one node share."""
    why = "two jobs on one node meet on it: 'Address already in use', or the ranks of one job join the other"
    remedy = "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000)), or torchrun --standalone on one node"
    for each in job.script.assignments:
        if each.name == "MASTER_PORT" and count(each.value):
            yield Finding(each.line, "fixed-master-port", f"MASTER_PORT is always {each.value}", why, remedy)
    for launch in job.launches:
        if not launch.torchrun:
            continue
        own = torchrun_options(launch.torchrun)
        port = own.get("--master-port") or own.get("--rdzv-endpoint", "").rpartition(":")[2]
        if "--standalone" in own:
            continue
        if count(port):
            yield Finding(launch.line, "fixed-master-port", f"torchrun's port is always {port}", why, remedy)
        elif not own.keys() & {"--master-port", "--rdzv-endpoint"} and (count(own.get("--nnodes")) or 1) > 1:
            # On one node torch 2.14 takes a free port; on several it can't.
            what = "torchrun is told no port, and takes 29500"
            yield Finding(launch.line, "fixed-master-port", what, why, remedy)


def master_is_localhost(job: Job) -> Iterator[Finding]:
    """A rendezvous on localhost in a job of several nodes."""
    if not job.size.several_nodes:
        return
    for each in job.script.assignments:
        if each.name == "MASTER_ADDR" and re.search(
            r"\b(localhost|127\.0\.0\.1)\b", job.script.text[each.line - 1]
        ):
            yield Finding(
                each.line,
                "master-is-localhost",
                f"MASTER_ADDR can be localhost in a job of {job.size.nodes} nodes",
                "each node then waits for ranks that look for it elsewhere, until the time limit",
                'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1), and end where it is empty',
            )


def no_kill_on_bad_exit(job: Job) -> Iterator[Finding]:
    """Several ranks, and srun waits for those that are left."""
    for launch in job.launches:
        given = launch.own.get("--kill-on-bad-exit")
        if launch.launcher != "srun" or not launch.size.several_tasks or job.sets("SLURM_KILL_BAD_EXIT"):
            continue
        if given is None or given == "0":
            yield Finding(
                launch.line,
                "no-kill-on-bad-exit",
                f"srun starts {launch.size.tasks} tasks, without --kill-on-bad-exit=1",
                "when one rank dies, the others wait for it in a collective until the time limit",
                "srun --kill-on-bad-exit=1",
            )


def steps_without_overlap(job: Job) -> Iterator[Finding]:
    """A step in the background, and another one that wants the same cores."""
    steps = [each for each in job.script.commands if each.program == "srun"]
    for first, second in itertools.pairwise(steps):
        if first.after != "&" or _fit_together(job, first, second):
            continue
        yield Finding(
            second.line,
            "steps-without-overlap",
            f"the step of line {first.line} runs in the background, and this one asks for the same cores",
            "it waits until the first one has ended: 'step creation temporarily disabled, retrying'",
            "srun --overlap for a step that only watches, or --exact with cores and memory of its own for each",
        )


def _fit_together(job: Job, first: Command, second: Command) -> bool:
    """Whether two steps can run at once: the second overlaps, or both take a part of the job only."""
    owns = [options(each.words) for each in (first, second)]
    if "--overlap" in owns[1] or all(own.keys() & {"--exact", "--exclusive"} for own in owns):
        return True
    if not all("--cpus-per-task" in own for own in owns):  # which means --exact, from 22.05 on
        return False
    sizes = [step_size(own, job.size) for own in owns]
    cores = [size.tasks * size.cores for size in sizes if size.tasks is not None and size.cores is not None]
    if len(cores) < 2 or job.size.tasks is None or job.size.cores is None:
        return True
    return sum(cores) <= job.size.tasks * job.size.cores


def background_without_wait(job: Job) -> Iterator[Finding]:
    """The script ends while a launch runs."""
    last = max((launch.line for launch in job.launches if launch.command.after == "&"), default=None)
    if last is None:
        return
    if not any(each.program == "wait" and each.line >= last for each in job.script.commands):
        yield Finding(
            last,
            "background-without-wait",
            "this line runs in the background, and nothing waits for it",
            "the job ends with its script, and takes the training with it",
            "wait, as the last line",
        )


def exit_status_lost(job: Job) -> Iterator[Finding]:
    """Something that can't fail runs after the training."""
    commands = job.script.commands
    for launch in job.launches:
        if launch.command.after in {"|", "|&"} and not _strict(job, "pipefail"):
            yield Finding(
                launch.line,
                "exit-status-lost",
                "the training's output goes through a pipe, without set -o pipefail",
                "the status is that of the pipe's last command: a training that failed is COMPLETED",
                "set -o pipefail, above it",
            )
    if not job.launches or _strict(job, "errexit"):
        return
    last = job.launches[-1].command
    after = [each for each in commands[commands.index(last) + 1 :] if each.line > last.line]
    kept = any(each.program in {"exit", "wait"} or each.words[0] in {"exit", "return"} for each in after)
    harmless = {"echo", "date", "printf", "deactivate", "module", "seff", "sacct", "sleep", "true"}
    if after and not kept and last.after in {"", "&&"} and after[-1].program in harmless:
        yield Finding(
            after[-1].line,
            "exit-status-lost",
            f"{after[-1].program} runs after the training, and ends with 0",
            "the job ends with the status of its last command: a training that failed is COMPLETED",
            "set -e at the top, or status=$? after the training and exit $status at the end",
        )


def foreign_variable(job: Job) -> Iterator[Finding]:
    """A variable of another scheduler."""
    lsf = any(line.startswith("#BSUB") for line in job.script.text)
    slurm = any(line.startswith("#SBATCH") for line in job.script.text)
    if lsf == slurm:
        return
    foreign, own = ("SLURM_JOB_?ID", "LSB_JOBID") if lsf else ("LSB_JOBID", "SLURM_JOB_ID")
    for number, line in enumerate(job.script.text, start=1):
        match = re.search(rf"\$\{{?({foreign})\b", line)
        if match and not line.lstrip().startswith("#"):
            yield Finding(
                number,
                "foreign-variable",
                f"{match[1]} is empty under {'LSF' if lsf else 'Slurm'}",
                "files named after it are shared by all jobs that run at once",
                f"${own}",
            )


def _strict(job: Job, option: str) -> bool:
    """Whether `set -e` (errexit) or `set -o pipefail` is in force somewhere in the script."""
    flags = [word for each in job.script.commands if each.program == "set" for word in each.words[1:]]
    shebang = job.script.text[0] if job.script.text and job.script.text[0].startswith("#!") else ""
    if option in flags:
        return True
    return option == "errexit" and any(
        re.fullmatch(r"-[a-z]*e[a-z]*", word) for word in [*flags, *shebang.split()[1:]]
    )


RULES: tuple[Callable[[Job], Iterator[Finding]], ...] = (
    directive_ignored,
    memory_twice,
    fixed_master_port,
    master_is_localhost,
    no_kill_on_bad_exit,
    steps_without_overlap,
    background_without_wait,
    exit_status_lost,
    foreign_variable,
)
