"""Modes below autograd: what they see, what they may return, and when they are off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad.overrides import (
    BasePlugradDispatchMode,
    PlugradDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack,
)

ops: Any = plugrad.ops.plugrad


class Log(PlugradDispatchMode):
    """Notes what it sees, and has it run."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def __plugrad_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        assert types == ()
        self.calls.append((func, args, kwargs))
        return func(*args, **kwargs)

    @property
    def names(self) -> list[str]:
        return [func._opname for func, _, _ in self.calls]


class Answer(PlugradDispatchMode):
    def __init__(self, answer: Callable[..., Any]) -> None:
        self.answer = answer

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return self.answer(func, *args, **kwargs)


def test_it_sees_forward_and_backward_and_changes_nothing() -> None:
    x = plugrad.tensor([[1.0, -2.0]], requires_grad=True)
    w = plugrad.tensor([[3.0], [4.0]], requires_grad=True)
    with Log() as log:
        y = plugrad.matmul(x, w).sin().sum()
        y.backward()
    assert log.names[:3] == ["mm", "sin", "sum"]
    assert [name for name in log.names[3:] if "mat" in name] == ["_matmul_nh", "_matmul_hn"]
    cosine = plugrad.cos(plugrad.tensor(-5.0)).item()
    assert y.grad_fn is not None
    assert x.grad[0].tolist() == pytest.approx([3 * cosine, 4 * cosine])
    assert w.grad[:, 0].tolist() == pytest.approx([cosine, -2 * cosine])


def test_func_is_the_operator_that_programs_know() -> None:
    with Log() as log:
        plugrad.ones(2) + 1
    assert log.calls[-1][0] is ops.add.Scalar
    assert log.calls[-1][0].overloadpacket is ops.add


def test_arguments_come_without_defaults() -> None:
    x = plugrad.ones(2, 3)
    with Log() as log:
        x.sum((0, 1))
        x.add(x, alpha=2)
        plugrad.zeros(2, dtype=plugrad.float64)
    (_, total, _), (_, added, options), (_, zeros, of_zeros) = log.calls
    assert total[1:] == ([0, 1],)
    assert added[1] is x
    assert options == {"alpha": 2}
    assert zeros == ([2],)
    assert of_zeros["dtype"] is plugrad.float64


def test_an_operator_that_is_made_of_others_is_seen_as_these() -> None:
    x = plugrad.rand(1, 1, 4, 4)
    for block in (plugrad.enable_grad, plugrad.no_grad, plugrad.inference_mode):
        with block(), Log() as log:
            plugrad.nn.functional.conv2d(x, plugrad.ones(1, 1, 2, 2))
        assert "conv2d" not in log.names
        assert "convolution" in log.names


def test_the_result_is_recorded_with_the_gradient_of_the_operator() -> None:
    x = plugrad.tensor([1.0, 2.0], requires_grad=True)

    def answer(func: Any, *args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs) * 10 if func is ops.exp.default else func(*args, **kwargs)

    with Answer(answer):
        y = x.exp()
    y.sum().backward()
    assert y.grad_fn.name() == "ExpBackward0"
    # The gradient of exp is its result.
    assert x.grad.tolist() == pytest.approx(y.tolist())
    assert y.tolist() == pytest.approx((x.exp() * 10).tolist())


def test_inside_the_mode_is_off_and_nothing_is_recorded() -> None:
    x = plugrad.ones(2, requires_grad=True)
    seen: list[bool] = []

    def answer(func: Any, *args: Any, **kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        seen.append((result + x).requires_grad)
        assert _get_current_dispatch_mode() is None
        return result

    with Answer(answer):
        y = x.exp()
    assert seen == [False]
    assert y.requires_grad


def test_modes_nest() -> None:
    with Log() as outer, Log() as inner:
        plugrad.ones(2).exp()
        assert _get_current_dispatch_mode_stack() == [outer, inner]
        with _disable_current_modes() as modes:
            assert modes == [outer, inner]
            plugrad.ones(2).sin()
    assert outer.names == inner.names == ["ones", "exp"]
    assert _get_current_dispatch_mode_stack() == []


def test_writes_and_views_do_what_they_do_without() -> None:
    leaf = plugrad.ones(2, 2, requires_grad=True)
    with BasePlugradDispatchMode():
        x = leaf.clone()
        row = x[0]
        row.mul_(3)
        version = x._version
        x.t().sum().backward()
    assert version == 1
    assert row._is_view()
    assert leaf.grad.tolist() == [[3, 3], [1, 1]]


def test_saved_values_that_a_mode_sees_written_are_refused() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with BasePlugradDispatchMode():
        y = x.exp()
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_under_vmap_it_sees_the_batch() -> None:
    x = plugrad.rand(3, 2)
    with Log() as log:
        plugrad.vmap(lambda row: row.exp())(x)
    assert [args[0].shape for func, args, _ in log.calls if func is ops.exp.default] == [(3, 2)]


def test_under_autocast_it_sees_the_casts() -> None:
    x = plugrad.rand(2, 2)
    with Log() as log, plugrad.autocast("cpu", dtype=plugrad.bfloat16):
        x @ x
    ((_, args, _),) = [call for call in log.calls if call[0] is ops.mm.default]
    assert args[0].dtype is plugrad.bfloat16


@pytest.mark.parametrize(
    ("result", "message"),
    [(NotImplemented, "returned NotImplemented for plugrad::exp"), (3, "Tensor .* got int")],
)
def test_what_is_no_result_is_refused(result: Any, message: str) -> None:
    x = plugrad.ones(2)
    with Answer(lambda *args, **kwargs: result), pytest.raises(TypeError, match=message):
        x.exp()
    assert x.exp().shape == (2,)


def test_one_without_a_method_says_so() -> None:
    class Empty(PlugradDispatchMode):
        pass

    with Empty(), pytest.raises(NotImplementedError, match="Empty does not define"):
        plugrad.ones(2)


def test_it_is_off_after_an_error() -> None:
    def block() -> None:
        with Log():
            raise ValueError

    with pytest.raises(ValueError):
        block()
    assert _get_current_dispatch_mode() is None


def test_a_trace_shows_calls_that_a_mode_sees() -> None:
    with Log() as log, plugrad.record_dispatch_trace() as events:
        plugrad.ones(2).exp()
    assert log.names == ["ones", "exp"]
    assert {event.op for event in events} == {"plugrad::ones", "plugrad::exp"}
