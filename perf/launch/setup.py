"""The fresh shell in which a stack's setup lines run, for one launch and for the worker only. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from perf.launch.place import NODE

SETUP_FAILED = 97
"""Exit status of a launch whose setup failed; bash, env and timeout use those from 124 up."""

# A shell that is not a login shell may lack `module`, where the site does not export it.
FIND_MODULE = """\
if ! type module >/dev/null 2>&1; then
    for file in /etc/profile.d/*lmod*.sh /etc/profile.d/modules.sh; do
        if [ -r "$file" ]; then . "$file"; fi
    done
fi"""


def setup_shell(setup: Sequence[str], node_number: str) -> list[str]:
    """Return the words of a shell that runs the setup lines and then becomes the words that follow.

    Parameters
    ----------
    setup
        Commands of the site file, each a whole one. The first that fails ends the launch and says its number.
    node_number
        Bash expression for this task's node; it replaces `perf.launch.place.NODE` in the words that follow.

    Returns
    -------
    list of str
        Empty where there is nothing to run and only one node.
    """
    if not setup and node_number == "0":
        return []
    lines = [FIND_MODULE] if any(line.split()[:1] in (["module"], ["ml"]) for line in setup) else []
    for number, line in enumerate(setup, start=1):
        said = f"stackproof: line {number} of the stack's setup failed"
        lines.append(f'{{\n{line}\n}} || {{ echo "{said} (exit status $?)" >&2; exit {SETUP_FAILED}; }}')
    lines.append(f'node="{node_number}"')
    lines.append(f'exec "${{@//{NODE}/$node}}"')
    return ["bash", "--noprofile", "--norc", "-c", "\n".join(lines), "stackproof"]
