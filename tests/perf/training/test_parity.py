"""Whether a graphed step trains the same can only be asked of a GPU; the comparison itself is arithmetic."""

from __future__ import annotations

import pytest
import torch

from perf.training import parity


def test_the_largest_relative_difference_counts():
    """One tensor that differs is not hidden by others that don't."""
    one = [torch.ones(4), torch.full((2,), 10.0)]
    other = [torch.ones(4), torch.tensor([10.0, 11.0])]

    assert 0.0 == parity.largest_difference(one, one)
    assert 1.0 / 200.0**0.5 == pytest.approx(parity.largest_difference(one, other))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(capsys):
    """Exit status 2 and a sentence, not a traceback."""
    assert 2 == parity.main([])
    assert "only GPUs have graphs" in capsys.readouterr().err


def test_a_network_that_is_none_is_refused(capsys):
    """One line that says which there are, before anything is trained."""
    with pytest.raises(SystemExit, match="2"):
        parity.main(["--workload", "nope"])
    assert "invalid choice: 'nope'" in capsys.readouterr().err
