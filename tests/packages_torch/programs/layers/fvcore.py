"""fvcore: losses of detection, initial weights, running means of norms, counts of parameters."""

import torch
from fvcore.nn import (
    c2_msra_fill,
    c2_xavier_fill,
    giou_loss,
    parameter_count,
    sigmoid_focal_loss,
    smooth_l1_loss,
    update_bn_stats,
)
from torch import nn
from training import train


def run():
    net = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    net.append(nn.Linear(64, 4))
    c2_msra_fill(net[0])
    c2_xavier_fill(net[4])
    x, y = torch.randn(6, 3, 6, 6), torch.rand(6, 4)
    losses = (
        lambda: sigmoid_focal_loss(net(x), y.round(), reduction="mean"),
        lambda: smooth_l1_loss(net(x), y, beta=0.1, reduction="mean"),
    )
    found = [list(parameter_count(net).values()), [train(net, loss) for loss in losses]]
    update_bn_stats(net, [x[:3], x[3:]], num_iters=2)
    found.append([net[1].running_mean, net[1].running_var])
    boxes = torch.rand(5, 2, 2, requires_grad=True)
    corners = torch.cat([boxes[:, 0], boxes[:, 0] + boxes[:, 1]], 1)
    value = giou_loss(corners, corners.detach().flip(0), reduction="mean")
    value.backward()
    return [found, value, boxes.grad]
