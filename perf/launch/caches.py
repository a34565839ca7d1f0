"""Where a stack keeps what its compilers made: in a folder of its own, so that launches find it and stacks don't share.

torch's default is one folder a user for every torch there is. Of two stacks that are compared the second would find
what the first one compiled, and start sooner; and a choice that a compiler made by timing would be one for both.
What cuDNN and MIOpen choose is not kept: a choice belongs to a launch, or many launches would share one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

from perf.contract import LaunchSpec
from perf.launch.stack import Stack

FOLDER = "compiled"
"""Below the cache folder."""

CACHES = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}
"""Variables that name the caches of compilers, and the folder of each."""

KEY_DIGITS = 12


def compiler_caches(spec: LaunchSpec, stack: Stack, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that send compilers to their stack's own folder; a variable that is set is left. Pure.

    Parameters
    ----------
    spec
        The launch. Its side has a folder of its own, also where both sides are the same stack.
    stack
        What is launched: its words, its versions and its variables tell it from others.
    environment
        Of the launch.
    """
    told = [
        *stack.setup,
        *stack.wrapper,
        stack.python,
        *(f"{name}={stack.facts.get(name)}" for name in ("torch", "cuda", "hip", "python")),
        *(f"{name}={stack.environment[name]}" for name in sorted(stack.environment)),
        spec.side,
    ]
    key = hashlib.sha256("\0".join(told).encode()).hexdigest()[:KEY_DIGITS]
    folder = os.path.join(spec.cache_dir, FOLDER, key)
    return {name: os.path.join(folder, part) for name, part in CACHES.items() if not environment.get(name)}
