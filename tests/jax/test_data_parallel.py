"""Batches divided among JAX's devices. Oracle: the module on one device."""

from __future__ import annotations

import plugrad
from plugrad import nn


def test_a_batch_is_divided_among_devices() -> None:
    plugrad.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to("jax:0")
    x = plugrad.randn(6, 3, device="jax:0")
    net(x).square().sum().backward()
    expected = [parameter.grad.clone() for parameter in net.parameters()]
    net.zero_grad()
    divided = nn.DataParallel(net, [0, 1, 2])
    out = divided(x)
    assert out.device == plugrad.device("jax:0")
    assert [replica[0].weight.device.index for replica in divided.replicate(net, [0, 1, 2])] == [
        *(0, 1, 2)
    ]
    assert plugrad.allclose(out, net(x), atol=1e-6)
    out.square().sum().backward()
    for parameter, grad in zip(net.parameters(), expected, strict=True):
        assert plugrad.allclose(parameter.grad, grad, atol=1e-5)
