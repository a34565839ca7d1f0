"""Slurm's commands as they are called, and what is made of their answers, from recordings of a real Slurm."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from perf.cluster.scheduler import Phase, Request, SchedulerError
from perf.cluster.slurm import Slurm
from perf.cluster.slurm_text import SACCT_FIELDS, parse_sacct, parse_scontrol, parse_squeue

RECORDED = Path(__file__).parent / "recorded" / "slurm-22.05.8"


def request(tmp_path, **changes) -> Request:
    """Return a request."""
    facts = {
        "name": "run.job", "script": tmp_path / "job.sh", "output": tmp_path / "std%out", "folder": tmp_path,
        "nodes": 2, "gpus": 4, "cores": 8, "seconds": 61, "exclusive": True,
    }  # fmt: skip
    return Request(**(facts | changes))


def answers(name: str, program: str) -> list[tuple[str, str]]:
    """Return the commands of a recording that begin with `program`, with what they printed."""
    found = []
    for part in re.split(r"^\$ ", (RECORDED / f"{name}.txt").read_text(), flags=re.MULTILINE)[1:]:
        command, _, rest = part.partition("\n")
        if command.startswith(program):
            out = re.search(r"^\[stdout\]\n(.*?)(?=^\[stderr\]|\Z)", rest, flags=re.MULTILINE | re.DOTALL)
            found.append((command, out[1].strip("\n") if out else ""))
    return found


def recorded_sacct(name: str) -> str:
    """Return the last recorded answer of sacct, in the columns that are asked for here."""
    for _, text in reversed(answers(name, "sacct --parsable2")):
        heading, *rows = [line.split("|") for line in text.splitlines()]
        if rows:
            return "\n".join("|".join(row[heading.index(field)] for field in SACCT_FIELDS) for row in rows)
    return ""


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("completed", Phase.COMPLETED),
        ("failed", Phase.FAILED),
        ("signal", Phase.FAILED),
        ("cancelled", Phase.CANCELLED),
        ("cancelled-pending", Phase.CANCELLED),
        ("timeout", Phase.TIMED_OUT),
        ("deadline", Phase.TIMED_OUT),
        ("out-of-memory", Phase.OUT_OF_MEMORY),
        ("node-fail", Phase.NODE_FAILED),
        ("preempted", Phase.PREEMPTED),
    ],
)
def test_each_recorded_end_is_read_alike_from_accounting_queue_and_controller(name, phase):
    """What a real Slurm said of a job in this state, by all three ways."""
    ((seen, usage),) = parse_sacct(recorded_sacct(name)).values()
    assert phase is seen.phase
    assert usage.source == "sacct"
    for command, text in answers(name, "squeue --noheader"):
        wanted = shlex.split(command)[-1].partition("=")[2].split("|")
        for line in text.splitlines():
            row = dict(zip(wanted, line.split("|"), strict=True))
            mine = "|".join(row[key] for key in ("%i", "%T", "%S", "%N", "%r"))
            assert [phase] == [found.phase for found in parse_squeue(mine).values()]
    for _, text in answers(name, "scontrol"):
        assert all(found.phase is phase for found in parse_scontrol(text).values())


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pending-dependency-never", "DependencyNeverSatisfied"),
        ("pending-PartitionTimeLimit", "PartitionTimeLimit"),
        ("pending-resources", "Resources"),
        ("pending-held", "JobHeldUser"),
    ],
)
def test_each_recorded_reason_of_a_waiting_job_is_read(name, reason):
    """The reason is what tells a hopeless job from one that waits its turn."""
    found = []
    for command, text in answers(name, "squeue --noheader"):
        wanted = shlex.split(command)[-1].partition("=")[2].split("|")
        for line in text.splitlines():
            row = dict(zip(wanted, line.split("|"), strict=True))
            found += parse_squeue("|".join(row[key] for key in ("%i", "%T", "%S", "%N", "%r"))).values()

    assert reason in {seen.reason for seen in found}
    assert all(
        seen.phase is Phase.PENDING and seen.started is None for seen in found if seen.reason == reason
    )


def test_everything_stands_on_the_command_line(site, tmp_path):
    """`SBATCH_*` would win over lines in the script. Minutes are rounded up, and % is meant as it is."""
    words = Slurm(
        site(scheduler='partition = "gpu x"\nqos = "q"\noptions = ["--comment=a b"]'), {}
    ).submit_words(request(tmp_path))

    wanted = {
        "--nodes=2",
        "--ntasks-per-node=1",
        "--cpus-per-task=8",
        "--gpus-per-node=4",
        "--time=2",
        "--exclusive",
    }
    assert wanted | {"--no-requeue", "--partition=gpu x", "--qos=q", "--comment=a b"} <= set(words)
    assert f"--output={tmp_path}/std%%out" in words
    assert str(tmp_path / "job.sh") == words[-1]


def test_a_job_without_gpus_asks_for_none_and_a_held_one_for_its_node(site, tmp_path):
    """Options that are not needed are not given."""
    words = Slurm(site(), {}).submit_words(request(tmp_path, gpus=0, exclusive=False, hold_to="n7"))

    assert not [word for word in words if word.startswith(("--gpu", "--gres", "--exclusive"))]
    assert "--nodelist=n7" in words


def test_the_id_is_the_last_thing_that_sbatch_prints(site, tmp_path, fake_command):
    """A site's wrapper talks before, and a multi-cluster Slurm adds the cluster's name."""
    fake_command("sbatch", 'echo "Checking your account..."; echo "123;cluster"')

    assert "123" == Slurm(site()).submit(request(tmp_path))


def test_sbatch_inherits_no_variable_of_an_outer_job(site, tmp_path, fake_command, monkeypatch):
    """Submitting from inside a job or a step works."""
    for name in ("SLURM_JOB_ID", "SLURM_CPU_BIND", "SBATCH_PARTITION", "RANK", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("SLURM_CONF", "/conf")
    fake_command("sbatch", f"env >{tmp_path}/env; echo 5")
    Slurm(site()).submit(request(tmp_path))
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}

    assert "SLURM_CONF" in names
    assert not names & {"SLURM_JOB_ID", "SLURM_CPU_BIND", "SBATCH_PARTITION", "RANK", "MASTER_PORT"}


def test_a_refusal_is_told_in_slurms_own_words_with_the_command(site, tmp_path, fake_command):
    """The person who reads it can try the command."""
    fake_command("sbatch", 'echo "sbatch: error: invalid partition specified: gpux" >&2; exit 1')

    with pytest.raises(SchedulerError, match=r"(?s)run.job was not submitted.*invalid partition.*--nodes=2"):
        Slurm(site()).submit(request(tmp_path))


def test_a_silent_controller_is_asked_whether_it_has_taken_the_job(site, tmp_path, fake_command):
    """A time-out of sbatch must not submit twice."""
    fake_command("sbatch", 'echo "sbatch: error: Batch job submission failed: Socket timed out" >&2; exit 1')
    fake_command("squeue", f'echo "$@" >{tmp_path}/asked; echo "77|PENDING|N/A||Priority"')

    assert "77" == Slurm(site()).submit(request(tmp_path))
    assert "--name=run.job" in (tmp_path / "asked").read_text()
    fake_command("squeue", "true")
    with pytest.raises(SchedulerError, match="was not submitted"):
        Slurm(site()).submit(request(tmp_path))


def test_an_unknown_id_is_an_empty_answer_and_another_error_is_one(site, fake_command):
    """squeue ends with 1 for a job that it has forgotten."""
    fake_command("squeue", 'echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1')
    assert {} == Slurm(site()).query(["5"])
    fake_command("squeue", 'echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1')
    with pytest.raises(SchedulerError, match="Unable to contact"):
        Slurm(site()).query(["5"])


def test_accounting_that_is_off_is_told_from_one_that_is_late(site, fake_command):
    """None: do not wait. Nothing yet: do."""
    fake_command("sacct", 'echo "Slurm accounting storage is disabled" >&2; exit 1')
    assert None is Slurm(site()).account(["5"], 1.8e9)
    fake_command("sacct", "true")
    assert {} == Slurm(site()).account(["5"], 1.8e9)


def test_several_jobs_are_described_by_one_command(site, fake_command):
    """scontrol takes one job or none; of all, ours are picked."""
    fake_command(
        "scontrol",
        'echo "JobId=5 JobState=FAILED ExitCode=1:0"; echo "JobId=6 JobState=RUNNING"; echo "JobId=7 JobState=TIMEOUT"',
    )

    assert {"5": Phase.FAILED, "7": Phase.TIMED_OUT} == {
        job: seen.phase for job, seen in Slurm(site()).describe(["5", "7"]).items()
    }


def test_nodes_that_can_take_a_job_are_listed_once(site, fake_command):
    """Down, drained and silent nodes are left out."""
    fake_command(
        "sinfo", "printf '%s\\n' 'n1|idle' 'n2|mix' 'n2|mix' 'n3|down' 'n4|drain' 'n5|idle*' 'n6|idle~'"
    )

    assert ["n1", "n2", "n6"] == Slurm(site()).hosts()


def test_a_command_that_is_not_there_is_named(site, tmp_path, monkeypatch, fake_command):
    """The commonest mistake: this is no login node."""
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SchedulerError, match="squeue can't be started.*a machine that submits jobs"):
        Slurm(site()).query(["1"])
