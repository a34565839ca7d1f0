"""Storage: reading the data that training reads, and writing a checkpoint of a model's size."""

from __future__ import annotations

import ctypes
import heapq
import io
import math
import mmap
import os
import stat
from collections.abc import Iterator, Sequence
from typing import Optional

import torch

from perf.contract import Rate
from perf.training.rates.timing import Timer, missing, rate

UNIT = "B/s"

CHUNK = 4 * 2**20
"""Bytes read at a time: large enough for a parallel file system, small enough for a cache."""

MOST_LOOKED_AT = 20_000
"""Files of a folder that are looked at: ImageNet has 1.3 million, and listing them takes longer than reading some."""

SCRATCH = "rates-scratch-{pid}"


def file_reads(
    folders: Sequence[Optional[str]], timer: Timer, size: int, least: int
) -> Iterator[tuple[str, Rate]]:
    """Yield the rates of reading up to `size` bytes: with the page cache dropped, as far as it is, and from it.

    Reads the largest files of the first folder that holds at least `least` bytes. Where none does, a file of `size`
    bytes is written into the last folder, read, and removed.
    """
    for folder in folders:
        paths = largest_files(folder, size) if folder else []
        if paths and sum(os.path.getsize(path) for path in paths) >= least:
            yield from _reads(paths, timer, size, {"folder": folder, "files": len(paths), "scratch": False})
            return
    folder = folders[-1]
    path = os.path.join(folder or ".", SCRATCH.format(pid=os.getpid()))
    try:
        with open(path, "wb") as file:
            file.write(os.urandom(size))
            file.flush()
            os.fsync(file.fileno())
        yield from _reads([path], timer, size, {"folder": folder, "files": 1, "scratch": True})
    except OSError as error:
        for name in ("file_read", "file_read_cached"):
            yield name, missing(UNIT, f"no file to read, and none can be written to {folder}: {error}")
    finally:
        if os.path.exists(path):
            os.unlink(path)


def _reads(
    paths: Sequence[str], timer: Timer, size: int, about: dict[str, object]
) -> Iterator[tuple[str, Rate]]:
    amount = read(paths, size)
    about = {**about, "bytes": amount}
    drop(paths)
    left = resident_share(paths)
    seconds = timer.repeat(lambda: read(paths, size), prepare=lambda: drop(paths), single=True)
    cold = "the kernel was asked to drop the files from its page cache before each repetition"
    yield "file_read", rate(amount, UNIT, seconds, **about, page_cache=cold, resident_share=left)
    read(paths, size)
    seconds = timer.repeat(lambda: read(paths, size))
    yield "file_read_cached", rate(amount, UNIT, seconds, **about, page_cache="read just before")


def largest_files(folder: str, enough: int) -> list[str]:
    """Return the largest readable regular files below a folder, in falling size, until they hold `enough` bytes.

    Links are not followed: a data root may hold one to the rest of the world. Hidden files are left out: what is being
    written into a cache has such a name, and is gone when it is whole.
    """
    found: list[tuple[int, str]] = []
    for parent, _, names in os.walk(folder):
        for name in names:
            if name.startswith("."):
                continue
            path = os.path.join(parent, name)
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_size and os.access(path, os.R_OK):
                found.append((status.st_size, path))
        if len(found) >= MOST_LOOKED_AT:
            break
    chosen: list[str] = []
    held = 0
    for length, path in heapq.nlargest(len(found), found):
        if held >= enough:
            break
        chosen.append(path)
        held += length
    return chosen


def read(paths: Sequence[str], most: int) -> int:
    """Read the files one after the other, at most so many bytes in all; return how many were read."""
    buffer = bytearray(CHUNK)
    view = memoryview(buffer)
    done = 0
    for path in paths:
        with io.FileIO(path) as file:
            while done < most:
                got = file.readinto(view[: min(CHUNK, most - done)])
                if not got:
                    break
                done += got
    return done


def drop(paths: Sequence[str]) -> None:
    """Ask the kernel to drop files from its page cache. It may decline: pages in use elsewhere stay."""
    advise = getattr(os, "posix_fadvise", None)
    if advise is None:
        return
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            advise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def resident_share(paths: Sequence[str]) -> Optional[float]:
    """Return which share of the files' pages lies in the page cache, by ``mincore``; None where that can't be told.

    Linux tells those who may write a file; for others it says that every page is there, so they get None.
    """
    resident = pages = 0
    try:
        mincore = ctypes.CDLL(None, use_errno=True).mincore
        for path in paths:
            if not os.access(path, os.W_OK):
                return None
            handle = os.open(path, os.O_RDONLY)
            try:
                size = os.fstat(handle).st_size
                # A private mapping may be written to, which ctypes asks of what it takes the address of.
                with mmap.mmap(handle, size, access=mmap.ACCESS_COPY) as mapped:
                    count = math.ceil(size / mmap.PAGESIZE)
                    flags = (ctypes.c_ubyte * count)()
                    start = ctypes.c_char.from_buffer(mapped)
                    status = mincore(ctypes.byref(start), ctypes.c_size_t(size), flags)
                    del start
            finally:
                os.close(handle)
            if status != 0:
                return None
            resident += sum(flag & 1 for flag in flags)
            pages += count
    except (AttributeError, OSError, ValueError):
        return None
    return resident / pages if pages else None


def checkpoint_write(folder: str, device: torch.device, timer: Timer, size: int) -> tuple[str, Rate]:
    """Return the rate of ``torch.save`` of a tensor of `size` bytes from a device into a folder, fsync included.

    The file is removed before each repetition and at the end.
    """
    weights = torch.ones(size // 4, dtype=torch.float32, device=device)
    path = os.path.join(folder, SCRATCH.format(pid=os.getpid()))

    def remove() -> None:
        if os.path.exists(path):
            os.unlink(path)

    def save() -> None:
        with open(path, "wb") as file:
            torch.save({"weights": weights}, file)
            file.flush()
            os.fsync(file.fileno())

    try:
        seconds = timer.repeat(save, prepare=remove, single=True)
    except OSError as error:
        return "checkpoint_write", missing(UNIT, f"{folder} can't be written to: {error}")
    finally:
        remove()
    return "checkpoint_write", rate(size, UNIT, seconds, bytes=size, folder=folder, fsync=True)
