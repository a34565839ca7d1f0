"""What jobs cost."""

from __future__ import annotations

import pytest

from perf.cluster.accounting import Row, as_facts, completed, remarks, table
from perf.cluster.scheduler import Usage


def test_efficiencies_are_seffs():
    """CPU time over time and cores, peak over what was asked; unknown is not 0."""
    usage = Usage("sacct", wall_seconds=10.0, cpu_seconds=20.0, cores=8, peak_memory_bytes=1, memory_bytes=4)

    assert (0.25, 0.25) == (usage.cpu_efficiency, usage.memory_efficiency)
    assert (None, None) == (Usage("own").cpu_efficiency, Usage("own").memory_efficiency)
    assert None is Usage("own", wall_seconds=0.0, cpu_seconds=1.0, cores=1).cpu_efficiency


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        (Usage("x", wall_seconds=10.0, cpu_seconds=5.0, cores=8), "ask for fewer cores"),
        (Usage("x", peak_memory_bytes=95, memory_bytes=100), "may be killed"),
        (Usage("x", peak_memory_bytes=130, memory_bytes=100), "the true part is smaller"),
    ],
)
def test_what_stands_out_is_said(usage, said):
    """Each limit has its sentence."""
    (remark,) = remarks(usage)
    assert said in remark


def test_a_job_in_order_has_no_remark():
    """Neither has one of which nothing is known."""
    good = Usage("x", wall_seconds=10.0, cpu_seconds=40.0, cores=8, peak_memory_bytes=50, memory_bytes=100)

    assert () == remarks(good) == remarks(Usage("own"))


def test_our_own_figures_fill_what_the_scheduler_lacks():
    """Its figures win, its gaps are filled, and without it ours are all there is."""
    own = Usage("own", wall_seconds=1.0, nodes="n1", queue_seconds=2.0)

    assert Usage("sacct", wall_seconds=5.0, nodes="n1", queue_seconds=2.0) == completed(
        Usage("sacct", wall_seconds=5.0), own
    )
    assert own is completed(None, own)


def test_the_table_has_a_line_a_job_and_is_safe_to_print():
    """Names of nodes come from elsewhere; what is not known is a dash."""
    rows = [Row("a", "5", "done", Usage("sacct", wall_seconds=65.0, gpus=0, nodes="n\x1b[1"), ("look",))]

    heading, line, remark = table(rows)

    assert heading.startswith("job  id  end")
    assert "1 min 05 s" in line
    assert "\x1b" not in line
    assert "a: look." == remark
    assert (None, ["look"]) == (as_facts(rows)[0]["cpu_efficiency"], as_facts(rows)[0]["remarks"])
