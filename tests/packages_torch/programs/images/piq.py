"""piq: measures of how good images are, those with gradients used as losses."""

import piq
import torch
from training import train


def run():
    torch.set_default_dtype(torch.float64)
    true = torch.rand(2, 3, 48, 48)
    guess = torch.nn.Parameter((true + 0.2 * torch.rand(2, 3, 48, 48)).clamp(0, 1))
    holder = torch.nn.Module()
    holder.guess = guess
    found = []
    for loss in (
        piq.SSIMLoss(kernel_size=5),
        piq.MultiScaleSSIMLoss(kernel_size=3, scale_weights=torch.tensor([0.3, 0.7])),
        piq.FSIMLoss(),
        piq.GMSDLoss(),
        piq.MultiScaleGMSDLoss(scale_weights=torch.tensor([0.4, 0.6])),
        piq.VSILoss(),
        piq.HaarPSILoss(),
        piq.MDSILoss(),
        piq.TVLoss(),
        piq.DSSLoss(),
        piq.VIFLoss(sigma_n_sq=2.0),
        piq.SRSIMLoss(),
    ):

        def measured(measure=loss):
            inside = guess.clamp(0, 1)
            return measure(inside) if isinstance(measure, piq.TVLoss) else measure(inside, true)

        found += train(holder, measured, steps=1)
    noisy = guess.detach().clamp(0, 1)
    found += [piq.psnr(noisy, true)]
    features = torch.rand(20, 6), torch.rand(20, 6)
    found += [piq.FID()(*features), piq.KID()(*features), piq.PR(nearest_k=3)(*features)]
    return found
