"""What a batch script asks for and starts: directives, assignments and commands, each with its line. Pure.

No shell: a script is never run, and what only running it could tell (a variable's value, a branch taken) stays unknown.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

SHORT = {
    "#SBATCH": {
        "-n": "--ntasks",
        "-N": "--nodes",
        "-c": "--cpus-per-task",
        "-G": "--gpus",
        "-t": "--time",
        "-J": "--job-name",
        "-p": "--partition",
        "-A": "--account",
        "-o": "--output",
        "-e": "--error",
        "-K": "--kill-on-bad-exit",
    },
    "#BSUB": {},
}
"""Slurm's short options (sbatch(1), srun(1)) that a rule asks for, or that take a value which must not be misread."""

VALUELESS = {
    "--exclusive",
    "--overlap",
    "--exact",
    "--kill-on-bad-exit",
    "--pty",
    "--requeue",
    "--no-requeue",
    "--label",
    "--unbuffered",
    "--overcommit",
    "--interactive",
    "--hold",
    "--verbose",
    "--quiet",
    "--nv",
    "--standalone",
    "--no-python",
    "--oversubscribe",
    "--contiguous",
    "--spread-job",
    "--use-min-nodes",
    "--wait-all-nodes",
    "--preserve-env",
    "--multi-prog",
    "-l",
    "-u",
    "-O",
    "-v",
    "-Q",
    "-s",
    "-K",
}
"""Options whose next word is not their value. -K and --exclusive take one only after an equals sign, or stuck to it."""

PREFIXES = {
    "exec",
    "time",
    "nohup",
    "command",
    "eval",
    "if",
    "then",
    "elif",
    "else",
    "while",
    "until",
    "do",
    "!",
    "{",
    "(",
}
"""Words before a command that start no program of their own, as far as lint is concerned."""

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")
_SEPARATORS = {";", "&", "&&", "||", "|", "|&", ";;"}
_NESTED = {"bash", "sh", "zsh", "dash"}


@dataclass(frozen=True)
class Directive:
    """One option of a `#SBATCH` or `#BSUB` line; `value` is empty where it takes none."""

    line: int
    name: str
    value: str
    read: bool = True
    """False where the scheduler does not read it, since a command stands above it."""


@dataclass(frozen=True)
class Command:
    """One command: its words, and what follows it (`&`, `|`, `&&`, `||`, `;` or nothing)."""

    line: int
    words: tuple[str, ...]
    before: str = ""
    after: str = ""

    @property
    def program(self) -> str:
        """The program's name without its folder."""
        return PurePosixPath(self.words[0]).name if self.words else ""


@dataclass(frozen=True)
class Assignment:
    """A variable that the script sets, with the text of its value, unexpanded."""

    line: int
    name: str
    value: str


@dataclass
class Script:
    """What was read."""

    directives: list[Directive] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    text: tuple[str, ...] = ()

    def asked(self, *names: str) -> str | None:
        """Return the last value that the script asks for under one of these names; None where it asks for none."""
        values = [each.value for each in self.directives if each.read and each.name in names]
        return values[-1] if values else None


def read_script(text: str) -> Script:
    """Read a batch script. Nothing in it is an error: what can't be understood is passed over."""
    lines = text.splitlines()
    script = Script(text=tuple(lines))
    seen_command = False
    for number, line in _logical_lines(lines):
        head = line.lstrip()
        if head.startswith("#"):
            for mark in SHORT:
                if line.startswith(mark) and line[len(mark) :][:1].isspace():
                    read = not (seen_command and mark == "#SBATCH")
                    script.directives += _directives(mark, line[len(mark) :], number, read)
            continue
        if head:
            seen_command = True
        for command in _commands(line, number):
            _sort_in(script, command)
    return script


def options(words: Sequence[str]) -> dict[str, str]:
    """Return the options in front of a launcher's program: long names, values as text, empty where there is none."""
    return dict(_pairs(words[1 : 1 + own_length(words)], SHORT["#SBATCH"]))


def own_length(words: Sequence[str]) -> int:
    """Return how many words after the first belong to a launcher itself and not to the program that it starts."""
    index = 1
    while index < len(words):
        word = words[index]
        if not word.startswith("-") or word == "-":
            break
        index += 1 if word == "--" or not _takes_next(word) else 2
        if word == "--":
            break
    return min(index, len(words)) - 1


def started(command: Command) -> Command | None:
    """Return the command that a launcher starts; None where it starts none."""
    rest = command.words[1 + own_length(command.words) :]
    return Command(command.line, tuple(rest), command.before, command.after) if rest else None


def inner(command: Command) -> Iterator[Command]:
    """Yield a command and every one that it starts: behind srun, behind a wrapper, inside `bash -c "…"`."""
    yield command
    for index, word in enumerate(command.words[1:], start=1):
        if command.words[index - 1] in {"-c", "-lc"} and " " in word and _has_shell(command.words[:index]):
            for nested in _commands(word, command.line):
                yield from inner(nested)


def _has_shell(words: Sequence[str]) -> bool:
    return any(PurePosixPath(word).name in _NESTED for word in words)


def _logical_lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield lines with their continuations joined, and without the bodies of here-documents."""
    index = 0
    while index < len(lines):
        number, line = index + 1, lines[index]
        index += 1
        while line.endswith("\\") and not line.lstrip().startswith("#") and index < len(lines):
            line = line[:-1] + " " + lines[index]
            index += 1
        if not line.lstrip().startswith("#"):
            line, index = _with_quoted_rest(line, lines, index)
        yield number, line
        here = _HEREDOC.search(line)
        if here and "<<<" not in line and not line.lstrip().startswith("#"):
            while index < len(lines) and lines[index].strip() != here[2]:
                index += 1
            index += 1


def _with_quoted_rest(line: str, lines: Sequence[str], index: int) -> tuple[str, int]:
    """Join what a quote that is still open takes in; a quote that never closes takes in nothing."""
    joined, end = line, index
    while _open_quote(joined) and end < len(lines):
        joined += "\n" + lines[end]
        end += 1
    return (line, index) if _open_quote(joined) else (joined, end)


def _open_quote(line: str) -> bool:
    try:
        shlex.split(line, comments=True)
    except ValueError:
        return True
    return False


def _directives(mark: str, text: str, number: int, read: bool) -> list[Directive]:
    words = _split(text)
    pairs = _pairs(words, SHORT[mark]) if mark == "#SBATCH" else _bsub_pairs(words)
    return [Directive(number, name, value, read) for name, value in pairs]


def _split(text: str) -> list[str]:
    try:
        return _without_comment(shlex.split(text))
    except ValueError:  # an apostrophe in a comment
        return _without_comment(text.split())


def _without_comment(words: Sequence[str]) -> list[str]:
    """Cut at the first word that begins with #. shlex would cut inside words too."""
    first = next((index for index, word in enumerate(words) if word.startswith("#")), len(words))
    return list(words[:first])


def _takes_next(word: str) -> bool:
    if word.startswith("--"):
        return "=" not in word and word not in VALUELESS
    return len(word) == 2 and word not in VALUELESS


def _pairs(words: Sequence[str], short: dict[str, str]) -> Iterator[tuple[str, str]]:
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not word.startswith("-") or word in {"-", "--"}:
            continue
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            name = name.replace("_", "-")
        else:
            name, value = short.get(word[:2], word[:2]), word[2:].removeprefix("=")
            equals = value
        if not equals and _takes_next(word) and index < len(words):
            value = words[index]
            index += 1
        yield name, value


def _bsub_pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Read LSF's options: one dash before whole words, the value in the next word."""
    for index, word in enumerate(words):
        if word.startswith("-"):
            after = words[index + 1] if index + 1 < len(words) else ""
            yield word, "" if after.startswith("-") else after


def _commands(line: str, number: int) -> Iterator[Command]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = _without_comment(list(lexer))
    except ValueError:
        tokens = _without_comment(line.split())
    words: list[str] = []
    before = ""
    for token in [*tokens, ";"]:
        # 2>&1 and &> are redirections, and their & ends no command.
        if token in _SEPARATORS and not (token == "&" and words and words[-1].endswith(">")):
            if words:
                yield Command(number, tuple(words), before, "" if token == ";" else token)
            words, before = [], token
        else:
            words.append(token)


def _sort_in(script: Script, command: Command) -> None:
    """Take assignments and words that start nothing off a command's front, and file what is left."""
    words = list(command.words)
    while words:
        match = _ASSIGNMENT.fullmatch(words[0])
        if words[0] in {"export", "declare", "local", "readonly"}:
            for word in words[1:]:
                named = _ASSIGNMENT.fullmatch(word)
                if named:
                    script.assignments.append(Assignment(command.line, named[1], named[2]))
            return
        if match:
            script.assignments.append(Assignment(command.line, match[1], match[2]))
        elif words[0].startswith("(") and words[0] != "(":
            words[0] = words[0].lstrip("(")
            continue
        elif words[0] not in PREFIXES:
            break
        words.pop(0)
    if words:
        script.commands.append(Command(command.line, tuple(words), command.before, command.after))
