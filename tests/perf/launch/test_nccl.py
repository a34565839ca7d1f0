from __future__ import annotations

import pytest

from perf.launch.nccl import nccl_environment, parse_transports, read_transports, transport_in_words

P2P = """\
n1:27224:27909 [2] NCCL INFO Channel 05/0 : 2[2] -> 0[0] via P2P/CUMEM
n1:27225:27907 [3] NCCL INFO Channel 00/0 : 3[1a000] -> 1[3b000] via P2P/direct pointer/read
n1:27225:27907 [3] NCCL INFO Connected all rings
"""
SHM = "n1:12:13 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct\n"
NET = """\
n6:4015539:4015652 [0] NCCL INFO Channel 07/0 : 0[0] -> 2[0] [receive] via NET/IB/3/GDRDMA
n6:4015539:4015652 [0] NCCL INFO Channel 07/0 : 2[0] -> 0[0] [send] via NET/Socket/0
"""


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (P2P, {"P2P": 2}),
        (SHM, {"SHM": 1}),
        (NET, {"NET/IB": 1, "NET/Socket": 1}),
        ("n1:1:2 [0] NCCL INFO NET/Socket : Using [0]eth0\nvia P2P/x\n", {}),
    ],
)
def test_transports_are_counted_in_nccls_own_log(log, expected):
    """Lines of channels count, in the formats of NCCL 2.10 to 2.28; what NCCL merely found does not."""
    assert expected == dict(parse_transports(log))


@pytest.fixture
def nccl_spec(make_spec, tmp_path):
    """Return a function that makes the spec of an NCCL launch of two ranks."""
    return lambda **changes: make_spec(
        **{"device": "cuda", "backend": "nccl", "gpus": 2, "out_dir": str(tmp_path), **changes}
    )


def test_all_ranks_logs_count_and_no_log_is_not_known(nccl_spec, tmp_path):
    """Each process writes a file of its own; without any the transport is null."""
    assert read_transports(str(tmp_path)) is None
    (tmp_path / "nccl-n1-1.log").write_text(P2P)
    (tmp_path / "nccl-n1-2.log").write_text(SHM)

    assert {"P2P": 2, "SHM": 1} == read_transports(str(tmp_path))


def test_nccl_is_asked_unless_the_caller_asks_it_himself(nccl_spec, make_spec):
    """Its log goes to the launch's folder; gloo and a single rank have none."""
    asked = nccl_environment(nccl_spec(), {})
    assert asked["NCCL_DEBUG_FILE"].endswith("/nccl-%h-%p.log")
    assert {} == nccl_environment(nccl_spec(), {"NCCL_DEBUG": "WARN"})
    assert {} == nccl_environment(make_spec(), {})
    assert {} == nccl_environment(nccl_spec(ranks_per_node=1), {})


@pytest.mark.parametrize(
    ("transports", "nodes", "ok", "said"),
    [
        ({"P2P": 24}, 1, True, "NCCL talks over P2P (24 channels)."),
        ({"NET/IB": 8, "P2P": 8}, 2, True, "NCCL talks over NET/IB (8 channels), P2P (8 channels)."),
        (None, 1, True, "NCCL did not say which transport it chose."),
        (
            {"NET/Socket": 4},
            1,
            False,
            "NCCL talks over NET/Socket between GPUs of one node: NET/Socket (4 channels).",
        ),
    ],
)
def test_the_network_between_gpus_of_one_node_is_told_with_a_remedy(nccl_spec, transports, nodes, ok, said):
    """Between nodes it is the only way."""
    found, sentence, remedy = transport_in_words(nccl_spec(nodes=nodes), transports)

    assert (ok, said, not ok) == (found, sentence, bool(remedy))
