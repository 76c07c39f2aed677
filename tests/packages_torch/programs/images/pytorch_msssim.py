"""pytorch-msssim: how alike images are."""

import torch
from pytorch_msssim import MS_SSIM, SSIM


def run():
    found = []
    for measure, size in (
        (SSIM(data_range=1.0, channel=3), 32),
        (MS_SSIM(data_range=1.0, channel=3, win_size=3), 64),
    ):
        x = torch.rand(2, 3, size, size, requires_grad=True)
        value = 1 - measure(x, torch.rand(2, 3, size, size))
        value.backward()
        found += [value, x.grad]
    return found
