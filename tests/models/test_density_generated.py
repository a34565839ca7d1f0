"""The generated boxes: equal for equal seeds, learnable by tanh, made once and whole."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import density_generated, generated
from models.errors import DataError

ROOT = Path(__file__).parents[2]
SIDES = {"train": 12, "validation": 10}
NAME = "density-generated-v1-12-10"


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small generated set; read only."""
    return Path(density_generated.ensure(str(tmp_path_factory.mktemp("cache")), SIDES))


def test_equal_arguments_give_equal_fields() -> None:
    """Fields depend on side and seed alone, and another seed gives others."""
    first, again, other = (density_generated.matter(16, seed) for seed in (1, 1, 2))
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()


@given(seed=st.integers(0, 2**32), side=st.integers(4, 17))
def test_input_and_target_are_finite_and_tanh_can_reach_the_target(seed: int, side: int) -> None:
    """Odd and even sides give float32 of the stated shapes; density is above 0 and the target inside (-1, 1)."""
    fields = density_generated.matter(side, seed)
    target = density_generated.gas(fields)
    assert [(4, side, side, side), (5, side, side, side)] == [fields.shape, target.shape]
    assert [np.float32] * 2 == [fields.dtype, target.dtype]
    assert np.isfinite(fields).all()
    assert fields[0].min() > 0
    assert np.abs(target).max() < 0.95


def test_velocity_is_the_gradient_of_a_potential() -> None:
    """Where the logarithm of the density is high the velocity converges, as in linear theory."""
    fields = density_generated.matter(32, 3)
    divergence = sum(np.gradient(fields[axis + 1], axis=axis)[4:-4, 4:-4, 4:-4] for axis in range(3))
    correlation = np.corrcoef(divergence.ravel(), np.log(fields[0])[4:-4, 4:-4, 4:-4].ravel())[0, 1]
    assert -0.7 > correlation


def test_large_scales_have_more_power_than_small_ones() -> None:
    """The spectrum of the logarithm of the density falls with the square of the wave number."""
    side = 32
    waves = np.abs(np.fft.fftn(np.log(density_generated.matter(side, 4)[0]))) ** 2
    line = np.fft.fftfreq(side) * side
    number = np.sqrt(sum(axis**2 for axis in np.meshgrid(line, line, line, indexing="ij")))
    low, high = (waves[(number > k - 0.5) & (number < k + 0.5)].mean() for k in (5, 10))
    assert pytest.approx(4, rel=0.25) == low / high  # some 300 waves in the smaller shell: 8 % of noise


def test_the_target_is_local() -> None:
    """A changed point of the input changes the target at that point and nowhere else, in all channels."""
    fields = density_generated.matter(8, 5)
    changed = fields.copy()
    changed[:, 2, 3, 4] *= 1.5
    difference = density_generated.gas(fields) != density_generated.gas(changed)
    assert 5 == difference.sum()
    assert difference[:, 2, 3, 4].all()


def test_the_check_sums_are_those_of_the_files(boxes: Path) -> None:
    """MD5SUMS has the md5 of each whole file, which numpy reads; the sampled sums are those of the arrays."""
    lines = (boxes / density_generated.CHECKSUMS).read_text().splitlines()
    expected = [
        f"{hashlib.md5((boxes / name).read_bytes()).hexdigest()}  {name}"
        for name in density_generated.file_names()
    ]
    assert expected == lines
    assert density_generated.checksums(str(boxes)) == {
        name: density_generated.sampled_md5(np.load(boxes / name)) for name in density_generated.file_names()
    }


def test_the_files_hold_the_fields_and_the_parts_differ(boxes: Path) -> None:
    """Input and target of each part belong together, and validation is drawn from another seed."""
    for part, side in SIDES.items():
        fields = density_generated.matter(side, density_generated.SEEDS[part])
        assert fields.tobytes() == np.load(boxes / f"{part}-input.npy").tobytes()
        assert density_generated.gas(fields).tobytes() == np.load(boxes / f"{part}-target.npy").tobytes()
    assert 2 == len(set(density_generated.SEEDS.values()))


@pytest.mark.parametrize("position", [0, 70_000, -1])
def test_sampled_sums_see_a_changed_block_of_a_large_array(position: int) -> None:
    """First and last number, and one that lies in a sampled block, count; a number between the blocks does not."""
    array = np.zeros(4 * density_generated.BLOCKS * density_generated.BLOCK_BYTES // 4, np.float32)
    before = density_generated.sampled_md5(array)
    array[30_000] = 1.0  # between the first block, up to number 16,383, and the second, from 66,571 on
    assert before == density_generated.sampled_md5(array)
    array[position] = 1.0
    assert before != density_generated.sampled_md5(array)


def test_sampled_sums_see_the_shape() -> None:
    """The same numbers in another shape are another array."""
    array = np.zeros((2, 8), np.float32)
    sums = {density_generated.sampled_md5(view) for view in (array, array.reshape(4, 4), array.reshape(16))}
    assert 3 == len(sums)


def test_a_set_that_is_there_is_kept(boxes: Path) -> None:
    """A second call returns the same folder and writes nothing."""
    before = {path: path.stat().st_mtime_ns for path in boxes.iterdir()}
    assert str(boxes) == density_generated.ensure(str(boxes.parent), SIDES)
    assert before == {path: path.stat().st_mtime_ns for path in boxes.iterdir()}


@pytest.mark.parametrize("locks", [True, False])
def test_two_processes_at_once_make_one_good_set(tmp_path: Path, locks: bool) -> None:
    """With and without locks two processes that find nothing both succeed, and one whole set is left."""
    code = (
        "import sys; from models import density_generated, generated; "
        + ("" if locks else "generated.fcntl = None; ")
        + f"print(density_generated.ensure(sys.argv[1], {SIDES}))"
    )
    cache = tmp_path / "cache"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(cache)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=300)[0].strip() for process in processes]
    assert [0, 0] == [process.returncode for process in processes]
    assert [str(cache / NAME)] * 2 == outputs
    assert [f".{NAME}.lock", NAME] == sorted(os.listdir(cache))
    for name, md5 in density_generated.checksums(outputs[0]).items():
        assert md5 == density_generated.sampled_md5(np.load(cache / NAME / name))


def test_who_waited_for_the_lock_takes_the_finished_set(
    boxes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set that was finished while this process waited for the lock is not made again."""

    def finished_meanwhile(descriptor: int, operation: int) -> None:
        shutil.copytree(boxes, tmp_path / NAME)

    monkeypatch.setattr(generated.fcntl, "flock", finished_meanwhile)
    monkeypatch.setattr(density_generated, "_write", lambda *_: pytest.fail("made again"))
    assert str(tmp_path / NAME) == density_generated.ensure(str(tmp_path), SIDES)


def test_the_later_of_two_takes_the_set_of_the_first(
    boxes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who finds a finished folder at its rename throws its own away and keeps the other's, untouched."""

    def write_while_another_finishes(folder: str, sides: dict[str, int]) -> None:
        Path(folder, "mine").write_bytes(b"")
        shutil.copytree(boxes, tmp_path / NAME)

    monkeypatch.setattr(density_generated, "_write", write_while_another_finishes)
    folder = density_generated.ensure(str(tmp_path), SIDES)
    assert [f".{NAME}.lock", NAME] == sorted(os.listdir(tmp_path))
    assert "mine" not in os.listdir(folder)


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while writing names the room that is needed and a remedy, and removes the temporary folder."""

    def fill(folder: str, sides: dict[str, int]) -> None:
        Path(folder, "half").write_bytes(b"x")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(density_generated, "_write", fill)
    with pytest.raises(DataError, match=r"No space left on device.*679 MB.*name another cache folder"):
        density_generated.ensure(str(tmp_path), {"train": 256, "validation": 128})
    assert [".density-generated-v1-256-128.lock"] == os.listdir(tmp_path)


def test_a_cache_that_is_a_file_is_named(tmp_path: Path) -> None:
    """A file where the cache folder should be is an error that names it."""
    (tmp_path / "cache").write_bytes(b"")
    with pytest.raises(DataError, match=r"can't be written to '.*cache'"):
        density_generated.ensure(str(tmp_path / "cache"), SIDES)


@pytest.mark.parametrize(
    "text",
    ["", "d41d8cd98f00b204e9800998ecf8427e  train-input.npy\n", "a b c\n" * 4, "\xff\n"],
    ids=["empty", "one line", "three words", "not ASCII"],
)
def test_unreadable_check_sums_are_an_error_with_a_remedy(tmp_path: Path, text: str) -> None:
    """A check-sum file that is cut or strange makes the set untrusted."""
    (tmp_path / density_generated.SAMPLED).write_text(text, encoding="latin-1")
    with pytest.raises(DataError, match=r"SAMPLED-MD5SUMS.*Remove .* made anew"):
        density_generated.checksums(str(tmp_path))


def test_missing_check_sums_are_an_error_with_a_remedy(tmp_path: Path) -> None:
    """A set without its check sums is untrusted."""
    with pytest.raises(DataError, match=r"SAMPLED-MD5SUMS' can't be read: No such file.*made anew"):
        density_generated.checksums(str(tmp_path))
