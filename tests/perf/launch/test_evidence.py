from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf import contract
from perf.launch.evidence import (
    BROKEN,
    GOOD,
    MISSING,
    Observed,
    gather,
    how_it_ended,
    read_dumps,
    read_gpus,
    read_log,
    read_record,
    read_state,
)
from perf.launch.torchrun import Failure, Report

NOTHING = Report({}, frozenset())


def observed(**changes):
    """Return what was seen of a torchrun that ended with status 1; keywords replace fields."""
    fields = {
        "exit_code": 1,
        "ended_at": 9.0,
        "timed_out": False,
        "gave_up": False,
        "started": 0.0,
        "seconds": 3.0,
        "ended": 1000.0,
    }
    return Observed(**{**fields, **changes})


@pytest.fixture
def spec(make_spec, tmp_path):
    """Return a spec whose folder exists."""
    return make_spec(out_dir=str(tmp_path))


def test_a_good_record_is_returned(spec, make_rank, tmp_path):
    """A record that decodes and names this launch is good."""
    record = make_rank(1)
    (tmp_path / "rank-1.json").write_text(contract.encode(record))
    assert (record, GOOD, "") == read_record(spec, 1)


def test_a_record_that_was_not_written_is_missing(spec):
    """No file is no record, and nothing is wrong with it."""
    assert (None, MISSING, "") == read_record(spec, 0)


@given(st.data())
def test_a_record_that_was_cut_anywhere_is_called_cut_short(make_spec, make_rank, tmp_path_factory, data):
    """Whatever part of a record is there, it is broken and never taken."""
    text = contract.encode(make_rank(0)).encode()
    folder = tmp_path_factory.mktemp("cut")
    cut = data.draw(st.integers(0, len(text) - 1))
    (folder / "rank-0.json").write_bytes(text[:cut])
    record, state, problem = read_record(make_spec(out_dir=str(folder)), 0)
    assert (None, BROKEN) == (record, state)
    assert problem.startswith("left its record cut short: ")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"run": "other"}, "wrote a record with run 'other', where '20261127T120000Z-abc123' was launched"),
        ({"launch": "0002"}, "wrote a record with launch '0002', where '0001' was launched"),
        ({"variant": "x"}, "wrote a record with variant 'x'"),
        ({"rank": 1}, "wrote a record with rank 1, where 0 was launched"),
        ({"world_size": 4}, "wrote a record with world_size 4, where 2 was launched"),
    ],
)
def test_a_record_of_another_launch_is_broken(spec, make_rank, tmp_path, changes, said):
    """Run, launch, variant, rank and world size must be those of the spec."""
    (tmp_path / "rank-0.json").write_text(contract.encode(make_rank(**{"rank": 0, **changes})))
    record, state, problem = read_record(spec, 0)
    assert (None, BROKEN) == (record, state)
    assert problem.startswith(said)


def test_a_record_against_the_contract_is_broken(spec, tmp_path):
    """JSON that is no rank record says what is missing."""
    (tmp_path / "rank-0.json").write_text('{"run": "r"}')
    assert read_record(spec, 0)[2].startswith("wrote a record that does not keep to the contract: ")
    assert "lacks the key" in read_record(spec, 0)[2]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"phase": "x"}', '{"phase": "x", "time": "now"}'])
def test_a_state_that_is_none_is_not_known(tmp_path, text):
    """A rank that wrote no whole state has no phase."""
    (tmp_path / "state-0.json").write_text(text)
    assert (None, None) == read_state(str(tmp_path), 0)


def test_a_state_is_read_and_made_harmless(tmp_path):
    """The phase goes into messages, so its characters are harmless."""
    (tmp_path / "state-0.json").write_text(json.dumps({"phase": "warm\x1b[2J", "time": 5}))
    assert (r"warm\x1b[2J", 5.0) == read_state(str(tmp_path), 0)


def test_the_gpus_of_a_rank_are_read_from_its_state(tmp_path):
    """Those that it took before it died, harmless; none where it had taken none, or wrote no whole state."""
    state = tmp_path / "state-0.json"
    assert () == read_gpus(str(tmp_path), 0)
    for text, expected in (
        ('{"phase": "setup", "time": 1, "gpus": ["5fa5", "a\\u001b"]}', ("5fa5", r"a\x1b")),
        ('{"phase": "setup", "time": 1}', ()),
        ("[]", ()),
        ('{"gpus": 7}', ()),
        ("{", ()),
    ):
        state.write_text(text)
        assert expected == read_gpus(str(tmp_path), 0)


def test_a_ranks_log_is_its_standard_error_or_else_its_output(make_spec, tmp_path):
    """Torchrun's own folder names are searched; an empty standard error gives way to the output."""
    spec = make_spec(strategy="ddp", ranks_per_node=2, out_dir=str(tmp_path))
    folder = tmp_path / "logs/uuid_x/attempt_0/1"
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_text("out\n")
    (folder / "stderr.log").write_text("")
    assert (str(folder / "stdout.log"), ["out"]) == read_log(spec, 1, direct=False)
    (folder / "stderr.log").write_text("err\n")
    assert ["err"] == read_log(spec, 1, direct=False)[1]
    assert ("", []) == read_log(spec, 0, direct=False)


def test_a_ranks_log_is_found_among_its_nodes(make_spec, tmp_path):
    """torchrun numbers the ranks of every node from 0: rank 3 is the second of the second node."""
    spec = make_spec(strategy="ddp", nodes=2, ranks_per_node=2, out_dir=str(tmp_path))
    for node, local in ((0, 1), (1, 1)):
        folder = tmp_path / f"logs/node-{node}/x/attempt_0/{local}"
        folder.mkdir(parents=True)
        (folder / "stderr.log").write_text(f"node {node}\n")
    assert ["node 1"] == read_log(spec, 3, direct=False)[1]
    assert ["node 0"] == read_log(spec, 1, direct=False)[1]


def test_frames_are_shown_with_their_source_line(tmp_path):
    """The line of a source file that can be read is added, any other frame is left as it is."""
    source = tmp_path / "a.py"
    source.write_text("x = 1\ny = 2\n")
    (tmp_path / "stack-0.txt").write_text(
        f'Thread 0x1 (most recent call first):\n  File "{source}", line 2 in f\n'
        '  File "/dev/zero", line 1 in g\n  File "<string>", line 1 in <module>\n'
    )
    (dump,) = read_dumps(str(tmp_path), 0)
    assert ["y = 2\n", "", ""] == [frame.source for frame in dump.frames]


def test_a_direct_rank_ends_as_its_process_does():
    """Without torchrun the exit status is the process's own; a clean-up leaves none."""
    assert {"exit_code": -9, "ended_at": 9.0, "ended_by_us": False} == how_it_ended(
        0, True, NOTHING, observed(exit_code=-9)
    )
    assert how_it_ended(0, True, NOTHING, observed(exit_code=None, ended_at=None))["ended_by_us"]


def test_torchruns_word_counts_before_what_was_seen():
    """A rank in the report has its exit code from there."""
    report = Report({1: Failure(1, 3, 12, "n1", 0, root_cause=True)}, frozenset())
    assert {"exit_code": 3, "ended_at": 5.0, "ended_by_us": False} == how_it_ended(
        1, False, report, observed(ranks_ended_at={1: 5.0}, rank_codes={1: 0})
    )


def test_a_rank_that_torchrun_ended_is_not_to_blame_for_its_signal():
    """In the report or not, a rank that was sent a closing signal was ended by others."""
    failures = {
        0: Failure(0, -15, 11, "n1", 1, root_cause=False),
        1: Failure(1, -9, 12, "n1", 0, root_cause=True),
    }
    report = Report(failures, frozenset({11}))
    assert how_it_ended(0, False, report, observed())["ended_by_us"]
    without = Report({1: failures[1]}, frozenset({11}))
    assert how_it_ended(0, False, without, observed(pids={0: 11}))["ended_by_us"]


def test_a_rank_that_the_report_leaves_out_had_ended_with_status_0():
    """Torchrun ends all that still run and reports all other statuses; what remains is a silent end."""
    report = Report({0: Failure(0, 1, 11, "n1", 0, root_cause=True)}, frozenset())
    ended = how_it_ended(1, False, report, observed(pids={1: 12}, ranks_ended_at={1: 4.0}))
    assert {"exit_code": 0, "ended_at": 4.0, "ended_by_us": False} == ended


def test_a_rank_of_unknown_number_is_not_called_silent_while_torchrun_ended_some():
    """Without its PID it may be the one that torchrun ended."""
    report = Report({0: Failure(0, 1, 11, "n1", 0, root_cause=True)}, frozenset({99}))
    assert how_it_ended(1, False, report, observed())["ended_by_us"]


def test_a_rank_that_was_gone_before_it_was_seen_is_the_silent_one():
    """No PID is known of it, but it is known to have ended while the others ran."""
    report = Report({0: Failure(0, 1, 11, "n1", 0, root_cause=True)}, frozenset({99}))
    ended = how_it_ended(1, False, report, observed(ranks_ended_at={1: 4.0}))
    assert {"exit_code": 0, "ended_at": 4.0, "ended_by_us": False} == ended


def test_a_content_torchrun_means_status_0_for_all():
    """Torchrun ends with 0 only if every rank did."""
    assert {"exit_code": 0, "ended_at": None, "ended_by_us": False} == how_it_ended(
        0, False, NOTHING, observed(exit_code=0)
    )


def test_a_rank_that_torchrun_never_noticed_had_ended_with_status_0():
    """When the launch is given up, the rank that ended without a word is the silent one, the other was ended."""
    seen = observed(exit_code=None, gave_up=True, ranks_ended_at={1: 4.0})
    assert {"exit_code": 0, "ended_at": 4.0, "ended_by_us": False} == how_it_ended(1, False, NOTHING, seen)
    assert how_it_ended(0, False, NOTHING, seen)["ended_by_us"]


def test_everything_is_gathered_in_rank_order(spec, make_rank, tmp_path):
    """Records, states, logs and the report of a launch come together."""
    (tmp_path / "rank-0.json").write_text(contract.encode(make_rank(0)))
    (tmp_path / "state-1.json").write_text(json.dumps({"phase": "window", "time": 990.0}))
    (tmp_path / "stderr.log").write_text("agent says\n")
    evidence, records = gather(spec, observed(survivors=(7,)), "n1")
    assert [make_rank(0)] == records
    assert [GOOD, MISSING] == [rank.record for rank in evidence.ranks]
    assert [None, "window"] == [rank.phase for rank in evidence.ranks]
    assert (("agent says",), (7,), 1, False) == (
        evidence.agent_log,
        evidence.survivors,
        evidence.agent_exit,
        evidence.reported,
    )
