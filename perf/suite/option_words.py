"""The suite's command-line options: their names and help texts. What they mean is read by `perf.suite.options`."""

from __future__ import annotations

import argparse

import pytest

from perf.profiles import PROFILES


def add_options(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("stackproof", "stackproof: is this stack as fast as it should be?")
    add = group.addoption
    add(
        "--profile",
        choices=sorted(PROFILES),
        help="how much runs and how often (default: quick; with --records the stored run's)",
    )
    add(
        "--stack",
        metavar="PYTHON",
        help="Python of the stack under test (default: the first python3 on PATH with torch); with --site the name of "
        "one of its stacks",
    )
    add("--site", metavar="FILE", help="site file: stacks, limits and data of one cluster (docs/sites.md)")
    add(
        "--job-folder",
        metavar="DIR",
        help="folder of the job that this run is (set by python -m perf.cluster)",
    )
    add(
        "--device",
        choices=("auto", "cpu", "cuda"),
        help="what to measure (default: GPUs where there are any; smoke: cpu)",
    )
    add(
        "--data-root",
        metavar="DIR",
        help="folder of staged data: MNIST's four IDX files; CIFAR-100 and density boxes where they are there",
    )
    add("--cache-dir", metavar="DIR", help="where generated data lie (default: the user's cache folder)")
    add("--results", metavar="DIR", default="results", help="where runs are kept (default: results)")
    add(
        "--records",
        metavar="RUN",
        action="append",
        default=[],
        help="judge the stored launches of this run again instead of measuring; may be given several times",
    )
    add(
        "--references",
        metavar="DIR",
        help="folder of reference files, one a system (default: perf/references of the checkout)",
    )
    add(
        "--confirms",
        metavar="RUN",
        help="this run is on another node, or date, than RUN: a floor that was missed there and here fails",
    )
    add(
        "--against",
        metavar="PYTHON",
        help="compare two stacks: Python of the old one; --stack is the new one",
    )
    add(
        "--margin",
        metavar="2%",
        help="slowdown that a comparison must not pass (default: the reference's margin, else 2%%)",
    )
    add(
        "--stalls",
        action="store_true",
        help="with --against: windows of 400 steps on GPUs for every network, so that its share of slow ones is judged "
        "(default: for mnist_cnn alone, whose steps take 2 ms)",
    )
    add(
        "--why",
        action="store_true",
        help="explain every comparison, as is done for one that moved: phases, operators, rates, settings",
    )
    add(
        "--budget",
        metavar="20min",
        help="time that a run may take: the most telling groups come first, what does not fit is skipped and told",
    )
    add(
        "--plan",
        action="store_true",
        help="say which groups would be measured, with how many launches, when and for how long, and end",
    )
    add(
        "--launcher",
        choices=("fresh", "fork"),
        default="",
        help="start each launch fresh, or fork it from a process that has imported torch (default: fork on GPUs, fresh "
        "on CPUs and where two stacks are compared)",
    )
    add(
        "--old-launcher",
        choices=("fresh", "fork"),
        default="",
        help="with --against: how the old side is launched, to compare the two ways (default: like the new one)",
    )
    add(
        "--server-launches",
        type=int,
        default=0,
        metavar="N",
        help="with --launcher=fork: fork at most N launches from one process, then start another (default: no limit)",
    )
    add(
        "--portable-floors",
        action="store_true",
        help="hold each variant's fraction of the machine's own rates against known systems (docs/rates.md)",
    )
    add("--require-references", action="store_true", help="a number without a reference fails")
    add(
        "--share-node",
        action="store_true",
        help="time launches beside others on this node, each group on GPUs of its own; records say so, and only "
        "references that were taken so are compared (docs/sharing.md)",
    )
    add(
        "--line-profile",
        action="store_true",
        help="one more launch a variant: a line profile of `train` on every rank",
    )
    add(
        "--launches",
        metavar="N",
        type=int,
        help="launches of each member of every judged group (default: the profile's; fewer than 5 judge nothing)",
    )
    add("--save-model", action="store_true", help="keep what each launch trained: model.pt in its folder")
    add("--phases", action="store_true", help="one more launch a variant: the time of each phase of a step")
    add(
        "--torch-trace",
        action="store_true",
        help="one more launch a variant: a trace of some steps on every rank by torch's profiler, for Perfetto",
    )
    add(
        "--nsys",
        action="store_true",
        help="one more launch a variant: a capture of some steps by Nsight Systems, where nsys is on PATH",
    )
    # pytest has a --trace of its own, for its debugger.
    # Not for users: what the suite's own self-check plants to see it caught.
    add("--plant", metavar="NAME", help=argparse.SUPPRESS)
    # Nor this: smoke's sizes in another profile, so that a planted fault is judged in minutes.
    add("--small", action="store_true", help=argparse.SUPPRESS)
    add(
        "--launch-timeout",
        metavar="S",
        type=float,
        help="time limit of one launch in seconds (default: the profile's)",
    )
