from __future__ import annotations

import dataclasses
import io
import re
import sys
import threading
import time

import pytest
from rich.console import Console

from perf import contract
from perf.records import Event, append_line
from perf.report.progress import Progress, choose_mode, follow

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
ID = "mnist_cnn-single-1cpu-fp32-native+window"
PLANNED = Event(kind="planned", time=0.0, group="mnist", total=5)
START = Event(kind="start", time=10.0, group="mnist", member=ID, launch="x", number=1, total=5)
DONE = Event(
    kind="done", time=18.0, group="mnist", member=ID, launch="x", number=1, total=5, text="75.1 ms a step"
)
FAILED = Event(
    kind="failed", time=18.0, group="mnist", member=ID, launch="x", number=1, total=5, text="killed"
)


def screen(console):
    """Return the lines that a terminal shows after what was written: moves up, erased lines, returns and colours."""
    lines, row, column = [""], 0, 0
    for code, text in re.findall(r"\x1b\[([0-9;?]*[A-Za-z])|([^\x1b])", text_of(console)):
        if text == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif text == "\r":
            column = 0
        elif text:
            lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + 1 :]
            column += 1
        elif code.endswith("A"):
            row -= int(code[:-1] or 1)
        elif code == "2K":
            lines[row] = ""
    return [line.rstrip() for line in lines if line.strip()]


def text_of(console):
    """Return what was written on a console."""
    return console.file.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_plain_mode_prints_one_line_an_event_without_control_characters(paper, terminal):
    """Lines are neither wrapped nor coloured, however narrow the console, and on a terminal too."""
    console = paper(20, terminal=terminal)
    with Progress(console, "plain") as progress:
        for event in (PLANNED, START, DONE):
            progress.on_event(event)
            progress.tick()
    lines = text_of(console).splitlines()
    assert 3 == len(lines)
    assert f"[1/5] {ID}  launch 1 of 5 ... 75.1 ms a step, 8 s" == lines[-1]
    assert not CONTROL.search(text_of(console))


def test_hostile_text_is_shown_as_it_is(paper):
    """Markup, emoji codes and terminal sequences in events are printed as text."""
    console = paper(200, terminal=True)
    with Progress(console, "plain") as progress:
        progress.on_event(Event(kind="note", time=0.0, text="[red]x[/red] :smile: \x1b[2J\r\n[/nonsense]"))
    assert "note: [red]x[/red] :smile: \\x1b[2J\\r\\n[/nonsense]\n" == text_of(console)
    assert progress.trouble is None


def test_quiet_mode_counts_and_prints_nothing(paper):
    """Quiet is silent also about failures: the tables at the end tell them."""
    console = paper(terminal=True)
    with Progress(console, "quiet") as progress:
        for event in (PLANNED, START, FAILED):
            progress.on_event(event)
    assert "" == text_of(console)
    assert (1, 5) == (progress.tally.ended, progress.tally.total)


def test_live_mode_draws_one_line_that_leaves_nothing_behind(paper):
    """The line shows what runs and what is left; at the end it is erased."""
    console = paper(120, terminal=True)
    with Progress(console, "live", clock=lambda: 20.0) as progress:
        for event in (PLANNED, START, DONE, START):
            progress.on_event(event)
            progress.tick()
        (line,) = screen(console)
    assert line.startswith("[1/5] · 4 left, about 24 s, done ")
    assert line.endswith(f" · {ID}  launch 1 of 5, 10 s")
    assert [] == screen(console)


def test_live_mode_keeps_failures_and_notes_above_its_line(paper):
    """What somebody must see is printed to stay; a plan and a finished launch are not."""
    console = paper(120, terminal=True)
    with Progress(console, "live", clock=lambda: 20.0) as progress:
        for event in (PLANNED, START, FAILED, START, DONE, Event(kind="note", time=0.0, text="n1 is warm")):
            progress.on_event(event)
    assert [f"[1/5] {ID}  launch 1 of 5 FAILED: killed, 8 s", "note: n1 is warm"] == screen(console)


def test_the_live_line_is_cropped_to_the_terminal(paper):
    """The live line takes one line of the terminal, whatever it has to say."""
    console = paper(40, terminal=True)
    with Progress(console, "live", clock=lambda: 12.0) as progress:
        progress.on_event(START)
        (line,) = screen(console)
    assert 40 >= len(line)
    assert line.endswith("…")


def test_the_estimate_names_the_day_if_it_is_not_today(paper):
    """A run that ends next week says so: '14:32' alone would be read as today."""
    console = paper(200, terminal=True)
    with Progress(console, "live", clock=lambda: 20.0) as progress:
        for event in (dataclasses.replace(PLANNED, total=100_001), START, DONE):
            progress.on_event(event)
        (line,) = screen(console)
    assert re.search(r", done 01-\d\d \d\d:\d\d ", line)


def test_live_mode_needs_a_terminal(paper):
    """In a pipe, 'live' draws as 'plain' does."""
    console = paper()
    with Progress(console, "live") as progress:
        progress.on_event(PLANNED)
    assert "planned: mnist, 5 launches; 5 in all\n" == text_of(console)


class Broken(io.StringIO):
    """A file that refuses to be written."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    "error", [OSError("no space"), ValueError("closed"), UnicodeEncodeError("ascii", "–", 0, 1, "no")]
)
def test_trouble_in_drawing_ends_the_drawing_only(error, terminal):
    """Whatever the console raises, events are still counted, nothing is raised, and the trouble is kept."""
    console = Console(file=Broken(error), force_terminal=terminal, _environ={})
    with Progress(console, "live" if terminal else "plain") as progress:
        for event in (PLANNED, START, DONE):
            progress.on_event(event)
            progress.tick()
    assert 1 == progress.tally.done
    assert isinstance(progress.trouble, type(error))


def test_a_closed_pipe_does_not_end_the_run(monkeypatch):
    """Rich answers a closed pipe by ending the program; a run that is piped into `head` goes on."""

    def exits(console):
        raise SystemExit(1)

    monkeypatch.setattr(Console, "on_broken_pipe", exits)
    with Progress(Console(file=Broken(BrokenPipeError()), _environ={}), "plain") as progress:
        progress.on_event(PLANNED)
        progress.on_event(START)
    assert isinstance(progress.trouble, SystemExit)
    assert 1 == len(progress.tally.running)


def test_a_second_live_display_is_no_error(paper):
    """Two live displays on one console: whatever rich thinks of it, both contexts end well."""
    console = paper(terminal=True)
    with Progress(console, "live") as first, Progress(console, "live") as second:
        first.on_event(PLANNED)
        second.on_event(PLANNED)
    assert (5, 5) == (first.tally.total, second.tally.total)


def test_an_error_in_the_run_passes_through(paper):
    """The context manager clears its line and hides nothing."""
    console = paper(terminal=True)

    def interrupted():
        with Progress(console, "live") as progress:
            progress.on_event(START)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [] == screen(console)


@pytest.mark.parametrize(
    ("expected", "terminal", "environ", "quiet"),
    [
        ("live", True, {}, False),
        ("live", True, {"CI": "false"}, False),
        ("plain", True, {"CI": "true"}, False),
        ("plain", False, {}, False),
        ("quiet", True, {}, True),
    ],
)
def test_the_mode_is_chosen_by_who_watches(paper, expected, terminal, environ, quiet):
    """A person at a terminal gets the live line; CI, pipes and files get lines that stay."""
    assert expected == choose_mode(paper(terminal=terminal), quiet, environ)


def test_a_dumb_terminal_gets_plain_lines():
    """TERM=dumb can't move its cursor."""
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert "plain" == choose_mode(console, environ={})


def test_the_controller_draws_what_workers_append(paper, tmp_path):
    """Workers append to one file from several threads; the controller's thread draws each event once."""
    console, path, stop = paper(200), tmp_path / "events.jsonl", threading.Event()
    with Progress(console, "plain") as progress:
        drawing = threading.Thread(target=follow, args=(path, progress, stop, 0.01))
        drawing.start()

        def work(worker):
            for number in range(10):
                event = Event(
                    kind="done", time=time.time(), member=worker, launch=f"{worker}-{number}", worker=worker
                )
                append_line(path, contract.encode(event))

        workers = [threading.Thread(target=work, args=(f"gw{n}",)) for n in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(timeout=60)
        with path.open("ab") as file:
            file.write(b"not an event\n")
        stop.set()
        drawing.join(timeout=60)
    lines = text_of(console).splitlines()
    assert 21 == len(lines)
    # Nothing was planned here, so the total grows with what is done.
    assert [f"[{n}/{n}]" for n in range(1, 21)] == [line.partition(" ")[0] for line in lines[:20]]
    assert lines[-1].startswith(f"note: an event could not be read and is left out: {path}:21:")


def test_ascii_consoles_get_ascii(tmp_path):
    """A console without UTF-8 gets stand-ins for the suite's signs, not an error."""
    with (tmp_path / "out").open("w", encoding="ascii") as file:
        console = Console(file=file, force_terminal=True, width=200, _environ={})
        with Progress(console, "live", clock=lambda: 12.0) as progress:
            progress.on_event(START)
            progress.on_event(Event(kind="note", time=0.0, text="größer – 日本"))
    assert progress.trouble is None
    assert r"note: gr\xf6\xdfer - \u65e5\u672c" in (tmp_path / "out").read_text(encoding="ascii")


def test_nothing_is_drawn_on_standard_output_by_itself(paper, capsys):
    """Progress draws on its console only: pytest's own output stays its own."""
    with Progress(paper(terminal=True), "live") as progress:
        progress.on_event(FAILED)
    sys.stdout.flush()
    assert ("", "") == capsys.readouterr()
