"""Each trap is planted and found by name and line, and its cure silences it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.cluster.lint import cores, lint, running

SCRIPTS = Path(__file__).resolve().parent / "scripts"
HEAD = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=4 --cpus-per-task=8 --gpus-per-node=4\n"
SRUN = "srun --cpus-per-task=8 --kill-on-bad-exit=1"
RUN = f"{SRUN} python train.py"
TORCHRUN = f"{SRUN} --ntasks-per-node=1 torchrun --nnodes=2"


def names(text):
    return [finding.name for finding in lint(text)]


def one_node(rest, cores_asked="--cpus-per-task=8", gpus=1):
    return f"#!/bin/bash\n#SBATCH --ntasks=1 {cores_asked} --gres=gpu:{gpus}\n{rest}\n"


# name, script with the trap, line of the finding, the same script cured
TRAPS = [
    (
        "directive-ignored",
        f"{HEAD}module load torch\n#SBATCH --time=10\n{RUN}",
        4,
        f"{HEAD}#SBATCH --time=10\n{RUN}",
    ),
    ("memory-twice", f"{HEAD}#SBATCH --mem=8G --mem-per-cpu=1G\n{RUN}", 3, f"{HEAD}#SBATCH --mem=8G\n{RUN}"),
    (
        "srun-without-cpus-per-task",
        f"{HEAD}srun -K1 python train.py",
        3,
        f"{HEAD}srun -c 8 -K1 python train.py",
    ),
    (
        "srun-without-cpus-per-task",
        f"{HEAD}srun -K1 python train.py",
        3,
        f"{HEAD}export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK\nsrun -K1 python train.py",
    ),
    ("tasks-never-run", f"{HEAD}python train.py", 3, f"{HEAD}{RUN}"),
    ("tasks-never-run", "#SBATCH -n2\nkernprof -l train.py", 2, "#SBATCH -n1\nkernprof -l train.py"),
    (
        "torchrun-per-task",
        f"{HEAD}{SRUN} torchrun --standalone train.py",
        3,
        f"{HEAD}{TORCHRUN} --standalone train.py",
    ),
    ("torchrun-per-task", f'{HEAD}{SRUN} bash -c "torchrun --standalone x.py"', 3, f"{HEAD}{RUN}"),
    ("tasks-not-gpus", f"{HEAD}{SRUN} --ntasks-per-node=2 python train.py", 3, f"{HEAD}{RUN}"),
    ("one-gpu-per-task", f"{HEAD}{SRUN} --gpus-per-task=1 python train.py", 3, f"{HEAD}{RUN}"),
    ("one-gpu-per-task", f"{HEAD}{SRUN} --gpu-bind=single:1 python train.py", 3, f"{HEAD}{RUN}"),
    (
        "one-gpu-per-task",
        "#BSUB -nnodes 1\njsrun -n6 -a1 -g1 -c7 -bpacked:7 python train.py",
        2,
        "#BSUB -nnodes 1\njsrun -n1 -a6 -g6 -c42 -bpacked:7 python train.py",
    ),
    ("one-core-per-gpu", one_node("python train.py", "--cpus-per-task=1"), 2, one_node("python train.py")),
    ("one-core-per-gpu", one_node("python train.py", ""), 2, one_node("python train.py", "--cpus-per-gpu=8")),
    (
        "workers-not-tied",
        one_node("python train.py --num_workers 4"),
        3,
        one_node("python train.py --num_workers $SLURM_CPUS_PER_TASK"),
    ),
    (
        "workers-not-tied",
        one_node("python train.py --workers=16"),
        3,
        one_node("python train.py --workers=0"),
    ),
    (
        "fixed-master-port",
        f"{HEAD}export MASTER_PORT=29500\n{RUN}",
        3,
        f"{HEAD}export MASTER_PORT=$port\n{RUN}",
    ),
    (
        "fixed-master-port",
        f"{HEAD}{TORCHRUN} --rdzv_endpoint=$head:29400 train.py",
        3,
        f"{HEAD}{TORCHRUN} --rdzv_endpoint=$head:$port train.py",
    ),
    ("fixed-master-port", f"{HEAD}{TORCHRUN} train.py", 3, f"{HEAD}{TORCHRUN} --master-port $port train.py"),
    (
        "master-is-localhost",
        f"{HEAD}MASTER_ADDR=$(scontrol show hostnames | head -n1 || echo localhost)\n{RUN}",
        3,
        f"{HEAD}MASTER_ADDR=$(scontrol show hostnames | head -n1)\n{RUN}",
    ),
    ("no-kill-on-bad-exit", f"{HEAD}srun -c8 python train.py", 3, f"{HEAD}srun -c8 -K python train.py"),
    ("no-kill-on-bad-exit", f"{HEAD}srun -c8 -K0 python train.py", 3, f"{HEAD}{RUN}"),
    (
        "steps-without-overlap",
        f"{HEAD}{SRUN} nvidia-smi dmon &\n{RUN}",
        4,
        f"{HEAD}{SRUN} nvidia-smi dmon &\n{SRUN} --overlap python train.py",
    ),
    (
        "steps-without-overlap",
        "#SBATCH -n1 -c8\nsrun -c8 python a.py &\nsrun -c8 python b.py &\nwait",
        3,
        "#SBATCH -n1 -c8\nsrun -c4 python a.py &\nsrun -c4 python b.py &\nwait",
    ),
    ("background-without-wait", one_node("python train.py &"), 3, one_node("python train.py &\nwait")),
    ("exit-status-lost", f"{HEAD}{RUN} | tee log", 3, f"{HEAD}set -o pipefail\n{RUN} | tee log"),
    ("exit-status-lost", f"{HEAD}{RUN}\necho done", 4, f"{HEAD}set -euo pipefail\n{RUN}\necho done"),
    ("exit-status-lost", f"{HEAD}{RUN}\necho done", 4, f"{HEAD}{RUN}\nstatus=$?\necho done\nexit $status"),
    ("ranks-on-one-core", "mpirun -np 4 python train.py", 1, "mpirun -np 4 --bind-to none python train.py"),
    (
        "ranks-on-one-core",
        "jsrun -n1 -a6 -g6 -c42 python train.py",
        1,
        "jsrun -n1 -a6 -g6 -c42 --bind=proportional-packed:7 python train.py",
    ),
    ("foreign-variable", "#BSUB -W 10\nx=out_${SLURM_JOBID}", 2, "#BSUB -W 10\nx=out_${LSB_JOBID}"),
    ("foreign-variable", "#SBATCH -n1\necho $LSB_JOBID", 2, "#SBATCH -n1\necho $SLURM_JOB_ID"),
]


@pytest.mark.parametrize(("name", "script", "line", "cured"), TRAPS)
def test_planted_trap_is_found_and_its_cure_silences_it(name, script, line, cured):
    """A trap is named with its line, and what the remedy says is not found again."""
    assert (name, line) in [(finding.name, finding.line) for finding in lint(script)]
    assert name not in names(cured)


def test_every_rule_is_planted():
    """No rule goes without a script that it finds something in."""
    planted = {finding.name for _, script, _, _ in TRAPS for finding in lint(script)}
    assert {name for name, *_ in TRAPS} == planted
    assert len(planted) == len([*cores.RULES, *running.RULES])


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("one-gpu-kernprof.sh", [("one-core-per-gpu", 7)]),
        ("one-gpu-singularity.sh", [("one-core-per-gpu", 6)]),
        ("two-gpus-dataparallel.sh", [("tasks-never-run", 17)]),
        ("summit-jsrun.sh", [("foreign-variable", 10), ("workers-not-tied", 9)]),
    ],
)
def test_published_script(script, expected):
    """Scripts that tutorials publish have the traps that their texts tell of, and no other."""
    found = lint((SCRIPTS / script).read_text(encoding="utf-8"))
    assert sorted(expected) == sorted((finding.name, finding.line) for finding in found)


@pytest.mark.parametrize(
    "script",
    [
        f"{HEAD}{RUN}",
        # Numbers that the script does not hold are not guessed.
        "#SBATCH --ntasks=$N --cpus-per-task=$C\nsrun --cpus-per-task=$C -K1 python train.py --num_workers $W",
        # A single task may well see a single GPU.
        one_node("srun --cpus-per-task=8 --gpus-per-task=1 python train.py"),
        # Here-documents are text, not commands.
        f"{HEAD}cat > run.py <<'END'\nsrun python x.py | tee log\nexport MASTER_PORT=1234\nEND\n{RUN}",
        "##SBATCH --ntasks=2\n#SBATCH --ntasks=1  # don't\npython train.py",
        "python -m pip install torch\npython3 --version\nsrun hostname",
        "",
    ],
)
def test_sound_script_is_left_alone(script):
    """What is not a trap, and what can't be known, is not reported."""
    assert [] == names(script)


@given(
    st.lists(
        st.sampled_from(
            [
                *HEAD.splitlines(),
                RUN,
                TORCHRUN,
                "'",
                '"',
                "\\",
                "<<END",
                "&",
                "||",
                "srun",
                "-",
                "#SBATCH -n",
                "\0",
            ]
        )
        | st.text(max_size=20)
    )
)
def test_any_text_is_read(lines):
    """No text, however broken, ends in an exception, and every finding lies in the text."""
    text = "\n".join(lines)
    for finding in lint(text):
        assert 1 <= finding.line <= len(text.splitlines())
