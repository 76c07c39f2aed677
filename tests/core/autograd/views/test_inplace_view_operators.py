"""`t_`, `squeeze_` and the like change how a tensor looks at its memory; the graph follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

OPERATORS: dict[str, tuple[tuple[Any, ...], str]] = {
    "t_": ((), "TBackward1"),
    "transpose_": ((0, 1), "TransposeBackward1"),
    "swapaxes_": ((0, 1), "TransposeBackward1"),
    "swapdims_": ((1, 0), "TransposeBackward1"),
    "unsqueeze_": ((1,), "UnsqueezeBackward1"),
    "as_strided_": (((3, 2), (1, 3)), "AsStridedBackward1"),
}
each_operator = pytest.mark.parametrize("name", OPERATORS)
OUT_OF_PLACE = {"t_": "t", "as_strided_": "as_strided", "unsqueeze_": "unsqueeze"}


def leaf(lib: Any) -> Any:
    return lib.arange(6.0).reshape(2, 3).clone().requires_grad_()


def weighted(lib: Any, tensor: Any) -> Any:
    """A sum with different weights, so that it distinguishes the elements of a tensor."""
    return (tensor * lib.arange(6.0).reshape(tensor.shape)).sum()


def change(tensor: Any, name: str) -> Any:
    return getattr(tensor, name)(*OPERATORS[name][0])


def changed(tensor: Any, name: str) -> Any:
    return getattr(tensor, OUT_OF_PLACE.get(name, "transpose"))(*OPERATORS[name][0])


@each_operator
def test_the_tensor_itself_takes_the_new_shape_and_a_new_node(lib: Any, name: str) -> None:
    y = leaf(lib).clone()
    result = change(y, name)
    assert result is y
    assert y.shape == changed(leaf(lib), name).shape
    assert y.grad_fn.name() == OPERATORS[name][1]
    assert y.grad_fn.next_functions[0][0].name() == "CloneBackward0"
    assert not y._is_view()


@each_operator
def test_its_gradient_is_that_of_the_operator_out_of_place(lib: Any, name: str) -> None:
    x, other = leaf(lib), leaf(lib)
    weighted(lib, change(x.clone(), name)).backward()
    weighted(lib, changed(other.clone(), name)).backward()
    assert x.grad.tolist() == other.grad.tolist()


@each_operator
def test_it_counts_as_a_write(lib: Any, name: str) -> None:
    x = leaf(lib)
    y = x * 1
    squares = y * y
    change(y, name)
    assert y._version == 1
    words = f"is output 0 of {OPERATORS[name][1].replace('Backward', '')}, is at version 1"
    with pytest.raises(RuntimeError, match=words):
        squares.sum().backward()


@each_operator
def test_a_view_stays_one_and_leaves_its_base_as_it_was(lib: Any, name: str) -> None:
    x = leaf(lib)
    base = x.clone()
    view = base[:]
    change(view, name)
    assert view._base is base
    assert view.grad_fn.name() == OPERATORS[name][1]
    assert base.shape == (2, 3)
    assert base.grad_fn.name() == "CloneBackward0"


@each_operator
def test_a_write_to_a_changed_view_reaches_its_base(lib: Any, name: str) -> None:
    x = leaf(lib)
    base = x.clone()
    view = change(base[:], name)
    view.mul_(2)
    assert base.grad_fn.name().endswith("CopySlices")
    (base * lib.arange(6.0).reshape(2, 3)).sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]


@each_operator
def test_views_of_a_changed_base_see_what_they_saw(lib: Any, name: str) -> None:
    x = leaf(lib)
    base = x.clone()
    row = base[1]
    change(base, name)
    assert row.shape == (3,)
    (grad,) = lib.autograd.grad(row.sum(), x)
    assert grad.tolist() == [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]


@each_operator
def test_views_follow_writes_to_a_changed_base(lib: Any, name: str) -> None:
    x = leaf(lib)
    base = x.clone()
    row = base[1]
    change(base, name)
    base.mul_(2)
    (row * lib.arange(3.0)).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0, 0.0], [0.0, 2.0, 4.0]]


@each_operator
def test_a_changed_base_follows_writes_to_older_views(lib: Any, name: str) -> None:
    x = leaf(lib)
    base = x.clone()
    row = base[1]
    change(base, name).unsqueeze_(0)
    row.mul_(3)
    assert base.grad_fn.name().endswith("CopySlices")
    base.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0, 1.0], [3.0, 3.0, 3.0]]


def test_views_from_before_and_after_a_change_of_the_base_are_both_right(lib: Any) -> None:
    x = leaf(lib)
    base = x.clone()
    before = base[0]
    base.t_()
    after = base[0]
    before.mul_(10)
    base.unsqueeze_(0)
    after.mul_(3)
    base.sum().backward()
    assert x.grad.tolist() == [[30.0, 10.0, 10.0], [3.0, 1.0, 1.0]]


def test_a_view_of_an_older_view_knows_where_that_started(lib: Any) -> None:
    x = leaf(lib)
    base = x.clone()
    row = base[1]
    base.t_()
    row[1:].mul_(5)
    base.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0, 1.0], [1.0, 5.0, 5.0]]


@pytest.mark.parametrize(
    ("args", "node", "shape"),
    [
        ((), "SqueezeBackward3", (2, 3)),
        ((0,), "SqueezeBackward4", (2, 1, 3)),
        (((0, 2),), "SqueezeBackward5", (2, 3)),
    ],
)
def test_squeeze_takes_all_one_or_some_dimensions(
    lib: Any, args: tuple[Any, ...], node: str, shape: tuple[int, ...]
) -> None:
    x = leaf(lib)
    y = x.clone().view(1, 2, 1, 3).clone()
    y.squeeze_(*args)
    assert y.shape == shape
    assert y.grad_fn.name() == node
    weighted(lib, y).backward()
    assert x.grad.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@each_operator
def test_it_can_be_differentiated_twice(lib: Any, name: str) -> None:
    x = leaf(lib)
    y = change(x * x, name)
    (grad,) = lib.autograd.grad((y * y).sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(grad.sum(), x)
    assert second.tolist() == (12 * x * x).tolist()


def in_no_grad(lib: Any, x: Any) -> Any:
    with lib.no_grad():
        return x[0]


REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "a leaf": (lambda lib, x: x, "a leaf Variable that requires grad is being used in an in-place"),
    "a view of a leaf": (lambda lib, x: x[0], "a view of a leaf Variable that requires grad is"),
    "a view made in no_grad": (
        lambda lib, x: in_no_grad(lib, x * 1),
        "A view was created in no_grad mode and is being modified inplace",
    ),
    "one of several": (
        lambda lib, x: (x * 1).unbind()[0],
        "Output 0 of Unbind is a view and is being modified inplace",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_it_refuses_what_writes_refuse(lib: Any, what: str) -> None:
    make, words = REFUSED[what]
    with pytest.raises(RuntimeError, match=words):
        make(lib, leaf(lib)).unsqueeze_(0)


def test_a_leaf_can_change_in_no_grad_mode(lib: Any) -> None:
    x = leaf(lib)
    with lib.no_grad():
        x.t_()
    assert x.is_leaf
    (x * 2).sum().backward()
    assert x.grad.shape == (3, 2)


def test_a_detached_tensor_changes_alone(lib: Any) -> None:
    x = leaf(lib)
    x.detach().t_()
    assert x.shape == (2, 3)
    assert x._version == 1


def test_an_inference_tensor_changes_in_inference_mode_only(lib: Any) -> None:
    with lib.inference_mode():
        z = lib.zeros(2, 3).t_()
    assert z.shape == (3, 2)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        z.t_()


def test_a_leaf_that_loses_a_dimension_gets_the_gradient_of_what_was_used(
    lib: Any, torch_oracle: Any
) -> None:
    grads = []
    for library in (lib, torch_oracle):
        x = library.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
        y = library.cat([x, x])
        with library.no_grad():
            x.squeeze_()
        y.backward(library.ones(2, 3))
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1] == [[2.0, 2.0, 2.0]]
