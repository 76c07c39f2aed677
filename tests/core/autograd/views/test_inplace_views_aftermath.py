"""What `t_`, `squeeze_` and the like leave to views, hooks and gradients that exist already."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad

CHANGES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "t_": (lambda x: x.t_(), lambda x: x.t()),
    "transpose_": (lambda x: x.transpose_(-1, 0), lambda x: x.transpose(-1, 0)),
    "swapdims_": (lambda x: x.swapdims_(0, 1), lambda x: x.swapdims(0, 1)),
    "swapaxes_": (lambda x: x.swapaxes_(0, 1), lambda x: x.swapaxes(0, 1)),
    "squeeze_": (lambda x: x.squeeze_(), lambda x: x.squeeze()),
    "squeeze_dim": (lambda x: x.squeeze_(0), lambda x: x.squeeze(0)),
    "squeeze_dims": (lambda x: x.squeeze_((0, 1)), lambda x: x.squeeze((0, 1))),
    "unsqueeze_": (lambda x: x.unsqueeze_(1), lambda x: x.unsqueeze(1)),
    "as_strided_": (
        lambda x: x.as_strided_((2,), (1,), 1),
        lambda x: x.as_strided((2,), (1,), 1),
    ),
}
SHAPES = {"squeeze_": (1, 3, 1), "squeeze_dim": (1, 3), "squeeze_dims": (1, 3)}
BACK = sorted(set(CHANGES) - {"as_strided_"})


def numbers(lib: ModuleType, name: str) -> Any:
    shape = SHAPES.get(name, (2, 3))
    count = 1
    for size in shape:
        count *= size
    return lib.arange(1.0, count + 1).reshape(shape).clone()


def write_to_views(lib: Any, name: str) -> list[Any]:
    """What a tensor, its gradient and its views are, which were taken before and after."""
    in_place, _ = CHANGES[name]
    leaf = numbers(lib, name).requires_grad_()
    x = leaf * 1
    before = x.reshape(-1)[1:]
    in_place(x)
    after = x[..., 0]
    after.mul_(3)
    before.mul_(2)
    last = x[-1]
    weights = lib.arange(1.0, x.numel() + 1).reshape(x.shape)
    (grad,) = lib.autograd.grad((x * weights).sum() + before.sum() + after.sum() * last.sum(), leaf)
    return [x.tolist(), grad.tolist(), before.tolist(), after.tolist(), last.tolist()]


@pytest.mark.parametrize("name", BACK)
def test_views_taken_before_and_after_know_their_places(torch_oracle: Any, name: str) -> None:
    if name in ("squeeze_", "squeeze_dim", "squeeze_dims"):
        name = "squeeze_dim"
    assert write_to_views(plugrad, name) == write_to_views(torch_oracle, name)


@pytest.mark.parametrize("name", BACK)
def test_a_view_that_changes_stays_a_view(lib: ModuleType, name: str) -> None:
    in_place, view = CHANGES[name]
    leaf = numbers(lib, name).requires_grad_()
    base = leaf * 1
    x = base.view_as(base)
    in_place(x)
    assert x._base is base
    x.mul_(3)
    assert base.grad_fn.name().endswith("CopySlices")
    assert x.tolist() == view(base).tolist()
    (grad,) = lib.autograd.grad(base.sum(), leaf, retain_graph=True)
    assert grad.reshape(-1).tolist() == [3.0] * leaf.numel()
    (grad,) = lib.autograd.grad(x.sum(), leaf)
    assert grad.reshape(-1).tolist() == [3.0] * leaf.numel()


def test_a_saved_tensor_that_changes_cannot_be_used(lib: ModuleType) -> None:
    x = lib.ones(2, 3, requires_grad=True) * 1
    out = (x * x).sum()
    x.t_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_hooks_and_retained_gradients_stay_where_they_were(lib: ModuleType) -> None:
    x = lib.ones(2, 3, requires_grad=True) * 1
    shapes = []
    x.retain_grad()
    x.register_hook(lambda grad: shapes.append(tuple(grad.shape)))
    x.t_()
    x.sum().backward()
    assert x.grad.shape == (2, 3)
    assert shapes == [(2, 3)]


def test_views_follow_a_tensor_that_became_another_part_of_its_memory(lib: ModuleType) -> None:
    leaf = lib.ones(2, 3, requires_grad=True)
    x = leaf * 1
    row = x[0]
    x.as_strided_((3, 2), (1, 3))
    row.mul_(5)
    assert x.tolist() == [[5.0, 1.0]] * 3
    (grad,) = lib.autograd.grad(x.sum() + row.sum(), leaf)
    assert grad.tolist() == [[10.0] * 3, [1.0] * 3]


@pytest.mark.parametrize(
    "view",
    [lambda x: x[...], lambda x: x.view(2, 2), lambda x: x.t().unsqueeze(0), lambda x: x[1]],
    ids=["alias", "view", "views", "select"],
)
def test_gradients_of_a_written_base_and_its_view_share_no_memory(
    lib: ModuleType, view: Callable[[Any], Any]
) -> None:
    base = lib.ones(2, 2, requires_grad=True) * 1
    seen = view(base)
    base.mul_(2)
    of_view, of_base = lib.autograd.grad(seen, [seen, base], lib.ones_like(seen))
    of_view.zero_()
    assert of_base.sum() == seen.numel()
