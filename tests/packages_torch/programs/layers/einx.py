"""einx: operations in its notation."""

import einx
import torch


def run():
    x = torch.randn(3, 4, 6, requires_grad=True)
    w = torch.randn(6, 5, requires_grad=True)
    y = einx.dot("a b [c], [c] d -> a b d", x, w)
    z = einx.sum("a [b] d", y * y) + einx.mean("a [b] (c d)", x[..., :5], d=5)
    z.square().mean().backward()
    return [
        y,
        z,
        x.grad,
        w.grad,
        einx.softmax("a b [c]", x),
        einx.rearrange("a b (c d) -> (a c) b d", x, d=2),
        einx.add("a b c, b", x, torch.arange(4.0)),
    ]
