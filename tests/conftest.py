"""What all of the suite's own tests share."""

from __future__ import annotations

import signal

from hypothesis import settings

# No test asserts how long something takes, hypothesis' deadline of 200 ms included: these machines are shared.
settings.register_profile("shared-machine", deadline=None)
settings.load_profile("shared-machine")

# Started by nohup or in the background of a script, pytest and all that it starts would ignore these signals; the
# suite respects that, and the tests of what it does on a signal would wait for ever or fail.
for signum, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(signum) is signal.SIG_IGN:
        signal.signal(signum, default)
