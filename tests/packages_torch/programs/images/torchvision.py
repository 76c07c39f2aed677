"""torchvision: networks and transforms of images, and operations on boxes."""

import torch
from torch import nn
from torchvision import models, ops
from torchvision.transforms import functional as F
from torchvision.transforms import v2
from training import train


def transformed(images):
    chain = v2.Compose(
        [
            v2.Resize(24),
            v2.RandomCrop(20),
            v2.RandomHorizontalFlip(),
            v2.ColorJitter(0.3, 0.3),
            v2.GaussianBlur(3, 1.0),
            v2.RandomErasing(1.0),
            v2.Normalize([0.5] * 3, [0.2] * 3),
        ]
    )
    found = [chain(images), F.rotate(images, 30.0), F.affine(images, 10, [1, 2], 1.1, [3.0])]
    corners = [[0, 0], [31, 0], [31, 31], [0, 31]]
    found.append(F.perspective(images, corners, [[2, 1], [29, 3], [31, 30], [1, 31]]))
    found += [F.adjust_hue(images, 0.2), F.rgb_to_grayscale(images), F.pad(images, [2, 1], 0.5)]
    return found


def run():
    images = torch.rand(2, 3, 32, 32)
    found = [transformed(images)]
    boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [5.0, 5.0, 15.0, 12.0], [20.0, 1.0, 30.0, 9.0]])
    found += [ops.box_iou(boxes, boxes), ops.generalized_box_iou(boxes, boxes[:2])]
    found += [ops.box_convert(boxes, "xyxy", "cxcywh"), ops.clip_boxes_to_image(boxes, (8, 25))]
    found.append(
        ops.sigmoid_focal_loss(images[:, 0], (images[:, 1] > 0.5).float(), reduction="mean")
    )
    for make, options in (
        (models.resnet18, {}),
        (models.mobilenet_v3_small, {}),
        (models.vit_b_32, {"image_size": 32}),
    ):
        model = make(num_classes=4, **options).double().eval()
        x, y = images.double(), torch.tensor([1, 3])
        weights = torch.optim.SGD(list(model.parameters())[-4:], lr=0.01)
        value = nn.functional.cross_entropy(model(x), y)
        found.append(
            train(model, lambda m=model, x=x, y=y: nn.functional.cross_entropy(m(x), y), weights)[
                -4:
            ]
        )
        found.append(value)
    return found
