"""Messages as text: written as one line of JSON, read back with every key and type checked."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import secrets
import types
import typing
from collections.abc import Iterator
from typing import Any, TypeVar, Union

from perf.contract.names import SCHEMA

T = TypeVar("T")


class ContractError(ValueError):
    """A spec or a record that does not keep to the contract. The message says where and what was expected."""


def encode(message: Any) -> str:
    """Return one of the contract's dataclasses as one line of JSON.

    Raises
    ------
    ContractError
        If it holds NaN or infinity, which are not JSON. The message says where.
    """
    data = dataclasses.asdict(message)
    try:
        return json.dumps(data, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        places = ", ".join(_not_finite(data, "$")) or str(error)
        raise ContractError(
            f"{type(message).__name__}: {places}; a reading that can't be had is null"
        ) from error


def decode(kind: type[T], text: Union[str, bytes], where: str) -> T:
    """Read one of the contract's dataclasses from JSON.

    Parameters
    ----------
    kind
        The dataclass to build.
    text
        JSON text of one object.
    where
        File, or file and line, for the error message.

    Raises
    ------
    ContractError
        If the text is no JSON object, a key is unknown or missing, a value has the wrong type or is not finite, or
        the schema is newer than this suite knows.
    """
    try:
        data = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ContractError(
            f"{where}: not readable as JSON ({error}); the file was cut short or overwritten"
        ) from error
    if isinstance(data, dict) and isinstance(data.get("schema"), int) and data["schema"] > SCHEMA:
        raise ContractError(
            f"{where}: written with schema {data['schema']}, this suite reads up to {SCHEMA}; use a newer stackproof"
        )
    return typing.cast(T, _convert(kind, data, where, "$"))


def write_whole(path: str, text: str) -> None:
    """Write `text` to `path` so that a reader sees all of it or nothing: temporary file, fsync, rename.

    Raises
    ------
    OSError
        It can't be written. The error names `path`: nobody knows the temporary file's name.
    """
    try:
        _write_whole(path, text)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def _write_whole(path: str, text: str) -> None:
    # Not tempfile.mkstemp: that makes files of mode 0600, which colleagues who share the folder could not read.
    temporary = os.path.join(os.path.dirname(path), f".writing-{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        # The message of the first error is what matters; a left-over temporary file must not hide it.
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is too large for a number")
    return number


def _not_finite(value: Any, path: str) -> Iterator[str]:
    """Yield where NaN and infinity lie in JSON-like data."""
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{path} is {value}"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _not_finite(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _not_finite(item, f"{path}[{i}]")


def _convert(kind: Any, value: Any, where: str, path: str) -> Any:
    """Check `value` against the annotation `kind` and build dataclasses on the way."""
    if kind is Any:
        return value
    origin = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if origin is Union or origin is getattr(types, "UnionType", Union):
        if value is None:
            return None
        return _convert(next(a for a in arguments if a is not type(None)), value, where, path)
    if origin is list:
        return _convert_list(arguments[0], value, where, path)
    if origin is dict:
        _expect(isinstance(value, dict), "an object", value, where, path)
        return {key: _convert(arguments[1], item, where, f"{path}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return _convert_dataclass(kind, value, where, path)
    if kind is float:
        _expect(
            isinstance(value, (int, float)) and not isinstance(value, bool), "a number", value, where, path
        )
        try:
            return float(value)
        except OverflowError as error:
            raise ContractError(f"{where}: {path} is too large for a number") from error
    if kind is int:
        _expect(isinstance(value, int) and not isinstance(value, bool), "a whole number", value, where, path)
    else:
        _expect(
            isinstance(value, kind),
            {str: "text", bool: "true or false"}.get(kind, str(kind)),
            value,
            where,
            path,
        )
    return value


def _convert_list(kind: Any, value: Any, where: str, path: str) -> Any:
    _expect(isinstance(value, list), "a list", value, where, path)
    if kind is float and all(type(item) is float for item in value):
        # The step times, thousands of them: each was found finite as it was read.
        return list(value)
    return [_convert(kind, item, where, f"{path}[{i}]") for i, item in enumerate(value)]


def _convert_dataclass(kind: Any, value: Any, where: str, path: str) -> Any:
    _expect(isinstance(value, dict), "an object", value, where, path)
    hints = typing.get_type_hints(kind)
    fields = {f.name: f for f in dataclasses.fields(kind)}
    unknown = sorted(set(value) - set(fields))
    if unknown:
        raise ContractError(f"{where}: {path} has the unknown key {unknown[0]!r} for {kind.__name__}")
    missing = [
        name
        for name, f in fields.items()
        if name not in value and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ContractError(f"{where}: {path} lacks the key {missing[0]!r} of {kind.__name__}")
    return kind(
        **{name: _convert(hints[name], item, where, f"{path}.{name}") for name, item in value.items()}
    )


def _expect(condition: bool, expected: str, value: Any, where: str, path: str) -> None:
    if not condition:
        raise ContractError(f"{where}: {path} must be {expected}, found {value!r:.80}")
