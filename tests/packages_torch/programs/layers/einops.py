"""einops: rearranged and reduced tensors, and its layers."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from training import train


def run():
    x = torch.randn(2, 3, 8, 8, requires_grad=True)
    patches = rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4)
    value = (
        reduce(patches, "b n d -> b d", "max") * repeat(x[:, :1, 0, :6], "b 1 w -> b (r w)", r=8)
    ).sum()
    value.backward()
    packed, shapes = pack([patches, x.flatten(2)[:, :, :48]], "b * d")
    model = torch.nn.Sequential(
        Rearrange("b c h w -> b (h w) c"),
        EinMix("b n c -> b n d", weight_shape="c d", bias_shape="d", c=3, d=5),
        torch.nn.GELU(),
        Reduce("b n d -> b d", "mean"),
    )
    products = einsum(patches, patches, "b i d, b j d -> b i j")
    y = x.detach()
    return [
        patches,
        value,
        x.grad,
        unpack(packed, shapes, "b * d"),
        products,
        train(model, lambda: model(y).square().sum()),
    ]
