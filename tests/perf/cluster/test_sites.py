"""Site files: every example loads, and what is wrong is named with file, line and key."""

from __future__ import annotations

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
    ],
)  # fmt: skip
def test_an_error_names_file_line_key_and_what_was_meant(text, line, words):
    """Unknown, missing and impossible keys are told apart, with the nearest known one."""
    with pytest.raises(SiteError) as caught:
        parse_site(text, "/sites/mine.toml")

    message = str(caught.value)
    assert message.startswith(f"/sites/mine.toml:{line}: "), message
    assert all(word in message for word in words), message


def test_text_that_is_no_toml_is_refused_with_its_line():
    """tomllib's own words say where."""
    with pytest.raises(SiteError, match=r"no valid TOML: .*line 2"):
        parse_site("a = 1\nb = \n", "x.toml")


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
