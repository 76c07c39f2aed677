"""`autocast`, and decorators for an `autograd.Function`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

import numpy as np

from plugrad.amp.thread_state import (
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
)
from plugrad.device import as_device
from plugrad.dispatch.autocast import AutocastRegion
from plugrad.dispatch.backends.active import find_backend
from plugrad.dispatch.scope import Within
from plugrad.dtype import FLOATING, DType, float32, float64
from plugrad.ops.autocast import autocast_dtypes
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.arguments import raise_argument_error

_F = TypeVar("_F", bound=Callable[..., Any])

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for a device type.

    Raises:
        BackendNotFoundError: no backend of that name is installed.

    >>> import plugrad
    >>> plugrad.amp.is_autocast_available("cpu"), plugrad.amp.is_autocast_available("meta")
    (True, False)
    """
    return len(autocast_dtypes(as_device(device_type).type)) != 0


def _check_device_type(device_type: object) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def _has_devices(device_type: str) -> bool:
    try:
        return find_backend(device_type).backend.device_count() > 0
    except RuntimeError:
        return False


class autocast(AutocastRegion):
    """Context manager and decorator: operators run in the dtype that suits them.

    Matrix products and convolutions run in `dtype`, operators that need range or precision in
    float32, the rest in the dtypes of their arguments. Weights, which are float32 leaves that
    require grad, are cast once per outermost region. It applies to the calling thread, and in
    backward to the device threads that work for it. Run backward outside the region: gradients
    have the dtypes of the forward anyway.

    Args:
        device_type: the device of the tensors: ``"cpu"``, or any backend with autocast.
        dtype: default `get_autocast_dtype(device_type)`: bfloat16 on the CPU.
        enabled: False: operators within run in the dtypes of their arguments.
        cache_enabled: whether casts of weights are kept; default as around the region.

    Raises:
        ValueError: `device_type` is not a string.
        BackendNotFoundError: no backend of that name is installed.
        RuntimeError: it is "meta", which has no autocast.

    A backend without autocast, and a dtype that the backend does not support, give a warning, and
    nothing is cast.

    >>> import plugrad
    >>> x, weight = plugrad.ones(2, 3), plugrad.ones(3, 4, requires_grad=True)
    >>> with plugrad.autocast("cpu", dtype=plugrad.bfloat16):
    ...     y = x @ weight
    ...     loss = plugrad.nn.functional.mse_loss(y, plugrad.zeros(2, 4))
    >>> y.dtype, loss.dtype
    (plugrad.bfloat16, plugrad.float32)
    >>> loss.backward()
    >>> weight.grad.dtype
    plugrad.float32
    """

    def __init__(
        self,
        device_type: str,
        dtype: DType | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        _check_device_type(device_type)
        self.device = as_device(device_type).type
        supported = autocast_dtypes(self.device)
        if not supported and self.device == "meta":
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{self.device}'"
            )
        if not supported and enabled:
            warnings.warn(
                f"The backend {self.device!r} has no autocast, since it has no 16-bit floating "
                "point dtype. Disabling autocast.",
                stacklevel=2,
            )
            enabled = False
        self._cache_enabled = (
            is_autocast_cache_enabled() if cache_enabled is None else bool(cache_enabled)
        )
        if enabled and self.device == "cuda" and not _has_devices("cuda"):
            warnings.warn("CUDA is not available. Disabling autocast.", stacklevel=2)
            enabled = False
        given: object = dtype
        if isinstance(given, DType):
            self.fast_dtype = given
        elif given is not None and enabled:
            raise_argument_error("autocast", "dtype", 2, "plugrad.dtype", given)
        else:
            self.fast_dtype = get_autocast_dtype(self.device) if supported else float32
        if enabled and self.fast_dtype not in supported:
            name = self.device.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of {', '.join(map(str, supported))} "
                "currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = bool(enabled)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function.

        Raises:
            TypeError: it cannot be called.
        """
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. "
                "Did you mean to use autocast as a context manager? For example:\n"
                "    with plugrad.autocast(device_type=...):\n"
                "        output = model(input)"
            )

        @functools.wraps(func)
        def with_autocast(*args: Any, **kwargs: Any) -> Any:
            with Within(self):
                return func(*args, **kwargs)

        return with_autocast


def _cast(value: Any, device_type: str, dtype: DType) -> Any:
    """`value` with the floating tensors of a device type, also within containers, in a dtype."""
    if isinstance(value, TensorBase):
        tensor: Any = value
        eligible = (
            tensor.dtype.category == FLOATING
            and tensor.device.type == device_type
            and tensor.dtype is not float64
        )
        return tensor.to(dtype) if eligible else tensor
    if isinstance(value, str | bytes | np.ndarray):
        return value
    if isinstance(value, Mapping):
        return {
            _cast(key, device_type, dtype): _cast(item, device_type, dtype)
            for key, item in value.items()
        }
    if isinstance(value, Iterable):
        items = (_cast(item, device_type, dtype) for item in value)
        return type(value)(items) if isinstance(value, list | tuple) else items
    return value


@overload
def custom_fwd(fwd: _F, *, device_type: str, cast_inputs: DType | None = None) -> _F: ...
@overload
def custom_fwd(
    fwd: None = None, *, device_type: str, cast_inputs: DType | None = None
) -> Callable[[_F], _F]: ...
def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: DType | None = None
) -> Any:
    """Decorator for `forward` of an `autograd.Function` that supports autocast.

    Args:
        device_type: the device type of the autocast region.
        cast_inputs: within a region floating inputs are cast to this dtype, and autocast is off
            in `forward`; None: `forward` autocasts like the region. It has no effect outside
            regions.

    Raises:
        ValueError: `device_type` is not a string.

    >>> import plugrad
    >>> class Product(plugrad.autograd.Function):
    ...     @staticmethod
    ...     @plugrad.amp.custom_fwd(device_type="cpu", cast_inputs=plugrad.float32)
    ...     def forward(ctx, a, b):
    ...         ctx.save_for_backward(a, b)
    ...         return a @ b
    ...     @staticmethod
    ...     @plugrad.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         a, b = ctx.saved_tensors
    ...         return grad @ b.t(), a.t() @ grad
    >>> with plugrad.autocast("cpu"):
    ...     Product.apply(plugrad.ones(2, 2), plugrad.ones(2, 2)).dtype
    plugrad.float32
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    function = fwd
    if not callable(function):
        raise_argument_error("custom_fwd", "fwd", 1, "callable", function)

    @functools.wraps(function)
    def forward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._dtype = get_autocast_dtype(device_type)
        within = is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = within and cast_inputs is None
        if cast_inputs is None or not within:
            return function(*args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return function(
                *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs)
            )

    return forward


@overload
def custom_bwd(bwd: _F, *, device_type: str) -> _F: ...
@overload
def custom_bwd(bwd: None = None, *, device_type: str) -> Callable[[_F], _F]: ...
def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorator for `backward` of an `autograd.Function`: it autocasts if `forward` did, which
    `custom_fwd` decorates.

    Raises:
        ValueError: `device_type` is not a string.

    >>> import plugrad
    >>> from plugrad.amp import custom_bwd, custom_fwd
    >>> class Product(plugrad.autograd.Function):
    ...     @staticmethod
    ...     @custom_fwd(device_type="cpu")
    ...     def forward(ctx, a, b):
    ...         ctx.save_for_backward(a, b)
    ...         return a @ b
    ...     @staticmethod
    ...     @custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         a, b = ctx.saved_tensors
    ...         print((grad @ b.T).dtype)
    ...         return grad @ b.T, a.T @ grad
    >>> x = plugrad.ones(2, 2, requires_grad=True)
    >>> with plugrad.autocast("cpu"):
    ...     y = Product.apply(x, plugrad.ones(2, 2))
    >>> y.sum().backward()
    plugrad.bfloat16
    """
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    function = bwd

    @functools.wraps(function)
    def backward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type=device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return function(*args, **kwargs)

    return backward
