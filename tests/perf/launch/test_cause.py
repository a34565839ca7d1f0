from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.launch.cause import find_cause, log_hint
from perf.launch.evidence import BROKEN, GOOD, MISSING, Evidence, RankEvidence
from perf.launch.progress import Progress
from perf.launch.stacks import Dump, Frame

BARRIER = (Dump(True, (Frame("/s/torch/distributed/distributed_c10d.py", 1, "barrier"),)),)
LOADER = (Dump(True, (Frame("/s/torch/utils/data/dataloader.py", 1, "_next_data"),)),)
GONE = ("RuntimeError: Connection closed by peer [127.0.0.1]:40000",)


def evidence(*ranks, **changes):
    """Return the evidence of a DDP launch whose torchrun ended with status 1; keywords replace fields."""
    fields = {
        "launch": "1",
        "variant": "v",
        "host": "n1",
        "direct": False,
        "time_limit": 60.0,
        "agent_exit": 1,
    }
    return Evidence(ranks=ranks, **{**fields, **changes})


def hung(*ranks):
    """Return the evidence of a launch that ran past its time limit."""
    return evidence(*ranks, agent_exit=None, timed_out=True)


def ended_with_the_rest(rank, **changes):
    """Return a rank that torchrun ended because another one had failed."""
    return RankEvidence(rank, exit_code=-15, ended_by_us=True, **changes)


MOVES, STANDS = Progress(812, 12, 6.0), Progress(812, 0, 6.0)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_launch_that_still_trained_is_slow(ranks):
    """Ranks that took steps near the limit do not wait for each other, whatever their stacks look like."""
    running = [
        RankEvidence(rank, ended_by_us=True, phase="window", dumps=BARRIER, progress=MOVES)
        for rank in range(ranks)
    ]
    cause = find_cause(hung(*running))
    assert (0 if ranks == 1 else None) == cause.rank
    assert "ran past its time limit of 60 s while in phase window" == cause.status
    assert (
        "It is slow, not stuck: near the limit it took 12 steps in 6 s, of 812 so far. "
        "--launch-timeout gives it more time." == cause.note
    )


def test_a_rank_that_was_stopped_near_the_limit_is_not_called_slow():
    """Its steps are older than what the kernel says of it."""
    stopped = RankEvidence(0, ended_by_us=True, phase="window", progress=MOVES, kernel_state="stopped")
    assert (
        "ran past its time limit of 60 s while in phase window (stopped)" == find_cause(hung(stopped)).status
    )
    assert "slow" not in find_cause(hung(stopped)).note


@pytest.mark.parametrize("other", [STANDS, None])
def test_a_launch_in_which_one_rank_stands_is_not_called_slow(other):
    """A host may queue some steps more when another rank hangs already: the one that takes none is told as before."""
    moving = RankEvidence(0, ended_by_us=True, phase="window", dumps=BARRIER, progress=MOVES)
    standing = RankEvidence(1, ended_by_us=True, phase="window", dumps=LOADER, progress=other)
    cause = find_cause(hung(moving, standing))
    assert (1, "Every other rank that was left waits for it.") == (cause.rank, cause.note)


@pytest.mark.parametrize("code", [1, 3, -9, -11, -15])
def test_a_rank_that_ended_by_itself_is_the_cause(code):
    """Exit statuses and signals that nobody here sent count, SIGTERM too."""
    cause = find_cause(evidence(ended_with_the_rest(0), RankEvidence(1, exit_code=code)))
    assert 1 == cause.rank
    assert str(abs(code)) in cause.status


def test_a_signal_that_only_the_clean_up_sent_is_not_the_cause():
    """A rank that torchrun or the launcher ended with SIGKILL has not failed."""
    ranks = RankEvidence(0, exit_code=-9, ended_by_us=True), RankEvidence(1, exit_code=2)
    assert (1, "exit status 2") == (find_cause(evidence(*ranks)).rank, find_cause(evidence(*ranks)).status)


def test_the_rank_whose_partner_went_away_is_not_the_first():
    """Torchrun may take the victim for the root cause, being the lower rank; the victim's log tells better."""
    victim = RankEvidence(0, exit_code=1, ended_at=5.0, root_cause=True, log=GONE)
    cause = find_cause(evidence(victim, RankEvidence(1, exit_code=-11, ended_at=5.0)))
    assert (1, "killed by signal 11 (SIGSEGV)") == (cause.rank, cause.status)


def test_a_victim_alone_is_named_after_all():
    """Where no other rank is known to have failed, the one that failed is told."""
    cause = find_cause(evidence(RankEvidence(0, exit_code=1, log=GONE), ended_with_the_rest(1)))
    assert (0, "exit status 1") == (cause.rank, cause.status)


def test_the_silent_rank_is_named_before_the_one_that_failed_because_of_it():
    """A rank that ended with status 0 and no record made the other lose its partner."""
    cause = find_cause(
        evidence(RankEvidence(0, exit_code=1, log=GONE, root_cause=True), RankEvidence(1, exit_code=0))
    )
    assert (1, "ended with exit status 0 and wrote no record") == (cause.rank, cause.status)


def test_of_two_that_failed_the_earlier_is_the_cause():
    """What was seen from outside decides before torchrun's guess."""
    late = RankEvidence(0, exit_code=1, ended_at=6.0, root_cause=True)
    assert 1 == find_cause(evidence(late, RankEvidence(1, exit_code=1, ended_at=5.0))).rank


def test_torchruns_root_cause_decides_where_nothing_else_was_seen():
    """Ranks that end before they were first looked at are told apart by the report."""
    ranks = RankEvidence(0, exit_code=1), RankEvidence(1, exit_code=1, root_cause=True)
    assert 1 == find_cause(evidence(*ranks)).rank


def test_a_broken_record_is_a_failure_with_its_detail():
    """The status says what is wrong in few words, the note holds the rest."""
    broken = RankEvidence(
        1, exit_code=0, record=BROKEN, problem="left its record cut short: /o/rank-1.json: char 9"
    )
    cause = find_cause(evidence(RankEvidence(0, exit_code=0, record=GOOD), broken, agent_exit=0))
    assert (1, "ended with exit status 0 and left its record cut short") == (cause.rank, cause.status)
    assert "/o/rank-1.json: char 9" in cause.note


def test_a_good_record_does_not_excuse_an_exit_status():
    """A rank that crashed after its record was written has failed."""
    assert 0 == find_cause(evidence(RankEvidence(0, exit_code=-11, record=GOOD), ended_with_the_rest(1))).rank


def test_a_killed_torchrun_is_the_cause_itself():
    """No rank is blamed for what happened when torchrun was gone."""
    cause = find_cause(
        evidence(ended_with_the_rest(0), ended_with_the_rest(1), agent_exit=-9, agent_ended_at=5.0)
    )
    assert (None, "killed by signal 9 (SIGKILL)") == (cause.rank, cause.status)


def test_a_rank_that_ended_before_torchrun_was_killed_is_the_cause():
    """Who failed first is first, whatever happened to torchrun afterwards."""
    early = RankEvidence(0, ended_at=4.0)
    cause = find_cause(evidence(early, ended_with_the_rest(1), agent_exit=-9, agent_ended_at=5.0))
    assert (0, "ended and wrote no record; nobody saw its exit status") == (cause.rank, cause.status)


def test_a_torchrun_that_starts_no_rank_is_told_by_its_exit_status():
    """A usage error or a host name that can't be resolved is torchrun's own."""
    cause = find_cause(
        evidence(RankEvidence(0, ended_by_us=True), RankEvidence(1, ended_by_us=True), agent_exit=2)
    )
    assert (None, "exit status 2") == (cause.rank, cause.status)


def test_the_rank_that_does_not_wait_is_to_blame_for_a_hang():
    """Of ranks at the time limit, those inside a barrier are victims."""
    cause = find_cause(
        hung(RankEvidence(0, phase="window", dumps=BARRIER), RankEvidence(1, phase="window", dumps=LOADER))
    )
    assert (1, "ran past its time limit of 60 s while in phase window") == (cause.rank, cause.status)


def test_a_rank_without_a_stack_is_to_blame_before_one_that_waits():
    """A rank that could not dump is not known to wait: it is stopped, or hung early."""
    stopped = RankEvidence(0, phase="data", kernel_state="stopped by a signal")
    cause = find_cause(hung(stopped, RankEvidence(1, phase="build", dumps=BARRIER)))
    assert (0, "ran past its time limit of 60 s while in phase data (stopped by a signal)") == (
        cause.rank,
        cause.status,
    )


def test_a_rank_that_crashed_comes_before_those_that_hang():
    """Hanging is what the others do when one is gone."""
    cause = find_cause(hung(RankEvidence(0, dumps=LOADER, ended_by_us=True), RankEvidence(1, ended_at=3.0)))
    assert 1 == cause.rank


def test_when_all_wait_the_one_that_is_behind_is_named():
    """Ranks in different operations wait for each other; the phases tell which is behind."""
    ranks = RankEvidence(0, phase="window", dumps=BARRIER), RankEvidence(1, phase="build", dumps=BARRIER)
    cause = find_cause(hung(*ranks))
    assert 1 == cause.rank
    assert "not in the same operation" in cause.note


def test_a_rank_that_hangs_in_its_data_is_named_before_one_that_waits_for_it_to_join():
    """A ring's workers begin before the process group is joined; nothing that is known of either tells who waits."""
    cause = find_cause(hung(RankEvidence(0, phase="devices"), RankEvidence(1, phase="feed")))

    assert (1, "ran past its time limit of 60 s while in phase feed") == (cause.rank, cause.status)


def test_when_all_wait_in_one_phase_no_rank_is_named():
    """A dead link hangs every rank alike; blaming one would mislead."""
    ranks = [RankEvidence(rank, phase="window", dumps=BARRIER) for rank in range(4)]
    cause = find_cause(hung(*ranks))
    assert cause.rank is None
    assert "network" in cause.note


def test_a_rank_that_waits_for_ranks_that_are_done_is_named():
    """Nobody is left to wait for, so it asks for more than the others did."""
    cause = find_cause(hung(RankEvidence(0, record=GOOD), RankEvidence(1, phase="validate", dumps=BARRIER)))
    assert (1, "It waits for others, but every other rank is done.") == (cause.rank, cause.note)


def test_a_launch_that_hangs_at_its_end_blames_nobody():
    """With every record there, the hang is in the end of processes."""
    cause = find_cause(hung(*(RankEvidence(rank, record=GOOD, ended_by_us=True) for rank in range(2))))
    assert (None, "ran past its time limit of 60 s") == (cause.rank, cause.status)


def test_a_single_worker_that_hangs_in_backward_is_named():
    """With one rank there is nobody to wait for."""
    worker = RankEvidence(0, phase="warm-up", dumps=BARRIER, ended_by_us=True)
    cause = find_cause(evidence(worker, direct=True, agent_exit=None, timed_out=True))
    assert (0, "ran past its time limit of 60 s while in phase warm-up") == (cause.rank, cause.status)


RANKS = st.builds(
    RankEvidence,
    rank=st.just(0),
    exit_code=st.none() | st.integers(-64, 255),
    ended_at=st.none() | st.floats(0, 100),
    ended_by_us=st.booleans(),
    root_cause=st.booleans(),
    phase=st.sampled_from([None, "data", "window", "unheard of"]),
    phase_time=st.none() | st.floats(0, 100),
    record=st.sampled_from([MISSING, BROKEN, GOOD]),
    log=st.sampled_from([(), GONE]),
    dumps=st.sampled_from([(), BARRIER, LOADER]),
)


@given(
    st.lists(RANKS, min_size=1, max_size=5), st.none() | st.integers(-64, 255), st.booleans(), st.booleans()
)
def test_any_evidence_has_a_cause_that_is_no_rank_which_others_ended(changed, ranks, code, timed_out, direct):
    """A cause is always found; a rank that was ended with the rest is only named for hanging."""
    numbered = [changed(rank, rank=number) for number, rank in enumerate(ranks)]
    cause = find_cause(evidence(*numbered, agent_exit=code, timed_out=timed_out, direct=direct))
    assert cause.status
    if cause.rank is not None and numbered[cause.rank].ended_by_us:
        assert cause.status.startswith("ran past its time limit")


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        (
            "RuntimeError: unable to allocate shared memory(shm) for file </torch_1>: No space left on device (28)",
            "df -h /dev/shm",
        ),
        ("RuntimeError: DataLoader worker (pid 3) is killed by signal: Bus error.", "--shm-size"),
        ("OSError: [Errno 28] No space left on device: 'rank-1.json'", "The disk is full"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "nvidia-smi"),
        ("MemoryError", "memory limit"),
        ("a setting was asked for and is not in force: TF32 is on", "overrides it"),
        (
            "a setting was asked for and is not in force: this stack has no line_profiler; install it",
            "the driver's own",
        ),
        ("ValueError: shapes", ""),
    ],
)
def test_what_a_log_gives_away_comes_with_a_remedy(line, remedy):
    """The most telling error decides; one that nothing is known of has no advice."""
    found = log_hint(["Traceback (most recent call last):", line])

    assert remedy in found
    assert bool(remedy) == bool(found)
