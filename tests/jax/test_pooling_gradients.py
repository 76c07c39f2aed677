"""Gradients of pooling over windows side by side, also where rows and columns are left over."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

import numpy as np

import plugrad


@pytest.mark.parametrize(("size", "kernel"), [((2, 3, 8, 8), 2), ((1, 2, 7, 9), 2)])
def test_gradients_of_tiled_windows(size: tuple[int, ...], kernel: int) -> None:
    plugrad.manual_seed(0)
    host = plugrad.randn(*size, requires_grad=True)
    device = host.detach().to("jax").requires_grad_()
    for x in (host, device):
        plugrad.nn.functional.max_pool2d(x, kernel).square().sum().backward()
    np.testing.assert_allclose(device.grad.cpu().numpy(), host.grad.numpy(), rtol=1e-6)
