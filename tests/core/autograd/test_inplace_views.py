"""`t_`, `squeeze_` and the like: a tensor becomes a view of what it was."""

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


@pytest.mark.parametrize("name", CHANGES)
def test_the_result_and_the_node_are_those_of_the_view(lib: ModuleType, name: str) -> None:
    in_place, view = CHANGES[name]
    leaf = numbers(lib, name).requires_grad_()
    x = leaf * 2
    before = x._version
    expected = view(leaf * 2)
    assert in_place(x) is x
    assert x.shape == expected.shape
    assert x.tolist() == expected.tolist()
    # PyTorch numbers the nodes of the in-place ones on: TBackward1.
    assert x.grad_fn.name()[:-1] == expected.grad_fn.name()[:-1]
    assert x.grad_fn.next_functions[0][0].name() == "MulBackward0"
    assert x._version == before + 1
    assert not x._is_view()
    weights = lib.arange(1.0, x.numel() + 1).reshape(x.shape)
    (grad,) = lib.autograd.grad((x * weights).sum(), leaf)
    (wanted,) = lib.autograd.grad((expected * weights).sum(), leaf)
    assert grad.tolist() == wanted.tolist()


@pytest.mark.parametrize("name", CHANGES)
def test_it_shares_the_memory_it_had(lib: ModuleType, name: str) -> None:
    in_place, view = CHANGES[name]
    x = numbers(lib, name)
    other = x.detach()
    in_place(x)
    x.mul_(10)
    assert view(other).tolist() == x.tolist()
    assert x.grad_fn is None


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


def test_a_leaf_that_requires_grad_cannot_change(lib: ModuleType) -> None:
    leaf = lib.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf.t_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        leaf.view(3, 2).t_()
    with lib.no_grad():
        leaf.t_()
    assert leaf.shape == (3, 2)
    assert leaf.is_leaf


@pytest.mark.parametrize("name", BACK)
def test_how_a_view_was_made_decides_whether_it_may_change(lib: ModuleType, name: str) -> None:
    in_place, _ = CHANGES[name]
    base = numbers(lib, name).requires_grad_() * 1
    with lib.no_grad():
        quiet = base.view_as(base)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        in_place(quiet)
    part = base.unsqueeze(0).unbind()[0]
    with pytest.raises(RuntimeError, match="function that returns multiple views"):
        in_place(part)
    with lib.no_grad():
        in_place(part)
    with pytest.raises(RuntimeError, match="function that returns multiple views"):
        part.add_(1)


def test_an_inference_tensor_changes_only_in_inference_mode(lib: ModuleType) -> None:
    with lib.inference_mode():
        x = lib.ones(2, 3)
        x.transpose_(0, 1)
        assert x.is_inference()
    assert x.shape == (3, 2)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        x.transpose_(0, 1)
    normal = lib.ones(2, 3, requires_grad=True) * 1
    with lib.inference_mode():
        normal.transpose_(0, 1)
        assert not normal.is_inference()
        assert normal.requires_grad
    assert normal.shape == (3, 2)


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
