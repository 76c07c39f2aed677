"""Operands at the edge of what an operator takes: PyTorch takes them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import plugrad


@pytest.mark.parametrize("weight", ["float32", "float64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lerp_takes_a_number_as_a_tensor_of_another_dtype(
    weight: str, dtype: str, torch_oracle: ModuleType
) -> None:
    seen = []
    for lib in (plugrad, torch_oracle):
        x: Any = lib.ones(2, dtype=getattr(lib, dtype), requires_grad=True)
        w: Any = lib.tensor(0.5, dtype=getattr(lib, weight), requires_grad=True)
        y = x.lerp(x * 3, w)
        grads = lib.autograd.grad(y.sum(), (x, w))
        seen.append([str(t.dtype).partition(".")[2] for t in (y, *grads)])
        seen[-1] += [t.detach().tolist() for t in (y, *grads)]
    assert seen[0] == seen[1]


@pytest.mark.strided
def test_strides_of_dimensions_of_size_one_do_not_matter_to_view_as_complex() -> None:
    x = plugrad.ones(3, 1, dtype=plugrad.complex128, requires_grad=True)
    y = plugrad.view_as_real(x).mT
    (grad,) = plugrad.autograd.grad(y, x, plugrad.ones(3, 2, 1, dtype=plugrad.float64))
    assert grad.flatten().tolist() == [1 + 1j] * 3
