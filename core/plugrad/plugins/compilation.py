"""`plugrad.compile`: have the backend run a step as one program, if it can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from plugrad.dispatch.backends.active import canonical_device, find_backend

_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def compile(function: _F, *, device: object = None, **options: Any) -> _F: ...
@overload
def compile(
    function: None = None, *, device: object = None, **options: Any
) -> Callable[[_F], _F]: ...
def compile(
    function: Callable[..., Any] | None = None, *, device: object = None, **options: Any
) -> Any:
    """A version of a function over tensors that the backend runs as one program.

    The function is a whole step: forward, backward and what the optimizer does, say. What it may do
    and which options there are, the backend's documentation tells; `plugrad_jax.jit` for example. A
    backend that cannot makes no difference: the result is `function` itself. So the same program
    runs everywhere, as fast as can be.

    Args:
        function: the step; without it, the result is a decorator.
        device: whose backend shall compile; by default that of the default device.
        options: for the backend.

    Raises:
        TypeError: `function` is no function; a module's forward is no step.

    >>> import plugrad
    >>> @plugrad.compile
    ... def step(x):
    ...     return (x * x).sum()
    >>> step(plugrad.tensor([1.0, 2.0]))
    tensor(5.)
    """
    if function is None:
        return lambda given: compile(given, device=device, **options)
    if hasattr(function, "named_parameters"):
        raise TypeError(
            "compile(): expected a function that does a whole step, got the module "
            f"{type(function).__name__}: put the call of the module, backward and the optimizer's "
            "step into a function and compile that"
        )
    if not callable(function):
        raise TypeError(f"compile(): expected a function, got {type(function).__name__}")
    backend = find_backend(canonical_device(device).type).backend
    if "jit" not in backend.capabilities():
        return function
    return backend.jit(function, **options)
