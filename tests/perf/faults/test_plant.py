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
