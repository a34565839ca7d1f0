from __future__ import annotations

import pytest

from perf.cluster.lint.job import count, launches, size_of
from perf.cluster.lint.reader import own_length, read_script


def test_directives_in_every_spelling():
    """Long and short options, with an equals sign, a blank or nothing between name and value, several in a line."""
    script = read_script(
        "#SBATCH --nodes=2\n#SBATCH --ntasks 8 -c4\n#SBATCH -G 3 # three\n#SBATCH\t--exclusive\n"
    )
    assert {"--nodes": "2", "--ntasks": "8", "--cpus-per-task": "4", "--gpus": "3", "--exclusive": ""} == {
        each.name: each.value for each in script.directives
    }


def test_last_directive_holds():
    """Of two directives of one name sbatch takes the last."""
    assert "4" == read_script("#SBATCH -n 2\n#SBATCH --ntasks=4\n").asked("--ntasks")


def test_continued_line_has_its_first_lines_number():
    """A command over several lines is one command, where it begins."""
    (command,) = read_script("\nsrun \\\n  -n 2 \\\n  python x.py\n").commands
    assert (2, ("srun", "-n", "2", "python", "x.py")) == (command.line, command.words)


def test_commands_are_told_apart():
    """Separators end a command and stay with it; redirections do not."""
    commands = read_script("a 2>&1 | b && c & d; e > out &").commands
    assert [("a", "|"), ("b", "&&"), ("c", "&"), ("d", ""), ("e", "&")] == [
        (each.words[0], each.after) for each in commands
    ]


def test_assignments_are_read_with_and_without_export():
    """A variable is seen however it is set."""
    script = read_script('A=1\nexport B="x y" C=3\nD=4 srun python x.py')
    assert {"A": "1", "B": "x y", "C": "3", "D": "4"} == {
        each.name: each.value for each in script.assignments
    }
    assert ["srun"] == [each.program for each in script.commands]


def test_apostrophe_in_a_comment_opens_no_quote():
    """What follows a comment with an apostrophe is read line by line."""
    assert ["a", "b"] == [each.program for each in read_script("a # don't\nb\n").commands]


def test_quote_over_lines_is_one_word():
    """A quoted program over several lines belongs to its command."""
    assert 1 == len(read_script("bash -c '\npython x.py\n'\n").commands)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("srun -n 4 --label python x.py -c 3", 3),
        ("srun --overlap -K1 --cpus-per-task=4 python", 3),
        ("srun -- python", 1),
        ("srun --mem", 1),
        ("srun", 0),
    ],
)
def test_launchers_options_end_where_its_program_begins(words, expected):
    """Options of the program are not taken for the launcher's."""
    assert expected == own_length(words.split())


@pytest.mark.parametrize(
    ("directives", "expected"),
    [
        ("--nodes=2 --ntasks-per-node=4", (2, 8, 4)),
        ("--nodes=2 --ntasks=8", (2, 8, None)),
        ("--nodes=2", (2, 2, 1)),
        ("--ntasks=4", (None, 4, 4)),
        ("--ntasks=1", (1, 1, 1)),
        ("--nodes=$N", (None, None, 1)),
        ("", (1, 1, 1)),
    ],
)
def test_size_of_a_job(directives, expected):
    """Nodes, tasks and tasks a node follow Slurm's defaults, and stay unknown where the script hides them."""
    size = size_of(read_script(f"#SBATCH {directives}\n"))
    assert expected == (size.nodes, size.tasks, size.tasks_per_node)


@pytest.mark.parametrize(
    ("directives", "expected"),
    [
        ("--gres=gpu:2", 2),
        ("--gres=gpu:a100:4,tmp:10", 4),
        ("--gres=gpu", 1),
        ("--gpus-per-node=h100:8", 8),
        ("--ntasks=1 --gpus=3", 3),
        ("--ntasks=4 --nodes=1 --gpus-per-task=1", 4),
        ("--gpus-per-node=$G", None),
        ("", None),
    ],
)
def test_gpus_of_a_node(directives, expected):
    """GPUs a node are read from each of Slurm's ways to ask for them."""
    assert expected == size_of(read_script(f"#SBATCH {directives}\n")).gpus


def test_step_overrides_the_job():
    """A step's own options lie over the job's."""
    (launch,) = launches(read_script("#SBATCH -N2 --ntasks-per-node=4 -c2\nsrun -N1 -n1 -c8 python x.py"))
    assert (1, 1, 8) == (launch.size.nodes, launch.size.tasks, launch.size.cores)


def test_training_inside_a_shell_is_seen():
    """What `bash -c` starts behind a launcher and a container counts."""
    text = (
        'srun singularity exec --nv image.sif /bin/bash -c "source env.sh; torchrun --nproc-per-node=2 x.py"'
    )
    (launch,) = launches(read_script(text))
    assert ("srun", "torchrun") == (launch.launcher, launch.torchrun[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4", 4), ("gpu:a100:4", 4), ("$N", None), ("1-4", None), ("²", None), (None, None)],
)
def test_count(text, expected):
    """A count is digits, and nothing else."""
    assert expected == count(text)
