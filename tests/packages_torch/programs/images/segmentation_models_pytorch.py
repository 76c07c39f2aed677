"""segmentation-models-pytorch: U-Net, FPN, DeepLabV3+, PSPNet, MAnet and others, their losses."""

import segmentation_models_pytorch as smp
import torch
from segmentation_models_pytorch import losses
from training import train


def run():
    x = torch.randn(2, 3, 128, 128, dtype=torch.float64)
    labels = (torch.rand(2, 1, 128, 128) > 0.6).to(torch.float64)
    found = []
    for kind in (smp.Unet, smp.FPN, smp.Linknet, smp.PSPNet, smp.MAnet, smp.PAN, smp.DeepLabV3Plus):
        net = kind("resnet18", encoder_weights=None, classes=1).double()
        for part in net.modules():
            if isinstance(part, torch.nn.modules.dropout._DropoutNd):
                part.p = 0.0
        criterion = losses.DiceLoss("binary")
        found += train(net, lambda n=net, c=criterion: c(n(x), labels), steps=1)[:20]
    net = smp.UnetPlusPlus("resnet18", encoder_weights=None).double()
    kinds = [
        losses.JaccardLoss("binary"),
        losses.FocalLoss("binary"),
        losses.TverskyLoss("binary", alpha=0.3, beta=0.7),
        losses.SoftBCEWithLogitsLoss(smooth_factor=0.1),
        losses.MCCLoss(),
    ]
    for criterion in kinds:
        found += train(net, lambda c=criterion: c(net(x), labels), steps=1)[:20]
    net.eval()
    with torch.no_grad():
        mask = net(x).sigmoid()
    stats = smp.metrics.get_stats((mask > 0.5).long(), labels.long(), mode="binary")
    found += [mask, smp.metrics.iou_score(*stats, reduction="micro")]
    return [found, smp.metrics.f1_score(*stats, reduction="macro")]
