"""Small sets in the format of MNIST, and the generated set, for the tests of the worker's data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from models import mnist_data, mnist_generated
from models.idx import write_idx

SMALL = {"train": 60, "t10k": 20}

WriteSet = Callable[..., Path]


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the generated set, made once for all tests; read only."""
    return Path(mnist_generated.ensure(str(tmp_path_factory.mktemp("cache"))))


@pytest.fixture
def write_set(monkeypatch: pytest.MonkeyPatch) -> WriteSet:
    """A function that writes four small files into a folder; the test's `mnist_data` expects their sizes."""
    monkeypatch.setattr(mnist_data, "SAMPLES", SMALL)

    def write(folder: Path, suffix: str = "", seed: int = 1) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for part, count in SMALL.items():
            images, labels = mnist_generated.draw(count, seed + len(part))
            write_idx(str(folder / f"{part}-images-idx3-ubyte{suffix}"), images)
            write_idx(str(folder / f"{part}-labels-idx1-ubyte{suffix}"), labels)
        return folder

    return write
