"""A campaign on GPUs keeps its order, its limits and its GPUs apart. Needs no GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.campaign import Campaign, fitting
from tests.gpu.steps import STEPS, Step

SAYS = "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES'), len(os.sched_getaffinity(0)))"


def python(name, code, **changes):
    """A step that is a line of Python."""
    return Step(name, ("-c", code.replace("{", "{{").replace("}", "}}")), **changes)


@pytest.fixture
def campaign(tmp_path):
    """Two GPUs, and the cores that there are."""
    return Campaign(tmp_path / "out", sys.executable, ["4", "7"], sorted(os.sched_getaffinity(0)))


def test_steps_start_in_order_as_soon_as_their_gpus_are_free():
    """One that needs more than are free lets later ones pass; one that needs all lets none."""
    pair, one, every, late = (
        Step(name, (), gpus=gpus) for name, gpus in (("p", 2), ("o", 1), ("e", 0), ("l", 1))
    )
    assert [(pair, (0, 1)), (one, (2,))] == list(fitting([pair, one, pair], [0, 1, 2, 3], 4))
    assert [(one, (3,))] == list(fitting([pair, one], [3], 4))
    assert [(one, (2,))] == list(fitting([one, every, late], [2, 3], 4))
    assert [(every, (0, 1))] == list(fitting([every, late], [0, 1], 2))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs 2 cores")
def test_each_step_has_a_gpu_and_cores_of_its_own(campaign, tmp_path):
    """Two steps of one GPU see one each, and half of the cores; a step of all sees what the caller saw."""
    cores = len(os.sched_getaffinity(0))
    wait = "; import time; time.sleep(0.5)"
    campaign.run([python("a", SAYS + wait), python("b", SAYS + wait), python("all", SAYS, gpus=0)])

    said = {name: (tmp_path / "out" / f"{name}.log").read_text().split() for name in ("a", "b", "all")}
    assert {"4", "7"} == {said["a"][0], said["b"][0]}
    assert [str(cores // 2)] * 2 == [said["a"][1], said["b"][1]]
    assert [str(os.environ.get("CUDA_VISIBLE_DEVICES")), str(cores)] == said["all"]


def test_a_step_that_takes_too_long_is_interrupted_and_the_next_one_runs(campaign, tmp_path):
    """As by Ctrl-C, so that a run of the suite keeps what it has; the log says so."""
    slow = "import time\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('kept', flush=True)\n    raise"
    campaign.run([python("slow", slow, gpus=0, seconds=1.0), python("next", "print('ran')", gpus=0)])

    assert (tmp_path / "out" / "slow.log").read_text().startswith("kept")
    assert "ran\n" == (tmp_path / "out" / "next.log").read_text()
    log = (tmp_path / "out" / "campaign.log").read_text()
    assert "slow: interrupted after" in log
    assert "next: ended after" in log
    assert log.endswith("all done\n")


def test_a_step_without_its_gpus_is_left_out(tmp_path):
    """On one GPU nothing can be said about two, and the log says so."""
    one = Campaign(tmp_path, sys.executable, ["0"], [0])
    one.run([python("pair", "print(1)", gpus=0, fewest=2)])

    assert "pair: left out, it needs 2 GPUs" in (tmp_path / "campaign.log").read_text()
    assert not (tmp_path / "pair.log").exists()


def test_a_step_beside_another_says_that_it_shares_the_node(campaign):
    """What the suite times beside others is marked so; measuring's own cost is measured by the stack's Python."""
    steps = {step.name: step for step in STEPS}
    assert "--share-node" == campaign.command(steps["quick"], (0,))[-1]
    assert "--share-node" not in campaign.command(steps["quick-two"], (0, 1))
    assert 1 == campaign.command(steps["quick-shared"], (0,)).count("--share-node")
    assert "taskset" == campaign.command(steps["overhead-unet3d"], (1,))[0]
    assert {"--against=" + sys.executable} < set(campaign.command(steps["planted-1"], (0, 1)))


def test_the_command_lists_its_steps():
    """Whoever asks for help sees what can be measured."""
    script = Path(__file__).parent / "campaign.py"
    done = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True, check=True)
    assert all(step.name in " ".join(done.stdout.split()) for step in STEPS)
    assert len(STEPS) == len({step.name for step in STEPS})
