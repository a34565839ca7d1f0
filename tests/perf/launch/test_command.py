from __future__ import annotations

import pytest

from perf.launch.command import marker, worker_command, worker_environment
from perf.launch.environment import Driver
from perf.launch.stack import Stack

STACK = Stack("torch 2.14.1", "/stack/bin/python")
DRIVER = Driver("/driver", frozenset(), reads_python_path=True)


@pytest.mark.parametrize("strategy", ["single", "dp"])
def test_one_process_is_started_by_its_python_alone(make_spec, strategy):
    """Single and DataParallel launches need no torchrun."""
    spec = make_spec(strategy=strategy, ranks_per_node=1)
    assert ["/stack/bin/python", "-m", "perf.training.worker", "/o/spec.json"] == worker_command(
        spec, STACK, "/o/spec.json"
    )


@pytest.mark.parametrize("ranks", [1, 4])
def test_ddp_is_started_by_torchrun_whatever_the_world_size(make_spec, ranks):
    """DDP goes through torchrun with one rank too, with options that torch 2.1 and 2.14 both know."""
    spec = make_spec(ranks_per_node=ranks, out_dir="/o")
    expected = [
        "/stack/bin/python",
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nnodes=1",
        f"--nproc-per-node={ranks}",
        "--max-restarts=0",
        "--log-dir",
        "/o/logs",
        "--redirects=3",
        "-m",
        "perf.training.worker",
        "/o/spec.json",
    ]
    assert expected == worker_command(spec, STACK, "/o/spec.json")


def test_a_path_with_blanks_and_dollars_stays_one_argument(make_spec):
    """No shell sees the command, so a hostile path is passed as it is."""
    path = "/o/$(id) 'x'/spec.json"
    assert path == worker_command(make_spec(), STACK, path)[-1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"strategy": "fsdp"}, "strategy 'fsdp' is not one of single, dp, ddp"),
        ({"nodes": 2}, "needs 2 nodes"),
        ({"strategy": "dp", "ranks_per_node": 2}, "has one rank"),
    ],
)
def test_a_launch_that_cannot_be_started_here_is_refused(make_spec, changes, said):
    """An unknown strategy, several nodes and a many-rank single launch are errors that name the variant."""
    with pytest.raises(ValueError, match=said):
        worker_command(make_spec(**changes), STACK, "/o/spec.json")


@pytest.mark.parametrize("strategy", ["single", "dp", "ddp"])
def test_threads_are_set_alike_for_every_strategy(make_spec, strategy):
    """OMP and MKL get the spec's threads, whatever the caller or torchrun would choose."""
    environment = worker_environment(
        make_spec(strategy=strategy, threads=3), {"OMP_NUM_THREADS": "64"}, DRIVER
    )
    assert ("3", "3") == (environment["OMP_NUM_THREADS"], environment["MKL_NUM_THREADS"])


def test_the_environment_marks_the_launch_and_orders_the_devices(make_spec):
    """Every process carries its launch's mark, counts GPUs by bus and writes its log at once."""
    spec = make_spec()
    environment = worker_environment(spec, {"STACKPROOF_LAUNCH": "another"}, DRIVER)
    assert "20261127T120000Z-abc123/0001" == marker(spec) == environment["STACKPROOF_LAUNCH"]
    assert ("PCI_BUS_ID", "1") == (environment["CUDA_DEVICE_ORDER"], environment["PYTHONUNBUFFERED"])


class TwoNodes:
    """A place of two nodes."""

    nodes = 2
    cores = 4

    def step(self, nodes, options=()):
        return ["srun", f"--nodes={nodes}", *options]

    def node_number(self):
        return "$SLURM_NODEID"

    def endpoint(self, launch):
        return "n1", 23456

    def environment(self, environ):
        return dict(environ)


def test_a_launch_on_two_nodes_is_a_step_with_one_torchrun_a_node(make_spec):
    """Step, container options, the stack's shell, wrapper and Python come in this order; the nodes meet at node 0."""
    stack = Stack(
        "s", "python3", setup=("module load x",), wrapper=("apptainer", "exec"), step_options=("--image=a b",)
    )
    spec = make_spec(strategy="ddp", nodes=2, ranks_per_node=2, backend="gloo")

    words = worker_command(spec, stack, "/o/spec.json", place=TwoNodes())

    assert ["srun", "--nodes=2", "--image=a b", "bash"] == words[:4]
    assert ["apptainer", "exec", "python3", "-m", "torch.distributed.run"] == words[
        words.index("apptainer") :
    ][:5]
    assert {"--nnodes=2", "--master-addr=n1", "--master-port=23456", "--nproc-per-node=2"} <= set(words)
    assert "--node-rank=@STACKPROOF_NODE@" in words
    assert "--standalone" not in words
    assert words[words.index("--log-dir") + 1].endswith("logs/node-@STACKPROOF_NODE@")


def test_a_launch_on_one_of_two_nodes_is_a_step_too(make_spec):
    """What is compared is started alike: one node differs from two in nothing but the number."""
    words = worker_command(make_spec(strategy="ddp"), STACK, "/o/spec.json", place=TwoNodes())

    assert ["srun", "--nodes=1"] == words[:2]
    assert "--standalone" in words


def test_nsys_stands_before_the_stacks_python(make_spec):
    """It starts what it sees, torchrun's ranks too; without it the command is what it was."""
    command = worker_command(make_spec(out_dir="/o", trace="nsys"), STACK, "/o/spec.json")
    plain = worker_command(make_spec(out_dir="/o"), STACK, "/o/spec.json")

    assert ["nsys", "profile"] == command[:2]
    assert "--capture-range=cudaProfilerApi" in command
    assert "--output=/o/trace.nsys-rep" in command
    assert plain == command[-len(plain) :]
