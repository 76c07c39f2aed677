"""siren-pytorch: networks of sines."""

import torch
from siren_pytorch import SirenNet, SirenWrapper
from training import train


def run():
    model = SirenNet(
        dim_in=2,
        dim_hidden=8,
        dim_out=3,
        num_layers=2,
        final_activation=torch.nn.Sigmoid(),
        w0_initial=30.0,
    )
    wrapper = SirenWrapper(model, image_width=6, image_height=5)
    x = torch.rand(1, 3, 5, 6)
    return train(wrapper, lambda: wrapper(x))
