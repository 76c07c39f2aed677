"""Forward mode on JAX's arrays. Oracle: the same on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
import plugrad.autograd.forward_ad as fwAD

F = plugrad.nn.functional


def _write(x: plugrad.Tensor) -> plugrad.Tensor:
    y = x.clone()
    row = y[0]
    row[1:].mul_(x[1, 1:])
    y[:, 0] = x.sum(1)
    y.t_()
    return y


# Of one family of operators each; the argument is a matrix of 3 by 4.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: plugrad.atan2(x.exp(), x.sin() + 2) ** 1.5,
    "reductions": lambda x: x.std(1) + x.logsumexp(1) + x.amax(1) + x.prod(1),
    "products": lambda x: plugrad.linalg.solve(x @ x.T + plugrad.eye(3).to(x), x),
    "views": lambda x: plugrad.cat([x.T.reshape(2, 6), x.unfold(1, 2, 1).reshape(2, 9)], 1),
    "indices": lambda x: x[[2, 0], 1:] * x.gather(1, plugrad.tensor([[0, 3, 1]]).to(x.device)),
    "sorting": lambda x: x.sort(1).values.cumsum(0) + x.topk(1).values,
    "softmax": lambda x: F.layer_norm(F.softmax(x, 1), (4,)) + F.log_softmax(x, 0),
    "losses": lambda x: F.cross_entropy(
        x, plugrad.tensor([1, 0, 3]).to(x.device), reduction="none"
    ),
    "convolution": lambda x: F.conv1d(x[None], x[None, :, :2].expand(2, 3, 2)),
    "pooling": lambda x: F.max_pool2d(x[None], 2) + F.avg_pool2d(x[None], 2),
    "writes": _write,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_are_those_of_the_cpu(name: str) -> None:
    rng = np.random.default_rng(0)
    values, tangents = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    found = []
    for device in ("cpu", "jax"):
        x, t = plugrad.from_numpy(values).to(device), plugrad.from_numpy(tangents).to(device)
        with fwAD.dual_level():
            tangent = fwAD.unpack_dual(FUNCTIONS[name](fwAD.make_dual(x, t))).tangent
        assert tangent.device.type == device
        found.append(tangent.cpu().numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-10)
