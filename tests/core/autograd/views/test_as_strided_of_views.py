"""`as_strided` of a view counts in the base's memory, also where the view does not cover it."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad

VALUES = [[0.5, 1.5, 0.7], [1.2, 0.4, 0.9], [0.8, 1.1, 1.3]]

VIEWS: dict[str, Callable[[Any], Any]] = {
    "base": lambda y: y,
    "diagonal": lambda y: y.diagonal(),
    "row": lambda y: y[1],
    "column": lambda y: y[:, 2],
    "slice": lambda y: y[1:],
    "turned": lambda y: y.t()[1:],
    "expanded": lambda y: y[:1].expand(2, 3),
    "split": lambda y: y.unsqueeze(0)[0],
    "strided": lambda y: y.as_strided((2,), (4,), 1),
}
# Size, stride, offset; no element is taken twice.
GEOMETRIES = [((2,), (1,), None), ((2,), (1,), 1), ((2, 2), (3, 1), 0), ((3, 1), (1, 2), 3)]
WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "tanh_": lambda s, x: s.tanh_(),
    "mul_": lambda s, x: s.mul_(x.sum()),
    "zero_": lambda s, x: s.zero_(),
    "view of it": lambda s, x: s[:1].exp_(),
    "twice": lambda s, x: s.mul_(2).copy_(x.sum().expand(s.shape) * 2),
}


def gradient(lib: Any, x: Any, view: str, geometry: Any, write: str) -> Any:
    y = x * x
    middle = VIEWS[view](y)
    s = middle.as_strided(*geometry)
    WRITES[write](s, x)
    loss = (s * s).sum() + (y * y * y).sum() + (middle * 2).sum()
    (first,) = lib.autograd.grad(loss, x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x)
    return [first.detach().tolist(), second.tolist()]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_write_reaches_what_the_view_does_not_have(
    view: str, write: str, torch_oracle: ModuleType
) -> None:
    for geometry in GEOMETRIES:
        found, expected = (
            gradient(lib, leaf(lib, VALUES), view, geometry, write)
            for lib in (plugrad, torch_oracle)
        )
        for ours, theirs in zip(found, expected, strict=True):
            assert plugrad.allclose(plugrad.tensor(ours), plugrad.tensor(theirs)), geometry


def leaf(lib: Any, values: Any) -> Any:
    return lib.tensor(values, dtype=lib.float64).requires_grad_()


def test_what_lies_outside_of_a_diagonal_has_its_gradient(lib: Any) -> None:
    x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
    y = x * x
    s = y.diagonal().as_strided((2,), (1,))
    s.mul_(3)
    s.sum().backward()
    assert x.grad.tolist() == [[6.0, 12.0], [0.0, 0.0]]


@pytest.mark.parametrize("part", ["real", "imag", "view_as_real"])
def test_the_real_numbers_of_complex_ones(lib: Any, part: str) -> None:
    x = lib.tensor([1.0, 2.0, 3.0, 4.0], dtype=lib.float64, requires_grad=True)
    y = lib.view_as_complex((x * x).reshape(2, 2))[:]
    v = lib.view_as_real(y) if part == "view_as_real" else getattr(y, part)
    s = v.as_strided((3,), (1,), 1)
    s.mul_(3)
    lib.view_as_real(y).sum().backward()
    assert x.grad.tolist() == [2.0, 12.0, 18.0, 24.0]


def test_a_base_that_starts_later_in_its_memory(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    room = lib.zeros(6)
    base = room[2:5].detach()
    base.copy_(x * x)
    s = base[::2].as_strided((2,), (1,), 3)
    s.mul_(3)
    base.sum().backward()
    assert x.grad.tolist() == [2.0, 12.0, 18.0]


def test_views_of_one_another_share_their_steps() -> None:
    x = plugrad.ones(1, requires_grad=True)
    base = x * 1
    first = y = base.view(1)
    for _ in range(2000):
        former, y = y, y.view(1)
        assert y._view_info.last.before is former._view_info.last
    assert y._view_info.last.count == 2001
    base.mul_(3)
    (y * first).sum().backward()
    assert x.grad.tolist() == [18.0]


def test_a_saved_result_outlives_the_view_that_was_written_to(lib: Any) -> None:
    x = lib.tensor([0.5, 1.5], dtype=lib.float64, requires_grad=True)
    y = x * 2
    y[:1].exp_()
    (first,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x)
    assert lib.allclose(second, lib.tensor([4 * 2.718281828459045, 0.0], dtype=lib.float64))
