"""``python -m perf.data --root DIR``: stage MNIST on a machine with network, for compute nodes that have none.

The four files come from the public mirrors that torchvision uses, are held against the md5 sums that torchvision
publishes (``torchvision.datasets.MNIST.resources``), unpacked, and put into ``DIR/MNIST/raw``, where torchvision and
this suite look for them. What lies there already is checked and kept, so that the command can be repeated.

Exit status: 0 all four files are there · 1 they are not, with the reason and a remedy · 2 wrong use, or a compute node.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import http.client
import os
import secrets
import sys
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from perf.ending import finish

MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)

TIMEOUT_SECONDS = 30.0
"""Without an answer for this long a mirror counts as unreachable. The largest file has 10 MB."""

JOB_VARIABLES = ("SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID", "FLUX_JOB_ID")
"""Set inside a job by Slurm, LSF, PBS and Flux."""

ADVICE = (
    "If this machine has no network, run the same command on one that has, and copy its MNIST/raw folder to {folder}; "
    "behind a proxy, set https_proxy; a copy inside the site can be named with --mirror (http, https or file)."
)

Opener = Callable[[str, float], contextlib.AbstractContextManager[IO[bytes]]]
"""Opens an address for reading, given a time-out in seconds; raises OSError or HTTPException if it can't."""


class StagingError(Exception):
    """A file could not be staged. The message says which, why and what to do."""


@dataclass(frozen=True)
class Archive:
    """One gzip file on the mirrors. Sizes are in bytes; ``plain`` is the file inside."""

    name: str
    size: int
    md5: str
    plain_size: int
    plain_md5: str

    @property
    def plain_name(self) -> str:
        """Name of the unpacked file."""
        return self.name.removesuffix(".gz")


ARCHIVES = (
    Archive(
        "train-images-idx3-ubyte.gz",
        9_912_422,
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        47_040_016,
        "6bbc9ace898e44ae57da46a324031adb",
    ),
    Archive(
        "train-labels-idx1-ubyte.gz",
        28_881,
        "d53e105ee54ea40749a09fcbcd1e9432",
        60_008,
        "a25bea736e30d166cdddb491f175f624",
    ),
    Archive(
        "t10k-images-idx3-ubyte.gz",
        1_648_877,
        "9fb629c4189551a2d022fa330f9573f3",
        7_840_016,
        "2646ac647ad5339dbf082846283269ea",
    ),
    Archive(
        "t10k-labels-idx1-ubyte.gz",
        4_542,
        "ec29112dd5afa0611ce80d1b7f02629c",
        10_008,
        "27ae3e4e09519cfbb04c329615203637",
    ),
)


def job_variable(environ: Mapping[str, str]) -> str | None:
    """Return the variable that shows that this process runs inside a job, or None."""
    return next((name for name in JOB_VARIABLES if environ.get(name)), None)


def stage(
    root: Path,
    opener: Opener,
    say: Callable[[str], None],
    mirrors: Sequence[str] = MIRRORS,
    archives: Sequence[Archive] = ARCHIVES,
) -> None:
    """Put the files into ``root/MNIST/raw``; files that are already there are checked and kept.

    Parameters
    ----------
    root : Path
        The data root; made if it is missing.
    opener : Opener
        How an address is opened.
    say : callable
        Gets one line for each thing that was done.
    mirrors : sequence of str
        Addresses of folders, ending in a slash, tried in this order for each file.
    archives : sequence of Archive
        What to stage.

    Raises
    ------
    StagingError
        A file in the way is another than it should be, no mirror delivered an intact one, or it can't be written.
        Files that were finished before stay; of the others nothing is left.
    """
    folder = root / "MNIST" / "raw"
    # First all that needs no network: a file in the way should be reported before anything is downloaded.
    wanted = [archive for archive in archives if not _is_there(folder / archive.plain_name, archive, say)]
    for archive in wanted:
        content = unpack(archive, download(archive, mirrors, opener, say, ADVICE.format(folder=folder)))
        target = folder / archive.plain_name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _write_whole(target, content)
        except OSError as error:
            raise StagingError(
                f"{str(target)!r} can't be written: {error.strerror or error}. Nothing was left of it. Expected "
                f"a folder that you may write, with {archive.plain_size:,} bytes of room: free some, or name another "
                "--root."
            ) from error
        say(f"wrote    {target} ({len(content):,} bytes)")


def download(
    archive: Archive, mirrors: Sequence[str], opener: Opener, say: Callable[[str], None], advice: str
) -> bytes:
    """Return an archive's bytes from the first mirror that delivers them intact.

    Raises
    ------
    StagingError
        No mirror did. The message has each mirror's reason, and ``advice``.
    """
    reasons = []
    for mirror in mirrors:
        address = mirror + archive.name
        say(f"fetching {address}")
        try:
            with opener(address, TIMEOUT_SECONDS) as stream:
                # One byte more than expected is enough to see that it is another file; never more.
                content = _read_at_most(stream, archive.size + 1)
        except (OSError, http.client.HTTPException, ValueError) as error:
            # ValueError: an address that urllib can't encode, from --mirror.
            reasons.append(f"{address}: {str(error) or type(error).__name__}")
            continue
        problem = _difference(content, archive.size, archive.md5)
        if problem is None:
            return content
        reasons.append(f"{address}: {problem}")
    raise StagingError(f"no mirror delivered {archive.name}.\n  " + "\n  ".join(reasons) + f"\n{advice}")


def unpack(archive: Archive, content: bytes) -> bytes:
    """Return the file inside an archive, checked.

    Raises
    ------
    StagingError
        It is not the expected file.
    """
    try:
        plain = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise StagingError(f"{archive.name} can't be unpacked: {error}. Run the command again.") from error
    problem = _difference(plain, archive.plain_size, archive.plain_md5)
    if problem is not None:
        raise StagingError(f"{archive.plain_name}, unpacked: {problem}. Run the command again.")
    return plain


def open_address(address: str, timeout: float) -> contextlib.AbstractContextManager[IO[bytes]]:
    """Open an address with urllib, through the proxies that the environment names."""
    # Schemes are limited where --mirror is read, and whatever comes is held against published sums.
    response: contextlib.AbstractContextManager[IO[bytes]]
    response = urllib.request.urlopen(address, timeout=timeout)  # noqa: S310
    return response


def main(
    arguments: Sequence[str] | None = None,
    environ: Mapping[str, str] = os.environ,
    opener: Opener = open_address,
) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m perf.data",
        description="Stage MNIST into DIR/MNIST/raw. Run it where there is network.",
    )
    parser.add_argument(
        "--root", required=True, type=Path, metavar="DIR", help="the data root; made if missing"
    )
    parser.add_argument(
        "--mirror",
        action="append",
        type=_folder_address,
        metavar="URL",
        help="fetch from this folder instead of the public mirrors (may be given more than once)",
    )
    options = parser.parse_args(arguments)
    variable = job_variable(environ)
    if variable is not None:
        print(
            f"Data are not staged inside a job ({variable}={environ[variable]!r} is set): compute nodes seldom have "
            "network, and a job pays for the waiting. Run this on a login node. If you are on one, inside salloc "
            f"or the like, run it in another shell or with: env -u {variable} python -m perf.data ...",
            file=sys.stderr,
        )
        return 2
    try:
        stage(options.root, opener, print, tuple(options.mirror or MIRRORS))
    except StagingError as error:
        print(f"MNIST is not staged: {error}", file=sys.stderr)
        return 1
    print(f"MNIST is staged under {options.root}. Name this folder as the data root.")
    return 0


def _folder_address(text: str) -> str:
    """Return a mirror's address with a slash at its end; argparse reports the error."""
    if urllib.parse.urlsplit(text).scheme not in ("http", "https", "file"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no address; expected http://, https:// or file:// and a folder"
        )
    return text if text.endswith("/") else f"{text}/"


def _is_there(path: Path, archive: Archive, say: Callable[[str], None]) -> bool:
    """Say whether the right file is at ``path``; another file there is an error, since it is not ours to replace."""
    try:
        with path.open("rb") as stream:
            problem = _difference(
                _read_at_most(stream, archive.plain_size + 1), archive.plain_size, archive.plain_md5
            )
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StagingError(
            f"{str(path)!r} is in the way and can't be read: {error.strerror or error}."
        ) from error
    if problem is not None:
        raise StagingError(
            f"{str(path)!r} exists and is not the file of MNIST: {problem}. It was left alone; move or remove it, "
            "or name another --root."
        )
    say(f"kept     {path} (there already, check sum right)")
    return True


def _difference(content: bytes, size: int, md5: str) -> str | None:
    """Say in what way content is not what was expected, or None. md5 finds damage here; it is no protection."""
    if len(content) != size:
        amount = f"more than {size:,}" if len(content) > size else f"{len(content):,}"
        return f"{amount} bytes, expected {size:,}"
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return None if found == md5 else f"md5 {found}, expected {md5}"


def _read_at_most(stream: IO[bytes], limit: int) -> bytes:
    """Read to the end or to the limit; a socket may deliver less than was asked for at a time."""
    parts: list[bytes] = []
    missing = limit
    while missing and (part := stream.read(min(missing, 1 << 20))):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees all of it or nothing, readable for whom the umask allows."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


if __name__ == "__main__":
    finish(main)
