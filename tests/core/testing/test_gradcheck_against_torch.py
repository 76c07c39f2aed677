"""gradcheck finds what PyTorch's finds, and says it in the same words."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import pytest

import plugrad


def _hooked(hook: Any) -> Any:
    def function(x: Any) -> Any:
        y = x.clone()
        y.register_hook(hook)
        return y

    return function


def _leaf(torch: ModuleType, *values: Any, dtype: str = "float64") -> Any:
    return torch.tensor(list(values), dtype=getattr(torch, dtype), requires_grad=True)


def _wobbly(torch: ModuleType) -> Any:
    class Wobbly(torch.autograd.Function):  # type: ignore[misc, name-defined]  # of either library
        calls = 0.0

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            Wobbly.calls += 1.0
            return grad * (2 + 1e-8 * Wobbly.calls)

    return Wobbly.apply


def _refusing(grad: Any) -> Any:
    if grad is None:
        raise RuntimeError("x is undefined")


# What to check, as arguments of gradcheck.
CASES: dict[str, Any] = {
    "right": lambda t: (lambda x: x * x, _leaf(t, 1.0, 2.0)),
    "wrong": lambda t: (_hooked(lambda grad: grad + 1e-2), _leaf(t, 1.0, 2.0)),
    "wrong, complex": lambda t: (
        _hooked(lambda grad: grad + 1e-2),
        _leaf(t, 1 + 1j, dtype="complex128"),
    ),
    "wrong second output": lambda t: (
        lambda x, y: (x * y, _hooked(lambda grad: grad * 1.1)(y)),
        (_leaf(t, 1.0), _leaf(t, 2.0)),
    ),
    "complex to real": lambda t: (lambda z: z.abs(), _leaf(t, 1 + 2j, dtype="complex128")),
    "complex to complex": lambda t: (lambda z: z.exp(), _leaf(t, 1 + 2j, dtype="complex128")),
    "real to complex": lambda t: (lambda x: x * (1 + 2j), _leaf(t, 1.0)),
    "random": lambda t: (_wobbly(t), _leaf(t, 1.0)),
    "no output needs a gradient": lambda t: (lambda x: x.detach() * 2, _leaf(t, 1.0)),
    "none needed": lambda t: (lambda x: x.detach() * 0, _leaf(t, 1.0)),
    "an undefined gradient is refused": lambda t: (_hooked(_refusing), _leaf(t, 1.0)),
    "no input needs a gradient": lambda t: (lambda x: x, t.ones(1, dtype=t.float64)),
    "overlapping": lambda t: (lambda x: x, _leaf(t, 1.0).expand(2)),
    "shape depends on values": lambda t: (
        lambda x: t.cat([x, x]) if x.item() > 1 else x,
        _leaf(t, 1.0),
    ),
    "low precision": lambda t: (lambda x: x * 2, _leaf(t, 1.0, dtype="float32")),
    "fails": lambda t: (lambda x: x.reshape(7), _leaf(t, 1.0)),
}


def _outcome(torch: ModuleType, case: Any, check: str, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            said = str(getattr(torch.autograd, check)(*case(torch), **options))
        except Exception as error:
            # The values in the message have the library's precision; its words end with the line.
            said = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    warned = {f"{type(w.message).__name__}: {str(w.message)[:70]}" for w in caught}
    return [said.replace("plugrad", "torch")[:110], *sorted(warned)]


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_gradcheck(torch_oracle: ModuleType, name: str, fast_mode: bool) -> None:
    options = {"fast_mode": fast_mode}
    ours = _outcome(plugrad, CASES[name], "gradcheck", **options)
    assert ours == _outcome(torch_oracle, CASES[name], "gradcheck", **options)


@pytest.mark.parametrize("name", ["right", "wrong", "complex to real", "complex to complex"])
def test_gradgradcheck(torch_oracle: ModuleType, name: str) -> None:
    ours = _outcome(plugrad, CASES[name], "gradgradcheck")
    assert ours == _outcome(torch_oracle, CASES[name], "gradgradcheck")
