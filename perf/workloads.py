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
        Bytes of one sample as the loader hands it over, for the size of /dev/shm.
    optimizers, schedules
        Names that the workload offers; the first is its own.
    devices
        Where the catalogue trains it: the large ones take seconds a step on a CPU, ``tiny`` ones nothing on a GPU.
    """

    name: str
    parameters: int
    batch_size: int
    train_samples: int
    validation_samples: int
    sample_bytes: int
    optimizers: tuple[str, ...]
    schedules: tuple[str, ...]
    devices: tuple[str, ...] = ("cpu", "cuda")


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
            ("adadelta", "adam", "rmsprop"),
            ("step", "exponential", "cosine"),
        ),
        # CIFAR-100's 3x32x32, or enlarged to 3x224x224, float32, and a label of 8 bytes.
        *(
            Workload(name, parameters, batch, 50_000, 10_000, 3 * side**2 * 4 + 8, *_OF_RESNETS, devices)
            for name, parameters, batch, side, devices in (
                ("resnet50", 23_712_932, 128, 32, ("cuda",)),
                ("resnet50_224", 23_712_932, 64, 224, ("cuda",)),
                ("resnet50_tiny", 564_452, 16, 32, ("cpu",)),
                ("resnet152", 58_348_708, 128, 32, ("cuda",)),
                ("resnet152_224", 58_348_708, 64, 224, ("cuda",)),
                ("resnet152_tiny", 652_644, 16, 32, ("cpu",)),
            )
        ),
        # Crops of 64^3 (16^3): 4 channels in, 5 out, float32.
        *(
            Workload(name, parameters, batch, 4096, 512, 9 * side**3 * 4, *_OF_UNETS, devices)
            for name, parameters, batch, side, devices in (
                ("unet3d", 116_977_029, 32, 64, ("cuda",)),
                ("unet3d_tiny", 440_517, 4, 16, ("cpu",)),
            )
        ),
    )
}

MACHINE = "machine"
"""Stands where a workload's name does in a launch that trains nothing and measures the machine (plan ``rates``)."""

SUBJECTS = {**WORKLOADS, MACHINE: Workload(MACHINE, 0, 0, 0, 0, 0, ("",), ("",))}
"""Everything that a launch can be about."""
