from __future__ import annotations

import os
import subprocess
import sys

import pytest

from perf.faults.plant import INJECT, NoSuchFault, check_name, mark, planted, planted_environment


def run(code, name, **environ):
    """Run a piece of Python with a fault planted, as a rank would be started."""
    environment = planted_environment(name, {"PATH": os.environ["PATH"], **environ})
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_callers_environment_is_kept_and_the_fault_comes_first():
    """What the caller put on PYTHONPATH stays behind the fault's folder; the rest is untouched."""
    found = planted_environment("no-workers", {"PYTHONPATH": "/site/packages", "X": "1"})

    assert f"{INJECT}:/site/packages" == found["PYTHONPATH"]
    assert ("1", "no-workers") == (found["X"], found["STACKPROOF_PLANT"])
    assert str(INJECT) == planted_environment("no-workers", {})["PYTHONPATH"]


def test_a_fault_that_there_is_not_names_the_nearest():
    """A slip of the finger gets the right name back."""
    with pytest.raises(NoSuchFault, match=r"there is no fault 'slow-rnk' to plant; the nearest: slow-rank"):
        check_name("slow-rnk")


def test_a_planted_launch_keeps_its_mark(make_record):
    """Its flags name what was planted; an honest launch has none, whatever else it is flagged with."""
    honest = make_record(flags=["unsteady"])
    record = mark(honest, "slow-rank")

    assert ["unsteady", "planted: slow-rank"] == record.flags
    assert ("slow-rank", None) == (planted(record), planted(honest))


def test_a_record_is_cut_on_its_way(tmp_path):
    """A fault reaches a process that imports nothing of the suite, and only the file that it is about."""
    code = (
        f"import os\nos.chdir({str(tmp_path)!r})\n"
        "for name in ('rank-1.json', 'state-1.json'):\n"
        "    open('x', 'w').write('a' * 1000); os.replace('x', name)\n"
        "    print(os.path.getsize(name))\n"
    )
    done = run(code, "record-cut")

    assert ("200\n1000\n", 0) == (done.stdout, done.returncode), done.stderr


def test_a_full_disk_is_told_as_the_system_tells_it(tmp_path):
    """The error is the one of a disk without space."""
    code = f"import os\nos.chdir({str(tmp_path)!r})\nopen('x', 'w').close()\nos.replace('x', 'rank-1.json')"

    assert "No space left on device" in run(code, "disk-full").stderr


def test_a_module_is_changed_when_it_has_been_imported(tmp_path):
    """A stand-in for torch, imported later, is the one that is changed; its submodules are left alone."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("__version__ = '2.9'\ndef set_num_threads(n): print(n)\n")
    (tmp_path / "torch" / "sub.py").write_text("x = 1\n")
    code = "import torch, torch.sub\nprint(torch.__version__, torch.sub.x)"
    done = run(code, "torch-not-the-stacks", PYTHONPATH=str(tmp_path))
    assert ("2.0.0+elsewhere 1\n", 0) == (done.stdout, done.returncode), done.stderr

    code = "import torch\ntorch.set_num_threads(1)"
    assert "2\n" == run(code, "threads-unequal", PYTHONPATH=str(tmp_path), RANK="1").stdout
    assert "1\n" == run(code, "threads-unequal", PYTHONPATH=str(tmp_path), RANK="0").stdout


def test_a_fork_plants_what_its_own_rank_is_to_have(tmp_path):
    """A launch that is forked gets its rank after the plant: the plant asks when it acts."""
    (tmp_path / "torch.py").write_text("def set_num_threads(n): print(n)\n")
    code = "import os, torch\ntorch.set_num_threads(1)\nos.environ['RANK'] = '1'\ntorch.set_num_threads(1)\n"

    assert "1\n2\n" == run(code, "threads-unequal", PYTHONPATH=str(tmp_path)).stdout


def test_ranks_that_take_one_gpu_are_told_so_before_they_start():
    """The environment of the rank names the first device, whichever rank it is."""
    code = "import os; print(os.environ['LOCAL_RANK'])"

    assert "0\n" == run(code, "gpu-taken-twice", RANK="1", LOCAL_RANK="1", WORLD_SIZE="2").stdout


def test_an_override_of_the_environment_needs_no_module():
    """TF32 is overridden by a variable alone, and nothing is put on the path."""
    found = planted_environment("tf32-overridden", {"PATH": "/bin"})

    assert {"PATH": "/bin", "NVIDIA_TF32_OVERRIDE": "0"} == found


@pytest.mark.parametrize(
    ("name", "module", "text", "code", "said"),
    [
        (
            "unpinned",
            "torch/utils/data/dataloader.py",
            "class DataLoader:\n    def __init__(self, data, pin_memory=False): print(pin_memory)\n",
            "from torch.utils.data.dataloader import DataLoader; DataLoader([], pin_memory=True)",
            "False",
        ),
        (
            "gloo-for-nccl",
            "torch/distributed/__init__.py",
            "def init_process_group(backend=None, **options): print(backend, sorted(options))\n",
            "import torch.distributed as d; d.init_process_group(backend='nccl', device_id=0, timeout=1)",
            "gloo ['timeout']",
        ),
        (
            "bucket-a-parameter",
            "torch/nn/parallel/distributed.py",
            "class DistributedDataParallel:\n    def __init__(self, m, bucket_cap_mb): print(bucket_cap_mb * 2**20)\n",
            "from torch.nn.parallel.distributed import DistributedDataParallel as D; D(None)",
            "1.0",
        ),
        (
            "no-overlap",
            "torch/nn/parallel/distributed.py",
            "class DistributedDataParallel:\n    def __init__(self, m, bucket_cap_mb=None): print(bucket_cap_mb)\n",
            "from torch.nn.parallel.distributed import DistributedDataParallel as D; D(None)",
            "1048576.0",
        ),
        (
            "autotune-dropped",
            "torch/backends/cudnn.py",
            (
                "import sys\nclass Switch:\n"
                "    def __get__(self, o, k=None): return self.__dict__.get('on', True)\n"
                "    def __set__(self, o, v): self.on = v\n"
                "class Module:\n    benchmark = Switch()\n"
                "sys.modules[__name__] = Module()\n"
            ),
            (
                "import torch.backends.cudnn, sys; c = sys.modules['torch.backends.cudnn']\n"
                "c.benchmark = True; print(c.benchmark)"
            ),
            "False",
        ),
    ],
)
def test_what_is_asked_of_torch_is_changed_on_its_way(tmp_path, name, module, text, code, said):
    """A stand-in for a part of torch gets other arguments than its caller gave, or keeps its switch where it is."""
    path = tmp_path / module
    path.parent.mkdir(parents=True)
    for folder in path.parents:
        if folder == tmp_path:
            break
        if not (folder / "__init__.py").exists():
            (folder / "__init__.py").write_text("")
    path.write_text(text)
    done = run(code, name, PYTHONPATH=str(tmp_path))

    assert f"{said}\n" == done.stdout, done.stderr


class FakeCuda:
    """Counts what a plant asks of a GPU."""

    def __init__(self):
        self.cycles, self.waits = [], 0

    def synchronize(self):
        self.waits += 1

    def is_initialized(self):
        return True

    def _sleep(self, cycles):
        self.cycles.append(cycles)


def steps_of(plant, monkeypatch, count):
    """Take steps under a plant with a fake torch; return the fake GPU and the seconds slept."""
    import types

    cuda, hooks, slept = FakeCuda(), [], []
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    monkeypatch.setattr("time.sleep", slept.append)

    def after(module, hook):
        if module == "torch.optim.optimizer":
            hook(types.SimpleNamespace(register_optimizer_step_post_hook=hooks.append))

    plant(after, lambda: 0)
    for _ in range(count):
        for hook in hooks:
            hook(None, None, None)
    return cuda, slept


@pytest.mark.parametrize(("name", "stalls"), [("stalled-steps-1", 4), ("stalled-steps-3", 12)])
def test_a_share_of_the_steps_stalls(plants, monkeypatch, name, stalls):
    """Of 400 steps so many wait for the device and then for longer than a step."""
    cuda, slept = steps_of(plants[name], monkeypatch, 400)

    assert stalls == len(slept) == cuda.waits - 1
    assert {0.02} == set(slept)


def test_a_stall_is_as_long_as_a_long_step(plants, monkeypatch):
    """Of steps of 50 ms the third of a hundred takes 50 ms longer, and so do all like it."""
    from perf.faults.inject import planted_gpus

    now = iter([1.0, 1.0 + (33 - 18) * 0.05])
    monkeypatch.setattr(planted_gpus.time, "perf_counter", lambda: next(now))
    _, slept = steps_of(plants["stalled-steps-3"], monkeypatch, 100)

    assert [pytest.approx(0.05)] * 3 == slept


def test_a_full_card_makes_the_allocator_try_again_in_every_step(plants, monkeypatch):
    """Each step asks for more than there is, with something in the cache to free before the second try."""
    import types

    class OutOfMemoryError(RuntimeError):
        pass

    class Card:
        """A GPU with 1 GiB, and torch's allocator in front of it."""

        free, cache, retries = 2**30, 0, 0

        def empty(self, size, *, dtype, device):
            if size > self.free:
                self.retries += self.cache > 0
                self.free, self.cache = self.free + self.cache, 0
                if size > self.free:
                    raise OutOfMemoryError
            # Freed at once, as nobody keeps it, and kept in the cache.
            self.free, self.cache = self.free - size, self.cache + size

        def empty_cache(self):
            self.free, self.cache = self.free + self.cache, 0

    card, hooks = Card(), []
    cuda = types.SimpleNamespace(
        empty_cache=card.empty_cache,
        mem_get_info=lambda: (card.free, 2**30),
        OutOfMemoryError=OutOfMemoryError,
    )
    monkeypatch.setitem(
        sys.modules, "torch", types.SimpleNamespace(cuda=cuda, empty=card.empty, uint8="uint8")
    )
    module = types.SimpleNamespace(register_optimizer_step_post_hook=hooks.append)
    plants["allocator-thrash"](lambda name, hook: hook(module), lambda: 0)
    for _ in range(5):
        hooks[0](None, None, None)

    assert 5 == card.retries


def test_a_synchronized_step_waits_many_times(plants, monkeypatch):
    """The host waits behind each step as often as a network has operators."""
    cuda, _ = steps_of(plants["step-synchronized"], monkeypatch, 3)

    assert 120 == cuda.waits


@pytest.mark.parametrize(("percent", "step", "cycles"), [(3, 0.02, 1_200_000), (5, 0.01, 1_000_000)])
def test_a_slower_kernel_takes_a_share_of_the_measured_step(plants, monkeypatch, percent, step, cycles):
    """From the 30th step on a kernel that counts cycles is queued: the share of a step, by the card's own clock."""
    from perf.faults.inject import planted_gpus

    now = [0.0]

    def clock():
        now[0] += 12 * step
        return now[0]

    monkeypatch.setattr(planted_gpus, "_cycles_a_second", lambda torch: 2e9)
    monkeypatch.setattr(planted_gpus.time, "perf_counter", clock)
    cuda, _ = steps_of(plants[f"device-time-{percent}"], monkeypatch, 32)

    assert [pytest.approx(cycles, abs=1)] * 3 == cuda.cycles


def test_the_folder_plants_nothing_by_itself():
    """On the path without a name, Python starts as ever."""
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.replace.__module__)"],
        env={"PYTHONPATH": str(INJECT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ("posix\n", "") == (done.stdout, done.stderr)


def test_a_synchronized_step_waits_at_every_module_both_ways():
    """Also in a network whose activations work in place, which a module's own backward hooks forbid."""
    code = """
import torch
waits = []
torch.cuda.synchronize, torch.cuda.is_initialized = lambda: waits.append(1), lambda: True
network = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(inplace=True), torch.nn.Linear(3, 1))
loss = network(torch.ones(2, 3)).sum()
forward = len(waits)
loss.backward()
print(forward, len(waits) - forward)
"""
    assert "4 4" == run(code, "step-synchronized").stdout.strip()
