"""saved_tensors_hooks, save_on_cpu, disable_saved_tensors_hooks: packing what backward needs."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import plugrad
from plugrad.autograd.saved_tensors import (
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)


def leaf(*values: float) -> Any:
    return plugrad.tensor(list(values) or [1.0, 2.0], dtype=plugrad.float64, requires_grad=True)


def identity(value: Any) -> Any:
    return value


def detach(tensor: Any) -> Any:
    return tensor.detach()


def test_pack_is_called_on_saving_and_unpack_in_backward() -> None:
    calls: list[tuple[str, Any]] = []

    def pack(tensor: Any) -> Any:
        calls.append(("pack", tensor.tolist()))
        return tensor.tolist()

    def unpack(values: Any) -> Any:
        calls.append(("unpack", values))
        return plugrad.tensor(values, dtype=plugrad.float64) * 10

    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with saved_tensors_hooks(pack, unpack):
        y = x * w
    assert calls == [("pack", [1.0, 2.0]), ("pack", [3.0, 4.0])]
    calls.clear()
    y.sum().backward()
    assert sorted(calls) == [("unpack", [1.0, 2.0]), ("unpack", [3.0, 4.0])]
    assert x.grad.tolist() == [30.0, 40.0]


def test_nothing_is_packed_outside_of_the_block_or_on_other_threads() -> None:
    packed: list[Any] = []

    def pack(tensor: Any) -> Any:
        packed.append(tensor)
        return tensor

    x = leaf()
    with saved_tensors_hooks(pack, identity):
        thread = threading.Thread(target=lambda: x.exp())
        thread.start()
        thread.join()
    x.exp()
    assert packed == []


def test_only_the_innermost_hooks_apply() -> None:
    used: list[str] = []

    def named(name: str) -> Any:
        def pack(tensor: Any) -> Any:
            used.append(name)
            return tensor.detach()

        return pack

    x = leaf()
    with saved_tensors_hooks(named("outer"), identity):
        with saved_tensors_hooks(named("inner"), identity):
            x.exp()
        x.exp()
    assert used == ["inner", "outer"]


def test_pack_runs_unrecorded_and_sees_tensors_with_their_history() -> None:
    seen: list[tuple[bool, bool, bool]] = []

    def pack(tensor: Any) -> Any:
        seen.append((plugrad.is_grad_enabled(), tensor.requires_grad, tensor.is_leaf))
        return tensor.detach()

    x = leaf()
    with saved_tensors_hooks(pack, identity):
        y = x.exp()  # the output
        y * x  # an input with a history, and a leaf
        x.max(dim=0)  # an output that carries no gradient
    assert seen == [
        (False, True, False),
        (False, True, False),
        (False, True, True),
        (False, False, True),
    ]


def test_unpacked_tensors_have_their_place_in_the_graph() -> None:
    x = leaf()
    with saved_tensors_hooks(detach, identity):
        y = x.exp()
        z = y * x
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    assert z.grad_fn._saved_self.grad_fn is y.grad_fn
    saved_leaf = z.grad_fn._saved_other
    assert saved_leaf is not x
    assert saved_leaf.is_leaf
    assert saved_leaf.requires_grad


def test_double_backward_goes_through_packed_tensors() -> None:
    x = leaf(0.5, 1.5)
    with saved_tensors_hooks(lambda t: t.tolist(), lambda v: plugrad.tensor(v, dtype=x.dtype)):
        y = (x.exp() * x**3).sum()
        (first,) = plugrad.autograd.grad(y, x, create_graph=True)
    (second,) = plugrad.autograd.grad(first.sum(), x)
    e = [1.6487212707, 4.4816890703]
    expected = [e[i] * (v**3 + 6 * v**2 + 6 * v) for i, v in enumerate([0.5, 1.5])]
    assert second.tolist() == pytest.approx(expected)


def test_each_backward_over_a_retained_graph_unpacks_again() -> None:
    count = 0

    def unpack(tensor: Any) -> Any:
        nonlocal count
        count += 1
        return tensor

    x = leaf()
    with saved_tensors_hooks(detach, unpack):
        y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    assert count == 2


def test_hooks_see_what_custom_functions_save() -> None:
    packed: list[Any] = []

    class Square(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 2 * x

    def pack(tensor: Any) -> Any:
        packed.append(tensor.tolist())
        return tensor.detach()

    x = leaf()
    with saved_tensors_hooks(pack, lambda t: t + 1):
        y = Square.apply(x)
    y.sum().backward()
    assert packed == [[1.0, 2.0]]
    assert x.grad.tolist() == [4.0, 6.0]


def test_hooks_on_what_is_neither_input_nor_output_of_a_custom_function() -> None:
    class Exp(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x.exp().requires_grad_())
            return x.exp()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (result,) = ctx.saved_tensors
            assert result.requires_grad
            return grad * result.detach()

    x = leaf()
    with saved_tensors_hooks(identity, identity):
        y = Exp.apply(x)
    y.sum().backward()
    assert x.grad.tolist() == x.exp().tolist()


@pytest.mark.real_engine
def test_hooks_in_backward_apply_on_the_threads_of_devices(second_backend: str) -> None:
    threads: set[int] = set()

    def pack(tensor: Any) -> Any:
        threads.add(threading.get_ident())
        return tensor.detach()

    x = plugrad.tensor([1.0, 2.0], device=second_backend, requires_grad=True)
    y = (x**3).sum()
    with saved_tensors_hooks(pack, identity):
        (first,) = plugrad.autograd.grad(y, x, create_graph=True)
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    first.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]


def test_leaving_a_block_within_backward_harms_nobody() -> None:
    def unpack(tensor: Any) -> Any:
        hooks.__exit__()
        return tensor

    hooks = saved_tensors_hooks(detach, unpack)
    for _ in range(3):
        with saved_tensors_hooks(detach, identity):
            hooks.__enter__()
            leaf().sin().sum().backward()
        hooks.__exit__()
    with saved_tensors_hooks(detach, identity):
        y = leaf().exp()
    assert y.grad_fn._raw_saved_result.unpack_hook is identity


def test_entering_a_block_within_backward_leaks_nothing() -> None:
    inside = saved_tensors_hooks(lambda tensor: 1 / 0, identity)

    def unpack(tensor: Any) -> Any:
        inside.__enter__()
        return tensor

    with saved_tensors_hooks(detach, unpack):
        y = leaf().sin().sum()
    y.backward()
    leaf().exp()
    with pytest.raises(RuntimeError):
        inside.__exit__()


def test_a_pack_hook_must_not_write_to_its_input() -> None:
    x = leaf() * 1
    message = "A saved tensor pack hook is modifying its input in place"
    with (
        saved_tensors_hooks(lambda t: t.add_(1), identity),
        pytest.raises(RuntimeError, match=message),
    ):
        x.exp()


def test_a_packed_tensor_may_be_modified_later() -> None:
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: t.detach().clone(), identity):
        y = x * 1
        z = (y * y).sum()
    y.zero_()
    z.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_unpack_must_return_a_tensor() -> None:
    x = leaf()
    with saved_tensors_hooks(detach, lambda t: 1):
        y = x.exp().sum()
    message = (
        "Output of saved tensor unpack_hook expected to be a Tensor but got result of type int"
    )
    with pytest.raises(TypeError, match=message):
        y.backward()


def test_errors_of_hooks_reach_the_caller_and_grad_mode_survives_them() -> None:
    x = leaf()
    with saved_tensors_hooks(lambda t: 1 / 0, identity), pytest.raises(ZeroDivisionError):
        x.exp()
    assert plugrad.is_grad_enabled()
    with saved_tensors_hooks(detach, lambda t: 1 / 0):
        y = x.exp().sum()
    with pytest.raises(ZeroDivisionError):
        y.backward()


def test_hooks_must_be_callable() -> None:
    with pytest.raises(TypeError):
        saved_tensors_hooks(1, identity).__enter__()  # type: ignore[arg-type]  # the point


def test_packed_tensors_are_freed_by_backward() -> None:
    x = leaf()
    with saved_tensors_hooks(detach, identity):
        y = x.exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn._saved_result  # noqa: B018
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_subclasses_may_override_entry_and_exit() -> None:
    class Noting(saved_tensors_hooks):
        entered = 0

        def __init__(self) -> None:
            super().__init__(detach, identity)

        def __enter__(self) -> None:
            Noting.entered += 1
            super().__enter__()

    with Noting():
        leaf().exp()
    assert Noting.entered == 1


def test_disabled_hooks_raise_the_message_of_the_innermost_block() -> None:
    def enter() -> None:
        with save_on_cpu():
            pass

    with disable_saved_tensors_hooks("outer message"):
        with (
            disable_saved_tensors_hooks("inner message"),
            pytest.raises(RuntimeError, match="inner message"),
        ):
            enter()
        with pytest.raises(RuntimeError, match="outer message"):
            enter()
    enter()


def test_hooks_in_force_cannot_be_disabled() -> None:
    with saved_tensors_hooks(detach, identity):
        with pytest.raises(RuntimeError, match="not now"), disable_saved_tensors_hooks("not now"):
            pass
        y = leaf().exp()
    assert y.grad_fn._raw_saved_result.unpack_hook is identity


def test_saving_still_works_while_hooks_are_disabled() -> None:
    x = leaf()
    with disable_saved_tensors_hooks("no hooks"):
        x.exp().sum().backward()
    assert x.grad is not None


def test_save_on_cpu_moves_saved_tensors_there_and_back(second_backend: str) -> None:
    x = plugrad.tensor([1.0, 2.0], device=second_backend, requires_grad=True)
    with save_on_cpu():
        y = (x * x).sum()
    kept_on, kept = y.grad_fn.next_functions[0][0]._raw_saved_self.data
    assert kept_on == x.device
    assert kept.device.type == "cpu"
    y.backward()
    assert x.grad.device == x.device
    assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("pin_memory", [False, True])
def test_save_on_cpu_leaves_tensors_on_the_host_alone(pin_memory: bool) -> None:
    x = leaf()
    with save_on_cpu(pin_memory=pin_memory, device_type="cpu"):
        y = x * x
    assert y.grad_fn._raw_saved_self.data[1].numpy(force=True) is not None
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
