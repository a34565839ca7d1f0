"""What a campaign on GPUs runs, step by step: a name, how many GPUs, how long at most, and the command. Data."""

from __future__ import annotations

from dataclasses import dataclass

SUITE = ("-m", "pytest", "perf", "--device=cuda", "--launcher=fork")


@dataclass(frozen=True)
class Step:
    """One command of a campaign.

    Attributes
    ----------
    words
        Behind the driver's Python. ``{stack}`` is the Python under test, ``{driver}`` the driver's, ``{out}`` the
        step's folder, ``{here}`` this repository.
    gpus
        So many of the machine's, with their part of its cores, beside other steps; 0: it has them all.
    seconds
        After so many it is interrupted, and keeps what it has. From what launches took on H200s (docs/measurements).
    fewest
        GPUs without which it says nothing.
    """

    name: str
    words: tuple[str, ...]
    gpus: int = 1
    seconds: float = 300.0
    fewest: int = 1


def suite(*words: str) -> tuple[str, ...]:
    """Return the words of a run of the suite on GPUs."""
    return (*SUITE, "--stack={stack}", "--results={out}", *words)


def full(expression: str, *words: str) -> tuple[str, ...]:
    """Return the words of a part of profile full."""
    return suite("--profile=full", "-k", expression, *words)


def planted(percent: int) -> tuple[str, ...]:
    """Return the words of a comparison of a stack with itself, with more device time planted on one side."""
    return suite(
        "--profile=compare-full",
        "--against={stack}",
        f"--plant=device-time-{percent}",
        f"--margin={percent}%",
        "--launches=20",
        "-k",
        "step_takes and unet3d-single-1gpu-bf16-native-fused.autotune-synthetic",
    )


def launchers(variant: str, launches: int) -> tuple[str, ...]:
    """Return the words that hold launches by fork, from several servers, against fresh ones."""
    return suite(
        "--profile=compare-full",
        "--against={stack}",
        "--old-launcher=fresh",
        "--server-launches=3",
        "--margin=0.5%",
        f"--launches={launches}",
        "-k",
        f"step_takes and {variant}]",
    )


def selfcheck(name: str, clean: int, *faults: str, gpus: int = 1) -> Step:
    """Return the step that plants faults, and makes so many clean judgements between them."""
    words = ("-m", "perf.faults.selfcheck", "--device=cuda", "--stack={stack}", "--results={out}")
    return Step(
        name, (*words, f"--clean={clean}", "--seconds=900", *faults), gpus=gpus, seconds=900, fewest=gpus
    )


RUNGS = "(rung or made_on_the_device or everything_together)"

STEPS = (
    Step("quick", suite(), seconds=360),
    Step("ladder-mnist_cnn", full(f"mnist_cnn and {RUNGS}", "--launches=5"), seconds=480),
    # With three launches a rung's interval is shown and nothing is decided: five do not fit half an hour with the rest.
    Step("ladder-resnet50", full("resnet50- and rung", "--launches=3"), seconds=450),
    Step("ladder-unet3d", full("unet3d- and rung"), seconds=420),
    Step("ladder-resnet152", full("resnet152- and rung"), seconds=420),
    Step("sweep-small", full("(mnist_cnn or resnet50-) and (knee or cores_bring)"), seconds=150),
    Step("sweep-large", full("(unet3d- or resnet152-) and knee"), seconds=360),
    Step(
        "tuned",
        full("(resnet50- or resnet152-) and (made_on_the_device or everything_together)"),
        seconds=240,
    ),
    Step("enlarged", full("resnet152_224 and bounds"), seconds=120),
    # These five together are profile full of one GPU, whole; with the next five that of two, with the last of four.
    Step("whole-mnist_cnn", full("mnist_cnn"), seconds=600),
    Step("whole-resnet50", full("resnet50-"), seconds=480),
    Step("whole-resnet152", full("resnet152-"), seconds=720),
    Step("whole-unet3d", full("unet3d-"), seconds=900),
    Step("whole-rest", full("_224 or solution or machine"), seconds=480),
    *(
        Step(f"two-{name}", full(words, "-m", "gpus(2)"), gpus=2, seconds=seconds, fewest=2)
        for name, words, seconds in (
            ("mnist_cnn", "mnist_cnn", 570),
            ("resnet50", "resnet50-", 480),
            ("resnet152", "resnet152-", 480),
            ("unet3d", "unet3d-", 540),
            ("rest", "_224 or solution or machine", 300),
        )
    ),
    # What had not been reached of two-resnet152 and two-unet3d on 2026-11-29: epochs in three ways, and audits.
    Step(
        "two-large-rest",
        full("(unet3d- and audit) or (resnet152- and (ways_epochs or audit))", "-m", "gpus(2)"),
        gpus=2,
        seconds=480,
        fewest=2,
    ),
    Step("solution", full("solution"), seconds=120),
    # What the run of 2026-11-29 had not reached of whole-unet3d.
    Step("unet3d-rest", full("unet3d- and (b256 or default-native)"), seconds=300),
    Step(
        "traces-one",
        full(
            "test_profiles and (mnist_cnn-single-1gpu-fp32-native] or resnet50-single-1gpu-fp32-native])",
            *("--launches=1", "--torch-trace", "--line-profile"),
        ),
        seconds=180,
    ),
    Step("four", full("gpu", "-m", "gpus(4)"), gpus=0, seconds=900, fewest=4),
    *(
        Step(
            f"overhead-{name}",
            (
                "-m",
                "perf.training.overhead",
                "--device=cuda",
                f"--workload={name}",
                f"--pairs={pairs}",
                f"--steps={steps}",
            ),
            seconds=300,
        )
        for name, pairs, steps in (
            # Short blocks, and many: what a host does besides changes from one second to the next. With 1,200 pairs the
            # interval of `mnist_cnn` was 0.7 % wide, and that of `resnet152` with 400 2 %.
            ("mnist_cnn", 3000, 10),
            ("resnet50", 600, 2),
            ("resnet152", 800, 1),
            ("unet3d", 60, 4),
        )
    ),
    *(
        Step(
            f"sampled-{name}",
            ("-m", "perf.training.sampled", "{driver}", "--device=cuda", f"--workload={name}", "--pairs=20"),
            seconds=150,
        )
        for name in ("mnist_cnn", "unet3d")
    ),
    Step(
        "same-stack",
        suite(
            "--profile=compare",
            "--against={stack}",
            "--margin=50%",
            "-k",
            "mnist_cnn and single and not stall",
        ),
        seconds=240,
    ),
    Step(
        "tf32-off",
        (
            *("-m", "perf.comparing", "old", "new", "--site={here}/tests/gpu/tf32.toml", "--here"),
            *(
                "--profile=compare-full",
                "--device=cuda",
                "--launcher=fork",
                "--results={out}",
                "--launches=5",
            ),
            *("-k", "unet3d-single-1gpu-default-native] and (step_takes or same_work or losses)"),
        ),
        seconds=480,
    ),
    # With ten launches a side forks were shown to be worth as much; five show what a verdict costs.
    Step("fork-unet3d", launchers("unet3d-single-1gpu-bf16-native-synthetic", 5), seconds=300),
    Step(
        "fork-unet3d-autotuned",
        launchers("unet3d-single-1gpu-bf16-native-fused.autotune-synthetic", 5),
        seconds=300,
    ),
    # In fp32 a step takes 77 ms, and a window, of 4 s, holds 52; it holds a hundred where one takes 40 ms at most.
    Step(
        "fork-resnet50_224",
        launchers("resnet50_224-single-1gpu-bf16-native-channels_last-synthetic", 5),
        seconds=300,
    ),
    Step("fork-mnist_cnn", launchers("mnist_cnn-single-1gpu-fp32-native-synthetic", 10), seconds=240),
    Step(
        "savings",
        ("{here}/tests/gpu/savings.py", "{out}", "--device=cuda", "--stack={stack}", "--rounds=2"),
        seconds=600,
    ),
    Step("planted-2", planted(2), seconds=700),
    Step("planted-1", planted(1), seconds=700),
    # What one GPU carries, five to twelve minutes each; four clean judgements, and four dealt from their launches.
    selfcheck(
        "selfcheck-facts",
        4,
        *("unpinned", "tf32-overridden", "autotune-dropped", "allocator-thrash", "gpu-not-free"),
    ),
    selfcheck("selfcheck-device", 0, "step-synchronized", "device-time-3"),
    selfcheck("selfcheck-stalls", 0, "stalled-steps-3", "stalled-steps-1"),
    selfcheck("selfcheck-times", 0, "device-time-5", "device-time-2", "device-time-1"),
    # On two GPUs.
    Step("quick-two", suite(), gpus=2, seconds=720, fewest=2),
    Step("slurm", ("{here}/tests/gpu/slurm_jobs.py", "{stack}", "{out}"), gpus=2, seconds=240, fewest=2),
    Step(
        "ways",
        full(
            "mnist_cnn and (knobs or ways_epochs or conventions or published)"
            " or resnet50- and (talk or slower_than_dp or world_size_1 or knobs or ways_epochs)",
            "--launches=3",
        ),
        gpus=2,
        seconds=480,
        fewest=2,
    ),
    Step(
        "knobs",
        full("a_knob_does_not and (mnist_cnn or resnet50-)", "--launches=3"),
        gpus=2,
        seconds=300,
        fewest=2,
    ),
    Step(
        "traces-two",
        full(
            "test_profiles and (mnist_cnn-single-1gpu-fp32-native] or mnist_cnn-dp-2gpu-fp32-native] or "
            "mnist_cnn-ddp-2gpu-nccl-fp32-native])",
            *("--launches=1", "--torch-trace", "--line-profile"),
        ),
        gpus=2,
        seconds=150,
        fewest=2,
    ),
    selfcheck(
        "selfcheck-two", 0, "gloo-for-nccl", "gpu-taken-twice", "dp-autotuned", "nccl-over-sockets", gpus=2
    ),
    # On all GPUs.
    Step("quick-shared", suite("-n", "6", "--share-node"), gpus=0, seconds=420, fewest=2),
    Step(
        "scaling",
        full(
            "not ddp_overhead and (mnist_cnn and (dp4 or talk4 or weak or strong)"
            " or resnet50- and (dp4 or talk4 or (weak or strong) and not real))",
            "--launches=3",
        ),
        gpus=0,
        seconds=540,
        fewest=2,
    ),
    Step(
        "traces",
        full(
            "test_profiles and (mnist_cnn-dp-2gpu-fp32-native] or mnist_cnn-ddp-4gpu-nccl-fp32-native])",
            *("--launches=1", "--torch-trace", "--line-profile"),
        ),
        gpus=0,
        seconds=150,
        fewest=2,
    ),
)
"""Every step, in no order: a campaign is given names."""
