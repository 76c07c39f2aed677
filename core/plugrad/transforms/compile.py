"""`plugrad.compile`: a step captured once, and run by the backend or a named lowering."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from plugrad.dispatch.backends.active import (
    ActiveBackend,
    active_backends,
    canonical_device,
    find_backend,
)
from plugrad.dispatch.backends.backend import Backend
from plugrad.errors import BackendNotFoundError
from plugrad.plugins.compiling.lowerings import (
    Lowering,
    lowering_names,
    lowering_of,
    register_lowering,
)

if TYPE_CHECKING:
    from plugrad.transforms.lowering.compiled import Compiled

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)


class CompiledStep(Protocol[_P, _R]):
    """The type of `plugrad.compile`'s result, for type checkers."""

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any: ...
    def explain(self) -> str: ...
    def graphs(self) -> list[Any]: ...
    def cache_info(self) -> Any: ...
    def cache_clear(self) -> None: ...


def _tape(step: Any) -> Callable[..., list[Any]]:
    from plugrad.transforms.lowering.tape import Tape  # most processes do not compile

    return Tape(step)


register_lowering("tape", _tape)


@overload
def compile(
    function: Callable[_P, _R],
    *,
    backend: str | Callable[..., Any] | None = None,
    device: object = None,
    **options: Any,
) -> CompiledStep[_P, _R]: ...
@overload
def compile(
    function: None = None,
    *,
    backend: str | Callable[..., Any] | None = None,
    device: object = None,
    **options: Any,
) -> Callable[[Callable[_P, _R]], CompiledStep[_P, _R]]: ...
def compile(
    function: Callable[..., Any] | None = None,
    *,
    backend: str | Callable[..., Any] | None = None,
    device: object = None,
    **options: Any,
) -> Any:
    """Compile a function over tensors into one program.

    The function is a whole step, for example forward, backward and the optimizer's step. Its first
    calls run uncompiled and are recorded. The recording is lowered to a program, which later calls
    of the same kind run. A step that cannot be compiled runs uncompiled, and `explain()` of the
    result says why. See docs/compile.md.

    Args:
        function: the step; without it, the result is a decorator.
        backend: the compiler. "tape" calls the backend's kernels one after another; it is the
            default if the backend has no compiler of its own. "jax" is XLA, for tensors on JAX
            devices and on the CPU. Other names are plugins' lowerings; a function is itself a
            lowering, see `plugrad.plugins.compiling.lowerings`.
        device: selects the backend if `backend` is None; by default the default device.
        options: for the tape `state`, which lists modules, optimizers and tensors that cannot be
            found by searching the function, and `limit`, the maximal number of recordings, 8 by
            default. For options of a backend see its documentation, such as `plugrad_jax.jit`.

    Raises:
        TypeError: `function` is not a function (a module's forward is not a step), or an option
            does not exist.
        ValueError: there is no lowering called `backend`.

    >>> import plugrad
    >>> @plugrad.compile
    ... def step(x):
    ...     return (x * x).sum()
    >>> step(plugrad.tensor([1.0, 2.0]))
    tensor(5.)
    >>> step(plugrad.tensor([2.0, 3.0]))
    tensor(13.)
    """
    if function is None:
        return lambda given: compile(given, backend=backend, device=device, **options)
    if hasattr(function, "named_parameters"):
        raise TypeError(
            "compile(): expected a function that does a whole step, got the module "
            f"{type(function).__name__}: put the call of the module, backward and the optimizer's "
            "step into a function and compile that"
        )
    if not callable(function):
        raise TypeError(f"compile(): expected a function, got {type(function).__name__}")
    if backend is None:
        own = find_backend(canonical_device(device).type).backend
        if "jit" in own.capabilities():
            return own.jit(function, **options)
        return _compiled(function, _default_lowering, **options)
    if isinstance(backend, str):
        if backend not in lowering_names():
            return _by_backend(function, backend, options)
        found = lowering_of(backend)
    elif callable(backend):
        found = backend
    else:
        raise TypeError(
            f"compile(): argument 'backend' must be str or a function, not {type(backend).__name__}"
        )
    chosen: Lowering = found
    return _compiled(function, lambda _: chosen, **options)


def _compiled(
    function: Callable[..., Any],
    lowering: Callable[[ActiveBackend], Lowering],
    state: Any = (),
    limit: int = 8,
    **others: Any,
) -> Compiled:
    if others:
        raise TypeError(f"compile(): the tape has no option {next(iter(others))!r}")
    if type(limit) is not int or limit < 1:
        raise ValueError(f"compile(): limit must be a positive int, got {limit!r}")
    from plugrad.transforms.lowering.compiled import Compiled

    return Compiled(function, lowering, state, limit)


def _default_lowering(active: ActiveBackend) -> Lowering:
    """The lowering that a backend uses for its captured steps."""
    if "compile" in active.backend.capabilities():
        return active.backend.compile
    return _tape


def _by_backend(function: Callable[..., Any], name: str, options: dict[str, Any]) -> Any:
    try:
        own = find_backend(name).backend
    except BackendNotFoundError as error:
        raise ValueError(_not_there(f"there is no lowering called {name!r}")) from error
    if "jit" in own.capabilities():
        made = own.jit(function, **options)
        if type(own).compile_on_host is Backend.compile_on_host:
            return made
        from plugrad.transforms.lowering.by_device import ByDevice

        return ByDevice(
            name, made, lambda: _compiled(function, lambda _: own.compile_on_host, **options)
        )
    if "compile" in own.capabilities():
        return _compiled(function, lambda _: own.compile, **options)
    raise ValueError(_not_there(f"the backend {name!r} has no compiler of its own"))


def _not_there(what: str) -> str:
    compilers = [
        active.name for active in active_backends() if "jit" in active.backend.capabilities()
    ]
    names = ", ".join(map(repr, sorted({*lowering_names(), *compilers})))
    return f"compile(): {what}; expected one of {names}"
