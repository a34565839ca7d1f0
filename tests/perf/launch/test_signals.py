from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from perf.launch.signals import NOTED, Interruption, Terminated

ROOT = Path(__file__).parents[3]


@pytest.fixture
def handler():
    """Return a function that sets a handler for one signal; the former ones come back afterwards."""
    before = {signum: signal.getsignal(signum) for signum in NOTED}
    yield signal.signal
    for signum, former in before.items():
        signal.signal(signum, former)


def test_signals_are_noted_and_not_acted_on():
    """Inside the context nothing is raised; the first signal and the number of signals are kept."""
    with Interruption() as interruption:
        assert (False, False) == (interruption.happened, interruption.urgent)
        signal.raise_signal(signal.SIGTERM)
        assert (True, False) == (interruption.happened, interruption.urgent)
        signal.raise_signal(signal.SIGINT)
        assert (True, True) == (interruption.happened, interruption.urgent)
    assert signal.SIGTERM == interruption.signum


def test_former_handlers_are_back_after_the_context():
    """Every handler is restored, also when the context ends with an error."""
    before = [signal.getsignal(signum) for signum in NOTED]
    inside = []

    def fail():
        with Interruption():
            inside.extend(signal.getsignal(signum) for signum in NOTED)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not set(before) & set(inside)
    assert before == [signal.getsignal(signum) for signum in NOTED]


def test_ctrl_c_becomes_a_keyboard_interrupt():
    """SIGINT is delivered to Python's own handler."""
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as caught:
        interruption.deliver()
    assert KeyboardInterrupt is caught.type


def test_sigterm_and_sighup_become_terminated(handler):
    """Where the signal would have killed the driver, it ends in order instead."""
    for signum in (signal.SIGTERM, signal.SIGHUP):
        handler(signum, signal.SIG_DFL)
        with Interruption() as interruption:
            signal.raise_signal(signum)
        with pytest.raises(Terminated, match=f"ended by {signum.name}"):
            interruption.deliver()


def test_a_callers_own_handler_is_called_before_terminated(handler):
    """A handler that the caller set runs, and the driver ends all the same."""
    calls = []
    handler(signal.SIGTERM, lambda signum, frame: calls.append(signum))
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGTERM)
        assert [] == calls
    with pytest.raises(Terminated):
        interruption.deliver()
    assert [signal.SIGTERM] == calls


def test_an_ignored_signal_stays_ignored(handler):
    """Under nohup a closed terminal does not end the launch."""
    handler(signal.SIGHUP, signal.SIG_IGN)
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGHUP)
    assert not interruption.happened
    interruption.deliver()


def test_without_a_signal_nothing_is_delivered():
    """A launch that was not interrupted goes on."""
    with Interruption() as interruption:
        pass
    interruption.deliver()


def test_outside_the_main_thread_nothing_is_touched():
    """Handlers can only be set in the main thread; a launch elsewhere must work without."""
    before = [signal.getsignal(signum) for signum in NOTED]
    seen = []

    def inside():
        with Interruption() as interruption:
            seen.append([signal.getsignal(signum) for signum in NOTED])
        interruption.deliver()

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert [before] == seen


def test_a_driver_that_its_scheduler_ends_tidies_up_first():
    """SIGTERM becomes an exception that unwinds the driver, once: a second one does not disturb the unwinding."""
    program = (
        "import os, signal\n"
        "from perf.launch.signals import Terminated, end_in_order_on_sigterm\n"
        "end_in_order_on_sigterm()\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "except Terminated as error:\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (0, "ended by SIGTERM") == (done.returncode, done.stdout.strip()), done.stderr
