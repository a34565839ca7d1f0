"""The text of a job script. Pure; every word that comes from elsewhere is quoted for bash."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

FINISHED = (0, 1, 10, 11, 12)
"""pytest's statuses with which a run has said what it had to say. The job itself then ends with 0: what was measured
is bad or good, the job did its work. Any other status is the job's own."""

STARTED_BEFORE = 75
NO_REPOSITORY = 74


@dataclass(frozen=True)
class ScriptParts:
    """What a job script is made of.

    `submitted_with` is the command that submits it, `command` what it runs, `repository` where it runs that, `folder`
    the job's own.
    """

    run: str
    job: str
    folder: str
    repository: str
    command: tuple[str, ...]
    submitted_with: tuple[str, ...]


def script_text(parts: ScriptParts) -> str:
    """Return the script.

    It takes care of four things: a second start (a requeue) does not overwrite the first; a warning before the time
    limit is passed on to pytest, which then ends its launch and writes its files; the end marker
    ``exit_code`` appears by rename, whatever happens; and pytest's own status does not make the job look failed.
    """
    finished = "|".join(str(status) for status in FINISHED)
    lines = [
        "#!/bin/bash",
        *comment(f"stackproof: job {parts.job} of run {parts.run}. Submitted with:"),
        *comment(f"  {shlex.join(parts.submitted_with)}"),
        "",
        f"folder={shlex.quote(parts.folder)}",
        "caught=",
        "pytest=",
        "",
        "# shellcheck disable=SC2317,SC2329 # traps call these",
        "finish() {",
        "    local status=$?",
        "    trap - EXIT",
        '    printf \'%s %s %s\\n\' "$status" "$(date +%s)" "$caught" >"$folder/.exit_code" &&',
        '        mv -f -- "$folder/.exit_code" "$folder/exit_code"',
        '    case "$status" in',
        f"        {finished}) exit 0 ;;",
        "    esac",
        '    exit "$status"',
        "}",
        "# shellcheck disable=SC2317,SC2329",
        "near_limit() {",
        "    caught=USR1",
        '    if [ -n "$pytest" ]; then kill -TERM "$pytest" 2>/dev/null; fi',
        "}",
        "",
        "# A job that is started again (requeued) would mix its measurements with those of its first start.",
        'if ! mkdir -- "$folder/started"; then',
        '    echo "stackproof: this job was started before; it does not measure twice into one folder." >&2',
        '    date +%s >"$folder/started_again"',
        f"    exit {STARTED_BEFORE}",
        "fi",
        "trap finish EXIT",
        "trap near_limit USR1",
        "# These reach every process of the job, so pytest has them too: passed on, they would count as two.",
        "trap 'caught=TERM' TERM",
        "trap 'caught=INT' INT",
        'date +%s >"$folder/started/at"',
        'hostname >"$folder/started/host"',
        "",
        f"cd -- {shlex.quote(parts.repository)} || exit {NO_REPOSITORY}",
        "# Ignored in what it starts: LSF sends the warning to every process of the job, and it would end them.",
        "(",
        "    trap '' USR1",
        *_command(parts.command),
        ") &",
        "pytest=$!",
        "# A signal ends `wait`, not pytest: wait until pytest itself has ended. 127: there is nothing to wait for.",
        "status=127",
        "while :; do",
        '    wait "$pytest"',
        "    code=$?",
        '    if [ "$code" -ne 127 ]; then status=$code; fi',
        '    kill -0 "$pytest" 2>/dev/null || break',
        "done",
        'wait "$pytest" 2>/dev/null',
        "code=$?",
        'if [ "$code" -ne 127 ]; then status=$code; fi',
        'exit "$status"',
    ]
    return "\n".join(lines) + "\n"


def comment(text: str) -> list[str]:
    """Return text as comment lines; a line feed in it can't end the comment."""
    return [f"# {line}".rstrip() for line in text.replace("\r", "\n").split("\n")]


def _command(words: Sequence[str]) -> list[str]:
    first, *rest = [shlex.quote(word) for word in words]
    lines = [f"    exec {first}", *(f"        {word}" for word in rest)]
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]
