"""Memory: a graph goes when its last tensor goes, and backward leaves nothing behind."""

from __future__ import annotations

import gc
import sys
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import plugrad
from plugrad.graph import node


@pytest.fixture(autouse=True)
def without_gc() -> Iterator[None]:
    """Reference counting alone must free the objects that a test releases."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


is_compiled = not str(node.__file__).endswith(".py")


def blocks_that_stay(step: Callable[[], None], count: int, most: int) -> int:
    """By how many blocks of memory `count` calls grow the heap, in the best of three rounds, or in
    the first one that stays below `most`.

    Threads of other tests and the interpreter's own caches take some in one round or another; a
    leak is in each of them.
    """
    for _ in range(200):
        step()
    growth = []
    while len(growth) < 3 and (not growth or growth[-1] >= most):
        before = sys.getallocatedblocks()
        for _ in range(count):
            step()
        growth.append(sys.getallocatedblocks() - before)
    return min(growth)


def matrix(rows: int, columns: int) -> Any:
    return plugrad.rand(rows, columns, requires_grad=True)


def activations(x: Any, w: Any) -> list[Any]:
    """The intermediate tensors of a small model, one after the other."""
    found = [x @ w]
    found.append(found[-1].tanh())
    found.append(found[-1].view(-1))
    found.append(found[-1] * found[-1])
    found.append(found[-1][1:])
    found.append(plugrad.cat([found[-1], found[-1]]))
    found[-1].mul_(2)
    found.append(found[-1].exp())
    found.append(found[-1].softmax(0))
    found.append(found[-1].sum())
    return found


@pytest.mark.parametrize("how", ["del", "backward", "grad", "double", "failed"])
def test_all_activations_go_at_once(how: str) -> None:
    x, w = matrix(3, 4), matrix(4, 2)
    tensors = activations(x, w)
    if how == "failed":
        tensors[6].add_(1)
    loss = tensors[-1] * 1
    gone = [weakref.ref(tensor) for tensor in tensors]
    tensors.clear()
    if how == "backward":
        loss.backward()
    elif how == "grad":
        plugrad.autograd.grad(loss, [x, w])
    elif how == "double":
        (first,) = plugrad.autograd.grad(loss, w, create_graph=True)
        first.sum().backward()
        del first
    elif how == "failed":
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    if how in ("backward", "grad"):
        assert [reference() for reference in gone] == [None] * len(gone)
    del loss
    assert [reference() for reference in gone] == [None] * len(gone)


def test_backward_frees_saved_tensors_as_it_goes() -> None:
    x = plugrad.ones(3, requires_grad=True)
    first = x * 1
    second = first.exp()
    third = second * second
    gone = {"second": weakref.ref(second), "first": weakref.ref(first)}
    seen: list[bool] = []

    def when_first_has_its_gradient(grad: Any) -> None:
        seen.append(gone["second"]() is None)

    first.register_hook(when_first_has_its_gradient)
    loss = third.sum()
    del first, second, third
    assert gone["second"]() is not None
    loss.backward()
    assert seen == [True]


def test_three_thousand_training_steps_hold_flat_memory() -> None:
    x, target = plugrad.rand(2, 3), plugrad.rand(2, 1)
    w, b = matrix(3, 1), plugrad.zeros(1, requires_grad=True)

    def step() -> None:
        prediction = (x @ w + b).tanh()
        loss = ((prediction - target) ** 2).mean()
        loss.backward()
        with plugrad.no_grad():
            for parameter in (w, b):
                parameter.sub_(parameter.grad, alpha=0.01)
                parameter.grad = None

    # A leak of one object a step is 3,000.
    assert blocks_that_stay(step, 3_000, 500) < 500


def test_checkpointed_and_packed_steps_hold_flat_memory() -> None:
    from plugrad.autograd.checkpoint import checkpoint
    from plugrad.autograd.saved_tensors import save_on_cpu

    x, w = plugrad.rand(2, 3), matrix(3, 2)

    def step() -> None:
        with save_on_cpu():
            y = checkpoint(lambda t: (t @ w).exp().sin(), x, use_reentrant=False)
            y.sum().backward()
        w.grad = None

    assert blocks_that_stay(step, 1_000, 200) < 200


def test_a_node_stays_small() -> None:
    """A step of a chain: result, array, node, edges, saved variables."""
    b = plugrad.rand(4, 4)
    count = 2_000

    def chain() -> Any:
        y = matrix(4, 4)
        for _ in range(count):
            y = y * b
        return y

    kept = chain()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        more = chain()
        size = (tracemalloc.get_traced_memory()[0] - before) / count
    finally:
        tracemalloc.stop()
    assert kept.grad_fn is not more.grad_fn
    # PyTorch's is about 580; without the compiler every object has a dictionary.
    assert size < (580 if is_compiled else 2_500)
