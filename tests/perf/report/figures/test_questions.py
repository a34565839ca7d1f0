from __future__ import annotations

import sys
from pathlib import Path

from perf.report.figures.launches import by_group, sides
from perf.report.figures.questions import sections
from perf.report.summary import summarize

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

import made_up


def test_a_question_has_pictures_or_a_reason():
    """Whatever a run holds, no question is passed over in silence."""
    for records in (
        [],
        made_up.launches(["ddp@mnist_cnn-gpu", "epochs@mnist_cnn-gpu"], run="r", steps=10, count=2),
    ):
        found = sections(records, by_group(sides(records)), summarize(records, []))
        assert len(found) == len({section.key for section in found})
        for section in found:
            assert bool(section.figures) != bool(section.absent), section.key


def test_pictures_have_keys_of_their_own_and_words_to_be_found_by():
    """Over all sections no key occurs twice, and every picture can be filtered."""
    records = made_up.launches(
        [f"{q}@resnet50-gpu" for q in ("loader", "dp", "ddp", "ladder", "workers")],
        run="r",
        steps=10,
        count=2,
    )
    figures = [
        f for s in sections(records, by_group(sides(records)), summarize(records, [])) for f in s.figures
    ]
    assert 15 < len(figures) == len({figure.key for figure in figures})
    assert all("resnet50" in figure.search for figure in figures)
