"""monai: medical images: transforms, a U-Net, losses of segmentation, windows that slide."""

import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, FocalLoss, TverskyLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import (
    Compose,
    GaussianSmooth,
    NormalizeIntensity,
    RandFlip,
    RandGaussianNoise,
    Resize,
    ScaleIntensity,
)
from training import train


def run():
    images = torch.rand(2, 1, 16, 16, 16)
    labels = (torch.rand(2, 1, 16, 16, 16) > 0.7).long()
    chain = Compose(
        [
            ScaleIntensity(),
            NormalizeIntensity(),
            RandFlip(1.0, 0),
            RandGaussianNoise(1.0),
            GaussianSmooth(0.8),
            Resize((12, 12, 12)),
        ]
    )
    chain.set_random_state(4)
    found = [chain(images[0]).as_tensor()]
    net = UNet(3, 1, 2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1, norm="batch").double()
    x = images.double()
    losses = (
        DiceCELoss(to_onehot_y=True, softmax=True),
        FocalLoss(to_onehot_y=True),
        TverskyLoss(to_onehot_y=True, softmax=True),
    )
    found += [train(net, lambda measure=loss: measure(net(x), labels)) for loss in losses]
    net.eval()
    with torch.no_grad():
        whole = sliding_window_inference(x, (8, 8, 8), 4, net, overlap=0.25, mode="gaussian")
    metric = DiceMetric(include_background=False)
    metric(y_pred=whole.argmax(1, keepdim=True), y=labels)
    return [found, whole, metric.aggregate()]
