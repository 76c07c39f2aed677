"""The demo's data: scikit-learn's 1797 handwritten digits, split in training and held-out ones."""

from __future__ import annotations

from typing import NamedTuple

from sklearn.datasets import load_digits

import plugrad
from plugrad import Tensor
from plugrad_nn.utils.data import TensorDataset, random_split

HELD_OUT_SHARE = 0.2
LARGEST_PIXEL = 16.0


class Digits(NamedTuple):
    """Images (N, 1, 8, 8) float32 in [0, 1] and their labels (N) int64."""

    images: Tensor
    labels: Tensor


def load(seed: int) -> tuple[Digits, Digits]:
    """Training and held-out digits on the CPU; the same split for the same seed."""
    pixels, labels = load_digits(return_X_y=True)
    with plugrad.device("cpu"):
        images = plugrad.tensor(pixels / LARGEST_PIXEL, dtype=plugrad.float32)
        targets = plugrad.tensor(labels, dtype=plugrad.int64)
    data = TensorDataset(images.reshape(-1, 1, 8, 8), targets)
    generator = plugrad.Generator(device="cpu").manual_seed(seed)
    shares = [1 - HELD_OUT_SHARE, HELD_OUT_SHARE]
    training, held_out = random_split(data, shares, generator=generator)
    return Digits(*data[training.indices]), Digits(*data[held_out.indices])
