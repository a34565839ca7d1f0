"""LSF. Its outputs here are written after IBM's reference of LSF 10.1: there was no LSF to record them from."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perf.cluster.lsf import Lsf
from perf.cluster.lsf_text import FIELDS, parse_bjobs, parse_bsub
from perf.cluster.scheduler import Phase, Request, SchedulerError


def line(**values) -> str:
    """Return a line of bjobs, with `-` for what it has not."""
    return "^".join(str(values.get(name, "-")) for name in FIELDS)


@pytest.fixture
def make_request(tmp_path):
    """Make a request whose script is there."""
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\necho hi\n")

    def make(output="stdout"):
        return Request(
            name="run.job", script=script, output=tmp_path / output, folder=tmp_path, nodes=2, gpus=4, cores=8,
            seconds=3601, exclusive=True,
        )  # fmt: skip

    return make


def test_the_script_goes_to_standard_input_and_the_id_comes_back(site, make_request, fake_command, tmp_path):
    """Every LSF reads it there, whatever LSB_BSUB_PARSE_SCRIPT says."""
    fake_command("bsub", f'cat >{tmp_path}/in; echo "Job <4711> is submitted to queue <gpu>."')

    assert "4711" == Lsf(site("lsf")).submit(make_request())
    assert "#!/bin/bash\necho hi\n" == (tmp_path / "in").read_text()


def test_amounts_and_names_stand_on_the_command_line(site, make_request):
    """Slots are counted over all nodes, minutes rounded up, and the job is not rerun."""
    words = Lsf(site("lsf", 'partition = "gpu"\naccount = "a b"'), {}).submit_words(make_request())

    for pair in (
        ("-n", "16"),
        ("-R", "span[ptile=8]"),
        ("-gpu", "num=4:j_exclusive=yes"),
        ("-W", "61"),
        ("-q", "gpu"),
    ):
        assert pair == (words[words.index(pair[0])], words[words.index(pair[0]) + 1])
    assert {"-x", "-rn", "a b"} <= set(words)


def test_a_percent_sign_in_the_output_is_refused(site, make_request):
    """LSF has no way to write one, and would put the file elsewhere."""
    with pytest.raises(SchedulerError, match="without one"):
        Lsf(site("lsf"), {}).submit_words(make_request("50%J"))


@pytest.mark.parametrize(
    ("values", "phase", "status", "signal"),
    [
        ({"stat": "PEND", "pend_reason": "No GPUs; Job slot limit, 3 hosts"}, Phase.PENDING, None, None),
        ({"stat": "PSUSP"}, Phase.PENDING, None, None),
        ({"stat": "RUN", "exec_host": "16*n1:16*n2"}, Phase.RUNNING, None, None),
        ({"stat": "SSUSP"}, Phase.RUNNING, None, None),
        ({"stat": "DONE"}, Phase.COMPLETED, 0, None),
        ({"stat": "EXIT", "exit_code": 3}, Phase.FAILED, 3, None),
        (
            {"stat": "EXIT", "exit_code": 140, "exit_reason": "TERM_RUNLIMIT: after the run time limit"},
            Phase.TIMED_OUT, 140, 12,
        ),
        (
            {"stat": "EXIT", "exit_code": 137, "exit_reason": "TERM_MEMLIMIT: after the memory limit"},
            Phase.OUT_OF_MEMORY, 137, 9,
        ),
        ({"stat": "EXIT", "exit_code": 130, "exit_reason": "TERM_OWNER: job killed by owner"}, Phase.CANCELLED, 130, 2),
        ({"stat": "EXIT", "exit_reason": "TERM_PREEMPT: job killed after preemption"}, Phase.PREEMPTED, None, None),
        ({"stat": "EXIT", "exit_reason": "TERM_REQUEUE_ADMIN: killed and requeued"}, Phase.REQUEUED, None, None),
        ({"stat": "EXIT", "exit_reason": "TERM_ZOMBIE: while LSF is away"}, Phase.NODE_FAILED, None, None),
        ({"stat": "EXIT", "exit_reason": "something new"}, Phase.FAILED, None, None),
        ({"stat": "UNKWN"}, Phase.UNKNOWN, None, None),
        ({"stat": "ZOMBI"}, Phase.UNKNOWN, None, None),
    ],
)  # fmt: skip
def test_each_state_and_reason_is_read(values, phase, status, signal):
    """A reason may be empty, hold spaces or be new: none of them is an error, and none is taken for a good end."""
    ((seen, _),) = parse_bjobs(line(jobid=9, **values)).values()

    assert (phase, status, signal) == (seen.phase, seen.status, seen.signal)


def test_usage_is_read_with_its_units():
    """Seconds, bytes, slots and each host once."""
    text = line(
        jobid=9, stat="DONE", cpu_used="120.5 second(s)", run_time="60 second(s)", max_mem="1.5 Gbytes", slots=32,
        exec_host="16*n1:16*n2",
    )  # fmt: skip

    ((_, usage),) = parse_bjobs(f"{text}\n").values()

    assert (120.5, 60.0, int(1.5 * 2**30), 32, "n1,n2") == (
        usage.cpu_seconds, usage.wall_seconds, usage.peak_memory_bytes, usage.cores, usage.nodes,
    )  # fmt: skip


def test_a_job_that_lsf_has_forgotten_is_no_error(site, fake_command):
    """bjobs ends with 255 where one of several is not known, and tells of the others."""
    fake_command("bjobs", f"echo 'Job <8> is not found' >&2; echo '{line(jobid=9, stat='RUN')}'; exit 255")

    assert ["9"] == list(Lsf(site("lsf")).query(["8", "9"]))
    fake_command("bjobs", "echo 'LSF is down. Please wait ...' >&2; exit 255")
    with pytest.raises(SchedulerError, match="LSF is down"):
        Lsf(site("lsf")).query(["9"])


def test_only_ended_jobs_are_accounted(site, fake_command):
    """A running job's figures are not its last."""
    text = f"{line(jobid=8, stat='RUN')}\n{line(jobid=9, stat='DONE')}"
    fake_command("bjobs", f"cat <<'E'\n{text}\nE")

    assert ["9"] == list(Lsf(site("lsf")).account(["8", "9"], 0.0))


def test_cancelling_what_has_ended_is_no_error(site, fake_command):
    """bkill complains about jobs that are over."""
    fake_command("bkill", "echo 'Job <9>: Job has already finished' >&2; exit 255")
    Lsf(site("lsf")).cancel(["9"])
    fake_command("bkill", "echo 'User permission denied' >&2; exit 255")
    with pytest.raises(SchedulerError, match="permission denied"):
        Lsf(site("lsf")).cancel(["9"])


@pytest.mark.parametrize(
    ("text", "job"),
    [
        ("Job <123> is submitted to queue <gpu>.\n", "123"),
        ("Basic job slot information\nJob <7> is submitted to default queue <normal>.", "7"),
        ("Request aborted by esub. Job not submitted.\n", None),
        ("", None),
    ],
)
def test_what_bsub_says(text, job):
    """An id, or none."""
    assert job == parse_bsub(text)


words = st.text(st.sampled_from("0129¹٣.:-+KMGTB /*^eE\n"), max_size=400) | st.text(max_size=30)


@given(st.lists(words, max_size=len(FIELDS)), words)
@example([], "9" * 400 + " Gbytes")
@example(["¹"], "¹")
def test_any_text_is_survived(parts, word):
    """Whatever a site's wrapper prints, parsing raises nothing."""
    parse_bsub(word)
    parse_bjobs("\n".join(parts))
    parse_bjobs(
        "^".join(["1", *(part.replace("\n", " ") for part in [*parts, *[word] * len(FIELDS)])][: len(FIELDS)])
    )
