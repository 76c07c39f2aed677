"""inference_mode: which tensors are inference tensors, and what autograd refuses to do to them."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plugrad

INPLACE = "Inplace update to inference tensor outside InferenceMode is not allowed"
SAVED = "Inference tensors cannot be saved for backward"


def inferred(*sizes: int) -> Any:
    with plugrad.inference_mode():
        return plugrad.ones(*(sizes or (2, 2)))


def leaf() -> Any:
    return plugrad.ones(2, 2, requires_grad=True)


def test_modes_inside() -> None:
    assert not plugrad.is_inference_mode_enabled()
    with plugrad.inference_mode():
        assert plugrad.is_inference_mode_enabled()
        assert not plugrad.is_grad_enabled()
    assert not plugrad.is_inference_mode_enabled()
    assert plugrad.is_grad_enabled()


def test_modes_are_back_after_an_exception() -> None:
    with pytest.raises(KeyError), plugrad.inference_mode():
        raise KeyError
    assert (plugrad.is_inference_mode_enabled(), plugrad.is_grad_enabled()) == (False, True)
    assert (leaf() * 2).requires_grad


def test_an_inner_block_may_switch_back() -> None:
    x = leaf()
    with plugrad.inference_mode():
        with plugrad.inference_mode(False):
            assert not plugrad.is_inference_mode_enabled()
            assert plugrad.is_grad_enabled()
            assert not plugrad.ones(1).is_inference()
            assert (x * 2).requires_grad
        assert plugrad.is_inference_mode_enabled()
        assert plugrad.ones(1).is_inference()


def test_switching_back_enables_grad_even_in_no_grad_mode() -> None:
    with plugrad.no_grad(), plugrad.inference_mode(mode=False):
        assert plugrad.is_grad_enabled()


def test_grad_modes_inside_record_nothing() -> None:
    x = leaf()
    with plugrad.inference_mode(), plugrad.enable_grad():
        assert plugrad.is_grad_enabled()
        y = x * 2
        assert (y.requires_grad, y.is_inference()) == (False, True)
        assert x.view(4).grad_fn is None


@pytest.mark.parametrize(
    "make",
    [
        lambda n: plugrad.zeros(2),
        lambda n: plugrad.tensor([1.0]),
        lambda n: plugrad.from_numpy(np.asarray(n.cpu())),
        lambda n: n + n,
        lambda n: n.clone(),
        lambda n: n.t().contiguous(),
        lambda n: n.new_zeros(2),
        lambda n: n.sum(),
        lambda n: n > 0,
        lambda n: copy.deepcopy(n),
        lambda n: pickle.loads(pickle.dumps(n)),
    ],
)
def test_new_tensors_inside_are_inference_tensors(make: Callable[[Any], Any]) -> None:
    n = plugrad.ones(2, 3)
    with plugrad.inference_mode():
        made = make(n)
        assert made.is_inference()
        assert plugrad.is_inference(made)
    assert not make(n).is_inference()


@pytest.mark.parametrize(
    "alias",
    [
        lambda n: n.view(4),
        lambda n: n[0],
        lambda n: n.reshape(4),
        lambda n: n.detach(),
        lambda n: n.data,
        lambda n: n.contiguous(),
        lambda n: n.unbind()[1],
    ],
)
@pytest.mark.parametrize("inside", [True, False])
def test_an_alias_is_what_its_source_is(alias: Callable[[Any], Any], inside: bool) -> None:
    normal, inference = plugrad.ones(2, 2), inferred()
    with plugrad.inference_mode(inside):
        assert not alias(normal).is_inference()
        assert alias(inference).is_inference()


def test_views_of_inference_tensors_are_not_tracked() -> None:
    for inside in (True, False):
        source = inferred()
        with plugrad.inference_mode(inside):
            view = source.view(4)
            assert not view._is_view()
            assert view._base is None


def test_views_of_normal_tensors_are_tracked_and_marked() -> None:
    base = leaf() * 1
    with plugrad.inference_mode():
        view = base.view(4)
        first = base.unbind()[0]
    assert (view._is_view(), view._base is base, view.grad_fn) == (True, True, None)
    for marked in (view, first):
        with pytest.raises(RuntimeError, match="A view was created in inference mode and is being"):
            marked.add_(1)
    with pytest.raises(RuntimeError, match="Output 0 of T is a view of a view which was created"):
        view.view(2, 2).t().add_(1)
    base.add_(1)
    with pytest.raises(RuntimeError, match="inference mode and its base or another view"):
        view.grad_fn  # noqa: B018


def test_writes_inside() -> None:
    inference, normal = inferred(), plugrad.ones(2, 2)
    with plugrad.inference_mode():
        inference.add_(1)
        inference[0] = 7
        inference.view(4)[3] = 8
        normal.add_(inference)
    assert inference.tolist() == [[7.0, 7.0], [2.0, 8.0]]
    assert normal.tolist() == [[8.0, 8.0], [3.0, 9.0]]
    assert normal._version == 1


def test_writes_inside_are_seen_by_saved_tensors() -> None:
    x = leaf()
    factor = plugrad.ones(2, 2)
    y = x * factor
    with plugrad.inference_mode():
        factor.view(4).add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.add_(1),
        lambda t: t.fill_(0),
        lambda t: t.view(4).add_(1),
        lambda t: t.__setitem__(0, 3.0),
        lambda t: t.copy_(plugrad.ones(2, 2)),
        lambda t: plugrad.add(t, t, out=t),
    ],
)
def test_writes_outside_are_refused(write: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match=INPLACE):
        write(inferred())


def test_what_is_repeated_in_memory_cannot_be_written_to_inside_either() -> None:
    with (
        plugrad.inference_mode(),
        pytest.raises(RuntimeError, match="single memory location"),
    ):
        plugrad.ones(2).expand(3, 2).add_(1)


def test_functions_of_inference_tensors_outside_are_normal() -> None:
    i, n = inferred(), plugrad.ones(2, 2)
    for result in (i + 1, i + n, i.sum(), i.clone(), i.matmul(i)):
        assert not result.is_inference()
        assert not result.requires_grad


@pytest.mark.parametrize("compute", [lambda x, i: x * i, lambda x, i: i * x, lambda x, i: x @ i])
def test_inference_tensors_cannot_be_saved(compute: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(RuntimeError, match=SAVED):
        compute(leaf(), inferred())


def test_where_nothing_is_saved_they_take_part() -> None:
    x = leaf()
    y = x + inferred()
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_clones_can_be_saved() -> None:
    x = leaf()
    (x * inferred().clone()).sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_requires_grad_outside() -> None:
    message = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed"
    i = inferred()
    with pytest.raises(RuntimeError, match=message):
        i.requires_grad_()
    with pytest.raises(RuntimeError, match=message):
        i.requires_grad = True
    i.requires_grad_(False)
    i.detach_()
    assert (i.is_leaf, i.grad_fn, i.requires_grad) == (True, None, False)


def test_requires_grad_inside() -> None:
    with plugrad.inference_mode():
        i = plugrad.ones(2).requires_grad_()
        assert (i.requires_grad, i.is_inference()) == (True, True)
        assert not (i * 2).requires_grad


def test_there_is_no_version() -> None:
    i = inferred()
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        i._version  # noqa: B018


def test_copies_made_outside_are_normal() -> None:
    i = inferred()
    assert not copy.deepcopy(i).is_inference()
    assert not pickle.loads(pickle.dumps(i)).is_inference()
    assert np.asarray(i.cpu()).tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_data_takes_over_what_a_tensor_is() -> None:
    i, n = inferred(), plugrad.zeros(2)
    n.data = i
    assert n.is_inference()
    n.data = plugrad.zeros(2)
    assert not n.is_inference()


def test_backward_inside_leaves_inference_gradients() -> None:
    x = leaf()
    y = (x * x).sum()
    with plugrad.inference_mode():
        y.backward()
    assert x.grad.is_inference()
    with pytest.raises(RuntimeError, match=INPLACE):
        (x * 2).sum().backward()


def test_grad_inside() -> None:
    x = leaf()
    y = (x * x).sum()
    with plugrad.inference_mode():
        (grad,) = plugrad.autograd.grad(y, x)
    assert grad.is_inference()
    assert grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


class Double(plugrad.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a, b)
        return a * 2 + b

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2, None


def test_functions() -> None:
    x, i = leaf(), inferred()
    with plugrad.inference_mode():
        inside = Double.apply(x, i)
    assert (inside.is_inference(), inside.requires_grad) == (True, False)
    assert not Double.apply(i, i).is_inference()
    with pytest.raises(RuntimeError, match=SAVED):
        Double.apply(x, i)


def test_decorators() -> None:
    @plugrad.inference_mode()
    def called(x: Any) -> Any:
        return x * 2

    @plugrad.inference_mode
    def bare(x: Any) -> Any:
        return x * 2

    @plugrad.inference_mode(mode=False)
    def normal(x: Any) -> Any:
        return x * 2

    x = leaf()
    assert called(x).is_inference()
    assert bare(x).is_inference()
    with plugrad.inference_mode():
        assert normal(x).requires_grad
    assert called.__name__ == "called"


def test_generators_are_in_the_mode_only_while_they_run() -> None:
    seen: list[bool] = []

    @plugrad.inference_mode()
    def steps() -> Iterator[Any]:
        try:
            yield plugrad.ones(1)
            yield plugrad.ones(1)
        finally:
            seen.append(plugrad.is_inference_mode_enabled())

    running = steps()
    assert next(running).is_inference()
    assert not plugrad.is_inference_mode_enabled()
    assert not plugrad.ones(1).is_inference()
    assert next(running).is_inference()
    running.close()
    assert seen == [True]


def test_a_manager_knows_its_mode_and_can_be_cloned() -> None:
    manager = plugrad.inference_mode(False)
    assert (manager.mode, manager.clone().mode) == (False, False)


def test_the_mode_is_the_threads_own() -> None:
    made: list[Any] = []
    with plugrad.inference_mode():
        thread = threading.Thread(target=lambda: made.append(plugrad.ones(1)))
        thread.start()
        thread.join()
    assert not made[0].is_inference()


def test_decorating_a_class_warns() -> None:
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @plugrad.inference_mode()
        class Model:
            def __init__(self) -> None:
                self.weight = plugrad.ones(1)

    assert Model().weight.is_inference()
