"""The pinned files: complete, hashed, in step with pyproject.toml, and free of torch and of addresses."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DRIVER = PYPROJECT["project"]["dependencies"]
DEV = PYPROJECT["dependency-groups"]["dev"]


def entries(name: str) -> dict[str, tuple[Requirement, list[str]]]:
    """Return the requirement and the hashes of each line of a constraints file, by package."""
    logical = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    found = {}
    for line in logical:
        text, *hashes = line.split(" --hash=")
        requirement = Requirement(text.strip())
        found[canonicalize_name(requirement.name)] = (requirement, [digest.strip() for digest in hashes])
    return found


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-dev.txt"])
def test_every_line_is_one_version_with_hashes(name):
    """Pip --require-hashes takes the file: each package has one exact version and at least one SHA-256."""
    for requirement, hashes in entries(name).values():
        assert ["=="] == [specifier.operator for specifier in requirement.specifier], requirement
        assert hashes, requirement
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", digest) for digest in hashes), requirement


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-dev.txt"])
def test_files_name_no_address(name):
    """Where packages come from is the site's business: the files hold no index, link or file address."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search(
        r"://|^\s*-|(?<!\s)--index|find-links", text.replace("    --hash=", ""), re.MULTILINE
    )


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-dev.txt"])
def test_files_hold_no_torch(name):
    """Torch and what it brings are under test, never pinned."""
    assert not {"torch", "torchvision", "triton", "sympy"} & entries(name).keys()


@pytest.mark.parametrize(
    ("name", "wanted"), [("constraints.txt", DRIVER), ("constraints-dev.txt", DRIVER + DEV)]
)
def test_pins_lie_in_the_ranges_of_pyproject(name, wanted):
    """Whoever changes a range in pyproject.toml remakes the constraints."""
    pinned = entries(name)
    for requirement in map(Requirement, wanted):
        pin = next(iter(pinned[canonicalize_name(requirement.name)][0].specifier)).version
        assert requirement.specifier.contains(pin), (
            f"{requirement.name} {pin} is outside {requirement.specifier}"
        )


def test_development_pins_are_the_drivers_pins_and_more():
    """The tests run on the very versions that a cluster gets."""
    driver, dev = entries("constraints.txt"), entries("constraints-dev.txt")
    assert driver.items() <= dev.items()
    assert set(map(canonicalize_name, ("ruff", "mypy", "numpy"))) <= dev.keys() - driver.keys()
