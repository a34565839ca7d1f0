from __future__ import annotations

import json
import math

import pytest
import torch

from models.interface import load_workload, workload_names
from perf.training.work import OperatorCounter, Work, count, main
from perf.workloads import WORKLOADS


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_the_catalogue_s_figures_are_counted_again(name):
    """FLOP a sample and operators a step stand in perf/workloads.py as the network has them."""
    assert Work(WORKLOADS[name].flops, WORKLOADS[name].operators) == count(name)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_shapes_are_those_of_the_samples(name):
    """An input and a target in float32, or a label of 8 bytes, are what the catalogue says a sample takes."""
    workload = load_workload(name)
    shape, target = workload.SAMPLE_SHAPE, workload.TARGET_SHAPE

    assert WORKLOADS[name].sample_bytes == 4 * math.prod(shape) + (4 * math.prod(target) if target else 8)


@pytest.mark.parametrize("batch", [3, 8])
def test_work_is_that_of_one_sample_and_one_step(batch):
    """FLOP grow with the batch and operators don't."""
    assert count("mnist_cnn") == count("mnist_cnn", batch)


def test_flops_of_the_mnist_cnn_follow_from_its_layers():
    """Twice the terms of each layer, three times over: forward, to weights, to input, which the first layer lacks."""
    terms = [32 * 9 * 26**2, 64 * 32 * 9 * 24**2, 9216 * 128, 128 * 10]

    assert 2 * (3 * sum(terms) - terms[0]) == WORKLOADS["mnist_cnn"].flops


def test_views_are_no_operators():
    """A reshaped tensor takes no kernel; a sum and an addition in place do."""
    counter = OperatorCounter()
    with counter:
        x = torch.ones(4)
        x.view(2, 2).t()
        x.add_(1.0)
        x.sum()

    assert 3 == counter.count


def test_the_command_prints_a_line_a_workload(capsys):
    """One JSON object each, for whoever adds a workload."""
    assert 0 == main(["mnist_cnn", "unet3d_tiny"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert ["mnist_cnn", "unet3d_tiny"] == [line["workload"] for line in lines]
    assert WORKLOADS["mnist_cnn"].flops == lines[0]["flops"]


def test_a_network_that_is_none_is_refused(capsys):
    """One line that says which there are, before anything is counted."""
    with pytest.raises(SystemExit, match="2"):
        main(["mnist_cnn", "nope"])
    out, err = capsys.readouterr()
    assert "" == out
    assert "invalid choice: 'nope' (choose from mnist_cnn, " in err


def test_every_network_of_the_folder_is_found_by_its_name():
    """What counts without a name counts all of them, and the driver's list has each."""
    assert sorted(WORKLOADS) == sorted(workload_names())
