from __future__ import annotations

import re

import pytest

from perf.portable import KNOWN_FILE, known_systems
from perf.suite.library import complaint
from perf.tomlfile import TomlError
from perf.verdict.portable_table import parse

VARIANT = "mnist_cnn-single-1gpu-fp32-native"

TEXT = f'''schema = 1
tolerance = 0.4
reason = """
Because
of this."""

[[system]]
name = "4 x A100"
date = 2026-11-28
source = "docs/measurements/a100"
[system.fraction."{VARIANT}"]
matrix = 0.2
kernel_launches = 0.6

[[system]]
name = "2 x H100"
date = 2026-11-29
source = "docs/measurements/h100"
[system.fraction."{VARIANT}"]
matrix = 0.1
'''


def test_a_table_holds_what_variants_reached_on_known_systems():
    """With where each came from, and the tolerance with its reason."""
    table = parse(TEXT, "known.toml", complaint)

    assert (0.4, "Because of this.") == (table.tolerance, table.reason)
    assert [("4 x A100", "2026-11-28"), ("2 x H100", "2026-11-29")] == [
        (s.name, s.date) for s in table.systems
    ]
    assert [{"matrix": 0.2, "kernel_launches": 0.6}, {"matrix": 0.1}] == [
        known.fractions for known in table.known(VARIANT)
    ]
    assert [] == table.known("mnist_cnn-single-1cpu-fp32-native")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema = 1", "schema = 2", r"known.toml:1: schema: this suite reads up to 1"),
        ("schema = 1\n", "", "lacks the key 'schema'"),
        ("0.4", "1.5", r"known.toml:2: tolerance: expected a part above 0 and at most 1, got 1.5"),
        ("0.4", "-1", r"known.toml:2: tolerance: expected a number above 0"),
        ("tolerance", "tolerence", r"known.toml:1: the file: lacks the key 'tolerance'"),
        ("[[system]]", "extra = 3\n[[system]]", r"known.toml:7: extra: unknown key"),
        ("2 x H100", "4 x A100", r"known.toml:16: system\[2\].name: '4 x A100' is there twice"),
        ("mnist_cnn-single", "mnist_cmn-single", r"known.toml:11: .*mnist_cmn"),
        ("matrix = 0.2", "matrlx = 0.2", r"known.toml:12: .*matrlx: is no bound; did you mean 'matrix'\?"),
        ("matrix = 0.2", "matrix = 0", r"known.toml:12: .*matrix: expected a number above 0"),
        ("matrix = 0.2\nkernel_launches = 0.6\n", "", r"known.toml:11: .*holds no fraction"),
        ("2026-11-28", '"2026-11-28"', r"known.toml:9: system\[1\].date: expected a date"),
        ("tolerance = 0.4", "tolerance = 0.4\ntolerance = 0.4", r"known.toml:3: tolerance: written twice"),
        (
            f'[system.fraction."{VARIANT}"]\nmatrix = 0.1\n',
            "",
            r"known.toml:15: system\[2\]: lacks fractions",
        ),
    ],
)
def test_a_mistake_is_an_error_with_its_place(old, new, message):
    """File, line and key, and what was expected."""
    with pytest.raises(TomlError, match=message):
        parse(TEXT.replace(old, new, 1), "known.toml", complaint)


def test_the_suite_s_own_table_can_be_read_and_holds_only_what_was_measured():
    """Its sources are files of this repository; its tolerance says why it is what it is."""
    table = known_systems(complaint)

    assert table.reason
    for system in table.systems:
        assert (KNOWN_FILE.parents[3] / system.source).exists(), system.source


def test_the_example_in_the_suite_s_own_table_is_in_its_format():
    """Whoever takes the comment's signs away has a table that can be read."""
    text = KNOWN_FILE.read_text(encoding="utf-8")
    example = "\n".join(
        re.sub(r"^#     ", "", line) for line in text.split("\n") if line.startswith("#     ")
    )

    (system,) = parse(f"schema = 1\ntolerance = 1\nreason = 'x'\n{example}", "x", complaint).systems
    assert system.fractions
