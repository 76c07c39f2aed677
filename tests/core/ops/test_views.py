"""Views: the shared suite, memory layouts, and gradients that a layout can spoil."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite, needs_torch, torch


class TestViews(OpSuite):
    cases = family_cases("views")


def layouts(library: Any, shape: tuple[int, ...]) -> list[Any]:
    """Tensors of one shape with the same values in different memory layouts."""
    count = int(np.prod(shape))
    plain = library.arange(count).reshape(shape)
    order = tuple(reversed(range(len(shape))))
    turned = library.arange(count).reshape(tuple(reversed(shape))).permute(order)
    wide = library.arange(2 * count).reshape((*shape[:-1], 2 * shape[-1]))
    every_second = library.ops.aten.slice.Tensor if library is torch else library.slice
    return [plain, turned, every_second(wide, -1, 0, None, 2), plain[:1].expand(shape)]


def factorisations(number: int, generator: random.Random) -> tuple[int, ...]:
    """A random way to write a number as a product, with ones in between."""
    sizes: list[int] = []
    while number > 1:
        divisor = generator.choice([d for d in range(2, number + 1) if number % d == 0])
        sizes.append(divisor)
        number //= divisor
        if generator.random() < 0.3:
            sizes.append(1)
    return tuple(sizes) or (1,)


@needs_torch
@pytest.mark.parametrize("shape", [(2, 3, 4), (4, 1, 6), (1, 12), (2, 2, 2, 3), (3, 1, 1, 2)])
def test_reshape_is_a_view_exactly_where_pytorch_gives_one(shape: tuple[int, ...]) -> None:
    generator = random.Random(sum(shape))
    pairs = zip(layouts(plugrad, shape), layouts(torch, shape), strict=True)
    for ours, theirs in pairs:
        for _ in range(30):
            size = factorisations(ours.numel(), generator)
            result, expected = ours.reshape(size), theirs.reshape(size)
            assert result.tolist() == expected.tolist()
            shared = np.shares_memory(result.numpy(), ours.numpy())
            assert shared == (expected.data_ptr() == theirs.data_ptr()), (ours.stride(), size)


@needs_torch
@pytest.mark.parametrize("geometry", [((2, 3), (1, 2), 0), ((2, 2), (0, 1), 1), ((3,), (3,), 2)])
@pytest.mark.parametrize("layout", ["turned", "sliced", "expanded"])
def test_as_strided_gradient_of_a_view(layout: str, geometry: Any) -> None:
    def gradient(library: Any) -> Any:
        base = library.arange(12.0).reshape(3, 4).requires_grad_()
        view = {
            "turned": lambda: base.t(),
            "sliced": lambda: base[:, ::2],
            "expanded": lambda: base[:1].expand(3, 4),
        }[layout]()
        out = view.as_strided(*geometry)
        (out * library.arange(1.0, out.numel() + 1).reshape(out.shape)).sum().backward()
        return base.grad.tolist()

    assert gradient(plugrad) == gradient(torch)


def test_as_strided_sees_the_memory_of_the_base() -> None:
    x = plugrad.arange(10)
    assert x[5:].as_strided((2,), (1,), 0).tolist() == [0, 1]
    assert x[5:].as_strided((2,), (1,)).tolist() == [5, 6]


def test_writing_through_a_chain_of_views() -> None:
    x = plugrad.zeros(2, 3)
    x.t()[1].view(2, 1).expand(2, 1).squeeze(1).fill_(7)
    assert x.tolist() == [[0, 7, 0], [0, 7, 0]]


def test_writing_to_a_diagonal() -> None:
    x = plugrad.zeros(2, 3)
    x.diagonal(1).copy_(plugrad.tensor([1.0, 2.0]))
    assert x.tolist() == [[0, 1, 0], [0, 0, 2]]


@pytest.mark.parametrize(
    "take",
    [
        lambda x: x[1],
        lambda x: x.view(6)[1:5],
        lambda x: x.t(),
        lambda x: x.diagonal(),
        lambda x: x.unsqueeze(0).select(2, 1),
        lambda x: x.as_strided((2, 2), (3, 1), 1),
        lambda x: x.reshape(3, 2).permute(1, 0),
    ],
)
def test_in_place_on_a_view_reaches_the_base_gradient(take: Any) -> None:
    leaf = plugrad.arange(6.0, requires_grad=True)
    base = leaf.view(2, 3) * 1
    take(base).mul_(10)
    base.sum().backward()
    touched = plugrad.zeros(2, 3)
    take(touched).fill_(9)
    assert leaf.grad.tolist() == (touched + 1).view(6).tolist()


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: x.view(6), "ViewBackward0"),
        (lambda x: x.t(), "TBackward0"),
        (lambda x: x.transpose(0, 1), "TransposeBackward0"),
        (lambda x: x.permute(1, 0), "PermuteBackward0"),
        (lambda x: x.t().reshape(6), "UnsafeViewBackward0"),
        (lambda x: x.squeeze(), "SqueezeBackward0"),
        (lambda x: x.squeeze(0), "SqueezeBackward1"),
        (lambda x: x.squeeze((0, 1)), "SqueezeBackward2"),
        (lambda x: x.unsqueeze(0), "UnsqueezeBackward0"),
        (lambda x: x.expand(2, 2, 3), "ExpandBackward0"),
        (lambda x: x[0], "SelectBackward0"),
        (lambda x: x[:, 1:], "SliceBackward0"),
        (lambda x: x.split(1)[0], "SplitBackward0"),
        (lambda x: x.split([1, 1])[0], "SplitWithSizesBackward0"),
        (lambda x: x.unbind()[0], "UnbindBackward0"),
        (lambda x: x.diagonal(), "DiagonalBackward0"),
        (lambda x: x.as_strided((2,), (1,)), "AsStridedBackward0"),
    ],
)
def test_views_have_pytorch_s_node_names(function: Any, name: str) -> None:
    assert function(plugrad.ones(2, 3, requires_grad=True)).grad_fn.name() == name


def test_unused_parts_get_zero_gradient() -> None:
    x = plugrad.ones(5, requires_grad=True)
    x.split(2)[1].sum().backward()
    assert x.grad.tolist() == [0, 0, 1, 1, 0]
    x.grad = None
    x.unbind()[4].backward()
    assert x.grad.tolist() == [0, 0, 0, 0, 1]


def test_matrix_transposes() -> None:
    x = plugrad.arange(24).reshape(2, 3, 4)
    assert x.mT.shape == (2, 4, 3)
    assert x[0].T.shape == (4, 3)
    with pytest.raises(RuntimeError, match=r"tensor.mT is only supported on matrices"):
        _ = plugrad.ones(3).mT
    with pytest.raises(RuntimeError, match=r"tensor.H is only supported on matrices"):
        plugrad.matrix_H(x)
    assert plugrad.mH(plugrad.tensor([[1j, 2]])).tolist() == [[-1j], [2]]


def test_detach_shares_memory_and_version_and_nothing_else() -> None:
    x = plugrad.ones(3, requires_grad=True) * 2
    y = x.detach()
    y.zero_()
    assert not y.requires_grad
    assert y.grad_fn is None
    assert x.tolist() == [0, 0, 0]
    assert x._version == y._version == 1


@pytest.mark.parametrize("take", [lambda x: x, lambda x: x.t(), lambda x: x[1:]])
def test_gradients_of_as_strided_scatter(take: Any) -> None:
    x = plugrad.randn(3, 4, dtype=plugrad.float64, requires_grad=True)
    part = plugrad.randn(2, 2, dtype=plugrad.float64, requires_grad=True)

    def scattered(x: Any, part: Any) -> Any:
        return take(x).as_strided_scatter(part, (2, 2), (4, 1), 4)

    assert plugrad.autograd.gradcheck(scattered, (x, part))
    assert plugrad.autograd.gradgradcheck(scattered, (x, part))


@pytest.mark.parametrize("dims", [(), (0,), ((0, 1),)])
def test_where_nothing_is_squeezed_the_gradient_is_what_was_given(dims: Any) -> None:
    x = plugrad.ones(2, 3, requires_grad=True)
    given = plugrad.ones(2, 3)
    (grad,) = plugrad.autograd.grad(x.squeeze(*dims), x, given)
    assert grad is given
    grad.detach_()  # refused on a view
