from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perf.launch.telemetry.reading import (
    GpuReading,
    Header,
    HostReading,
    Sample,
    bare_uuid,
    choose_indices,
    decode,
    encode,
)

TEXT = encode(Header("n1")) + "\n"
SAMPLE = Sample(1.5, "tick", HostReading(processes=3), [GpuReading("u", 0, event_reasons=[])], [7])

numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
samples = st.builds(
    Sample,
    time=st.floats(0, 2e9),
    why=st.sampled_from(["tick", "open", "close"]),
    host=st.builds(HostReading, cpu_seconds_total=numbers, pss_bytes=st.none() | st.integers(0)),
    gpus=st.lists(
        st.builds(GpuReading, uuid=st.text(), index=st.integers(0, 7), power_watts=numbers), max_size=3
    ),
)


@given(st.lists(samples, max_size=4))
def test_samples_survive_their_file(found):
    """What was written is read again, whatever a card is called."""
    text = TEXT + "".join(encode(sample) + "\n" for sample in found)
    assert (Header("n1"), found) == decode(text)


@given(st.integers(0, 400))
def test_a_file_that_was_cut_short_gives_what_is_whole(length):
    """A sampler that was killed costs its last line at most."""
    whole = TEXT + encode(SAMPLE) + "\n" + encode(SAMPLE) + "\n"
    header, found = decode(whole[:length])
    assert header in (None, Header("n1"))
    assert all(sample == SAMPLE for sample in found)


def test_a_line_of_another_kind_is_left_out():
    """A list, a number or an unknown key is no sample."""
    assert (None, [SAMPLE]) == decode(f'[1]\n3\n{{"time":1}}\n{encode(SAMPLE)}\n{{"surprise":1}}\n')


def test_uuids_are_written_as_torch_writes_them():
    """NVML's GPU- and MIG- are left out, and letters are small."""
    assert ["1c29d0a8-2b1f", "5d3c", "70ff74a1"] == [
        bare_uuid(t) for t in ("GPU-1C29D0A8-2b1f", "MIG-5d3c", " 70ff74a1 ")
    ]


def test_without_names_and_variable_every_card_counts():
    """A launch that may see all cards is looked at on all."""
    assert [0, 1, 2] == choose_indices(3, [None], None, {})


def test_a_uuid_that_the_library_does_not_know_leaves_the_choice_to_the_variable():
    """HIP's names differ from amdsmi's: the order of the variable holds then."""
    assert [1] == choose_indices(2, ["abc"], "1", {"x": 0, "y": 1})
