"""What the driver knows of each workload without importing it. The worker holds its own figures against these."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Workload:
    """What the driver must know of a workload without importing it. The worker holds its own figures against these.

    Parameters
    ----------
    parameters
        Trainable parameters of the network.
    batch_size
        Samples a step on each device.
    train_samples, validation_samples
        Samples in one epoch of training and in one validation.
    sample_bytes
        Bytes of one sample as the loader hands it over, for the size of /dev/shm and the copy to the device.
    flops
        Floating-point operations of one sample's forward and backward pass, in products and convolutions.
    operators
        Operators of torch that one step's forward and backward pass takes, whatever its batch: at least as many
        kernels. Both are counted by ``python -m perf.training.work``, and again by a test.
    optimizers, schedules
        Names that the workload offers; the first is its own.
    devices
        Where the catalogue trains it: the large ones take seconds a step on a CPU, ``tiny`` ones nothing on a GPU.
    stalls
        Whether a comparison judges its share of slow steps, which takes a window of 400 steps.
    epoch_samples
        Samples of an epoch where whole epochs are timed on a GPU; 0: all of them.
    """

    name: str
    parameters: int
    batch_size: int
    train_samples: int
    validation_samples: int
    sample_bytes: int
    flops: int
    operators: int
    optimizers: tuple[str, ...]
    schedules: tuple[str, ...]
    devices: tuple[str, ...] = ("cpu", "cuda")
    stalls: bool = False
    epoch_samples: int = 0


_ENLARGED_EPOCH = 12_800
"""200 steps: on an H200 an epoch of all 50,000 enlarged images takes 60 s (`resnet50`) and 147 s (`resnet152`), and
three are timed."""

_OF_RESNETS = (("sgd", "adam"), ("constant",))
_OF_UNETS = (("adam",), ("cosine", "constant"))

WORKLOADS = {
    w.name: w
    for w in (
        # 28x28 float32 and a label of 8 bytes.
        Workload(
            "mnist_cnn",
            1_199_882,
            64,
            60_000,
            10_000,
            28 * 28 * 4 + 8,
            71_565_312,
            35,
            ("adadelta", "adam", "rmsprop"),
            ("step", "exponential", "cosine"),
            stalls=True,
        ),
        # CIFAR-100's 3x32x32, or enlarged to 3x224x224, float32, and a label of 8 bytes.
        *(
            Workload(
                name,
                parameters,
                batch,
                50_000,
                10_000,
                3 * side**2 * 4 + 8,
                flops,
                ops,
                *_OF_RESNETS,
                devices,
                epoch_samples=_ENLARGED_EPOCH if side > 32 else 0,
            )
            for name, parameters, batch, side, flops, ops, devices in (
                ("resnet50", 23_712_932, 128, 32, 496_877_568, 461, ("cuda",)),
                ("resnet50_224", 23_712_932, 64, 224, 24_288_018_432, 461, ("cuda",)),
                ("resnet50_tiny", 564_452, 16, 32, 20_164_608, 143, ("cpu",)),
                ("resnet152", 58_348_708, 128, 32, 1_405_992_960, 1345, ("cuda",)),
                ("resnet152_224", 58_348_708, 64, 224, 68_834_672_640, 1345, ("cuda",)),
                ("resnet152_tiny", 652_644, 16, 32, 23_506_944, 195, ("cpu",)),
            )
        ),
        # Crops of 64^3 (16^3): 4 channels in, 5 out, float32.
        *(
            Workload(name, parameters, batch, 4096, 512, 9 * side**3 * 4, flops, ops, *_OF_UNETS, devices)
            for name, parameters, batch, side, flops, ops, devices in (
                ("unet3d", 116_977_029, 32, 64, 80_463_527_936, 65, ("cuda",)),
                ("unet3d_tiny", 440_517, 4, 16, 87_818_240, 45, ("cpu",)),
            )
        ),
    )
}

MACHINE = "machine"
"""Stands where a workload's name does in a launch that trains nothing and measures the machine (plan ``rates``)."""

SUBJECTS = {**WORKLOADS, MACHINE: Workload(MACHINE, 0, 0, 0, 0, 0, 0, 0, ("",), ("",))}
"""Everything that a launch can be about."""
