"""A kernel that returns `NotImplemented` leaves the call to the next one; one that returns nonsense
is named. The oracle is what the backend's own kernels compute.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.backends.active import ActiveBackend
from plugrad.errors import OperatorNotFoundError
from plugrad.plugins import Backend, hookimpl
from plugrad.plugins.loading.manager import PluginManager
from plugrad.testing import assert_close

pytestmark = pytest.mark.usefixtures("cpu", "project")

X = [[0.5, -1.5, 2.0]]

# By the kernel's name: a call that reaches it.
CALLS: dict[str, Callable[[Any], Any]] = {
    "exp": lambda x: x.exp(),  # unary
    "logical_not": lambda x: x.logical_not(),
    "add": lambda x: plugrad.add(x, x, alpha=3),  # binary
    "mul": lambda x: plugrad.add(x, x, alpha=3) * 2.0,  # the factor's kernel
    "gt": lambda x: x > 0.25,
    "sum": lambda x: x.sum(1),  # with a prepare
    "max.dim": lambda x: x.max(1),  # several results
    "split_with_sizes": lambda x: x.split([1, 2], 1),
    "where": lambda x: plugrad.where(x > 0, x, -x),
    "gelu": lambda x: plugrad.ops.plugrad.gelu(x),
    "cat": lambda x: plugrad.cat([x, x]),
    "transpose.int": lambda x: x.transpose(0, 1),
    "add_": lambda x: x.clone().add_(x, alpha=2),  # in place
    "exp_": lambda x: x.clone().exp_(),
    "zero_": lambda x: x.clone().zero_(),
    "copy_": lambda x: plugrad.zeros(1, 3).copy_(x),
    "_to_copy": lambda x: x.to(plugrad.float64) + x,  # casts
    "zeros": lambda x: plugrad.zeros(2, 3),  # no tensor
    "normal_": lambda x: x.clone().normal_(generator=plugrad.Generator().manual_seed(3)),
}


def plugin_with(table: dict[str, Any], backend: str = "cpu") -> Any:
    module = types.ModuleType("plugrad_moon")
    vars(module)["plugrad_kernels"] = hookimpl(lambda: {backend: table})
    return module


@contextmanager
def preferred(manager: PluginManager, table: dict[str, Any], name: str = "moon") -> Iterator[None]:
    """Kernels for the cpu that count before its own."""
    manager.register(plugin_with(table), name)
    with plugrad.config.set(prefer=[name]):
        yield
    manager.unregister(name)


@pytest.mark.parametrize("name", CALLS)
def test_where_a_kernel_declines_the_backends_own_one_runs(
    manager: PluginManager, name: str
) -> None:
    asked: list[str] = []

    def decline(*args: Any) -> Any:
        asked.append(name)
        return NotImplemented

    expected = CALLS[name](plugrad.tensor(X))
    with preferred(manager, {name: decline}):
        x = plugrad.tensor(X, requires_grad=name == "exp")
        found = CALLS[name](x)
        if name == "exp":
            found.sum().backward()
            assert_close(x.grad, expected)
            found = found.detach()
    assert asked
    assert_close(found, expected)


def test_kernels_that_decline_are_asked_in_the_order_of_preference(manager: PluginManager) -> None:
    asked: list[str] = []

    def declining(name: str) -> Callable[..., Any]:
        return lambda *args: asked.append(name) or NotImplemented

    for name in ("one", "two", "three"):
        manager.register(plugin_with({"exp": declining(name)}), name)
    with plugrad.config.set(prefer=["two", "one"]):
        assert plugrad.zeros(1).exp().item() == 1.0
    assert asked == ["two", "one"]
    for name in ("one", "two", "three"):
        manager.unregister(name)


class Declining(Backend):
    """NumPy arrays, and kernels that decline where the test says so."""

    def __init__(self, declines: tuple[str, ...], fallback: str | None = None) -> None:
        super().__init__("timid", array_type=np.ndarray, fallback=fallback)
        self.declines = declines

    def as_array(self, value: Any) -> Any:
        return np.asarray(value)

    def kernels(self) -> Any:
        from plugrad_cpu.backend import CpuBackend

        table = dict(CpuBackend().kernels())
        return table | {name: (lambda *args: NotImplemented) for name in self.declines}


@contextmanager
def active(backend: Backend) -> Iterator[None]:
    from plugrad.dispatch.backends.active import activate_backend, deactivate_backend

    activate_backend(backend)
    try:
        yield
    finally:
        deactivate_backend(backend.name)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("gelu", CALLS["gelu"]),
        ("square", lambda x: x.square()),
        ("add_", CALLS["add_"]),
        ("addmm", lambda x: plugrad.addmm(x, x.mT @ x, x.mT @ x) if x.ndim > 2 else x.square()),
        ("_to_copy", lambda x: x.to(plugrad.float64)),
        ("softplus", lambda x: plugrad.ops.plugrad.softplus(x)),
        ("exp_", CALLS["exp_"]),
    ],
)
def test_where_the_only_kernel_declines_the_decomposition_runs(
    name: str, call: Callable[[Any], Any]
) -> None:
    expected = call(plugrad.tensor(X))
    with active(Declining((name,))):
        assert_close(call(plugrad.tensor(X, device="timid")).cpu(), expected)


def test_where_nothing_is_left_the_error_says_who_declined() -> None:
    with active(Declining(("exp",))):
        x = plugrad.tensor(X, device="timid")
        message = "the kernel of backend 'timid' declined by returning NotImplemented, and there is"
        with pytest.raises(OperatorNotFoundError, match=message) as caught:
            x.exp()
        assert caught.value.operator == "plugrad::exp"
    with active(Declining(("exp",), fallback="cpu")):
        x = plugrad.tensor(X, device="timid")
        with pytest.warns(plugrad.plugins.HostFallbackWarning):
            assert_close(x.exp().cpu(), plugrad.tensor(X).exp())


def test_a_registered_kernel_that_declines_leaves_it_to_the_backends() -> None:
    library = plugrad.library.Library("plugrad", "IMPL")
    asked: list[Any] = []
    with active(Declining(())):
        library.impl(
            "exp",
            lambda a: asked.append(a) or NotImplemented,
            "Timid",
            raw=True,
            allow_override=True,
        )
        assert_close(plugrad.tensor(X, device="timid").exp().cpu(), plugrad.tensor(X).exp())
        library._destroy()
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("name", "returned", "problem"),
    [
        ("exp", None, "no array: expected numpy.ndarray, got None"),
        ("exp", "text", "no array: expected numpy.ndarray, got str"),
        ("exp", [[1.0], [1.0, 2.0]], "no array: expected numpy.ndarray, got list"),
        ("exp", np.zeros((1, 3)), "an array of float64: expected float32"),
        ("exp", np.zeros(3, np.float32), r"an array of shape \[3\]: expected \[1, 3\]"),
        ("gt", np.zeros((1, 3), np.float32), "an array of float32: expected bool"),
        ("add", None, "no array: expected numpy.ndarray, got None"),
        ("sum", None, "no array: expected numpy.ndarray, got None"),
        ("sum", np.zeros((1, 3), np.float32), r"an array of shape \[1, 3\]: expected \[1\]"),
        ("sum", (np.zeros(1), np.zeros(1)), "a tuple of 2: expected one array"),
        ("gelu", np.zeros((1, 3)), "an array of float64: expected float32"),
        ("max.dim", np.zeros(1), "numpy.ndarray: expected a tuple of 2 arrays"),
        ("max.dim", (np.zeros(1),), "tuple of 1: expected a tuple of 2 arrays"),
        ("split_with_sizes", None, "NoneType: expected a list of arrays"),
    ],
)
def test_what_a_kernel_for_the_cpu_returns_is_checked(
    manager: PluginManager, name: str, returned: Any, problem: str
) -> None:
    whose = "the kernel of plugrad_moon on backend 'cpu'"
    message = rf"^{whose} for 'plugrad::{name}[\w.]*' returned {problem}"
    with (
        preferred(manager, {name: lambda *args: returned}),
        pytest.raises(TypeError, match=message),
    ):
        CALLS[name](plugrad.tensor(X))


def test_of_several_kernels_the_one_that_ran_is_named(
    manager: PluginManager, cpu: ActiveBackend
) -> None:
    manager.register(plugin_with({"exp": lambda a: None}), "wrong")
    manager.register(plugin_with({"exp": lambda a: NotImplemented}), "shy")
    plugin = manager.discovered()["wrong"]
    plugin.distribution = "plugrad-wrong"
    with (
        plugrad.config.set(prefer=["shy", "wrong"]),
        pytest.raises(TypeError, match="the kernel of plugrad-wrong on backend 'cpu' for"),
    ):
        plugrad.zeros(1).exp()
    manager.unregister("wrong")
    manager.unregister("shy")


def test_a_trace_shows_whose_kernel_runs_and_who_declined(manager: PluginManager) -> None:
    with (
        preferred(manager, {"exp": lambda a: NotImplemented if a.size > 2 else np.exp(a)}),
        plugrad.record_dispatch_trace() as events,
    ):
        plugrad.zeros(2).exp()
        plugrad.zeros(3).exp()
    lines = [repr(event).strip() for event in events if event.op == "plugrad::exp"]
    assert lines == [
        "[call] op=[plugrad::exp], key=[AutogradCPU]",
        "[redispatch] op=[plugrad::exp], key=[CPU], kernel=[plugrad_moon]",
        "[call] op=[plugrad::exp], key=[AutogradCPU]",
        "[redispatch] op=[plugrad::exp], key=[CPU], kernel=[plugrad_moon]",
        "[declined] op=[plugrad::exp], kernel=[plugrad_moon]",
    ]
    with plugrad.record_dispatch_trace() as events:
        plugrad.zeros(2).exp()
    assert [event.kernel for event in events if event.key == "CPU"][-1] == "backend 'cpu'"


@pytest.mark.parametrize(
    ("name", "kernel"),
    [("exp", lambda a, b: a), ("add", lambda a: a), ("sum", lambda: None), ("gelu", lambda a: a)],
)
def test_a_kernel_with_a_wrong_signature_is_named(
    manager: PluginManager, name: str, kernel: Callable[..., Any]
) -> None:
    with (
        preferred(manager, {name: kernel}),
        pytest.raises((TypeError, RuntimeError), match=r"missing|takes") as caught,
    ):
        CALLS[name](plugrad.tensor(X))
    # Compiled code keeps no cause, only the context.
    (note,) = (caught.value.__context__ or caught.value).__notes__
    assert note.startswith(f"A kernel for plugrad::{name}")
    assert "was called, from plugrad_moon. Kernels get arrays and numbers by position" in note
