"""The function and the arguments that an override gets, expression by expression as in PyTorch."""

from __future__ import annotations

import copy
import operator
from types import ModuleType
from typing import Any

import pytest

import plugrad

# What is done to x (of the class that logs) and y (a plain tensor), both 2x2.
OPERATORS = {
    "x + 1": lambda t, x, y: x + 1,
    "1 + x": lambda t, x, y: 1 + x,
    "y + x": lambda t, x, y: y + x,
    "x - 1": lambda t, x, y: x - 1,
    "1 - x": lambda t, x, y: 1 - x,
    "x * y": lambda t, x, y: x * y,
    "2 * x": lambda t, x, y: 2 * x,
    "x / 2": lambda t, x, y: x / 2,
    "1 / x": lambda t, x, y: 1 / x,
    "x // 2": lambda t, x, y: x // 2,
    "3 // x": lambda t, x, y: 3 // x,
    "x % 2": lambda t, x, y: x % 2,
    "2 % x": lambda t, x, y: 2 % x,
    "x ** 2": lambda t, x, y: x**2,
    "2 ** x": lambda t, x, y: 2**x,
    "x @ y": lambda t, x, y: x @ y,
    "y @ x": lambda t, x, y: y @ x,
    "-x": lambda t, x, y: -x,
    "+x": lambda t, x, y: +x,
    "abs(x)": lambda t, x, y: abs(x),
    "~x.bool()": lambda t, x, y: ~x.bool(),
    "x == 1": lambda t, x, y: x == 1,
    "x != y": lambda t, x, y: x != y,
    "x < 1": lambda t, x, y: x < 1,
    "x <= 1": lambda t, x, y: x <= 1,
    "x > 1": lambda t, x, y: x > 1,
    "x >= 1": lambda t, x, y: x >= 1,
    "x.bool() & True": lambda t, x, y: x.bool() & True,
    "True & x.bool()": lambda t, x, y: True & x.bool(),
    "x.bool() | True": lambda t, x, y: x.bool() | True,
    "x.bool() ^ True": lambda t, x, y: x.bool() ^ True,
    "x += 1": lambda t, x, y: operator.iadd(x, 1),
    "x -= 1": lambda t, x, y: operator.isub(x, 1),
    "x *= 2": lambda t, x, y: operator.imul(x, 2),
    "x /= 2": lambda t, x, y: operator.itruediv(x, 2),
    "x //= 2": lambda t, x, y: operator.ifloordiv(x, 2),
    "x **= 2": lambda t, x, y: operator.ipow(x, 2),
    "x %= 2": lambda t, x, y: operator.imod(x, 2),
    "y += x": lambda t, x, y: operator.iadd(y, x),
}
FUNCTIONS = {
    "add": lambda t, x, y: t.add(x, 1, alpha=2),
    "sum": lambda t, x, y: t.sum(x, 0),
    "out": lambda t, x, y: t.add(y, y, out=x),
    "stack": lambda t, x, y: t.stack([x, y]),
    "cat": lambda t, x, y: t.cat((y, x)),
    "einsum": lambda t, x, y: t.einsum("ij,jk->ik", x, y),
    "where": lambda t, x, y: t.where(x > 0, x, y),
    "max": lambda t, x, y: t.max(x),
    "max with dim": lambda t, x, y: t.max(x, dim=0),
    "ones_like": lambda t, x, y: t.ones_like(x),
    "relu": lambda t, x, y: t.relu(x),
    "allclose": lambda t, x, y: t.allclose(x, y),
    "result_type": lambda t, x, y: t.result_type(x, y),
    "tensor": lambda t, x, y: t.as_tensor(x),
    "backward": lambda t, x, y: t.autograd.backward(x.detach().requires_grad_().sum()),
}
METHODS = {
    "sum": lambda t, x, y: x.sum(0),
    "view": lambda t, x, y: x.view(2, 2),
    "view with a tuple": lambda t, x, y: x.view((4,)),
    "max": lambda t, x, y: x.max(dim=0),
    "new_zeros": lambda t, x, y: x.new_zeros(2),
    "requires_grad_": lambda t, x, y: x.detach().requires_grad_(),
    "size": lambda t, x, y: (x.size(), x.size(0)),
    "dim": lambda t, x, y: x.dim(),
    "numel": lambda t, x, y: x.numel(),
    "stride": lambda t, x, y: x.stride(),
    "is_contiguous": lambda t, x, y: x.is_contiguous(),
    "is_floating_point": lambda t, x, y: x.is_floating_point(),
    "element_size": lambda t, x, y: x.element_size(),
    "_is_view": lambda t, x, y: x._is_view(),
    "item": lambda t, x, y: x[0, 0].item(),
    "tolist": lambda t, x, y: x.tolist(),
    "numpy": lambda t, x, y: x.numpy(),
    "as_subclass": lambda t, x, y: x.as_subclass(t.Tensor),
    "len": lambda t, x, y: len(x),
    "in": lambda t, x, y: 1 in x,
    "reversed": lambda t, x, y: reversed(x),
    "bool": lambda t, x, y: bool(x.sum()),
    "int": lambda t, x, y: int(x[0, 0]),
    "float": lambda t, x, y: float(x[0, 0]),
    "complex": lambda t, x, y: complex(x[0, 0]),
    "index": lambda t, x, y: operator.index(x[0, 0].long()),
    "getitem": lambda t, x, y: x[0, 1:],
    "setitem": lambda t, x, y: operator.setitem(x, 0, 1.0),
    "setitem of a tensor": lambda t, x, y: operator.setitem(y, 0, x[0]),
    "index a plain tensor": lambda t, x, y: y[(x - 1).long()],
    "format": lambda t, x, y: f"{x}",
    "hash": lambda t, x, y: hash(x),
    "__reduce_ex__": lambda t, x, y: x.__reduce_ex__(2),
    "dlpack": lambda t, x, y: x.__dlpack_device__(),
}
PROPERTIES = {
    **{
        name: (lambda t, x, y, name=name: getattr(x, name))
        for name in (
            *("shape", "dtype", "device", "ndim", "T", "mT", "H", "real", "grad", "requires_grad"),
            *("grad_fn", "is_leaf", "data", "_version", "_base", "nbytes", "itemsize", "is_cpu"),
            *("retains_grad", "output_nr"),
        )
    },
    "grad = None": lambda t, x, y: setattr(x, "grad", None),
    "data = y": lambda t, x, y: setattr(x, "data", y),
    "requires_grad = False": lambda t, x, y: setattr(x, "requires_grad", False),
}


def _log(torch: ModuleType, program: Any) -> tuple[list[tuple[str, Any]], Any]:
    """The calls that the override sees, and what the program returns."""
    calls: list[tuple[str, Any]] = []

    class Logged(torch.Tensor):  # type: ignore[misc, name-defined]  # the class of either library
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            with disabled():
                name = torch.overrides.resolve_name(func) or func.__name__
                calls.append((_public(name), [_plain(torch, arg) for arg in args]))
            return super().__torch_function__(func, types, args, kwargs)

    disabled = (
        torch.overrides.DisableTorchFunctionSubclass
        if torch is plugrad
        else torch._C.DisableTorchFunctionSubclass
    )
    x = (torch.eye(2) + 1).as_subclass(Logged)
    result = program(torch, x, torch.ones(2, 2))
    calls_then = list(calls)
    return calls_then, type(result).__name__


def _public(name: str) -> str:
    last = name.split(".", 1)[1] if name.startswith(("torch.", "plugrad.")) else name
    return last.removeprefix("functional.").removeprefix("autograd.").removeprefix("_tensor.")


def _plain(torch: ModuleType, value: Any) -> Any:
    """An argument, in terms that do not depend on the library."""
    if isinstance(value, torch.Tensor):
        return type(value).__name__
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [_plain(torch, item) for item in value]
    return value if isinstance(value, (int, float, str, slice, type(None))) else ""


@pytest.mark.parametrize("program", OPERATORS.values(), ids=OPERATORS)
def test_operators_are_told_as_pytorch_tells_them(torch_oracle: ModuleType, program: Any) -> None:
    assert _log(plugrad, program) == _log(torch_oracle, program)


@pytest.mark.parametrize("program", METHODS.values(), ids=METHODS)
def test_methods_are_told_as_pytorch_tells_them(torch_oracle: ModuleType, program: Any) -> None:
    assert _log(plugrad, program) == _log(torch_oracle, program)


@pytest.mark.parametrize("program", PROPERTIES.values(), ids=PROPERTIES)
def test_properties_are_told_as_pytorch_tells_them(torch_oracle: ModuleType, program: Any) -> None:
    ours, theirs = _log(plugrad, program), _log(torch_oracle, program)
    assert ours[0] == theirs[0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_told_as_pytorch_tells_them(torch_oracle: ModuleType, name: str) -> None:
    ours, theirs = _log(plugrad, FUNCTIONS[name])[0], _log(torch_oracle, FUNCTIONS[name])[0]
    if name == "backward":  # which PyTorch gives a tuple
        ours, theirs = [call[:1] for call in ours], [call[:1] for call in theirs]
    assert ours == theirs


def test_iteration_unbinds(torch_oracle: ModuleType) -> None:
    calls, _ = _log(plugrad, lambda t, x, y: next(iter(x)))
    assert [name for name, _ in calls] == ["Tensor.unbind"]


def test_deepcopy_is_told() -> None:
    calls, kind = _log(plugrad, lambda t, x, y: copy.deepcopy(x))
    assert [name for name, _ in calls] == ["Tensor.__deepcopy__"]
    assert kind == "Logged"
