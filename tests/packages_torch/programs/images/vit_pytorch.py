"""vit-pytorch: transformers of images, of several designs."""

import torch
from training import train
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.cait import CaiT
from vit_pytorch.cct import CCT
from vit_pytorch.deepvit import DeepViT


def run():
    images, labels = torch.randn(2, 3, 32, 32).double(), torch.tensor([1, 3])
    common = {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 16, "mlp_dim": 32}
    designs = [
        ViT(**common, depth=2, heads=2),
        SimpleViT(**common, depth=2, heads=2),
        DeepViT(**common, depth=2, heads=2),
        CaiT(**common, depth=2, cls_depth=1, heads=2),
        CCT(
            img_size=32, embedding_dim=16, num_layers=1, num_heads=2, num_classes=5, n_conv_layers=1
        ),
    ]
    found = []
    for model in designs:
        model.double().eval()
        found.append(
            train(model, lambda m=model: torch.nn.functional.cross_entropy(m(images), labels))
        )
    return found
