"""nflows: a flow of autoregressive, spline and permuting transforms."""

import torch
from nflows.distributions.normal import StandardNormal
from nflows.flows.base import Flow
from nflows.transforms.autoregressive import (
    MaskedAffineAutoregressiveTransform,
    MaskedPiecewiseRationalQuadraticAutoregressiveTransform,
)
from nflows.transforms.base import CompositeTransform
from nflows.transforms.lu import LULinear
from nflows.transforms.permutations import ReversePermutation
from training import train


def run():
    transforms = [
        ReversePermutation(features=3),
        MaskedAffineAutoregressiveTransform(features=3, hidden_features=8),
        LULinear(3, identity_init=False),
        MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
            features=3, hidden_features=8, num_bins=4, tails="linear", tail_bound=3.0
        ),
    ]
    flow = Flow(CompositeTransform(transforms), StandardNormal(shape=[3]))
    x = torch.randn(16, 3)
    trained = train(
        flow, lambda: -flow.log_prob(x).mean(), torch.optim.Adam(flow.parameters(), lr=1e-2)
    )
    noise, logabsdet = flow._transform(x)
    return [trained, noise, logabsdet, flow._transform.inverse(noise), flow.sample(4)]
