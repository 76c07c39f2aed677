"""Saved tensors: what is kept, how long, and whether it is still what it was."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import plugrad

MODIFIED = "one of the variables needed for gradient computation has been modified"


def leaf(*values: float) -> Any:
    return plugrad.tensor(list(values) or [1.0, 2.0], dtype=plugrad.float64, requires_grad=True)


@pytest.fixture
def without_gc() -> Iterator[None]:
    """Reference counting alone must free what a test lets go."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_gc")
@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "sqrt"])
def test_saving_an_output_makes_no_reference_cycle(name: str) -> None:
    y = getattr(leaf(), name)()
    node, tensor = weakref.ref(y.grad_fn) if _weakly_referable(y.grad_fn) else None, weakref.ref(y)
    del y
    assert tensor() is None
    assert node is None or node() is None


def _weakly_referable(value: Any) -> bool:
    try:
        weakref.ref(value)
    except TypeError:
        return False
    return True


@pytest.mark.usefixtures("without_gc")
def test_saved_inputs_live_as_long_as_the_graph() -> None:
    x = leaf()
    middle = x * 1
    gone = weakref.ref(middle)
    y = (middle * middle).sum()
    del middle
    assert gone() is not None
    del y
    assert gone() is None


@pytest.mark.usefixtures("without_gc")
def test_backward_frees_saved_tensors() -> None:
    x = leaf()
    middle = x * 1
    gone = weakref.ref(middle)
    y = (middle * middle).sum()
    del middle
    y.backward()
    assert gone() is None


@pytest.mark.usefixtures("without_gc")
def test_retain_graph_keeps_saved_tensors() -> None:
    middle = leaf() * 1
    kept = weakref.ref(middle)
    y = (middle * middle).sum()
    del middle
    y.backward(retain_graph=True)
    assert kept() is not None


@pytest.mark.usefixtures("without_gc")
def test_what_no_gradient_needs_is_not_saved() -> None:
    x, constant = leaf(), plugrad.ones(2, dtype=plugrad.float64)
    middle = x * 1
    gone = weakref.ref(middle)
    y = middle * constant  # only the constant is needed: nobody asks for its own gradient
    del middle
    assert gone() is None
    assert y.requires_grad


@pytest.mark.usefixtures("without_gc")
def test_addition_saves_nothing() -> None:
    x = leaf()
    middle = x * 1
    gone = weakref.ref(middle)
    y = middle + x
    del middle
    assert gone() is None
    assert y.requires_grad


def test_an_unsaved_tensor_may_be_modified() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y + 1
    y.mul_(5)
    z.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_modification_before_saving_is_no_error() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    y.add_(1)
    (y * y).sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]


def test_modification_counts_once_per_operation() -> None:
    x = plugrad.ones(2)
    assert x._version == 0
    x.add_(1)
    x.mul_(2)
    assert x._version == 2
    x[0] = 5
    assert x._version == 3


def test_views_share_the_version() -> None:
    x = plugrad.ones(2, 2)
    view = x.view(4)
    view.add_(1)
    assert x._version == view._version == 1
    x.mul_(2)
    assert view._version == 2


def test_detached_tensors_share_the_version() -> None:
    x = leaf() * 1
    y = x * x
    x.detach().add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_data_does_not_share_the_version() -> None:
    x = leaf(1.0)
    y = x * x
    x.data.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [4.0]


def test_a_modified_output_is_detected() -> None:
    y = leaf().exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_inplace_operation_whose_gradient_needs_its_result() -> None:
    x = leaf(0.5)
    y = x * 1
    y.exp_()
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([1.6487212707])


def test_the_message_names_type_shape_node_and_versions() -> None:
    x = leaf() * 1
    y = x * x
    x.add_(1)
    x.add_(1)
    expected = (
        r"\[plugrad\.DoubleTensor \[2\]\], which is output 0 of .*, is at version 2; expected"
    )
    with pytest.raises(RuntimeError, match=expected + " version 0 instead"):
        y.sum().backward()


def test_writing_into_a_view_differentiates_through_the_base() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    y.view(2, 1)[0].mul_(10)
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 1.0]


def test_a_view_sees_the_history_of_a_later_write_into_its_base() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    view = y[0]
    y.mul_(10)
    view.backward()
    assert x.grad.tolist() == [10.0, 0.0]


def test_a_gradient_may_be_modified_by_the_user() -> None:
    x = leaf(1.0)
    x.sum().backward()
    x.grad.zero_()
    x.sum().backward()
    assert x.grad.tolist() == [1.0]
