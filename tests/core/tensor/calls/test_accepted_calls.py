"""Calls in forms that few write and PyTorch accepts. Oracle: PyTorch's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad

ACCEPTED: list[Any] = [
    lambda lib, x: lib.amax(x, None),
    lambda lib, x: x.amin(dim=None),
    lambda lib, x: lib.roll(x, 1, None),
    lambda lib, x: lib.max_pool2d(x[None, None], 2, None),
    lambda lib, x: lib.isin(1.0, x),
    lambda lib, x: lib.isin(x, 2, invert=True),
    lambda lib, x: lib.isin(lib.tensor([1, 2]), 1.5),
    lambda lib, x: lib.atleast_2d(),
    lambda lib, x: lib.atleast_1d(x, lib.tensor(1.0)),
    lambda lib, x: lib.atleast_2d([x[0], lib.tensor(1.0)]),
    lambda lib, x: lib.atleast_3d((x,)),
    lambda lib, x: x.copy_(2.5),
    lambda lib, x: x.copy_(True),
    lambda lib, x: x.copy_(other=np.float32(1)),
    lambda lib, x: lib.ones(2, dtype=lib.int64).copy_(2.5),
    lambda lib, x: lib.tensor([[1, 2], [3, 4]]).matrix_power(3),
    lambda lib, x: lib.linalg.matrix_power(lib.tensor([[1, 2], [3, 4]]), 0),
    lambda lib, x: lib.arange(end=3),
    lambda lib, x: lib.ones(1).to(lib.result_type(x, other=1j)),
    lambda lib, x: lib.ones(1).to(lib.result_type(scalar=1.5, tensor=lib.tensor([1]))),
    lambda lib, x: lib.ones(1).to(lib.result_type(1, scalar2=2)),
    # A number without dimensions, also a bool, is one of several ints.
    lambda lib, x: x.logsumexp(lib.tensor(True)),
    lambda lib, x: lib.linalg.norm(x, 1, lib.tensor(1)),
    lambda lib, x: x.roll(lib.tensor(1), lib.tensor(0)),
    lambda lib, x: x.permute(lib.tensor(1), lib.tensor(False)),
    lambda lib, x: lib.ones(4, 1, 4).hsplit(lib.tensor(True), 5),
    lambda lib, x: lib.ByteTensor(lib.tensor(2), 0),
    lambda lib, x: x.clamp(1, lib.tensor(2.0)),
    lambda lib, x: x.clamp(lib.tensor(1.5), 2),
    lambda lib, x: x.std(lib.tensor(1)),
    lambda lib, x: x.norm(lib.tensor(1.0), dim=0),
    lambda lib, x: lib.tensor(lib.iinfo(int).max),
    # Numbers that wrap around, or that are no int of 64 bits.
    lambda lib, x: lib.ones(2, dtype=lib.uint8).masked_fill(lib.tensor([True, False]), -1),
    lambda lib, x: lib.ones(2, dtype=lib.uint8).index_fill(0, lib.tensor([1]), -1),
    lambda lib, x: lib.ones(2, dtype=lib.uint8).copy_(-1),
    lambda lib, x: lib.isin(lib.ones(2, dtype=lib.uint8), -1),
    lambda lib, x: lib.ones(2, dtype=lib.bfloat16).eq(1 << 63),
    lambda lib, x: lib.true_divide(np.bool_(True), 2),
    # Limits far outside.
    lambda lib, x: x.triu(-(1 << 63)),
    lambda lib, x: x.tril((1 << 63) - 1),
    lambda lib, x: lib.diag(x, 1 << 62),
    lambda lib, x: x.diagonal(-(1 << 63)),
    lambda lib, x: lib.special.zeta(lib.ones(2, dtype=lib.uint8), -(10**9)),
    lambda lib, x: lib.special.chebyshev_polynomial_t(lib.tensor([0]), 1 << 63),
    # Arguments where PyTorch has them.
    lambda lib, x: lib.subtract(x, 7, 5),
    lambda lib, x: x.clone().subtract_(5, 5),
    lambda lib, x: lib.linalg.matrix_norm(x, np.int64(1)),
    lambda lib, x: lib.nn.functional.softmax(x, 0, 3, lib.float64),
    lambda lib, x: lib.nn.functional.log_softmax(x, 0, "any", lib.float64),
    lambda lib, x: lib.nn.utils.clip_grad_norm_(x, 1.0, 2.0, False, True),
    lambda lib, x: lib.native_dropout(lib.arange(3), -5.0, False),
    lambda lib, x: lib.dropout(lib.arange(3), 1.0, True),
    lambda lib, x: lib.nn.BatchNorm1d(lib.Size([2, 3])).weight.detach(),
    lambda lib, x: lib.tensor(lib.TypedStorage([1, 2]).tolist()),
    lambda lib, x: lib.tensor(lib.TypedStorage(3, dtype=lib.float64).nbytes()),
]


@pytest.mark.parametrize("call", ACCEPTED)
def test_unusual_forms_are_accepted(call: Any, torch_oracle: Any) -> None:
    results = [call(lib, lib.tensor([[1.0, 2.0], [3.0, 0.0]])) for lib in (plugrad, torch_oracle)]
    ours, theirs = [item if isinstance(item, tuple) else (item,) for item in results]
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2]
        assert a.tolist() == b.tolist()


def test_a_number_that_is_copied_cuts_the_gradient() -> None:
    x = plugrad.ones(2, requires_grad=True)
    y = x * 2
    y[0].copy_(5)
    y.sum().backward()
    assert y.tolist() == [5, 2]
    assert x.grad.tolist() == [0, 2]  # closed form
    with pytest.raises(RuntimeError, match="leaf"):
        x.copy_(1)


def test_several_tensors_get_dimensions_in_the_graph() -> None:
    x = plugrad.ones((), requires_grad=True)
    row, cube = plugrad.atleast_2d(x * 2, plugrad.ones(1, 1, 1))
    assert row.shape == (1, 1)
    assert cube.shape == (1, 1, 1)
    row.sum().backward()
    assert x.grad.item() == 2
