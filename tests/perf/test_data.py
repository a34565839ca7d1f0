"""Staging MNIST: intact files or none, from a server on this machine in place of the mirrors."""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import http.client
import http.server
import io
import os
import subprocess
import sys
import threading
import urllib.error
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import pytest

from perf import data

ROOT = Path(__file__).parents[2]


def archive(name: str, plain: bytes) -> tuple[data.Archive, bytes]:
    """A small archive and its bytes; stands for one of MNIST's."""
    packed = gzip.compress(plain, mtime=0)
    md5s = (hashlib.md5(content).hexdigest() for content in (packed, plain))
    return data.Archive(f"{name}.gz", len(packed), next(md5s), len(plain), next(md5s)), packed


IMAGES, PACKED_IMAGES = archive("images", bytes(range(256)) * 8)
LABELS, PACKED_LABELS = archive("labels", b"0123456789")
ARCHIVES = (IMAGES, LABELS)
GOOD = {"images.gz": PACKED_IMAGES, "labels.gz": PACKED_LABELS}


class FakeMirrors:
    """An opener whose addresses hold given bytes or raise given errors; it remembers what was opened."""

    def __init__(self, contents: Mapping[str, bytes | Exception]) -> None:
        self.contents = contents
        self.opened: list[str] = []

    def __call__(self, address: str, timeout: float) -> contextlib.AbstractContextManager[IO[bytes]]:
        self.opened.append(address)
        content = self.contents[address]
        if isinstance(content, Exception):
            raise content
        return io.BytesIO(content)


def mirrors(folder: str, contents: Mapping[str, bytes | Exception]) -> dict[str, bytes | Exception]:
    """Contents under the address of one mirror."""
    return {f"{folder}{name}": content for name, content in contents.items()}


def stage(root: Path, opener: data.Opener, folders: tuple[str, ...] = ("m:/",)) -> list[str]:
    """Stage the two small archives; return what was said."""
    said: list[str] = []
    data.stage(root, opener, said.append, folders, ARCHIVES)
    return said


def names(root: Path) -> list[str]:
    """All files below a folder, hidden ones too."""
    return sorted(path.name for path in root.rglob("*") if path.is_file())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server on 127.0.0.1: its address and the folder that it serves."""
    served = tmp_path / "served"
    served.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            """Say nothing: the log of the server is no result."""

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(served))
    ) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_address[1]}/", served
        finally:
            running.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in the environment must not carry requests to this machine elsewhere."""
    monkeypatch.setenv("no_proxy", "*")


def test_good_files_are_unpacked_where_torchvision_looks(tmp_path: Path) -> None:
    """Each file lies plain in ROOT/MNIST/raw, and each thing done is said."""
    said = stage(tmp_path, FakeMirrors(mirrors("m:/", GOOD)))
    raw = tmp_path / "MNIST" / "raw"
    assert ["images", "labels"] == names(tmp_path)
    assert (bytes(range(256)) * 8, b"0123456789") == (
        (raw / "images").read_bytes(),
        (raw / "labels").read_bytes(),
    )
    assert ["fetching m:/images.gz", f"wrote    {raw / 'images'} (2,048 bytes)"] == said[:2]
    assert 4 == len(said)


def test_files_come_over_http(server: tuple[str, Path], tmp_path: Path) -> None:
    """The real opener fetches from a real web server."""
    address, served = server
    for name, content in GOOD.items():
        (served / name).write_bytes(content)
    stage(tmp_path / "root", data.open_address, (address,))
    assert ["images", "labels"] == names(tmp_path / "root")


def test_a_second_run_fetches_nothing(tmp_path: Path) -> None:
    """Files that are there are checked, kept and reported; no mirror is asked."""
    stage(tmp_path, FakeMirrors(mirrors("m:/", GOOD)))
    idle = FakeMirrors({})
    said = stage(tmp_path, idle)
    assert [] == idle.opened
    assert all(line.startswith("kept ") for line in said)


def test_what_is_missing_is_completed(tmp_path: Path) -> None:
    """After an interrupted run only the other files are fetched."""
    stage(tmp_path, FakeMirrors(mirrors("m:/", GOOD)))
    (tmp_path / "MNIST" / "raw" / "labels").unlink()
    opener = FakeMirrors(mirrors("m:/", GOOD))
    stage(tmp_path, opener)
    assert ["m:/labels.gz"] == opener.opened


def test_a_file_in_the_way_is_left_alone_and_nothing_is_fetched(tmp_path: Path) -> None:
    """Another file under the name of MNIST's (Fashion-MNIST's) is not replaced; the error says what to do."""
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / "labels").write_bytes(b"9876543210")
    opener = FakeMirrors(mirrors("m:/", GOOD))
    with pytest.raises(
        data.StagingError, match=r"labels' exists and is not .* MNIST: md5 .* left alone; move"
    ):
        stage(tmp_path, opener)
    assert ([], ["labels"], b"9876543210") == (opener.opened, names(tmp_path), (raw / "labels").read_bytes())


def test_a_folder_in_the_way_is_an_error(tmp_path: Path) -> None:
    """A folder under a file's name is named, not crashed into."""
    (tmp_path / "MNIST" / "raw" / "labels").mkdir(parents=True)
    with pytest.raises(data.StagingError, match=r"labels' is in the way and can't be read: Is a directory"):
        stage(tmp_path, FakeMirrors({}))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (PACKED_IMAGES[:-1] + b"x", "md5 [0-9a-f]{32}, expected [0-9a-f]{32}"),
        (PACKED_IMAGES[:-5], r"\d+ bytes, expected \d+"),
        (PACKED_IMAGES + b"more" * 1000, r"more than \d+ bytes, expected \d+"),
        (b"", r"0 bytes, expected \d+"),
        (urllib.error.URLError("no route to host"), "no route to host"),
        (TimeoutError("timed out"), "timed out"),
        (http.client.IncompleteRead(b"ab"), "IncompleteRead"),
        (http.client.BadStatusLine("?"), r"\?"),
        (ConnectionResetError(), "ConnectionResetError"),
        (UnicodeEncodeError("ascii", "ü", 0, 1, "not ASCII"), "not ASCII"),
    ],
    ids=[
        "check sum",
        "cut",
        "long",
        "empty",
        "unreachable",
        "slow",
        "incomplete",
        "no http",
        "reset",
        "address",
    ],
)
def test_a_mirror_that_fails_leaves_nothing_and_says_why(
    tmp_path: Path, content: bytes | Exception, reason: str
) -> None:
    """Whatever is wrong with the only mirror, no file appears, and the message has its address and the reason."""
    opener = FakeMirrors(mirrors("m:/", {**GOOD, "images.gz": content}))
    with pytest.raises(
        data.StagingError, match=rf"(?s)no mirror delivered images\.gz.*m:/images\.gz: [^\n]*{reason}"
    ):
        stage(tmp_path, opener)
    assert [] == names(tmp_path)


def test_the_next_mirror_is_tried(tmp_path: Path) -> None:
    """A bad file on the first mirror is no loss if the second has a good one."""
    bad = mirrors("a:/", {"images.gz": b"<html>", "labels.gz": OSError("down")})
    opener = FakeMirrors({**bad, **mirrors("b:/", GOOD)})
    stage(tmp_path, opener, ("a:/", "b:/"))
    assert ["a:/images.gz", "b:/images.gz", "a:/labels.gz", "b:/labels.gz"] == opener.opened
    assert ["images", "labels"] == names(tmp_path)


def test_without_network_the_message_says_what_to_do(tmp_path: Path) -> None:
    """The last resort is spelled out: another machine, a proxy, a mirror of the site."""
    opener = FakeMirrors(mirrors("m:/", dict.fromkeys(GOOD, urllib.error.URLError("no network"))))
    with pytest.raises(data.StagingError) as caught:
        stage(tmp_path, opener)
    message = str(caught.value)
    assert f"copy its MNIST/raw folder to {tmp_path / 'MNIST' / 'raw'}" in message
    assert "https_proxy" in message
    assert "--mirror" in message


def test_no_more_is_read_than_the_file_has(tmp_path: Path) -> None:
    """A mirror that sends without end is left after one byte too many."""

    class Endless(io.RawIOBase):
        sent = 0

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            self.sent += size
            return b"x" * size

    endless = Endless()

    def opener(address: str, timeout: float) -> contextlib.AbstractContextManager[IO[bytes]]:
        return contextlib.nullcontext(endless)  # type: ignore[arg-type]  # only read is used

    with pytest.raises(data.StagingError, match="more than"):
        stage(tmp_path, opener)
    assert IMAGES.size + 1 == endless.sent


def test_pieces_are_put_together(tmp_path: Path) -> None:
    """A socket that delivers a few bytes at a time gives the whole file."""

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 0, 7))

    def opener(address: str, timeout: float) -> contextlib.AbstractContextManager[IO[bytes]]:
        return Slow(GOOD[address.removeprefix("m:/")])

    stage(tmp_path, opener)
    assert ["images", "labels"] == names(tmp_path)


def test_an_archive_with_another_content_is_refused() -> None:
    """Both sums must hold: the archive's and that of the file inside."""
    other = data.Archive("images.gz", IMAGES.size, IMAGES.md5, IMAGES.plain_size, LABELS.plain_md5)
    with pytest.raises(data.StagingError, match="images, unpacked: md5"):
        data.unpack(other, PACKED_IMAGES)
    with pytest.raises(data.StagingError, match=r"images\.gz can't be unpacked"):
        data.unpack(IMAGES, b"no gzip")


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_error_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """If the disk fails while writing or at the rename, no file and no temporary file is left."""

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(
        data.StagingError, match=r"images' can't be written: No space left on device.*2,048 bytes"
    ):
        stage(tmp_path, FakeMirrors(mirrors("m:/", GOOD)))
    assert [] == names(tmp_path)


def test_a_root_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    """The place can't be used; the message names it."""
    (tmp_path / "root").write_bytes(b"")
    with pytest.raises(
        data.StagingError, match="root/MNIST/raw/images' is in the way and can't be read: Not a direc"
    ):
        stage(tmp_path / "root", FakeMirrors({}))


# The command


def run(root: Path, contents: Mapping[str, bytes | Exception], environ: Mapping[str, str], *more: str) -> int:
    """Run the command on the two small archives."""
    return data.main(["--root", str(root), *more], environ, FakeMirrors(contents))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command stages the two small archives."""
    monkeypatch.setattr(data, "stage", functools.partial(data.stage, archives=ARCHIVES))


@pytest.mark.parametrize("variable", ["SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID", "FLUX_JOB_ID"])
def test_inside_a_job_it_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str], variable: str) -> None:
    """In a job of any scheduler nothing is fetched, the status is 2, and the sentence names variable and way out."""
    assert 2 == run(tmp_path, {}, {variable: "4711"})
    message = capsys.readouterr().err
    assert f"{variable}='4711' is set" in message
    assert f"env -u {variable}" in message
    assert [] == names(tmp_path)


@pytest.mark.usefixtures("small")
def test_an_empty_job_variable_is_no_job(tmp_path: Path) -> None:
    """Some login shells export the variable without a value."""
    assert 0 == run(tmp_path, mirrors(data.MIRRORS[0], GOOD), {"SLURM_JOB_ID": ""})


@pytest.mark.usefixtures("small")
def test_success_is_0_and_names_the_data_root(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first public mirror is asked, and the last line says what to do with the folder."""
    assert 0 == run(tmp_path, mirrors(data.MIRRORS[0], GOOD), {})
    assert f"MNIST is staged under {tmp_path}." in capsys.readouterr().out


@pytest.mark.usefixtures("small")
def test_failure_is_1_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without network the status is 1, and stderr has each mirror's reason."""
    down = dict.fromkeys(GOOD, urllib.error.URLError("Name or service not known"))
    assert 1 == run(tmp_path, {**mirrors(data.MIRRORS[0], down), **mirrors(data.MIRRORS[1], down)}, {})
    assert 2 == capsys.readouterr().err.count("Name or service not known")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("folder", ["http://site/mnist", "http://site/mnist/"])
def test_a_named_mirror_replaces_the_public_ones(tmp_path: Path, folder: str) -> None:
    """--mirror is used alone, with or without its last slash."""
    assert 0 == run(tmp_path, mirrors("http://site/mnist/", GOOD), {}, "--mirror", folder)


@pytest.mark.parametrize(
    "arguments", [[], ["--root", "x", "--mirror", "site/mnist"]], ids=["no root", "no address"]
)
def test_wrong_use_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Missing or unusable arguments end with argparse's status and a usage line."""
    with pytest.raises(SystemExit) as caught:
        data.main(arguments, {})
    assert 2 == caught.value.code
    assert "usage: python -m perf.data" in capsys.readouterr().err


def test_the_module_runs_as_a_command_without_torch(tmp_path: Path) -> None:
    """``python -m perf.data`` works from the checkout, reads file:// mirrors, and loads no torch."""
    code = (
        "import sys; from perf import data; status = data.main(sys.argv[1:], {});"
        "sys.exit(9 if {'torch', 'numpy', 'models'} & set(sys.modules) else status)"
    )
    arguments = ["--root", str(tmp_path / "root"), "--mirror", tmp_path.as_uri()]
    for start in (["-c", code], ["-m", "perf.data"]):
        environment = {name: value for name, value in os.environ.items() if name not in data.JOB_VARIABLES}
        process = subprocess.run(
            [sys.executable, *start, *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert 1 == process.returncode, process.stderr
        assert f"{tmp_path.as_uri()}/train-images-idx3-ubyte.gz: <urlopen error" in process.stderr


def test_the_archives_are_the_four_of_mnist() -> None:
    """Names, sums and sizes are the published ones: torchvision's gzip sums and the sizes of the plain files."""
    assert {
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    } == {archive.name: archive.md5 for archive in data.ARCHIVES}
    assert [16 + 60_000 * 784, 8 + 60_000, 16 + 10_000 * 784, 8 + 10_000] == [
        a.plain_size for a in data.ARCHIVES
    ]
    assert all(mirror.startswith("https://") and mirror.endswith("/") for mirror in data.MIRRORS)
