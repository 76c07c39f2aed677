"""captum: what a network's outputs are due to, by gradients, paths, layers and occlusion."""

import torch
from captum.attr import (
    DeepLift,
    FeatureAblation,
    GradientShap,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    LayerConductance,
    LayerGradCam,
    Occlusion,
    Saliency,
    ShapleyValueSampling,
)
from torch import nn
from training import train


def run():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
    )
    x, y = torch.randn(2, 1, 8, 8), torch.tensor([0, 2])
    found = [train(model, lambda: nn.functional.cross_entropy(model(x), y))]
    baseline = torch.zeros_like(x)
    found.append(IntegratedGradients(model).attribute(x, baseline, target=y))
    found.append(Saliency(model).attribute(x, target=y))
    found.append(DeepLift(model).attribute(x, baseline, target=y))
    found.append(InputXGradient(model).attribute(x, target=1))
    found.append(GuidedBackprop(model).attribute(x, target=1))
    found.append(GradientShap(model).attribute(x, torch.cat([baseline, x]), target=1, n_samples=3))
    found.append(FeatureAblation(model).attribute(x, target=y))
    found.append(Occlusion(model).attribute(x, (1, 3, 3), strides=(1, 2, 2), target=y))
    sampled = ShapleyValueSampling(model)
    found.append(sampled.attribute(x, target=y, n_samples=2))
    found.append(LayerConductance(model, model[1]).attribute(x, target=y, n_steps=8))
    found.append(LayerGradCam(model, model[0]).attribute(x, target=y))
    return found
