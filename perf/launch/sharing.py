"""Sharing a node: launches on leased GPUs that run beside one another, and that a measurement alone waits for.

Whoever wants the node alone (`perf.launch.lock.NodeLock`) holds the lock and then waits until no launch shares the
node. Whoever shares it takes the lock for a moment, so that it does not come in meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from perf.launch.claims import Claims
from perf.launch.lock import SHARER, NodeLock, holder_note, lock_folder, prepare_folder


@contextlib.contextmanager
def shared_node(
    run: str, say: Callable[[str], None], folder: Path | None = None, *, wait: bool = True
) -> Iterator[None]:
    """Share the node with others that share it, as long as the context lasts.

    Parameters
    ----------
    run
        The run that does, for others to read.
    say
        Told who measures alone, while that is waited for.
    folder
        Where the lock lies; `lock_folder` if None.
    wait
        Whether to wait for who measures alone. Without, this launch disturbs it; but who comes later waits for this.

    Raises
    ------
    LockError
        If the locks can't be used.
    """
    folder = folder or lock_folder()
    prepare_folder(folder)
    claims = Claims(folder)
    with NodeLock(run, folder, say, alone=False) if wait else contextlib.nullcontext(), claims.guard():
        claim = claims.take_new(SHARER, holder_note(run))
    try:
        yield
    finally:
        claim.drop(remove=True)
