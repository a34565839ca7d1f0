"""What the driver and the worker say to each other survives the way through JSON, or is refused with its place."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import stat
import types
import typing
from typing import Any, Union

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perf import contract, records
from perf.contract import ContractError, EpochRecord, LaunchRecord, LaunchSpec, RankRecord, decode, encode

KINDS = (LaunchSpec, EpochRecord, RankRecord, LaunchRecord, records.VerdictRecord, records.Event)

relaxed = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])

finite = st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | finite | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def is_optional(kind: Any) -> bool:
    return typing.get_origin(kind) in {Union, types.UnionType}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values that fit an annotation of the contract."""
    arguments = typing.get_args(kind)
    if kind is Any:
        return plain
    if is_optional(kind):
        return st.none() | values(next(a for a in arguments if a is not type(None)))
    if typing.get_origin(kind) is list:
        return st.lists(values(arguments[0]), max_size=2)
    if typing.get_origin(kind) is dict:
        return st.dictionaries(st.text(max_size=5), values(arguments[1]), max_size=2)
    if dataclasses.is_dataclass(kind):
        return messages(kind)
    return {
        int: st.integers(-(10**18), 10**18),
        float: finite,
        str: st.text(max_size=8),
        bool: st.booleans(),
    }[kind]


def messages(kind: Any) -> st.SearchStrategy[Any]:
    """Any message of a kind, every field filled."""
    hints = typing.get_type_hints(kind)
    fields = {name: values(hint) for name, hint in hints.items()}
    if "schema" in fields:
        fields["schema"] = st.just(contract.SCHEMA)
    return st.builds(kind, **fields)


def smallest(kind: Any) -> Any:
    """The plainest message of a kind: empty lists, zeros, no optional value."""
    plainest = {int: 0, float: 0.0, str: "", bool: False}

    def value(hint: Any) -> Any:
        if is_optional(hint):
            return None
        return plainest[hint] if hint in plainest else typing.get_origin(hint)()

    required = [
        f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING
    ]
    hints = typing.get_type_hints(kind)
    return kind(**{name: value(hints[name]) for name in required})


def as_data(message: Any) -> dict[str, Any]:
    return json.loads(encode(message))  # type: ignore[no-any-return]


each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


# --- round trips


@relaxed
@given(st.sampled_from(KINDS).flatmap(messages))
def test_a_message_survives_the_way_through_json(message):
    """What is decoded equals what was encoded, nested records and exact floats included."""
    assert message == decode(type(message), encode(message), "there")


@relaxed
@given(st.sampled_from(KINDS).flatmap(messages))
def test_a_message_is_one_line_of_ascii(message):
    """A record fits into one line of a file, whatever text it holds."""
    text = encode(message)

    assert text.isascii()
    assert [text] == text.splitlines()


@each_kind
def test_bytes_read_like_text(kind):
    """A file's bytes can be decoded as they are."""
    assert smallest(kind) == decode(kind, encode(smallest(kind)).encode(), "there")


@each_kind
def test_a_key_with_a_default_may_be_missing(kind):
    """A record that was written before a field was added can still be read."""
    required = [
        f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING
    ]
    data = as_data(smallest(kind))

    assert smallest(kind) == decode(kind, json.dumps({name: data[name] for name in required}), "there")


def test_a_whole_number_does_for_a_number():
    """JSON writers drop the point of 1.0; a time of 1 is read as the float that it is."""
    read = decode(EpochRecord, json.dumps({**as_data(smallest(EpochRecord)), "seconds": 1}), "there")

    assert 1.0 == read.seconds
    assert float is type(read.seconds)


# --- what is not finite


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_not_written(value):
    """NaN and infinity are not JSON: the error names the kind of message and the place."""
    epoch = dataclasses.replace(smallest(EpochRecord), seconds=value)
    record = dataclasses.replace(smallest(RankRecord), epochs=[epoch], effective={"lr": [value]})

    with pytest.raises(
        ContractError, match=r"RankRecord: \$\.epochs\[0\]\.seconds is -?(nan|inf), \$\.effective\.lr\[0\]"
    ):
        encode(record)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + 400 * "0"])
@pytest.mark.parametrize("key", ["seconds", "validation_loss"])
def test_what_is_not_finite_is_not_read(word, key):
    """Another writer's NaN, infinity or number beyond a float is refused with the file's name."""
    data = {**as_data(smallest(EpochRecord)), key: "HERE"}

    with pytest.raises(ContractError, match=r"^file\.json: "):
        decode(EpochRecord, json.dumps(data).replace('"HERE"', word), "file.json")


def test_what_is_not_finite_is_not_read_where_anything_goes():
    """A field of any JSON holds no NaN either, or it could not be written again."""
    text = encode(dataclasses.replace(smallest(RankRecord), telemetry={"power": 7.25})).replace("7.25", "NaN")

    with pytest.raises(ContractError, match=r"^file\.json: not readable as JSON \(NaN is no JSON\)"):
        decode(RankRecord, text, "file.json")


# --- what does not keep to the contract


@relaxed
@given(st.data())
def test_a_missing_key_is_named(data):
    """The error names the file, the place and the key that is not there."""
    kind = data.draw(st.sampled_from(KINDS))
    required = [
        f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING
    ]
    key = data.draw(st.sampled_from(required))
    message = as_data(smallest(kind))
    del message[key]

    with pytest.raises(ContractError, match=rf"^file\.json: \$ lacks the key '{key}' of {kind.__name__}$"):
        decode(kind, json.dumps(message), "file.json")


@each_kind
def test_an_unknown_key_is_named(kind):
    """A misspelt or invented key is an error, not silence."""
    with pytest.raises(
        ContractError, match=rf"^file\.json: \$ has the unknown key 'sead' for {kind.__name__}$"
    ):
        decode(kind, json.dumps({**as_data(smallest(kind)), "sead": 1}), "file.json")


def test_an_unknown_key_in_an_epoch_is_found_there():
    """The place leads to the nested record."""
    message = as_data(dataclasses.replace(smallest(LaunchRecord), epochs=[[], [smallest(EpochRecord)]]))
    message["epochs"][1][0]["wall"] = 1

    with pytest.raises(ContractError, match=r"^r\.jsonl:3: \$\.epochs\[1\]\[0\] has the unknown key 'wall'"):
        decode(LaunchRecord, json.dumps(message), "r.jsonl:3")


def wrong_for(hint: Any) -> list[Any]:
    """Values of the wrong type for an annotation, with those that Python takes for right among them."""
    if is_optional(hint):
        inner = next(a for a in typing.get_args(hint) if a is not type(None))
        return [value for value in wrong_for(inner) if value is not None]
    return {
        int: [None, 1.5, 1.0, "1", True, []],
        float: [None, "1", True, []],
        str: [None, 1, ["a"]],
        bool: [None, 0, 1, "true"],
        list: [None, {}, "abc", 1],
        dict: [None, [], "abc", 1],
    }[typing.get_origin(hint) or hint]


@relaxed
@given(st.data())
def test_a_value_of_the_wrong_type_is_named(data):
    """Neither a bool for a number nor text for a list passes; the error shows the place and what was found."""
    kind = data.draw(st.sampled_from(KINDS))
    hints = typing.get_type_hints(kind)
    key = data.draw(st.sampled_from(sorted(name for name, hint in hints.items() if hint is not Any)))
    value = data.draw(st.sampled_from(wrong_for(hints[key])))

    with pytest.raises(ContractError) as caught:
        decode(kind, json.dumps({**as_data(smallest(kind)), key: value}), "file.json")

    assert str(caught.value).startswith(f"file.json: $.{key} must be ")
    assert str(caught.value).endswith(f", found {value!r}")


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("step_seconds", [0.1, "0.2"], r"\$\.step_seconds\[1\] must be a number, found '0\.2'"),
        (
            "peak_memory_bytes",
            {"cuda:0": 1.5},
            r"\$\.peak_memory_bytes\.cuda:0 must be a whole number, found 1\.5",
        ),
        ("gpu_uuids", [None, 3], r"\$\.gpu_uuids\[1\] must be text, found 3"),
        ("epochs", [3], r"\$\.epochs\[0\] must be an object, found 3"),
        ("phase_seconds", {"data": 1.0}, r"\$\.phase_seconds\.data must be a list, found 1\.0"),
    ],
)
def test_a_wrong_value_inside_a_list_or_an_object_is_found_there(key, value, place):
    """The place leads into lists and objects."""
    with pytest.raises(ContractError, match=f"^file: {place}$"):
        decode(RankRecord, json.dumps({**as_data(smallest(RankRecord)), key: value}), "file")


def test_a_long_wrong_value_is_cut_in_the_message():
    """A message stays readable whatever stands in the file."""
    with pytest.raises(ContractError) as caught:
        decode(LaunchSpec, json.dumps({**as_data(smallest(LaunchSpec)), "seed": "x" * 5000}), "f")

    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind is not EpochRecord], ids=lambda kind: kind.__name__
)
def test_a_newer_schema_is_refused(kind):
    """A newer suite's file says which schema it has, which one is known, and what to do; its keys don't matter."""
    data = {**as_data(smallest(kind)), "schema": contract.SCHEMA + 1, "added_later": 1}

    with pytest.raises(
        ContractError, match=r"^f: written with schema 2, this suite reads up to 1; use a newer"
    ):
        decode(kind, json.dumps(data), "f")


@relaxed
@given(st.sampled_from(KINDS).flatmap(messages), st.data())
def test_a_text_that_was_cut_short_is_refused(message, data):
    """No beginning of a message is taken for a message."""
    text = encode(message)
    cut = data.draw(st.integers(0, len(text) - 1))

    with pytest.raises(ContractError, match=r"^file\.json: not readable as JSON"):
        decode(type(message), text[:cut], "file.json")


@pytest.mark.parametrize("text", ["[]", "null", "1", '"text"'])
def test_what_is_no_object_is_refused(text):
    """Valid JSON of another shape is no message."""
    with pytest.raises(ContractError, match=r"^f: \$ must be an object, found"):
        decode(LaunchSpec, text, "f")


@pytest.mark.parametrize("text", [b"\xff\xfe{}", b"\x00" * 64, b"\x93NUMPY", "[" * 100_000, "{" * 10])
def test_garbage_is_refused_and_nothing_else_happens(text):
    """Bytes that are no text, zeros after a power cut and absurd nesting are errors of the contract too."""
    with pytest.raises(ContractError, match=r"^f: not readable as JSON"):
        decode(LaunchSpec, text, "f")


# --- what a spec says


@pytest.mark.parametrize(
    ("strategy", "nodes", "ranks", "gpus", "world_size", "devices"),
    [
        ("single", 1, 1, 0, 1, 1),
        ("single", 1, 1, 1, 1, 1),
        ("dp", 1, 1, 4, 1, 4),
        ("ddp", 1, 4, 4, 4, 1),
        ("ddp", 2, 4, 4, 8, 1),
    ],
)
def test_world_size_and_devices_follow_from_the_spec(strategy, nodes, ranks, gpus, world_size, devices):
    """Ranks multiply over nodes; only DataParallel feeds several devices from one rank."""
    spec = dataclasses.replace(
        smallest(LaunchSpec), strategy=strategy, nodes=nodes, ranks_per_node=ranks, gpus=gpus
    )

    assert (world_size, devices) == (spec.world_size, spec.devices_per_rank)


# --- writing whole


def test_a_file_is_written_whole_and_replaced(tmp_path):
    """The newest text is there, and nothing else lies in the folder."""
    path = tmp_path / "spec.json"
    contract.write_whole(str(path), "first")
    contract.write_whole(str(path), "zweite ü")

    assert "zweite ü" == path.read_text(encoding="utf-8")
    assert [path] == list(tmp_path.iterdir())


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    """A full disk costs the new text, never the old file, and leaves no temporary one."""
    path = tmp_path / "spec.json"
    contract.write_whole(str(path), "first")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        contract.write_whole(str(path), "second")

    assert str(path) == caught.value.filename
    assert "first" == path.read_text(encoding="utf-8")
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize(("place", "kind"), [("none/spec.json", FileNotFoundError), ("", IsADirectoryError)])
def test_what_can_not_be_written_is_named_as_it_was_asked_for(tmp_path, place, kind):
    """Nobody knows the temporary file."""
    path = tmp_path / place
    with pytest.raises(kind) as caught:
        contract.write_whole(str(path), "text")

    assert (str(path), None) == (caught.value.filename, caught.value.filename2)
    assert [] == list(tmp_path.iterdir())


def test_a_name_alone_is_written_to_the_working_directory(tmp_path, monkeypatch):
    """A path without a folder works."""
    monkeypatch.chdir(tmp_path)
    contract.write_whole("spec.json", "text")

    assert "text" == (tmp_path / "spec.json").read_text(encoding="utf-8")


def test_colleagues_can_read_what_was_written(tmp_path):
    """The file's mode is what the umask allows, as for any other file."""
    before = os.umask(0o027)
    try:
        contract.write_whole(str(tmp_path / "spec.json"), "text")
    finally:
        os.umask(before)

    assert 0o640 == stat.S_IMODE((tmp_path / "spec.json").stat().st_mode)
