"""timm: convolutional and attending networks of images, features, an optimizer and a schedule."""

import timm
import torch
from timm.data.mixup import Mixup
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV2
from training import train

MODELS = {
    "resnet10t": {},
    "vit_tiny_patch16_224": {"img_size": 32},
    "convnext_atto": {},
    "efficientnet_lite0": {},
    "mobilenetv3_small_050": {},
    "swin_tiny_patch4_window7_224": {"img_size": 32, "window_size": 4},
}


def run():
    images, labels = torch.randn(2, 3, 32, 32).double(), torch.tensor([1, 3])
    found = []
    for name, options in MODELS.items():
        model = timm.create_model(name, num_classes=5, **options).double().eval()
        loss = LabelSmoothingCrossEntropy()(model(images), labels)
        loss.backward()
        norms = [p.grad.norm() for p in model.parameters() if p.grad is not None]
        found += [loss, torch.stack(norms)]
    features = timm.create_model("resnet10t", features_only=True).double().eval()
    found += [level.mean() for level in features(images)]
    small = timm.create_model("test_vit", num_classes=5, img_size=32).double()
    optimizer = create_optimizer_v2(small, opt="lamb", lr=1e-3, weight_decay=0.05)
    schedule = CosineLRScheduler(optimizer, t_initial=10, warmup_t=3, warmup_lr_init=1e-5)
    mixed, targets = Mixup(mixup_alpha=0.5, num_classes=5)(images.clone(), labels)
    mean = ModelEmaV2(small, decay=0.5)
    found.append(
        train(small, lambda: SoftTargetCrossEntropy()(small(mixed), targets.double()), optimizer)
    )
    mean.update(small)
    schedule.step(2)
    return [found, list(mean.module.parameters()), optimizer.param_groups[0]["lr"]]
