"""Modules without their first weights: skip_init, and the old name of functional_call."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

from plugrad import func
from plugrad.plugins.arguments import explains
from plugrad_nn.nn.module import Module

__all__ = ["functional_call", "skip_init"]


@explains
def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """`plugrad.func.functional_call` under its old name; warns with FutureWarning.

    Args:
        module, parameters_and_buffers, args, kwargs, tie_weights, strict: see there.

    >>> import plugrad, warnings
    >>> from plugrad.nn.utils import stateless
    >>> warnings.simplefilter("ignore", FutureWarning)
    >>> layer = plugrad.nn.Linear(1, 1, bias=False)
    >>> weights = {"weight": plugrad.tensor([[2.0]])}
    >>> stateless.functional_call(layer, weights, plugrad.ones(1, 1)).item()
    2.0
    """
    warnings.warn(
        "`plugrad.nn.utils.stateless.functional_call` is deprecated. Please use "
        "`plugrad.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=3,  # beyond the decorator
    )
    return func.functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def skip_init(module_cls: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Creates a module with uninitialized weights: no numbers are drawn.

    RuntimeError if the class is not a module, or has no argument `device`.

    Args:
        module_cls: the class.
        args, kwargs: of its constructor; `device` is where the parameters are.

    >>> import plugrad
    >>> plugrad.nn.utils.skip_init(plugrad.nn.Linear, 3, 2)
    Linear(in_features=3, out_features=2, bias=True)
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    make: Any = module_cls
    return make(*args, device="meta", **kwargs).to_empty(device=device)
