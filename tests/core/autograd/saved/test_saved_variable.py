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
    """Reference counting alone must free the objects that a test releases."""
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
    y = middle * constant  # only the constant is needed: its own gradient is not requested
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


# Which nodes may run a second time.

SECOND_TIME = "Trying to backward through the graph a second time"


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + x,
        lambda x: x.view(1, 2),
        lambda x: plugrad.cat([x, x]),
        lambda x: x.sum(),
        lambda x: plugrad.addcmul(x, plugrad.ones(2), plugrad.ones(2)),
    ],
)
def test_what_saved_nothing_may_run_again(function: Any) -> None:
    x = plugrad.ones(2, requires_grad=True)
    y = function(x).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [value * 2 for value in _gradient(function)]


def _gradient(function: Any) -> list[float]:
    x = plugrad.ones(2, requires_grad=True)
    found: list[float] = plugrad.autograd.grad(function(x).sum(), x)[0].tolist()
    return found


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.exp(),
        lambda x: x * x,
        lambda x: x * 2,
        lambda x: x / 2,
        lambda x: x.max(dim=0).values,
        lambda x: x[plugrad.tensor([1])],
        lambda x: plugrad.addcmul(x, x, plugrad.ones(2)),
    ],
)
def test_what_saved_something_may_not(function: Any) -> None:
    y = function(plugrad.ones(2, requires_grad=True)).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward()


def test_a_part_that_another_pass_freed_is_gone() -> None:
    y = leaf().exp()
    first, second = (y * 2).sum(), (y * 3).sum()
    first.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        second.backward()


def test_only_what_ran_is_freed() -> None:
    y = leaf().exp()
    z = (y * y).sum()
    plugrad.autograd.grad(z, y)
    y.sum().backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        z.backward()


# Leaves, outputs without a gradient, tensors detached in place, writes into views.


def test_a_leaf_written_to_after_it_was_saved() -> None:
    x, w = leaf(), leaf()
    y = (x * w).sum()
    with plugrad.no_grad():
        w.mul_(2)
    with pytest.raises(RuntimeError, match=r"DoubleTensor \[2\]\] is at version 1; expected ver"):
        y.backward()


def test_a_leaf_that_comes_to_require_grad_after_it_was_saved() -> None:
    x, w = leaf(), plugrad.ones(2, dtype=plugrad.float64)
    y = (x * w).sum()
    w.requires_grad_()
    (grad,) = plugrad.autograd.grad(y, x, create_graph=True)
    assert grad.requires_grad


def test_an_output_without_gradient_has_no_history_after_unpacking() -> None:
    values, indices = plugrad.ones(2, 2, requires_grad=True).max(dim=0)
    assert values.grad_fn._saved_indices is indices
    indices.add_(1)
    with pytest.raises(RuntimeError, match=r"LongTensor \[2\]\] is at version 1"):
        values.sum().backward()


def test_an_input_detached_in_place_cannot_be_used() -> None:
    middle = leaf() * 1
    y = (middle * middle).sum()
    middle.detach_()
    with pytest.raises(RuntimeError, match="a saved tensor that has been detached in-place"):
        y.backward()


def test_an_output_detached_in_place_can() -> None:
    x = leaf()
    y = x.exp()
    z = (y * 1).sum()
    y.detach_()
    z.backward()
    assert x.grad.tolist() == pytest.approx(x.exp().tolist())


def test_the_message_names_the_operator_without_backward() -> None:
    class Exponential(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    for make, name in ((plugrad.exp, "Exp"), (Exponential.apply, "Exponential")):
        y = make(leaf())
        y.add_(1)
        with pytest.raises(RuntimeError, match=f"which is output 0 of {name}, is at version 1"):
            y.sum().backward()


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected in")
def test_the_hint_in_anomaly_mode() -> None:
    with plugrad.autograd.detect_anomaly():
        y = leaf().exp()
        y.add_(1)
        with pytest.raises(RuntimeError, match="Hint: the backtrace further above shows the oper"):
            y.sum().backward()


@pytest.mark.usefixtures("without_gc")
def test_a_saved_result_of_a_write_into_a_view_makes_no_cycle() -> None:
    x = leaf(0.5, 1.0)
    base = x * 1
    view = base[:1]
    view.exp_()
    gone = weakref.ref(base)
    (first,) = plugrad.autograd.grad(base.sum(), x, create_graph=True)
    (second,) = plugrad.autograd.grad(first.sum(), x)
    assert first.tolist() == pytest.approx([1.6487212707, 1.0])
    assert second.tolist() == pytest.approx([1.6487212707, 0.0])
    del base, view, first
    assert gone() is None
