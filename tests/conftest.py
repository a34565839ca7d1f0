"""What all of the suite's own tests share."""

from __future__ import annotations

from hypothesis import settings

# No test asserts how long something takes, hypothesis' deadline of 200 ms included: these machines are shared.
settings.register_profile("shared-machine", deadline=None)
settings.load_profile("shared-machine")
