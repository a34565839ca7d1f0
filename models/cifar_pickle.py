"""Reading pickles that hold plain arrays, without running what is in them.

A pickle may call anything. Nothing but stand-ins of this module is let through here, which take the few calls that
files of arrays hold and make arrays of checked types and sizes.
"""

from __future__ import annotations

import pickle
from typing import IO, Any, Callable

import numpy as np
from numpy.typing import NDArray


def read_plain(stream: IO[bytes], trusted: bool) -> object:
    """Read one pickle as Python 2 wrote it: strings keep each byte.

    Parameters
    ----------
    stream : binary file
        At the start of the pickle.
    trusted : bool
        Whether the file's sum is known; else a reader is used that takes three times as long and no more memory than
        the file has bytes.

    Raises
    ------
    Exception
        Damaged pickles raise whatever the opcode at hand raises; one that calls something else raises a
        `pickle.UnpicklingError`.
    """
    reader = _Quick if trusted else _Careful
    content: object = reader(stream, encoding="latin1").load()
    return content


def values_of(found: object) -> NDArray[Any] | None:
    """Return the array that was read, if it is one."""
    return getattr(found, "values", None) if isinstance(found, _Array) else None


class _DType:
    """Stands in for numpy.dtype: a type's code, and its byte order."""

    __slots__ = ("code", "order")

    def __init__(self, code: object, align: object = 0, copy: object = 1) -> None:
        self.code, self.order = code, "|"

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]

    def real(self) -> np.dtype[Any]:
        """Return numpy's type, if it is one of those that images and labels have."""
        if self.code not in {"u1", "i4", "i8"} or self.order not in {"|", "<", ">"}:
            raise pickle.UnpicklingError("it holds an array of another type than uint8 or int")
        return np.dtype(f"{self.order}{self.code}")


class _Array:
    """Stands in for numpy.ndarray and its _reconstruct: no array until a state with type, shape and bytes comes."""

    __slots__ = ("values",)

    values: NDArray[Any]

    def __init__(self, kind: object = None, shape: object = None, code: object = None) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, by_columns, raw = state
        if type(dtype) is not _DType or type(raw) not in {str, bytes} or by_columns:
            raise pickle.UnpicklingError("it holds an array that is not plain values, row by row")
        octets = raw.encode("latin1") if isinstance(raw, str) else raw
        self.values = np.frombuffer(octets, dtype.real()).reshape(shape)


class _Encoded:
    """Stands in for _codecs.encode, as which Python 3 writes bytes in protocol 2."""

    __slots__ = ()

    def __new__(cls, text: str, encoding: str) -> Any:
        if encoding not in {"latin1", "latin-1"}:
            raise pickle.UnpicklingError("it encodes text otherwise than in latin1")
        return text.encode("latin1")

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("it changes what encodes text")


_STAND_INS: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    ("_codecs", "encode"): _Encoded,
}


class _Names:
    """Resolves the five names that files of arrays hold, to stand-ins; every other name ends the reading.

    The stand-ins have slots and take a state by their own method only, so a pickle can neither reach nor change
    anything else through them.
    """

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise pickle.UnpicklingError(f"it calls {f'{module}.{name}'[:80]!r}, which such files don't")
        return _STAND_INS[module, name]


class _Quick(_Names, pickle.Unpickler):
    """For files whose sum is known."""


class _Careful(_Names, pickle._Unpickler):  # noqa: SLF001
    """For all others, three times slower.

    pickle's reader in C allocates as many places as the largest index in a file: one bad byte can ask for 64 GB.
    """
