"""Words with names in braces."""

from __future__ import annotations

import pytest

from perf.cluster.templates import TemplateError, check_template, fill


def test_names_are_filled_in_and_other_braces_stay():
    """Known names are replaced once; what was filled in is not looked through again."""
    words = ["--gres=gpu:{gpus}", "${HOME}", "{A b}", "{nodes}x{nodes}"]

    assert ["--gres=gpu:4", "${HOME}", "{A b}", "{gpus}x{gpus}"] == fill(words[:3], {"gpus": 4}) + fill(
        words[3:], {"nodes": "{gpus}", "gpus": 4}
    )


def test_an_unknown_name_is_refused_with_those_that_are_known():
    """A typing error does not reach the scheduler."""
    with pytest.raises(TemplateError, match=r"names \{gpu\}; known are \{gpus\}, \{nodes\}"):
        check_template("--gres=gpu:{gpu}", ("gpus", "nodes"))
