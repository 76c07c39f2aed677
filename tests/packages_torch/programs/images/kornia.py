"""kornia: images warped, blurred and converted, with gradients, and a pose that is fitted."""

import torch
from kornia.color import rgb_to_grayscale, rgb_to_hsv
from kornia.filters import gaussian_blur2d, sobel
from kornia.geometry import rotate, warp_affine
from kornia.losses import SSIMLoss
from training import train


class Pose(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.matrix = torch.nn.Parameter(torch.tensor([[[1.0, 0.1, 0.2], [0.0, 0.9, -0.3]]]))

    def forward(self, images):
        return warp_affine(images, self.matrix.expand(len(images), -1, -1), (8, 8))


def run():
    images, pose = torch.rand(2, 3, 8, 8), Pose()
    smooth = gaussian_blur2d(images, (3, 3), (1.0, 1.0))
    turned = rotate(images, torch.tensor([10.0, -20.0]))
    loss = SSIMLoss(3)
    return [
        smooth,
        turned,
        sobel(rgb_to_grayscale(images)),
        rgb_to_hsv(images),
        train(pose, lambda: loss(pose(smooth), turned) + (pose(images) - turned).square().mean()),
    ]
