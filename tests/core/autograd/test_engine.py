"""The engine: order, dependencies, pruning, errors, depth, threads."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import plugrad
from plugrad.graph import node as node_module
from tests.core.autograd.together import run_together

COMPILED = not str(node_module.__file__).endswith(".py")
CHAIN = 400_000 if COMPILED else 30_000
# CPython 3.13 itself frees objects that are nested 10,000 deep by recursion, tuples too.
SMALL_STACK = (2048 if sys.version_info[:2] == (3, 13) else 256) * 1024


def leaf(*values: float) -> Any:
    return plugrad.tensor(list(values) or [1.0, 2.0], dtype=plugrad.float64, requires_grad=True)


class Order:
    """Notes the names under which nodes ran."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def watch(self, name: str, node: Any) -> None:
        def note(grad_inputs: Any, grad_outputs: Any) -> None:
            self.names.append(name)

        node.register_hook(note)


def in_a_thread(work: Callable[[], None], stack: int = 0) -> None:
    """Run in a thread, with its exception."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    before = threading.stack_size(stack)
    try:
        thread = threading.Thread(target=guarded)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if failures:
        raise failures[0]


def test_the_node_made_last_runs_first() -> None:
    x = leaf()
    a = x * 2
    b = x * 3
    c = a * 4
    order = Order()
    for name, tensor in (("a", a), ("b", b), ("c", c)):
        order.watch(name, tensor.grad_fn)
    (b + c).sum().backward()
    assert order.names == ["c", "b", "a"]


def test_an_accumulator_runs_as_soon_as_it_is_ready() -> None:
    early, late = leaf(), leaf()
    a = early * 2
    b = a * 3
    c = b * late
    order = Order()
    order.watch("late", c.grad_fn.next_functions[1][0])
    order.watch("b", b.grad_fn)
    order.watch("a", a.grad_fn)
    order.watch("early", a.grad_fn.next_functions[0][0])
    c.sum().backward()
    assert order.names == ["late", "b", "a", "early"]


def test_a_node_waits_for_all_that_depend_on_it_and_runs_once() -> None:
    x = leaf(2.0)
    shared = x * x
    order = Order()
    order.watch("shared", shared.grad_fn)
    y = shared * 1
    for _ in range(5):
        y = y + shared.exp() * shared
    order.watch("last", y.grad_fn)
    y.sum().backward()
    assert order.names == ["last", "shared"]


def test_a_node_used_twice_by_one_operation_counts_twice() -> None:
    x = leaf(3.0)
    y = x * 1
    (y * y).sum().backward()
    assert x.grad.tolist() == [6.0]


def test_only_nodes_on_a_way_to_an_input_run() -> None:
    x, y = leaf(), leaf()
    a, b = x * 2, y * 3
    order = Order()
    order.watch("a", a.grad_fn)
    order.watch("b", b.grad_fn)
    plugrad.autograd.grad((a * b).sum(), x)
    assert order.names == ["a"]


def test_what_lies_below_a_captured_result_does_not_run() -> None:
    x = leaf()
    a = x * 2
    b = a * 3
    order = Order()
    order.watch("a", a.grad_fn)
    order.watch("b", b.grad_fn)
    plugrad.autograd.grad(b.sum(), a)
    assert order.names == ["b"]


def test_a_captured_result_runs_if_an_input_lies_below_it() -> None:
    x = leaf()
    a = x * 2
    order = Order()
    order.watch("a", a.grad_fn)
    grads = plugrad.autograd.grad((a * 3).sum(), [a, x])
    assert order.names == ["a"]
    assert [g.tolist() for g in grads] == [[3.0, 3.0], [6.0, 6.0]]


@pytest.mark.real_engine
def test_nodes_below_all_inputs_are_not_even_counted() -> None:
    x = leaf()
    deep = x * 2
    middle = (deep * 3) * 4
    y = (middle * 5).sum()
    plugrad.autograd.grad(y, middle, retain_graph=True)
    assert deep.grad_fn._owner is None
    plugrad.autograd.grad(y, x, retain_graph=True)


def test_roots_of_several_graphs_run_in_one_pass() -> None:
    x, y = leaf(1.0), leaf(1.0)
    plugrad.autograd.backward([(x * 2).sum(), (y * 3).sum()])
    assert (x.grad.item(), y.grad.item()) == (2.0, 3.0)


def test_nodes_without_any_gradient_pass_on_none() -> None:
    x = leaf(1.0, 2.0, 3.0)
    parts = (x * x).unbind(0)
    unused = (parts[1].exp(), parts[2].exp())
    parts[0].backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]
    assert all(t.requires_grad for t in unused)


def test_an_error_in_backward_leaves_no_trace_in_the_graph() -> None:
    x = leaf(2.0)
    y = x * x
    z = y * y + y
    failing = [True]

    def hook(grad: Any) -> None:
        if failing[0]:
            raise ValueError("stop")

    y.register_hook(hook)
    with pytest.raises(ValueError, match="stop"):
        z.sum().backward(retain_graph=True)
    assert x.grad is None
    failing[0] = False
    z.sum().backward()
    assert x.grad.tolist() == [2 * 2.0**3 * 2 + 4.0]


def test_gradients_left_over_by_a_failed_pass_are_forgotten() -> None:
    x = leaf(1.0)
    shared = x * 1
    early = shared * 2
    late = shared * 3  # runs first, and leaves its gradient waiting at `shared`
    failing = [True]

    def hook(grad: Any) -> None:
        if failing[0]:
            raise ValueError("stop")

    early.register_hook(hook)
    total = (early + late).sum()
    with pytest.raises(ValueError, match="stop"):
        total.backward(retain_graph=True)
    failing[0] = False
    total.backward()
    assert x.grad.tolist() == [5.0]


def test_backward_inside_a_hook_over_another_graph() -> None:
    x, other = leaf(2.0), leaf(3.0)
    y = x * x

    def hook(grad: Any) -> None:
        with plugrad.enable_grad():
            (other * other).sum().backward()

    y.register_hook(hook)
    y.sum().backward()
    assert (x.grad.item(), other.grad.item()) == (4.0, 6.0)


def test_backward_inside_a_hook_over_the_same_graph() -> None:
    x = leaf(2.0)
    a = x * x
    b = a * a
    inner: list[float] = []

    def hook(grad: Any) -> None:
        handle.remove()
        inner.append(plugrad.autograd.grad(b, x, one, retain_graph=True)[0].item())

    one = plugrad.ones(1, dtype=plugrad.float64)
    handle = a.register_hook(hook)
    (b + a).sum().backward(retain_graph=True)
    assert inner == [32.0]
    assert x.grad.tolist() == [36.0]


def test_deeply_nested_backward_passes() -> None:
    depth = 70  # an interpreted pass takes a dozen of Python's thousand frames

    class Nested(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, level: int) -> Any:
            ctx.level = level
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if ctx.level:
                with plugrad.enable_grad():
                    inner = leaf(1.0)
                    Nested.apply(inner, ctx.level - 1).sum().backward()
            return grads[0] * 2, None

    x = leaf(1.0)
    Nested.apply(x, depth).sum().backward()
    assert x.grad.tolist() == [2.0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_pass_leaves_no_reference_cycle(create_graph: bool) -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf()
        middle = x * 1
        side = middle.exp()
        y = (middle * middle * side).sum()
        found = plugrad.autograd.grad(y, middle, retain_graph=True, create_graph=create_graph)
        gone = weakref.ref(middle)
        del middle, side, y, found
        assert gone() is None
    finally:
        gc.enable()


def test_a_failed_pass_keeps_nothing_alive() -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf()
        y = x * 1

        def hook(grad: Any) -> None:
            raise KeyError

        y.register_hook(hook)
        z = y.exp()
        with pytest.raises(KeyError):
            z.sum().backward()
        gone = weakref.ref(z)
        del y, z
        assert gone() is None
    finally:
        gc.enable()


def chain(x: Any, length: int) -> Any:
    y = x
    for _ in range(length):
        y = y + x
    return y


@pytest.mark.slow
@pytest.mark.real_engine
def test_a_long_chain_runs_backward_without_recursion() -> None:
    def work() -> None:
        x = plugrad.tensor(1.0, requires_grad=True)
        chain(x, CHAIN).backward()
        assert x.grad.item() == CHAIN + 1

    in_a_thread(work, SMALL_STACK)


def test_a_long_chain_is_freed_without_recursion() -> None:
    def work() -> None:
        x = plugrad.tensor(1.0, requires_grad=True)
        y = chain(x, CHAIN // 4)
        del y
        gc.collect()

    in_a_thread(work, SMALL_STACK)


def test_a_long_chain_of_saved_outputs_is_freed_without_recursion() -> None:
    def work() -> None:
        y = plugrad.tensor(1.0, requires_grad=True)
        for _ in range(CHAIN // 10):
            y = y.tanh()
        del y

    in_a_thread(work, SMALL_STACK)


def test_a_long_chain_of_custom_functions() -> None:
    class Double(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0]

    def work() -> None:
        x = y = plugrad.tensor(1.0, requires_grad=True)
        for _ in range(3_000):
            y = Double.apply(y)
        y.backward()
        assert x.grad.item() == 1.0

    in_a_thread(work, SMALL_STACK)


def test_a_long_chain_of_views_is_freed_without_recursion() -> None:
    def work() -> None:
        x = plugrad.ones(2, requires_grad=True)
        y = x * 1
        for _ in range(1_000):
            y = y.view(2)
        y.sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]

    in_a_thread(work, SMALL_STACK)


def test_exponentially_many_paths_take_linear_time() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(60):
        y = y + y
    y.sum().backward()
    assert x.grad.tolist() == [2.0**60]


def test_a_wide_graph() -> None:
    x = leaf(1.0)
    plugrad.stack([x * float(i) for i in range(500)]).sum().backward()
    assert x.grad.tolist() == [sum(range(500))]


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Threads take turns as often as they can, so that races show."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager_switching")
def test_threads_run_backward_over_separate_graphs() -> None:
    def work() -> None:
        for _ in range(30):
            x = leaf(2.0)
            y = x
            for _ in range(20):
                y = y * 1.5
            (y * y).sum().backward()
            assert x.grad.item() == pytest.approx(2 * 2.0 * 1.5**40)

    run_together(work, work)


@pytest.mark.usefixtures("eager_switching")
def test_threads_accumulate_into_a_shared_leaf() -> None:
    # Large enough for NumPy to let other threads run while it adds.
    leaves = [plugrad.zeros(50_000, requires_grad=True) for _ in range(60)]

    def work() -> None:
        for x in leaves:
            x.sum().backward()

    run_together(*[work] * 4)
    assert all(bool((x.grad == 4).all()) for x in leaves)


@pytest.mark.usefixtures("eager_switching")
def test_threads_run_over_one_retained_graph() -> None:
    x = leaf(2.0)
    y = x
    for _ in range(30):
        y = (y * 1.1 + y) * 0.5
    z = y.sum()
    (expected,) = plugrad.autograd.grad(z, x, retain_graph=True)

    def work() -> None:
        for _ in range(30):
            (g,) = plugrad.autograd.grad(z, x, retain_graph=True)
            assert g.tolist() == expected.tolist()

    run_together(*[work] * 3)


def test_backward_may_run_in_another_thread_than_forward() -> None:
    x = leaf(2.0)
    y = (x * x).sum()
    in_a_thread(y.backward)
    assert x.grad.tolist() == [4.0]


@pytest.mark.usefixtures("eager_switching")
def test_an_error_in_another_thread_does_not_disturb_this_one() -> None:
    def failing() -> None:
        for _ in range(30):
            y = leaf() * 2
            y.register_hook(lambda grad: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                y.sum().backward()

    def working() -> None:
        for _ in range(30):
            x = leaf(3.0)
            (x * x).sum().backward()
            assert x.grad.tolist() == [6.0]

    run_together(failing, working)
