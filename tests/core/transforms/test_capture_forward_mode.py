"""Captured functions that use forward mode: the graph has the operators that tangents come from."""

from __future__ import annotations

from typing import Any

import plugrad
import plugrad.autograd.forward_ad as fwAD


def directional(x: Any, v: Any) -> Any:
    with fwAD.dual_level():
        y = fwAD.make_dual(x, v)
        z = (y**2 * x).clone()
        z[0].mul_(y[1])
        return fwAD.unpack_dual(z).tangent


def test_tangents_are_captured() -> None:
    x, v = plugrad.tensor([1.0, 2.0]), plugrad.tensor([3.0, 4.0])
    graph = plugrad.capture(directional, x, v)
    other = plugrad.tensor([0.5, -1.0])
    assert graph(other, v).tolist() == directional(other, v).tolist()
    assert graph(x, other).tolist() == directional(x, other).tolist()


def test_gradients_of_tangents_are_captured() -> None:
    def second(x: Any, v: Any) -> Any:
        return plugrad.autograd.grad(directional(x, v).sum(), x)[0]

    x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    v = plugrad.tensor([3.0, 4.0])
    graph = plugrad.capture(second, x, v)
    other = plugrad.tensor([0.5, -1.0], requires_grad=True)
    assert graph(other, v).tolist() == second(other, v).tolist()
