"""ResNet-50 on CIFAR-100, in three sizes: on images as they are, on images enlarged to 224 pixels, and tiny.

The network is torchvision's. Enlarged images, batches of 64 and all else are those of CSC's demo of data-parallel
training (see `models.resnet`).
"""

from __future__ import annotations

from torch import nn
from torchvision import models

from models.resnet import ImageClassifier, NarrowBottleneck


def full() -> nn.Module:
    network: nn.Module = models.resnet50(num_classes=100)
    return network


def tiny() -> nn.Module:
    network: nn.Module = models.ResNet(NarrowBottleneck, (1, 1, 1, 1), num_classes=100, width_per_group=16)
    return network


SIZES = {
    "": ImageClassifier(full, PARAMETERS=23_712_932, BATCH_SIZE=128),
    "224": ImageClassifier(full, PARAMETERS=23_712_932, BATCH_SIZE=64, side=224),
    "tiny": ImageClassifier(tiny, PARAMETERS=564_452, BATCH_SIZE=16, VALIDATION_BATCH_SIZE=100),
}
