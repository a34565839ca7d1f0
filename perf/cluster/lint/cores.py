"""Traps of tasks, cores and GPUs. A rule says nothing where the script leaves a number open."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from perf.cluster.lint.findings import Finding, Job
from perf.cluster.lint.job import MPI, Launch, count

WORKERS = re.compile(r"--?(?:num[_-])?(?:data[_-])?(?:loader[_-])?workers(?:=(.*))?", re.DOTALL)


def srun_without_cores(job: Job) -> Iterator[Finding]:
    """The job has several cores a task, and srun is not told."""
    cores = job.size.cores
    for launch in job.launches:
        told = "--cpus-per-task" in launch.own or job.sets("SRUN_CPUS_PER_TASK")
        if launch.launcher == "srun" and (cores is None or cores > 1) and not told and "-c" not in launch.own:
            if job.script.asked("--cpus-per-task") is None:
                continue
            yield Finding(
                launch.line,
                "srun-without-cpus-per-task",
                f"the job asks for --cpus-per-task={job.script.asked('--cpus-per-task')}, and srun is not told",
                "srun of Slurm 22.05 to 23.02 does not take it from the job: each task gets one core, and every loader "
                "worker and thread shares it",
                "srun --cpus-per-task=$SLURM_CPUS_PER_TASK",
            )


def tasks_never_run(job: Job) -> Iterator[Finding]:
    """Several tasks or nodes, and the line that trains has no launcher."""
    if not job.launches or any(launch.launcher for launch in job.launches):
        return
    if job.size.several_tasks or job.size.several_nodes:
        size = f"{job.size.tasks or 'several'} tasks" + (
            f" on {job.size.nodes} nodes" if job.size.several_nodes else ""
        )
        first = job.launches[0]
        yield Finding(
            first.line,
            "tasks-never-run",
            f"the job has {size}, and {first.command.program} is started without srun or mpirun",
            "a batch script runs once, on the first node: the other tasks are paid for and never start",
            "put srun before it, or ask for one task with all its cores",
        )


def torchrun_per_task(job: Job) -> Iterator[Finding]:
    """Srun starts torchrun, which starts the ranks, more than once a node."""
    for launch in job.launches:
        per_node = launch.size.tasks_per_node
        if launch.launcher == "srun" and launch.torchrun and per_node is not None and per_node > 1:
            yield Finding(
                launch.line,
                "torchrun-per-task",
                f"srun starts torchrun {per_node} times a node",
                "torchrun starts the ranks of a node itself: each one more starts them all again, on the same GPUs",
                "srun --ntasks-per-node=1 … torchrun --nproc-per-node=GPUs",
            )


def tasks_not_gpus(job: Job) -> Iterator[Finding]:
    """Srun starts another number of ranks than there are GPUs."""
    for launch in job.launches:
        tasks, gpus = launch.size.tasks_per_node, launch.size.gpus
        if (
            launch.launcher != "srun"
            or launch.torchrun
            or tasks is None
            or gpus is None
            or gpus < 2
            or tasks == gpus
        ):
            continue
        if tasks == 1:
            continue  # one process may well drive all of them: DataParallel, or a launcher of its own
        yield Finding(
            launch.line,
            "tasks-not-gpus",
            f"srun starts {tasks} tasks a node, and the node's share is {gpus} GPUs",
            "one rank a GPU is what DistributedDataParallel expects: GPUs idle, or two ranks meet on one",
            "--ntasks-per-node equal to the GPUs of a node",
        )


def one_gpu_per_task(job: Job) -> Iterator[Finding]:
    """Each of several ranks sees a single GPU."""
    why = (
        "a rank that sees only its own GPU can't map its neighbours': NCCL falls back from peer-to-peer to slower "
        "paths, and cuda:LOCAL_RANK does not exist"
    )
    remedy = (
        "--gpus-per-node, so that every rank sees all GPUs of its node, and cuda:LOCAL_RANK in the program"
    )
    for launch in job.launches:
        size = launch.size
        if (
            launch.launcher == "srun"
            and size.several_tasks
            and (size.tasks_per_node is None or size.tasks_per_node > 1)
        ):
            bind = launch.own.get("--gpu-bind") or job.script.asked("--gpu-bind") or ""
            if size.gpus_per_task == 1:
                what = "--gpus-per-task=1 with several tasks a node"
            elif bind.removeprefix("verbose,").startswith(
                ("single:", "map_gpu", "mask_gpu", "closest", "per_task:1")
            ):
                what = f"--gpu-bind={bind} with several tasks a node"
            else:
                continue
            yield Finding(launch.line, "one-gpu-per-task", what, why, remedy)
        if launch.launcher == "jsrun":
            own = jsrun_options(launch)
            if count(own.get("-g")) == 1 and (count(own.get("-n")) or 2) > 1:
                remedy_jsrun = "one resource set a node with all its GPUs: jsrun -r1 -g6 -a6"
                what = "resource sets of one GPU (jsrun -g1)"
                yield Finding(launch.line, "one-gpu-per-task", what, why, remedy_jsrun)


def one_core_per_gpu(job: Job) -> Iterator[Finding]:
    """A GPU and a single core."""
    if job.launches and (job.size.gpus or 0) > 0 and job.script.asked("--cpus-per-gpu") is None:
        launch = job.launches[0]
        tasks = launch.size.tasks_per_node or 1
        cores = launch.size.cores if "--cpus-per-task" in launch.own else job.size.cores
        asked = job.script.asked("--cpus-per-task") or launch.own.get("--cpus-per-task")
        if (
            (cores == 1 or asked is None)
            and tasks <= (job.size.gpus or 0)
            and not job.script.asked("--exclusive")
        ):
            yield Finding(
                job.line_of("--cpus-per-task")
                if job.size.cores
                else job.line_of("--gres", "--gpus-per-node", "--gpus"),
                "one-core-per-gpu",
                "the training and its loader workers share one core",
                "they take turns, and the GPU waits: loading was 84.5 % of the training time in such a job "
                "(docs/job-scripts.md)",
                "--cpus-per-task=8, or as many cores a GPU as the node has, and as many loader workers",
            )


def workers_not_tied(job: Job) -> Iterator[Finding]:
    """A count of loader workers in digits."""
    for launch in job.launches:
        for word, after in zip(launch.words, [*launch.words[1:], ""], strict=True):
            match = WORKERS.fullmatch(word)
            workers = count(match[1] if match[1] is not None else after) if match else None
            if not workers:
                continue
            cores = launch.size.cores
            more = f", and a task has {cores} cores" if cores is not None else ""
            yield Finding(
                launch.line,
                "workers-not-tied",
                f"{workers} loader workers, in digits{more}",
                "whoever changes the cores changes nothing, or starts more workers than there are cores",
                "a number from the allocation; with Slurm $((SLURM_CPUS_PER_TASK - 1)) leaves the training a core",
            )


def ranks_on_one_core(job: Job) -> Iterator[Finding]:
    """Mpirun and jsrun, which tie ranks to cores unless they are told."""
    for launch in job.launches:
        words = " ".join(launch.command.words)
        if launch.launcher in MPI and not re.search(
            r"--?bind-to|:pe=|--?map-by|--?cpus-per-(proc|rank)|-bind", words, re.IGNORECASE
        ):
            yield Finding(
                launch.line,
                "ranks-on-one-core",
                f"{launch.launcher} is not told how to bind",
                "Open MPI ties each of two ranks to one core, and more than two to a NUMA domain or package: loader "
                "workers and threads inherit it",
                "mpirun --map-by ppr:RANKS:node:PE=CORES, or --bind-to none",
            )
        if launch.launcher == "jsrun":
            own = jsrun_options(launch)
            if "-b" not in own:
                yield Finding(
                    launch.line,
                    "ranks-on-one-core",
                    "jsrun is not told how to bind",
                    "its default, packed:1, ties each task to one core, and loader workers inherit it",
                    "jsrun -c CORES --bind=proportional-packed:CORES",
                )


def jsrun_options(launch: Launch) -> dict[str, str]:
    """Return jsrun's options by their short names, as far as rules ask for them."""
    long = {"--nrs": "-n", "--gpu_per_rs": "-g", "--cpu_per_rs": "-c", "--bind": "-b", "--tasks_per_rs": "-a"}
    found = {}
    for word, after in zip(launch.command.words[1:], [*launch.command.words[2:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in long:
            found[long[name]] = value if equals else after
        elif re.match(r"-[ngcab]", word):
            found[word[:2]] = word[2:] or after
    return found


RULES: tuple[Callable[[Job], Iterator[Finding]], ...] = (
    srun_without_cores,
    tasks_never_run,
    torchrun_per_task,
    tasks_not_gpus,
    one_gpu_per_task,
    one_core_per_gpu,
    workers_not_tied,
    ranks_on_one_core,
)
