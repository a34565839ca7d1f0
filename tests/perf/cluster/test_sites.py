"""Site files: every example loads, and what is wrong is named with file, line and key."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perf.cluster.sites import SiteError, load_site, parse_site
from perf.limits import DDP_AGAINST_DP, LOADER_SHARE, overridden

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "docs" / "sites").glob("*.toml"))
GOOD = '[scheduler]\nkind = "slurm"\n\n[node]\ncores = 4\n'


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_loads(path):
    """The examples that people start from are valid, and each names a stack."""
    site = load_site(path)

    assert path.stem == site.name
    assert site.stacks
    assert site.scheduler.time_seconds >= 60


def test_there_is_an_example_for_each_way():
    """Modules, apptainer, a container plugin, ROCm, LSF with jsrun and no scheduler at all."""
    names = {path.stem for path in EXAMPLES}

    assert {
        "slurm-modules",
        "slurm-apptainer",
        "slurm-container-plugin",
        "slurm-rocm",
        "lsf-jsrun",
        "local",
    } <= names


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('[scheduler]\nkind = "slurm"\nparitition = "gpu"\n[node]\ncores = 1', 3, ["scheduler.paritition", "n 'part"]),
        ('[scheduler]\nkind = "slurn"\n[node]\ncores = 1', 2, ["scheduler.kind", "did you mean 'slurm'"]),
        (GOOD + "gpus = -1", 6, ["node.gpus", "0 or more"]),
        (GOOD + 'gpus = "four"', 6, ["node.gpus", "Expected `int`"]),
        (GOOD + "[stack.a]\n", 6, ["unknown table", "'stacks'"]),
        ('\n\n[scheduler]\nkind = "slurm"\n', 1, ["[node] is missing"]),
        (GOOD + "[stacks.a]\nsetup = ['ok', 3]", 7, ["stacks.a.setup", "Expected `str`"]),
        (GOOD + "[stacks.a]\npyhton = 'x'", 7, ["stacks.a.pyhton", "'python'"]),
        (GOOD + "[stacks.'a/b']\n", 6, ["stacks.a/b", "letters"]),
        (GOOD + "[stacks.a]\nwrapper = ['--bind={repo}']", 7, ["{repo}", "{repository}"]),
        (GOOD + "[stacks.a]\nwrapper = ['--bind={data}']", 7, ["{data}", "{repository}"]),
        (GOOD + "[stacks.a.environment]\n'A B' = 'x'", 7, ["name of a variable"]),
        (GOOD + "[data]\nroot = 'relative'", 7, ["data.root", "absolute"]),
        (GOOD + "[limits.loader_shar]\nvalue = 1.0\nreason = 'x'", 6, ["'loader_share'"]),
        (GOOD + "[limits.loader_share]\nvalue = 0.6\nreason = ' '", 8, ["say why"]),
        (GOOD + "[limits.loader_share]\nvalue = 0.6", 6, ["missing required field `reason`"]),
        ('[scheduler]\nkind = "slurm"\ntime = "90"\n[node]\ncores = 1', 3, ["HH:MM:SS"]),
        ('[scheduler]\nkind = "slurm"\ngpus = ["--gres=gpu:{gpu}"]\n[node]\ncores = 1', 3, ["{gpu}", "{gpus}"]),
        ('[scheduler]\nkind = "slurm"\naccount = "a\\nb"\n[node]\ncores = 1', 3, ["control character"]),
        ('[scheduler]\nkind = "local"\n[node]\ncores = 1\nmost = 2', 5, ["one node"]),
        (GOOD + f"most = {10**12}", 6, ["node.most", "from 1 to 1e+09, found 1e+12"]),
        (GOOD + "[limits.scaling_overhead]\nreason = 'x'\nvalue = inf", 8, ["value: expected", "found inf"]),
        (GOOD + "[limits.step_time]\nreason = 'x'\nvalue = nan", 8, ["limits.step_time.value", "found nan"]),
        (GOOD + "[limits.step_time]\nreason = 'x'\nvalue = 0.0", 8, ["limits.step_time.value", "above 0"]),
        (GOOD + "[limits.loader_share]\nvalue = 1.0\nreason = 'x'", 7, ["share above 0 and below 1, found 1"]),
        (GOOD + '[limits.loader_share]\nvalue = 0.5\nreason = "x\\u0000"', 8, ["zero character"]),
        (GOOD + '[stacks.a]\npython = "/x\\u0000y"', 7, ["stacks.a.python", "control character", r"\x00"]),
        (GOOD + '[stacks.a]\ntorch = "2\\n"', 7, ["stacks.a.torch", "control character"]),
        (GOOD + '[stacks.a]\nwrapper = ["run", "\\u0000"]', 7, ["stacks.a.wrapper", "control character"]),
        (GOOD + '[stacks.a]\nsetup = ["module load x", "a\\u0000"]', 7, ["stacks.a.setup", "zero character"]),
        (GOOD + '[data]\ncache = "/a\\tb"', 7, ["data.cache", "control character"]),
    ],
)  # fmt: skip
def test_an_error_names_file_line_key_and_what_was_meant(text, line, words):
    """Unknown, missing and impossible keys are told apart, with the nearest known one."""
    with pytest.raises(SiteError) as caught:
        parse_site(text, "/sites/mine.toml")

    message = str(caught.value)
    assert message.startswith(f"/sites/mine.toml:{line}: "), message
    assert all(word in message for word in words), message


@pytest.mark.parametrize("key", ["pending_hours", "poll_seconds", "accounting_seconds"])
@pytest.mark.parametrize("value", ["inf", "nan", "-inf", "1e300"])
def test_a_time_that_never_ends_is_refused(key, value):
    """Hours and seconds are finite and can be waited for."""
    text = f'[scheduler]\nkind = "slurm"\n{key} = {value}\n[node]\ncores = 1\n'

    with pytest.raises(SiteError, match=rf"^x\.toml:3: scheduler\.{key}: expected .*, found "):
        parse_site(text, "x.toml")


def test_setup_lines_may_have_several_lines():
    """A line feed and a tab mean something to a shell."""
    site = parse_site(GOOD + "[stacks.a]\nsetup = ['''if true; then\n\tmodule load x\nfi''']\n", "x.toml")

    assert ["if true; then\n\tmodule load x\nfi"] == site.stacks["a"].setup


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = 1\nb = \n", r"^x\.toml:2: Invalid value: b =$"),
        ("a = 1\na = 2\n", r"^x\.toml:2: a: written twice; keep one of them$"),
        ("a = 1\nb\x1b[2J = 1\n", r"^x\.toml:2: .*\\x1b"),
        ("\ufeff" + GOOD, r"^x\.toml:1: begins with a byte order mark"),
        (GOOD + "most = " + "9" * 5000, r"^x\.toml:6: .*64 bits"),
        (GOOD + "most = " + "[" * 3000, r"^x\.toml:6: nested more than 100 deep"),
    ],
)
def test_text_that_is_no_toml_is_refused_with_its_line(text, words):
    """As every other TOML file, and nothing in it reaches a terminal as a command."""
    with pytest.raises(SiteError, match=words):
        parse_site(text, "x.toml")


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    """A pipe that nobody writes into would be waited for."""
    os.mkfifo(tmp_path / "pipe")

    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(SiteError, match=r"is a pipe, a device or a socket; name a regular file$"):
            load_site(path)
    with pytest.raises(SiteError, match="can't be read: Is a directory"):
        load_site(tmp_path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    """The message says where examples are."""
    with pytest.raises(SiteError, match=r"can't be read: No such file.*docs/sites"):
        load_site(tmp_path / "none.toml")


def test_a_stack_that_is_not_there_is_answered_with_those_that_are():
    """Also where its name was hostile."""
    site = parse_site(GOOD + "[stacks.current]\n[stacks.next]\n", "x.toml")

    with pytest.raises(SiteError, match=r"no stack 'curent'; did you mean 'current'\?; it has current, next"):
        site.stack("curent")
    with pytest.raises(SiteError, match=r"\\x1b"):
        site.stack("\x1b[2J")


def test_a_limit_of_the_site_replaces_the_suites_and_says_so():
    """The reason stands in the limit; other limits stay."""
    site = parse_site(GOOD + "[limits.loader_share]\nvalue = 0.7\nreason = 'slow cores.'\n", "x.toml")

    own = overridden(LOADER_SHARE, site.limits)

    assert 0.7 == own.value
    assert "This site's own limit instead of 0.55: slow cores." == own.why
    assert DDP_AGAINST_DP is overridden(DDP_AGAINST_DP, site.limits)
