"""The catalogue: each fault, what must catch it and the words that must name it. Data; planting is `perf.faults.plant`.

`docs/trust.md` and the self-check take their table from here.
"""

from __future__ import annotations

from dataclasses import dataclass

LAUNCH = "the launch fails"
INVALID = "the launch is invalid"


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes
    ----------
    name
        What ``--plant`` takes.
    kind
        data, device, configuration, communication or infrastructure.
    what
        What is wrong, in a sentence.
    caught_by
        `LAUNCH`, `INVALID`, or the name of the perf test whose verdict must not be ``pass``.
    words
        A regular expression that the message of what caught it must match.
    environment
        Variables of the worker, beside those that inject the fault.
    injected
        Whether `perf.faults.inject` carries it; else its environment alone is the fault.
    ranks
        How many ranks it needs.
    verdict
        What a perf test that catches it ends with.
    selection
        For ``-k``, behind the perf test's name: which of its cases.
    launches
        A side that the verdict needs: 1 for an exact fact, 7 for a gross difference of two sides, 10 for one sample;
        None for the profile's own number.
    profile
        In which the perf test runs.
    root
        Whether only root can plant it.
    gpu
        Whether it acts on a GPU, so that a machine without one can't carry it.
    """

    name: str
    kind: str
    what: str
    caught_by: str
    words: str
    environment: tuple[tuple[str, str], ...] = ()
    injected: bool = True
    ranks: int = 2
    verdict: str = "fail"
    selection: str = ""
    launches: int | None = None
    profile: str = "smoke"
    root: bool = False
    gpu: bool = False


FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault(
            "one-core",
            "data",
            "All threads and loader workers are bound to one core.",
            INVALID,
            r"2 cores were promised on .*, but the ranks may use 1\.",
        ),
        Fault(
            "no-workers",
            "data",
            "The loader starts no workers, whatever it is asked for.",
            LAUNCH,
            r"loader\.workers should be \d+, is 0",
            ranks=1,
        ),
        Fault(
            "slow-decode",
            "data",
            "Making a batch takes longer than training on it.",
            "test_loader_share_is_within_its_limit",
            r"loader's share of a step",
            ranks=1,
            launches=7,
        ),
        Fault(
            "small-shared-memory",
            "data",
            "/dev/shm holds no batch.",
            LAUNCH,
            r"/dev/shm is full or too small(.|\n)*unable to allocate shared memory",
            ranks=1,
            root=True,
        ),
        Fault(
            "first-epoch-stall",
            "data",
            "The first epoch reads from a cold file system: every batch comes slowly.",
            "test_first_epoch_penalty",
            r"first epoch ÷ later",
            ranks=1,
            launches=10,
        ),
        *(
            Fault(
                f"device-time-{percent}",
                "device",
                f"Every step takes {percent} % more time on the device, as with a slower kernel.",
                "test_a_step_takes_no_longer",
                r"The new side is slower by",
                ranks=1,
                selection=" and unet3d-single-1gpu-bf16-native-synthetic]",
                launches=10,
                profile="compare-full",
                gpu=True,
            )
            for percent in (1, 2, 3, 5)
        ),
        Fault(
            "precision-dropped",
            "configuration",
            "Autocast does nothing.",
            LAUNCH,
            r"activations should be bfloat16, are float32",
            ranks=1,
        ),
        Fault(
            "compile-dropped",
            "configuration",
            "torch.compile gives the model back as it is.",
            LAUNCH,
            r"compile was asked for and is not in force",
            ranks=1,
        ),
        Fault(
            "same-shuffle",
            "configuration",
            "Every rank draws the first rank's share of the samples.",
            "test_epoch_delivers_every_sample_once",
            r"assert 60000 == 30000",
            selection=" and ddp",
        ),
        Fault(
            "partial-batch-padded",
            "configuration",
            "The last batch is filled up with samples that were there already.",
            "test_epoch_delivers_every_sample_once",
            r"assert 60000 == 60032",
            ranks=1,
            selection=" and single",
        ),
        Fault(
            "threads-unequal",
            "configuration",
            "One rank has a thread more than the others.",
            LAUNCH,
            r"rank 1 .*(.|\n)*threads should be 1, is 2",
        ),
        Fault(
            "work-skipped",
            "configuration",
            "Steps give the loss of the first batch again: nothing is learned.",
            "test_loss_falls",
            r"assert launch\.loss_last < launch\.loss_first",
            ranks=1,
            selection=" and single-1cpu-fp32-native",
            launches=1,
        ),
        Fault(
            "slow-rank",
            "communication",
            "One rank comes late to every step.",
            "test_ddp_overhead_in_weak_scaling",
            r"step of .*ddp-2cpu",
            launches=7,
            profile="quick",
        ),
        Fault(
            "rank-order",
            "communication",
            "Ranks are in another order than the devices that they take.",
            INVALID,
            r"Rank 0 on .* has local rank 1",
        ),
        Fault(
            "rank-hangs",
            "infrastructure",
            "One rank hangs in native code.",
            LAUNCH,
            r"rank 1 ran past its time limit of [\d.]+ s while in phase(.|\n)*rank 0: .*waits for the others",
        ),
        Fault(
            "rank-killed",
            "infrastructure",
            "One rank is killed.",
            LAUNCH,
            r"rank 1 (was )?killed by signal 9 \(SIGKILL\)(.|\n)*out-of-memory",
        ),
        Fault(
            "rank-out-of-memory",
            "infrastructure",
            "One rank gets no more memory.",
            LAUNCH,
            r"rank 1 (.|\n)*got no more memory on the host(.|\n)*MemoryError",
        ),
        Fault(
            "disk-full",
            "infrastructure",
            "No space is left when a rank writes its record.",
            LAUNCH,
            r"rank 1 (.|\n)*The disk is full(.|\n)*No space left on device",
        ),
        Fault(
            "record-cut",
            "infrastructure",
            "A record is cut short on its way to the disk.",
            LAUNCH,
            r"rank 1 .*left its record cut short",
        ),
        Fault(
            "clock-stepped",
            "infrastructure",
            "The system's clock is set while one rank measures.",
            INVALID,
            r"The clock of .* was set while rank 1 measured",
        ),
        Fault(
            "torch-not-the-stacks",
            "infrastructure",
            "The worker gets another torch than the one that was asked about.",
            INVALID,
            r"ran with torch 2\.0\.0\+elsewhere, the stack has torch",
            ranks=1,
        ),
    )
}
