"""Which results are the input itself, a view of it or a copy: PyTorch decides."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import plugrad

SHAPES: dict[str, Any] = {
    "broadcast to its own shape": lambda lib, x: lib.broadcast_tensors(x, lib.ones(3))[0],
    "broadcast to another": lambda lib, x: lib.broadcast_tensors(x, lib.ones(2, 2, 3))[0],
    "summed to its own size": lambda lib, x: x.sum_to_size(2, 3),
    "a number summed to nothing": lambda lib, x: x[0, 0].sum_to_size(()),
    "no differences": lambda lib, x: lib.diff(x, n=0),
    "no differences of what is put before": lambda lib, x: lib.diff(x, n=0, prepend=x),
    "ravelled": lambda lib, x: x.ravel(),
    "ravelled out of order": lambda lib, x: x.mT.ravel(),
    "ravelled with gaps": lambda lib, x: (x * 1)[0, ::2].ravel(),
}


@pytest.mark.strided
@pytest.mark.parametrize("what", SHAPES)
def test_a_result_is_the_input_a_view_or_a_copy(what: str, torch_oracle: ModuleType) -> None:
    seen = []
    for lib in (plugrad, torch_oracle):
        x: Any = lib.ones(2, 3, requires_grad=True)
        y = SHAPES[what](lib, x)
        seen.append((y is x, y._is_view(), y.is_leaf, tuple(y.shape), tuple(y.stride())))
    assert seen[0] == seen[1]


@pytest.mark.strided
@pytest.mark.parametrize("how", ["tensor_split", "hsplit"])
def test_parts_of_a_tensor_split_are_slices_that_may_be_written_to(
    how: str, torch_oracle: ModuleType
) -> None:
    seen = []
    for lib in (plugrad, torch_oracle):
        x: Any = lib.ones(3, requires_grad=True)
        y = x * 2
        parts = lib.tensor_split(y, 2) if how == "tensor_split" else lib.hsplit(y, 3)
        numbers = [part.output_nr for part in parts]
        parts[1].mul_(5)
        y.sum().backward()
        seen.append((numbers, [part.tolist() for part in parts], x.grad.tolist()))
    assert seen[0] == seen[1]


def test_a_tensor_that_cat_skips_has_an_empty_gradient(torch_oracle: ModuleType) -> None:
    for lib in (plugrad, torch_oracle):
        skipped: Any = lib.ones(0, requires_grad=True)
        joined = lib.cat([skipped, lib.ones(2, 3)])
        (grad,) = lib.autograd.grad(joined.sum(), skipped)
        assert tuple(grad.shape) == (0,)
