"""What is found out before anything is submitted."""

from __future__ import annotations

import pytest

from perf.cluster.sites import SiteError, parse_site
from perf.cluster.submitting import check_site_here

TEXT = """\
[scheduler]
kind = "slurm"
[node]
cores = 4
[stacks.next]
[data]
root = "/nowhere/at/all"
"""


@pytest.mark.parametrize(
    ("stack", "words"),
    [
        ("nxt", "no stack 'nxt'; did you mean 'next'"),
        ("next", "there is no folder /nowhere/at/all here"),
        ("/usr/bin/python3", "there is no folder /nowhere/at/all here"),
    ],
)
def test_a_slip_of_the_finger_is_told_before_what_the_site_lacks(stack, words):
    """The stack's name is the user's own word, and the first to be mended; the data root is asked of every stack."""
    with pytest.raises(SiteError, match=words):
        check_site_here(parse_site(TEXT, "x.toml"), stack)
