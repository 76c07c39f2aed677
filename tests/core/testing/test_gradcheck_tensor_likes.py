"""gradcheck of functions of values that are no Tensors but behave like some."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad.testing import GradcheckError, gradcheck, gradgradcheck


class Wrapper:
    """Holds a tensor and forwards calls to it."""

    def __init__(self, tensor: Any) -> None:
        self.__dict__["tensor"] = tensor

    @classmethod
    def __plugrad_function__(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        unwrapped = {name: _unwrap(value) for name, value in kwargs.items()}
        return _wrap(func(*_unwrap(args), **unwrapped))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.tensor, name)
        if not callable(found):
            return _wrap(found)
        return lambda *args, **kwargs: _wrap(found(*_unwrap(args), **kwargs))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.tensor, name, _unwrap(value))


def _unwrap(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_unwrap(item) for item in value)
    return value.tensor if isinstance(value, Wrapper) else value


def _wrap(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_wrap(item) for item in value)
    return Wrapper(value) if isinstance(value, plugrad.Tensor) else value


def _leaf(value: float) -> Any:
    return Wrapper(plugrad.tensor(value, dtype=plugrad.float64, requires_grad=True))


@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_right_gradient_passes(fast_mode: bool) -> None:
    inputs = (_leaf(5.0), _leaf(6.0))
    assert gradcheck(plugrad.mul, inputs, fast_mode=fast_mode, check_batched_grad=True)
    assert gradgradcheck(plugrad.mul, inputs, fast_mode=fast_mode)


def test_a_wrong_gradient_is_caught() -> None:
    class Wrong(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0]

    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to"):
        gradcheck(lambda x: _wrap(Wrong.apply(_unwrap(x))), _leaf(5.0))
