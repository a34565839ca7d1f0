"""Where density boxes come from, and that three ways to cut a crop out of them agree."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from models import density_data, density_generated, rotations
from models.density_data import Crops
from models.errors import DataError

SIDES = {"train": 12, "validation": 10}
CROP = 8
NOWHERE = "/nonexistent"


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small generated set; read only."""
    return Path(density_generated.ensure(str(tmp_path_factory.mktemp("cache")), SIDES))


@pytest.fixture
def root(boxes: Path, tmp_path: Path) -> Path:
    """A data root with a copy of the boxes, to be damaged."""
    shutil.copytree(boxes, tmp_path / "root" / "density")
    return tmp_path / "root"


@pytest.fixture(scope="module")
def crops(boxes: Path) -> Crops:
    """Forty crops of 8³ of the training box."""
    return density_data.crops(found(boxes), "train", CROP, 40)


def found(boxes: Path) -> density_data.Source:
    """The generated set that lies in its cache."""
    return density_data.find(None, str(boxes.parent), SIDES, CROP)


def equal(first: tuple[torch.Tensor, ...], second: tuple[torch.Tensor, ...]) -> bool:
    """Whether types, shapes and all values of two samples or batches are equal."""
    return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(first, second, strict=True))


# Rotations


def test_there_are_24_different_proper_rotations() -> None:
    """Each is a signed permutation of determinant +1, and no two are equal: so they are all that there are."""
    matrices = [np.array(matrix) for matrix in rotations.MATRICES]
    assert 24 == len(set(rotations.MATRICES)) == len(matrices)
    for matrix in matrices:
        assert np.eye(3, dtype=int).tolist() == (matrix @ matrix.T).tolist()
        assert 1 == round(np.linalg.det(matrix))


def test_the_rotations_are_a_group() -> None:
    """One does nothing, and each product of two is one of them."""
    assert ((1, 0, 0), (0, 1, 0), (0, 0, 1)) in rotations.MATRICES
    products = {
        tuple(map(tuple, (np.array(a) @ np.array(b)).tolist()))
        for a, b in itertools.product(rotations.MATRICES, repeat=2)
    }
    assert set(rotations.MATRICES) == products


def test_the_rotations_turn_a_cube_in_24_ways_that_are_no_mirror_images() -> None:
    """Turned cubes all differ, and none of them is a mirrored cube turned."""
    cube = np.arange(27.0).reshape(1, 3, 3, 3)
    turned = {rotations.cut_views(cube, 3, (0, 0, 0, number)).tobytes() for number in range(24)}
    mirrored = {rotations.cut_views(cube[:, ::-1], 3, (0, 0, 0, number)).tobytes() for number in range(24)}
    assert (24, 24) == (len(turned), len(mirrored))
    assert turned.isdisjoint(mirrored)


def test_a_quarter_turn_is_numpys() -> None:
    """A known rotation does what numpy.rot90 does, so that all ways can't be wrong together."""
    cube = np.arange(27.0).reshape(1, 3, 3, 3)
    number = rotations.MATRICES.index(((1, 0, 0), (0, 0, 1), (0, -1, 0)))
    expected = np.rot90(cube, axes=(2, 3))
    assert expected.tolist() == rotations.cut_views(cube, 3, (0, 0, 0, number)).tolist()


@given(
    side=st.integers(1, 5),
    corner=st.tuples(*[st.integers(0, 3)] * 3),
    rotation=st.integers(0, 23),
)
def test_three_ways_to_cut_a_cube_agree(side: int, corner: tuple[int, int, int], rotation: int) -> None:
    """Views, tensors and points give the same cube, for odd and even sides and at every corner."""
    field = np.arange(2 * 8**3, dtype=np.float32).reshape(2, 8, 8, 8)
    row = (*corner, rotation)
    expected = rotations.cut_points(field, rotations.point_places(side, row))
    assert expected.tolist() == rotations.cut_views(field, side, row).tolist()
    assert expected.tolist() == rotations.cut_tensor(torch.from_numpy(field), side, row).tolist()


# Samples


@given(
    indices=st.lists(st.integers(0, 39), max_size=6),
    epoch=st.integers(0, 2**40),
    seed=st.integers(0, 2**63),
)
def test_batch_samples_and_reference_are_the_same(
    crops: Crops, indices: list[int], epoch: int, seed: int
) -> None:
    """A batch is the stacked samples, and each of them is the slow one, for every draw and order."""
    crops.start_epoch(epoch, seed)
    batch = crops.batch(crops.tensors(), torch.tensor(indices, dtype=torch.int64))
    assert [(len(indices), 4, 8, 8, 8), (len(indices), 5, 8, 8, 8)] == [part.shape for part in batch]
    for place, index in enumerate(indices):
        assert equal(crops[index], (batch[0][place], batch[1][place]))
        assert equal(crops.reference(index), crops[index])


def test_a_rotation_that_is_thrown_away_is_found(crops: Crops, monkeypatch: pytest.MonkeyPatch) -> None:
    """If samples were cut without being turned, the reference would differ for almost all of them."""
    crops.start_epoch(0, 0)
    monkeypatch.setattr(rotations, "STEPS", (((0, 1, 2), ()),) * 24)
    same = [equal(crops.reference(index), crops[index]) for index in range(len(crops))]
    identity = rotations.MATRICES.index(((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    assert [int(row[3]) == identity for row in crops.table] == same
    assert sum(same) < 10


def test_samples_are_contiguous_memory_of_their_own(boxes: Path) -> None:
    """Writing into a sample changes no other sample, also where the crop is the whole box and isn't turned."""
    whole = density_data.crops(found(boxes), "validation", SIDES["validation"], 200)
    for index in range(len(whole)):
        data, target = whole[index]
        assert data.is_contiguous()
        assert target.is_contiguous()
        data.zero_()
        target.zero_()
    assert all(float(box.abs().sum()) > 0 for box in whole.tensors())


def test_input_and_target_are_cut_alike(crops: Crops) -> None:
    """The target of each sample is the formula of its own input."""
    crops.start_epoch(3, 1)
    for index in range(len(crops)):
        data, target = crops[index]
        np.testing.assert_allclose(target.numpy(), density_generated.gas(data.numpy()), atol=1e-6)


def test_crops_depend_on_seed_and_epoch_alone(crops: Crops) -> None:
    """Equal pairs give equal draws, other seeds and epochs others, and swapping the two is another draw too."""
    draws = []
    for epoch, seed in [(0, 0), (0, 1), (1, 0), (1, 2), (2, 1), (0, 0)]:
        crops.start_epoch(epoch, seed)
        draws.append(crops.table.tolist())
    assert draws[0] == draws[-1]
    assert 5 == len({str(draw) for draw in draws})


def test_the_first_draw_is_that_of_epoch_0_and_seed_0(boxes: Path, crops: Crops) -> None:
    """A set on which nothing was started has the documented draw, the same in every process."""
    crops.start_epoch(0, 0)
    assert crops.table.tolist() == density_data.crops(found(boxes), "train", CROP, 40).table.tolist()


def test_the_draw_is_the_one_of_version_1(crops: Crops) -> None:
    """The stream is pinned: another one would let two stacks train on different crops."""
    crops.start_epoch(1, 2)
    assert [[1, 4, 3, 20], [3, 3, 4, 1], [0, 1, 1, 7]] == crops.table[:3].tolist()


def test_every_place_and_rotation_comes_up(boxes: Path) -> None:
    """All 5³ places, both ends included, and all 24 rotations are drawn, none much more often than others."""
    many = density_data.crops(found(boxes), "train", CROP, 12_000)
    places = np.bincount((many.table[:, :3] @ torch.tensor([25, 5, 1])).numpy(), minlength=125)
    turns = np.bincount(many.table[:, 3].numpy(), minlength=24)
    assert (125, 24) == (len(places), len(turns))
    # 96 and 500 expected; seven deviations of a Poisson count.
    assert (26, 343) < (places.min(), turns.min())
    assert places.max() < 166
    assert turns.max() < 657


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_a_persistent_worker_sees_the_new_draw(boxes: Path, context: str) -> None:
    """Workers that already run cut the crops of an epoch that was started after them."""
    dataset = density_data.crops(found(boxes), "train", CROP, 4)
    loader = DataLoader(
        dataset, batch_size=2, num_workers=1, persistent_workers=True, multiprocessing_context=context
    )
    for epoch in range(3):
        dataset.start_epoch(epoch, 7)
        seen = [torch.cat(parts) for parts in zip(*loader, strict=True)]
        assert equal(dataset.batch(dataset.tensors(), torch.arange(4)), tuple(seen))


def test_a_pickled_set_does_not_carry_the_boxes(crops: Crops) -> None:
    """A copy for another process maps the files itself: it is small, and has the same samples."""
    data = pickle.dumps(crops)
    assert len(data) < 5_000
    assert equal(crops[3], pickle.loads(data)[3])


@pytest.mark.parametrize("index", [-1, 40])
def test_an_index_outside_is_an_error(crops: Crops, index: int) -> None:
    """No index wraps around in silence."""
    with pytest.raises(IndexError, match="the data set has 40"):
        crops[index]


# Places


def test_generated_boxes_are_the_last_resort_and_are_called_so(boxes: Path) -> None:
    """Without a data root the stand-in is used, and described as what it is; a record can hold that."""
    source = found(boxes)
    where = density_data.provenance(source, 40)
    assert ("generated", str(boxes), 40) == (where["kind"], where["folder"], where["samples"])
    assert "made by this suite" in str(where["description"])
    assert where == json.loads(json.dumps(where))


@pytest.mark.parametrize("inside", ["density", "."])
def test_staged_boxes_are_found_in_both_places(boxes: Path, tmp_path: Path, inside: str) -> None:
    """Boxes may lie in the root or in `density`; they are unverified, and equal data have an equal fingerprint."""
    shutil.copytree(boxes, tmp_path / "root" / inside, dirs_exist_ok=True)
    source = density_data.find(str(tmp_path / "root"), NOWHERE, SIDES, CROP)
    assert density_data.UNVERIFIED == source.kind
    assert found(boxes).fingerprint == source.fingerprint
    assert equal(
        density_data.crops(found(boxes), "validation", CROP, 5)[4],
        density_data.crops(source, "validation", CROP, 5)[4],
    )


def test_a_data_root_without_the_files_is_an_error_that_names_every_place(tmp_path: Path) -> None:
    """Some of the files are none; the message lists both folders, what they lack and what to do."""
    (tmp_path / "train-input.npy").write_bytes(b"")
    with pytest.raises(DataError) as caught:
        density_data.find(str(tmp_path), str(tmp_path / "cache"), SIDES, CROP)
    message = str(caught.value)
    assert f"no folder '{tmp_path / 'density'}'" in message
    assert (
        "lacks train-target.npy, validation-input.npy, validation-target.npy and downsamp_2048crop" in message
    )
    assert "name none to train on generated boxes" in message
    assert not (tmp_path / "cache").exists()


def test_a_data_root_for_other_workloads_has_boxes_generated(tmp_path: Path) -> None:
    """A root that holds nothing of the boxes is no error; one that does not exist is."""
    (tmp_path / "MNIST").mkdir()
    assert "generated" == density_data.find(str(tmp_path), str(tmp_path / "cache"), SIDES, CROP).kind
    with pytest.raises(DataError, match="no folder"):
        density_data.find(str(tmp_path / "nowhere"), str(tmp_path / "cache"), SIDES, CROP)


def test_an_empty_data_root_is_not_the_current_folder(boxes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unset variable in a site file must not pick up files that happen to lie in the current folder."""
    monkeypatch.chdir(boxes)
    with pytest.raises(DataError, match="the data root is empty"):
        density_data.find("", NOWHERE, SIDES, CROP)


def rewrite(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], None]:
    """A damage that replaces a file's array by another."""
    return lambda path: np.save(path, change(np.load(path)))


def append(path: Path) -> None:
    """A damage that makes a file one byte longer."""
    with path.open("ab") as stream:
        stream.write(b"x")


def archive(path: Path) -> None:
    """A damage that puts an archive of arrays in a file's place."""
    with path.open("wb") as stream:
        np.savez(stream, a=np.zeros(3))


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "empty": (lambda path: path.write_bytes(b""), "can't be mapped.*Expected a whole .npy file"),
    "no npy": (lambda path: path.write_bytes(b"x" * 500), "can't be mapped.*Expected a whole .npy file"),
    "an archive": (archive, "can't be mapped"),
    "objects": (lambda path: np.save(path, np.array([{}]), allow_pickle=True), "can't be mapped"),
    "cut short": (lambda path: os.truncate(path, path.stat().st_size - 1), "can't be mapped"),
    "too long": (append, r"has \d+ bytes, its header says \d+"),
    "double": (rewrite(lambda array: array.astype(np.float64)), "holds <f8 in C order, expected float32"),
    "big-endian": (rewrite(lambda array: array.astype(">f4")), "holds >f4 in C order, expected float32"),
    "Fortran": (rewrite(np.asfortranarray), "holds <f4 in Fortran order, expected float32"),
    "channels last": (
        rewrite(lambda array: np.ascontiguousarray(array.transpose(1, 2, 3, 0))),
        "expected \\(5, ",
    ),
    "a channel less": (
        rewrite(lambda array: array[:-1]),
        r"shape \(4, 12, 12, 12\).*expected \(5, n, n, n\)",
    ),
    "no cube": (rewrite(lambda array: array[:, :-1]), r"has shape \(5, 11, 12, 12\)"),
    "another side": (rewrite(lambda array: array[:, :-1, :-1, :-1]), "the same for input and target"),
    "a number": (lambda path: np.save(path, np.float32(1)), r"has shape \(\)"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named_with_what_was_expected(root: Path, damage: str) -> None:
    """A file that is cut, or of another type, order or shape, is an error that names it."""
    change, message = DAMAGES[damage]
    change(root / "density" / "train-target.npy")
    with pytest.raises(DataError, match=rf"train-target\.npy'.*{message}"):
        density_data.find(str(root), NOWHERE, SIDES, CROP)


def test_a_box_smaller_than_a_crop_is_an_error(root: Path) -> None:
    """The validation box of 10³ can't give crops of 11³."""
    with pytest.raises(DataError, match=r"validation-input.npy' has shape .*n at least 11"):
        density_data.find(str(root), NOWHERE, SIDES, 11)


def test_generated_boxes_that_were_changed_are_not_trusted(boxes: Path, tmp_path: Path) -> None:
    """A changed byte in a generated box (these are small, so hashed whole) is an error with a remedy."""
    shutil.copytree(boxes, tmp_path / boxes.name)
    path = tmp_path / boxes.name / "validation-input.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"validation-input.npy' has the sampled md5 .* made anew"):
        density_data.find(None, str(tmp_path), SIDES, CROP)


def test_a_generated_file_that_went_away_is_an_error_with_a_remedy(boxes: Path, tmp_path: Path) -> None:
    """A folder that lost a file is named, and is not filled up in silence."""
    shutil.copytree(boxes, tmp_path / boxes.name)
    (tmp_path / boxes.name / "train-input.npy").unlink()
    with pytest.raises(DataError, match=r"train-input.npy' is missing. Remove .* made anew"):
        density_data.find(None, str(tmp_path), SIDES, CROP)


# HDF5


class FakeFile:
    """What h5py.File shows of a file that holds Nbody and then Hydro, raw, behind 100 other bytes."""

    chunked = False
    kind = "<f4"

    def __init__(self, path: str, mode: str) -> None:
        self.path = path
        assert "r" == mode

    def __enter__(self) -> Self:
        if self.path.endswith("valid.h5") and os.path.getsize(self.path) < 100:
            raise OSError("truncated file")
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getitem__(self, name: str) -> SimpleNamespace:
        side = SIDES["train" if "train" in self.path else "validation"]
        channels, before = {"Nbody": (4, 0), "Hydro": (5, 4)}[name]
        offset = None if self.chunked else 100 + before * side**3 * 4
        return SimpleNamespace(
            id=SimpleNamespace(get_offset=lambda: offset),
            dtype=np.dtype(self.kind),
            shape=(channels, side, side, side),
        )


@pytest.fixture
def hdf5(boxes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data root with the two files that FakeFile reads, and an h5py that has nothing but FakeFile."""
    for part, name in density_data.HDF5_NAMES.items():
        arrays = [np.load(boxes / f"{part}-{content}.npy").tobytes() for content in ("input", "target")]
        (tmp_path / name).write_bytes(b"x" * 100 + b"".join(arrays))
    monkeypatch.setitem(sys.modules, "h5py", SimpleNamespace(File=FakeFile))
    return tmp_path


def test_the_tutorials_files_are_mapped_where_h5py_says(hdf5: Path, boxes: Path) -> None:
    """Boxes in HDF5 files give the samples and the fingerprint of the same boxes in .npy files."""
    source = density_data.find(str(hdf5), NOWHERE, SIDES, CROP)
    assert (density_data.UNVERIFIED, found(boxes).fingerprint) == (source.kind, source.fingerprint)
    assert equal(
        density_data.crops(found(boxes), "train", CROP, 5)[4], density_data.crops(source, "train", CROP, 5)[4]
    )


def test_real_hdf5_files_are_read(boxes: Path, tmp_path: Path) -> None:
    """What the real h5py writes is found and mapped (skipped where it isn't installed)."""
    h5py = pytest.importorskip("h5py")
    for part, name in density_data.HDF5_NAMES.items():
        with h5py.File(tmp_path / name, "w") as file:
            for content, dataset in density_data.HDF5_DATASETS.items():
                file[dataset] = np.load(boxes / f"{part}-{content}.npy")
    source = density_data.find(str(tmp_path), NOWHERE, SIDES, CROP)
    assert found(boxes).fingerprint == source.fingerprint


def test_hdf5_files_without_h5py_are_an_error_with_the_reason(
    hdf5: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where h5py is missing the message says so, and how to do without."""
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(
        DataError, match=r"holds HDF5 files, and h5py can't be imported.*save the boxes as train-"
    ):
        density_data.find(str(hdf5), NOWHERE, SIDES, CROP)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("chunked", True, "'Nbody' holds float32 in chunks"),
        ("kind", "<f8", "'Nbody' holds float64 in one piece"),
    ],
)
def test_hdf5_that_cannot_be_mapped_is_an_error_with_a_remedy(
    hdf5: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object, message: str
) -> None:
    """Chunks, compressed or not, and other types can't be mapped; .npy files are the way out."""
    monkeypatch.setattr(FakeFile, name, value)
    with pytest.raises(DataError, match=f"train.h5': {message}.*save the boxes as"):
        density_data.find(str(hdf5), NOWHERE, SIDES, CROP)


def test_a_damaged_hdf5_file_is_named(hdf5: Path) -> None:
    """What h5py can't open is an error that names the file."""
    (hdf5 / density_data.HDF5_NAMES["validation"]).write_bytes(b"")
    with pytest.raises(DataError, match=r"valid.h5' can't be read: truncated file.*Nbody, Hydro"):
        density_data.find(str(hdf5), NOWHERE, SIDES, CROP)
